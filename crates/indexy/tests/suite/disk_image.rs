//! What a disk may hold after the power failed at any moment of a journal of system calls
//! (`tests/fault_shim/journal.rs`).
//!
//! The promise of the system, and no more: a file's bytes and length are durable after a sync of
//! the file, names of a directory after a sync of the directory. What was not synced survives in
//! part: each block of a file shows any of its states since the last sync, the length is any that
//! it has had since then, and each creation, rename and removal in a directory happened or did not.
//! A rename is one step.

use crate::support::Random;
use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
};

/// One call, as the journal has it.
pub struct Record {
    pub op: u8,
    a: u64,
    b: u64,
    first: Vec<u8>,
    second: Vec<u8>,
}

impl Record {
    /// The text of a mark.
    pub fn mark(&self) -> Option<&str> {
        (self.op == b'm').then(|| std::str::from_utf8(&self.first).unwrap())
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

pub fn read_journal(path: &Path) -> Vec<Record> {
    let bytes = std::fs::read(path).unwrap();
    let mut rest = &bytes[..];
    let mut records = Vec::new();
    fn take<'a>(rest: &mut &'a [u8], n: usize) -> &'a [u8] {
        let (taken, after) = rest.split_at(n);
        *rest = after;
        taken
    }
    while !rest.is_empty() {
        let op = take(&mut rest, 1)[0];
        let [a, b] = [(); 2].map(|()| u64::from_le_bytes(take(&mut rest, 8).try_into().unwrap()));
        let [first, second] = [(); 2].map(|()| {
            let len = u32::from_le_bytes(take(&mut rest, 4).try_into().unwrap());
            take(&mut rest, len as usize).to_vec()
        });
        records.push(Record {
            op,
            a,
            b,
            first,
            second,
        });
    }
    records
}

/// How much of what was not synced survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// All of it: the process died, the machine did not.
    Nothing,
    /// Nothing of it.
    Everything,
    /// Names, but no bytes.
    Bytes,
    /// Bytes, but no names.
    Names,
    /// Blocks of so many bytes, and names, at random.
    AtRandom { block: usize },
    /// The same with names in the order of their calls, up to a random one.
    InOrder { block: usize },
}

impl Loss {
    pub fn from_seed(seed: u64) -> Self {
        let block = if seed.is_multiple_of(4) { 512 } else { 4096 };
        match seed % 8 {
            0 => Self::Everything,
            1 => Self::Names,
            2 => Self::Nothing,
            3 => Self::Bytes,
            4 | 5 => Self::InOrder { block },
            _ => Self::AtRandom { block },
        }
    }
}

#[derive(Clone)]
enum Change {
    Written { at: usize, bytes: Vec<u8> },
    Len(usize),
}

fn apply(content: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Written { at, bytes } => {
            let end = at + bytes.len();
            if content.len() < end {
                content.resize(end, 0);
            }
            content[*at..end].copy_from_slice(bytes);
        }
        Change::Len(len) => content.resize(*len, 0),
    }
}

#[derive(Default)]
struct File {
    durable: Vec<u8>,
    current: Vec<u8>,
    /// Since the last sync.
    pending: Vec<Change>,
}

impl File {
    fn change(&mut self, change: Change) {
        apply(&mut self.current, &change);
        self.pending.push(change);
    }

    fn sync(&mut self) {
        for change in self.pending.drain(..) {
            apply(&mut self.durable, &change);
        }
    }

    fn after_crash(&self, loss: Loss, random: &mut Random) -> Vec<u8> {
        let block = match loss {
            Loss::Nothing | Loss::Names => return self.current.clone(),
            Loss::Everything | Loss::Bytes => return self.durable.clone(),
            Loss::AtRandom { block } | Loss::InOrder { block } => block,
        };
        let states = self.pending.len() as u64 + 1;
        let len = self.len_after(random.below(states) as usize);
        let mut content = vec![0; len];
        for (at, to) in (0..).step_by(block).zip(content.chunks_mut(block)) {
            // Half of the blocks are the newest or the oldest there is.
            let state = match random.below(4) {
                0 => 0,
                1 => states - 1,
                _ => random.below(states),
            };
            self.block_after(state as usize, at, to);
        }
        content
    }

