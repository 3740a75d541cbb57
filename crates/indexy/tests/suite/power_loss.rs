//! The power fails at the n-th system call of a workload over the real Index Y; what the next open
//! finds is checked (I8).
//!
//! A child runs the workload once, under the shim of `tests/fault_shim`, which keeps a journal of
//! every call that changes a file. From the journal the parent makes what the disk may hold after a
//! failure at any place in it (`disk_image.rs`), opens that, and looks: everything acknowledged is
//! there, the state is a prefix of the workload, batches are whole, `verify` finds nothing, a
//! finished checkpoint opens as the state that it was taken of. At the end the journal must give
//! exactly what is in the directory, so that no call goes by unseen.
//!
//! `INDEXY_POWER_IMAGES`: images a case (default 24), `all`: every place in the journal, with
//! `INDEXY_POWER_LOSSES` (default 8) of them each. `INDEXY_POWER_SEED` varies workload, images and
//! policies.
//! After a failure `INDEXY_POWER_JOURNAL=<directory that was named last>` and
//! `INDEXY_POWER_AT=<place>` try that place of that journal again.

use crate::{
    disk_image::{Disk, Loss, Record, read_journal},
    pairs::{self, Pair},
    places::fast_dir,
    policy_choice::{self, Policies},
    support::{MIB, Random, assert_sound, child, child_argument, open, setting, shim, tell, wait},
};
use indexy::{Db, Durability, IndexXKind, IndexYKind, Options, Stats, Tree, TreeOptions};
use std::{
    collections::{BTreeMap, HashMap},
    hash::{DefaultHasher, Hash, Hasher},
    os::unix::fs::MetadataExt,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::{Path, PathBuf},
    time::Duration,
};

const OPS: u64 = 600;
const KEYS: u64 = 12_000;
/// Over an eighth of the budget: such a value goes past Index X.
const LARGE: usize = 300_000;
/// Trees that are there from the first operations on, and one that comes and goes.
const TREES: [&str; 2] = ["a", "c"];
const GUEST: &str = "guest";

fn options(pair: Pair, durability: Durability, policies: Policies) -> Options {
    let options = Options::new(2 * MIB)
        .durability(durability)
        .log_limit_bytes(1 << 20);
    policies.options(pairs::options(pair, options))
}

fn durability(name: &str) -> Durability {
    match name {
        "buffered" => Durability::Buffered { interval_ms: 20 },
        _ => Durability::Sync,
    }
}

// --- the workload: known to both processes ---------------------------------------