    fn len_after(&self, changes: usize) -> usize {
        let after = |len: usize, change: &Change| match change {
            Change::Written { at, bytes } => len.max(at + bytes.len()),
            Change::Len(len) => *len,
        };
        self.pending[..changes]
            .iter()
            .fold(self.durable.len(), after)
    }

    fn block_after(&self, changes: usize, at: usize, to: &mut [u8]) {
        if let Some(durable) = self.durable.get(at..) {
            let n = durable.len().min(to.len());
            to[..n].copy_from_slice(&durable[..n]);
        }
        for change in &self.pending[..changes] {
            match change {
                Change::Written { at: from, bytes } => {
                    let (start, end) = (at.max(*from), (at + to.len()).min(from + bytes.len()));
                    if start < end {
                        to[start - at..end - at].copy_from_slice(&bytes[start - from..end - from]);
                    }
                }
                Change::Len(len) => to
                    .iter_mut()
                    .skip(len.saturating_sub(at))
                    .for_each(|b| *b = 0),
            }
        }
    }
}

type Id = usize;
type Names = BTreeMap<String, Id>;

/// A step in one directory or in two.
struct Step {
    changes: Vec<(Id, String, Option<Id>)>,
}

enum Node {
    File(File),
    /// The names that are durable, and those that are seen now.
    Dir(Names, Names),
}

/// A directory and everything below it, as the system shows it and as the disk has it.
pub struct Disk {
    nodes: Vec<Node>,
    inodes: HashMap<u64, Id>,
    /// Steps that no sync has made durable.
    steps: Vec<Step>,
}

const ROOT: Id = 0;

impl Disk {
    /// `inode`: of the directory, which is empty.
    pub fn new(inode: u64) -> Self {
        Self {
            nodes: vec![Node::Dir(Names::new(), Names::new())],
            inodes: HashMap::from([(inode, ROOT)]),
            steps: Vec::new(),
        }
    }

    fn names(&self, dir: Id) -> &Names {
        match &self.nodes[dir] {
            Node::Dir(_, now) => now,
            Node::File(_) => panic!("not a directory"),
        }
    }

    fn file(&mut self, inode: u64) -> &mut File {
        let id = self.inodes[&inode];
        match &mut self.nodes[id] {
            Node::File(file) => file,
            Node::Dir(..) => panic!("a directory"),
        }
    }