type Put = (&'static str, String, Option<Vec<u8>>);

enum Op {
    Make(&'static str),
    Drop(&'static str),
    Batch(Vec<Put>),
    One(Put),
    /// Of keys that are not there, sorted.
    Load(Vec<Put>),
    Read(Vec<String>),
    Flush,
    Sync,
    /// A copy in the directory of this name.
    Checkpoint(String),
    Reopen {
        close: bool,
    },
}

fn key(n: u64) -> String {
    format!("{:05}/{n}", n.wrapping_mul(0x9E37_79B9) % 99_991)
}

fn put(random: &mut Random, tree: &'static str) -> Put {
    let key = key(random.below(KEYS));
    let value = (!random.one_in(6)).then(|| {
        let seed = random.next();
        (0..100 + seed % 500)
            .map(|i| (seed >> (i % 50)) as u8)
            .collect()
    });
    (tree, key, value)
}

/// What both processes do and expect. `sync`: every write is durable when it is acknowledged.
fn workload(seed: u64, sync: bool) -> Vec<Op> {
    let mut random = Random(seed);
    let mut ops: Vec<Op> = TREES.into_iter().map(Op::Make).collect();
    ops.push(Op::Sync);
    let mut guest = false;
    for n in 0..OPS {
        let tree = if guest && random.one_in(4) {
            GUEST
        } else {
            TREES[random.below(2) as usize]
        };
        let op = match n % 140 {
            35 => Op::Flush,
            60 | 90 if sync => {
                guest = !guest;
                if guest {
                    Op::Make(GUEST)
                } else {
                    Op::Drop(GUEST)
                }
            }
            70 => Op::Checkpoint(format!("copy{n}")),
            110 => Op::Reopen { close: false },
            139 => Op::Reopen { close: true },
            20 | 75 | 105 => {
                let name = format!("large/{}", random.below(3));
                Op::One((tree, name, Some(vec![n as u8; LARGE])))
            }
            80 => Op::One((tree, "large/0".into(), None)),
            15 | 65 | 115 => {
                // The log has other things of these keys.
                let name = |i: u64| format!("{}/{n}/{i:03}", n % 7);
                let puts = |step: usize, value: &dyn Fn(u64) -> Option<Vec<u8>>| -> Vec<Put> {
                    let all = (0..200).step_by(step);
                    all.map(|i| (tree, name(i), value(i))).collect()
                };
                ops.push(Op::Batch(puts(9, &|_| Some(vec![1; 50]))));
                ops.push(Op::Batch(puts(9, &|_| None)));
                Op::Load(puts(1, &|i| Some(vec![(n + i) as u8; 300])))
            }
            i if i % 9 == 0 => Op::Read((0..20).map(|_| key(random.below(KEYS))).collect()),
            i if i % 5 == 0 => Op::One(put(&mut random, tree)),
            i if i % 29 == 0 && !sync => Op::Sync,
            _ => Op::Batch(
                (0..48)
                    .map(|i| put(&mut random, if i % 6 == 0 { "a" } else { tree }))
                    .collect(),
            ),
        };
        ops.push(op);
    }
    ops
}

/// A sum over the entries of each tree that is there.
type State = BTreeMap<String, u64>;

fn digest(key: &[u8], value: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (key, value).hash(&mut hasher);
    hasher.finish()
}

/// The states before the first operation and after each.
fn states(ops: &[Op]) -> Vec<State> {
    let mut state = State::new();
    let mut entries: HashMap<(&str, &str), u64> = HashMap::new();
    let mut states = vec![state.clone()];
    for op in ops {
        let puts = match op {
            Op::Batch(puts) | Op::Load(puts) => &puts[..],
            Op::One(put) => std::slice::from_ref(put),
            _ => &[],
        };
        for (tree, key, value) in puts {
            let new = value.as_ref().map_or(0, |v| digest(key.as_bytes(), v));
            let old = entries.insert((tree, key), new).unwrap_or(0);
            let sum = state.get_mut(*tree).unwrap();
            *sum = sum.wrapping_sub(old).wrapping_add(new);
        }
        match op {
            Op::Make(name) => drop(state.insert((*name).into(), 0)),
            Op::Drop(name) => {
                state.remove(*name);
                entries.retain(|(tree, _), _| tree != name);
            }
            _ => {}
        }
        states.push(state.clone());
    }
    states
}

fn state_of(db: &Db) -> State {
    let sum = |tree: &Tree| {
        tree.iter().fold(0u64, |sum, entry| {
            let (key, value) = entry.unwrap();
            sum.wrapping_add(digest(&key, &value))
        })
    };
    let names = db.tree_names().into_iter();
    names
        .map(|name| (name.clone(), sum(&db.tree(&name).unwrap())))
        .collect()
}

// --- the child ---------------------------------------------------------------------

struct Child {
    options: Options,
    policies: Policies,
    root: PathBuf,
    db: Db,
    trees: HashMap<&'static str, Tree>,
    /// Runs written and regions released so far.
    cleaned: u64,
    released: u64,
}

impl Child {
    fn tree(&self, name: &str) -> &Tree {
        &self.trees[name]
    }

    fn count(&mut self) {
        let Stats {
            cleaned_runs,
            released_regions,
            ..
        } = self.db.stats();
        self.cleaned += cleaned_runs;
        self.released += released_regions;
    }

    fn reopen(self, close: bool) -> Self {
        let Self {
            options,
            policies,
            root,
            db,
            trees,
            cleaned,
            released,
        } = self;
        let names: Vec<_> = trees.keys().copied().collect();
        if close {
            db.close().unwrap();
        }
        drop((db, trees));
        let db = open(&root.join("db"), &options);
        let open = |name| (name, policies.open_tree(&db, name, TreeOptions::new()));
        Self {
            trees: names.into_iter().map(open).collect(),
            options,
            policies,
            root,
            db,
            cleaned,
            released,
        }
    }

    fn run(&mut self, op: &Op) {
        match op {
            Op::Make(name) => {
                let tree = self.policies.open_tree(&self.db, name, TreeOptions::new());
                self.trees.insert(name, tree);
            }
            Op::Drop(name) => {
                self.trees.remove(name);
                self.db.drop_tree(name).unwrap();
            }
            Op::Batch(puts) => {
                let mut batch = self.db.batch();
                for (tree, key, value) in puts {
                    match value {
                        Some(value) => batch.insert(self.tree(tree), key, value),
                        None => batch.remove(self.tree(tree), key),
                    }
                }
                batch.commit().unwrap();
            }
            Op::Load(puts) => {
                let entries = puts
                    .iter()
                    .map(|(_, key, value)| (key, value.as_ref().unwrap()));
                self.tree(puts[0].0).load_sorted(entries).unwrap();
            }
            Op::One((tree, key, Some(value))) => self.tree(tree).insert(key, value).unwrap(),
            Op::One((tree, key, None)) => self.tree(tree).remove(key).unwrap(),
            Op::Read(keys) => {
                for key in keys {
                    self.tree("a").get(key).unwrap();
                }
                self.tree("c").prefix("7").for_each(|e| drop(e.unwrap()));
            }
            Op::Flush => self.db.flush().unwrap(),
            Op::Sync => self.db.sync().unwrap(),
            Op::Checkpoint(name) => self.db.checkpoint(self.root.join(name)).unwrap(),
            Op::Reopen { .. } => unreachable!("by the caller"),
        }
    }
}

#[test]
fn journaled_child() {
    let Some(argument) = child_argument() else {
        return;
    };
    let parts: Vec<&str> = argument.splitn(5, ' ').collect();
    let [pair, kind, seed, policies, root] = parts[..] else {
        panic!("{argument}");
    };
    let policies = policy_choice::chosen(policies.parse().unwrap());
    let options = options(pairs::named(pair), durability(kind), policies);
    let root = PathBuf::from(root);
    let mut this = Child {
        db: open(&root.join("db"), &options),
        options,
        policies,
        root,
        trees: HashMap::new(),
        cleaned: 0,
        released: 0,
    };
    for (n, op) in workload(seed.parse().unwrap(), kind == "sync")
        .iter()
        .enumerate()
    {
        tell(&format!("mark/start/{}", n + 1));
        let mut safe = kind == "sync";
        match op {
            Op::Reopen { close } => {
                this.count();
                this = this.reopen(*close);
                safe |= close;
            }
            op => this.run(op),
        }
        safe |= matches!(op, Op::Sync | Op::Flush | Op::Load(_));
        tell(&format!("mark/done/{}", n + 1));
        if safe {
            tell(&format!("mark/safe/{}", n + 1));
        }
    }
    this.count();
    println!(
        "{} runs written, {} regions released",
        this.cleaned, this.released
    );
    assert!(
        this.cleaned > 10 && this.released > 0,
        "too small a workload"
    );
}

// --- the parent ---------------------------------------------------------------------

/// What the marks up to a place in the journal say.
#[derive(Default, Clone, Copy, Debug)]
struct Progress {
    started: usize,
    done: usize,
    safe: usize,
}

impl Progress {
    fn note(&mut self, mark: &str) {
        let (what, n) = mark.split_once('/').unwrap();
        let n = n.parse().unwrap();
        match what {
            "start" => self.started = n,
            "done" => self.done = n,
            _ => self.safe = n,
        }
    }
}

struct Case {
    options: Options,
    ops: Vec<Op>,
    states: Vec<State>,
}

impl Case {
    fn check(&self, image: &Path, progress: Progress) {
        let path = image.join("db");
        let first = self.open_and_look(&path, progress);
        // Once more: recovery of what a recovery left.
        let db = open(&path, &self.options);
        assert_eq!(state_of(&db), first, "opened twice");
        drop(db);
        for (n, op) in self.ops.iter().enumerate() {
            if let Op::Checkpoint(name) = op {
                self.check_copy(&image.join(name), n, progress);
            }
        }
    }

    fn open_and_look(&self, path: &Path, progress: Progress) -> State {
        let db = open(path, &self.options);
        let found = state_of(&db);
        let mut possible = progress.safe..=progress.started;
        assert!(
            possible.any(|n| self.states[n] == found),
            "each tree is as after these operations: {:?}",
            self.explain(&found)
        );
        assert_sound(&db);
        found
    }

    /// The operations after which each tree that was found is what it was.
    fn explain(&self, found: &State) -> BTreeMap<String, Vec<usize>> {
        let mut after = BTreeMap::new();
        for (name, sum) in found {
            let fits = |n: &usize| self.states[*n].get(name) == Some(sum);
            let all = (0..self.states.len()).filter(fits).collect();
            after.insert(name.clone(), all);
        }
        after
    }

    /// A copy is that of its moment as soon as it opens; a finished one opens.
    fn check_copy(&self, path: &Path, n: usize, progress: Progress) {
        let opened = Db::open(path, self.options.clone().create_if_missing(false));
        match opened {
            Ok(copy) => {
                assert_eq!(
                    state_of(&copy),
                    self.states[n],
                    "checkpoint of operation {n}"
                );
                assert_sound(&copy);
            }
            Err(error) => assert!(progress.done <= n, "checkpoint of operation {n}: {error}"),
        }
    }
}

/// Places in the journal where the power is to fail, ascending, each with a number for the kind of
/// loss.
fn places(journal: &[Record], seed: u64) -> Vec<(usize, u64)> {
    if std::env::var("INDEXY_POWER_IMAGES").is_ok_and(|v| v == "all") {
        let losses = setting("INDEXY_POWER_LOSSES", 8);
        return (0..=journal.len())
            .flat_map(|at| (0..losses).map(move |loss| (at, loss)))
            .collect();
    }
    let at = setting("INDEXY_POWER_AT", u64::MAX) as usize;
    if at <= journal.len() {
        return (0..64).map(|loss| (at, loss)).collect();
    }
    let mut random = Random(seed);
    // Next to names that come and go, for the most part: there is less of them, and more to go
    // wrong.
    let names = |(at, record): (usize, &Record)| b"cdrlux".contains(&record.op).then_some(at);
    let near: Vec<usize> = journal.iter().enumerate().filter_map(names).collect();
    let mut places: Vec<(usize, u64)> = (0..setting("INDEXY_POWER_IMAGES", 24))
        .map(|n| {
            let at = match random.below(3) {
                0 => random.below(journal.len() as u64 + 1) as usize,
                _ => near[random.below(near.len() as u64) as usize] + random.below(4) as usize,
            };
            (at.min(journal.len()), n)
        })
        .collect();
    places.sort_unstable();
    places
}

/// Runs the workload in `root`, with a journal of it in `file`.
fn run_child(pair: Pair, kind: &str, (seed, policies): (u64, u64), file: &Path, root: &Path) {
    std::fs::create_dir(root).unwrap();
    let pair = pairs::name(pair);
    let argument = format!("{pair} {kind} {seed} {policies} {}", root.display());
    let child = child("power_loss::journaled_child", &argument)
        .env("LD_PRELOAD", shim(file.parent().unwrap()))
        .env(
            "INDEXY_JOURNAL",
            format!("{}:{}", file.display(), root.display()),
        )
        .spawn();
    assert!(wait(child.unwrap(), Duration::from_secs(300)), "see above");
}

/// `number`: of the test.
fn power_fails(pair: Pair, kind: &str, number: u64) {
    let seed = setting("INDEXY_POWER_SEED", 1);
    let policies = policy_choice::chosen(seed + number);
    println!("{} {kind}: seed {seed}, {policies:?}", pairs::name(pair));
    let dir = fast_dir();
    let kept = std::env::var("INDEXY_POWER_JOURNAL").ok();
    let home = kept.as_deref().map_or(dir.path(), Path::new);
    let root = home.canonicalize().unwrap().join("disk");
    let file = home.join("journal");
    if kept.is_none() {
        run_child(pair, kind, (seed, seed + number), &file, &root);
    }
    let journal = read_journal(&file);
    let ops = workload(seed, kind == "sync");
    let case = Case {
        options: options(pair, durability(kind), policies),
        states: states(&ops),
        ops,
    };
    let mut disk = Disk::new(std::fs::metadata(&root).unwrap().ino());
    let mut progress = Progress::default();
    let mut played = 0;
    let places = places(&journal, seed);
    for &(at, number) in &places {
        for record in &journal[played..at] {
            disk.play(record);
            if let Some(mark) = record.mark() {
                progress.note(mark);
            }
        }
        played = at;
        let image = fast_dir();
        let loss = Loss::from_seed(number);
        disk.crash(
            loss,
            &mut Random(seed ^ number << 32 ^ at as u64),
            image.path(),
        );
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| case.check(image.path(), progress))) {
            println!(
                "{} {kind}: power lost after call {at} of {}, {loss:?}, {progress:?}; in {} and {}",
                pairs::name(pair),
                journal.len(),
                image.keep().display(),
                dir.keep().display()
            );
            resume_unwind(panic);
        }
    }
    journal[played..]
        .iter()
        .for_each(|record| disk.play(record));
    disk.assert_is(&root);
    println!(
        "{} {kind}: {} images of a journal of {} calls",
        pairs::name(pair),
        places.len(),
        journal.len()
    );
}

/// Pairs by name from `INDEXY_TEST_PAIRS`, or `pair`.
fn run(pair: Pair, kind: &str, number: u64) {
    match std::env::var("INDEXY_TEST_PAIRS") {
        Ok(_) => pairs::chosen(0, 1)
            .into_iter()
            .for_each(|pair| power_fails(pair, kind, number)),
        Err(_) => power_fails(pair, kind, number),
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn i8_sync_over_lsm() {
    run((IndexXKind::Art, IndexYKind::Lsm), "sync", 0);
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn i8_buffered_over_lsm() {
    run((IndexXKind::Art, IndexYKind::Lsm), "buffered", 1);
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn i8_sync_over_a_paged_tree() {
    run(
        (IndexXKind::Art, IndexYKind::BPlus { page_bytes: 4096 }),
        "sync",
        2,
    );
}