    /// The directory of `path`, and the last name of it.
    fn place<'a>(&self, path: &'a str) -> (Id, &'a str) {
        let (parents, name) = path.rsplit_once('/').unwrap_or(("", path));
        let parents = parents.split('/').filter(|name| !name.is_empty());
        (parents.fold(ROOT, |dir, name| self.names(dir)[name]), name)
    }

    fn found(&self, path: &str) -> Id {
        let (dir, name) = self.place(path);
        self.names(dir)[name]
    }

    fn step(&mut self, changes: Vec<(&str, Option<Id>)>) {
        let changes: Vec<_> = changes
            .into_iter()
            .map(|(path, to)| {
                let (dir, name) = self.place(path);
                (dir, name.to_owned(), to)
            })
            .collect();
        for (dir, name, to) in &changes {
            let Node::Dir(_, now) = &mut self.nodes[*dir] else {
                panic!("not a directory");
            };
            set(now, name, *to);
        }
        self.steps.push(Step { changes });
    }

    fn create(&mut self, record: &Record, node: Node) {
        let id = self.nodes.len();
        self.nodes.push(node);
        // A new file may have got the number of one that is gone.
        self.inodes.insert(record.a, id);
        self.step(vec![(text(&record.first), Some(id))]);
    }

    /// Does what the record says.
    pub fn play(&mut self, record: &Record) {
        let (first, second) = (&record.first, &record.second);
        match record.op {
            b'c' => self.create(record, Node::File(File::default())),
            b'd' => self.create(record, Node::Dir(Names::new(), Names::new())),
            b'w' => {
                let (at, bytes) = (record.b as usize, first.clone());
                self.file(record.a).change(Change::Written { at, bytes });
            }
            b't' => self.file(record.a).change(Change::Len(record.b as usize)),
            b's' => self.sync(record.a),
            b'r' => {
                let id = self.found(text(first));
                self.step(vec![(text(first), None), (text(second), Some(id))]);
            }
            b'l' => {
                let id = self.found(text(first));
                self.step(vec![(text(second), Some(id))]);
            }
            b'u' | b'x' => self.step(vec![(text(first), None)]),
            b'm' => {}
            op => panic!("unknown operation {op}"),
        }
    }

    fn sync(&mut self, inode: u64) {
        let id = self.inodes[&inode];
        if let Node::File(file) = &mut self.nodes[id] {
            file.sync();
            return;
        }
        let here = |step: &Step| step.changes.iter().any(|(dir, ..)| *dir == id);
        let (synced, others) = std::mem::take(&mut self.steps).into_iter().partition(here);
        self.steps = others;
        let synced: Vec<Step> = synced;
        for (dir, name, to) in synced.iter().flat_map(|step| &step.changes) {
            if let Node::Dir(durable, _) = &mut self.nodes[*dir] {
                set(durable, name, *to);
            }
        }
    }

    /// Puts what the disk may hold if the power fails now into the empty directory `to`.
    pub fn crash(&self, loss: Loss, random: &mut Random, to: &Path) {
        let names = |node: &Node| match node {
            Node::Dir(durable, _) => durable.clone(),
            Node::File(_) => Names::new(),
        };
        let mut dirs: Vec<Names> = self.nodes.iter().map(names).collect();
        let upto = random.below(self.steps.len() as u64 + 1) as usize;
        for (n, step) in self.steps.iter().enumerate() {
            let kept = match loss {
                Loss::Nothing | Loss::Bytes => true,
                Loss::Everything | Loss::Names => false,
                Loss::InOrder { .. } => n < upto,
                Loss::AtRandom { .. } => !random.one_in(2),
            };
            for (dir, name, to) in step.changes.iter().filter(|_| kept) {
                set(&mut dirs[*dir], name, *to);
            }
        }
        let mut contents = HashMap::new();
        self.put(ROOT, to, &dirs, &mut |id, file| {
            let content = || file.after_crash(loss, random);
            contents.entry(id).or_insert_with(content).clone()
        });
    }

    fn put(
        &self,
        id: Id,
        to: &Path,
        dirs: &[Names],
        content: &mut dyn FnMut(Id, &File) -> Vec<u8>,
    ) {
        for (name, &child) in &dirs[id] {
            let path = to.join(name);
            match &self.nodes[child] {
                Node::File(file) => std::fs::write(path, content(child, file)).unwrap(),
                Node::Dir(..) => {
                    std::fs::create_dir(&path).unwrap();
                    self.put(child, &path, dirs, content);
                }
            }
        }
    }

    /// Panics unless `dir` holds exactly what the journal says: no call was missed.
    pub fn assert_is(&self, dir: &Path) {
        self.assert_node_is(ROOT, dir);
    }

    fn assert_node_is(&self, id: Id, path: &Path) {
        match &self.nodes[id] {
            Node::File(file) => {
                let found = std::fs::read(path).unwrap();
                assert!(
                    found == file.current,
                    "{}: a call was missed",
                    path.display()
                );
            }
            Node::Dir(_, now) => {
                let mut found: Vec<String> = std::fs::read_dir(path)
                    .unwrap()
                    .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                    .collect();
                found.sort_unstable();
                let expected: Vec<&String> = now.keys().collect();
                assert!(
                    found.iter().eq(expected.iter().copied()),
                    "{}: a call was missed: {found:?} {expected:?}",
                    path.display()
                );
                for (name, &child) in now {
                    self.assert_node_is(child, &path.join(name));
                }
            }
        }
    }
}

fn set(names: &mut Names, name: &str, to: Option<Id>) {
    match to {
        Some(id) => names.insert(name.to_owned(), id),
        None => names.remove(name),
    };
}
