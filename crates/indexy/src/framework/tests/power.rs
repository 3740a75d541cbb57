//! A whole database on a simulated disk loses power at its n-th I/O, for every n: log, manifest and
//! a lossy Index Y together; or one of the real ones, which then lies on the same disk.
//!
//! What comes back is checked against a history: the trees that there must be, and in them the
//! state after some first part of all writes, each of them (and so each batch) whole, at least as
//! many as were acknowledged as durable (I8). A log that was cut too far, a manifest that points
//! past what survived (I6), a run in Y that the log does not know of (I5), and a dropped tree that
//! comes back under an old number, all show as a state that is no such part. Merges append, so that
//! one that counts twice, or not, or in another order, shows too.
//!
//! A sample runs by default; `INDEXY_POWER_SEEDS` says with how many seeds every n is tried.
//! The log alone: `wal/tests/crash.rs`. Real disks: `tests/suite/{kill,faults}.rs`.

use crate::{
    db::{Db, Durability, Expires, IndexXKind, IndexYKind, Options, Tree, TreeOptions, Ttl},
    error::{Error, Result},
    framework::{clean::truncate, operators::MergeOperator},
    key::{Key, Value},
    storage::{
        Storage,
        sim::{Fault, Sim},
    },
    x::IndexX,
    y::{
        IndexY, IndexYFactory, IndexYShared, lsm::LsmY, memory::MemoryY, paged::PagedY,
        pool::PageCache,
    },
};
use parking_lot::Mutex;
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

const NAMES: [&str; 3] = ["a", "b", "c"];
/// In this one an entry that has expired is as good as a removal: nothing of it, and nothing older,
/// may come back.
const EXPIRING: &str = "a";
const LONG_AGO: Expires = Expires::At(std::time::UNIX_EPOCH);
const KEYS: u8 = 14;
/// Operations of the first life, and of the second.
const FIRST_LIFE: usize = 70;
const SECOND_LIFE: usize = 25;
/// Longest value that a merge makes.
const LONGEST: usize = 400;
/// Tried at so many I/Os of each case when nothing is asked for.
const SAMPLE: u64 = 110;
/// The same over a real Index Y, which does more of them.
const SAMPLE_ON_DISK: u64 = 60;

/// The kind of the Index Ys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Memory,
    Lsm,
    Paged,
}

/// The Index Ys of a database by the number of their tree. They outlive the process, not what was
/// not durable.
#[derive(Default)]
struct Ys {
    in_memory: Mutex<BTreeMap<u32, MemoryY>>,
    /// Trees on the simulated disk that were made so far: what a drop, or a creation that was cut
    /// short, leaves there is met by no other one, as on a real disk.
    made: Mutex<BTreeMap<u32, u32>>,
}

impl Ys {
    fn crash(&self, random: &mut StdRng) {
        for y in self.in_memory.lock().values() {
            y.crash_keeping(random.random_range(0..4));
        }
    }

    /// Where the tree of this number lies on the simulated disk.
    fn dir(&self, number: u32, made: bool) -> PathBuf {
        let mut all = self.made.lock();
        let turn = all.entry(number).or_default();
        *turn += u32::from(made);
        PathBuf::from(format!("/y/{number}.{turn}"))
    }
}

#[derive(Clone)]
struct Factory {
    ys: Arc<Ys>,
    of: Of,
    sim: Sim,
    pages: Arc<PageCache>,
}

impl IndexYFactory for Factory {
    fn share(&self, _cache_bytes: usize) -> Result<Arc<dyn IndexYShared>> {
        Ok(Arc::new(self.clone()))
    }
    fn work_bytes(&self) -> usize {
        0
    }
}

impl IndexYShared for Factory {
    fn open(&self, dir: &Path, read_only: bool) -> Result<Arc<dyn IndexY>> {
        // The database looks for the directory in the real file system, which the simulated one has
        // no part in.
        let made = !dir.exists();
        std::fs::create_dir_all(dir).unwrap();
        let number: u32 = dir.file_name().unwrap().to_str().unwrap().parse().unwrap();
        let storage: Arc<dyn Storage> = Arc::new(self.sim.clone());
        let (at, owner) = (self.ys.dir(number, made), u64::from(number));
        Ok(match self.of {
            Of::Memory => {
                let mut ys = self.ys.in_memory.lock();
                Arc::new(ys.entry(number).or_default().clone())
            }
            Of::Lsm => Arc::new(LsmY::open(&storage, &at, &self.pages, owner, read_only)?),
            Of::Paged => Arc::new(PagedY::open(
                &storage,
                &at,
                4096,
                &self.pages,
                owner,
                read_only,
            )?),
        })
    }
    fn memory_bytes(&self) -> usize {
        0
    }
    fn set_memory(&self, _cache_bytes: usize) {}
}

/// What is known of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    /// Its creation was begun and may have come to something.
    Begun,
    Here,
    /// Its drop was begun.
    Ending,
    Gone,
}

#[derive(Debug, Clone)]
struct Incarnation {
    name: &'static str,
    life: Life,
}

/// A write to the tree of that number in [`History::trees`].
#[derive(Debug, Clone)]
struct Write {
    tree: usize,
    key: u8,
    value: Option<Vec<u8>>,
    /// It is appended, where that fits.
    merge: bool,
}

impl Write {
    fn apply(&self, map: &mut Map) {
        let key = vec![self.key];
        match (&self.value, map.get_mut(&key)) {
            (None, _) => drop(map.remove(&key)),
            (Some(part), Some(value)) if self.merge => {
                if value.len() + 1 + part.len() <= LONGEST {
                    value.push(b'|');
                    value.extend(part);
                }
            }
            (Some(value), _) => drop(map.insert(key, value.clone())),
        }
    }
}

fn options(name: &str) -> TreeOptions {
    match name == EXPIRING {
        true => TreeOptions::new().ttl(Ttl::PerEntry),
        false => TreeOptions::new().merge_operator(MergeOperator::Append {
            separator: b"|".to_vec(),
            limit: LONGEST,
        }),
    }
}

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Debug, Default)]
struct History {
    trees: Vec<Incarnation>,
    /// What was begun, in order; each happens as a whole.
    steps: Vec<Vec<Write>>,
    /// So many of them were acknowledged as durable.
    durable: usize,
    /// Numbers that trees got; none comes twice.
    numbers: Vec<u32>,
}

impl History {
    /// The trees after the first `steps` steps.
    fn state(&self, steps: usize) -> Vec<Map> {
        let mut maps = vec![Map::new(); self.trees.len()];
        for write in self.steps[..steps].iter().flatten() {
            write.apply(&mut maps[write.tree]);
        }
        maps
    }

    fn newest(&self, name: &str) -> Option<usize> {
        self.trees.iter().rposition(|t| t.name == name)
    }

    /// Checks what came back, and goes on from there. Errors: power fails meanwhile.
    fn settle(&mut self, db: &Db) -> Result<()> {
        let names = db.tree_names();
        for name in NAMES {
            let there = names.iter().any(|n| n == name);
            let Some(at) = self.newest(name) else {
                assert!(!there, "tree {name} was never made");
                continue;
            };
            match self.trees[at].life {
                Life::Here => assert!(there, "tree {name} is lost"),
                Life::Gone => assert!(!there, "tree {name} came back"),
                Life::Begun | Life::Ending => {}
            }
            self.trees[at].life = if there { Life::Here } else { Life::Gone };
        }
        let found: Vec<Option<Map>> = (0..self.trees.len())
            .map(|i| {
                let Incarnation { name, life } = self.trees[i];
                let here = (life == Life::Here).then_some(name);
                here.map(|name| contents(&db.tree(name)?)).transpose()
            })
            .collect::<Result<_>>()?;
        let is_state = |steps: &usize| {
            let state = self.state(*steps);
            let agrees = |(found, state): (&Option<Map>, &Map)| {
                found.as_ref().is_none_or(|found| found == state)
            };
            found.iter().zip(&state).all(agrees)
        };
        let steps = (self.durable..=self.steps.len()).rev().find(is_state);
        let steps = steps.unwrap_or_else(|| {
            panic!(
                "no state between {} and {} steps: {found:?}\n{self:?}",
                self.durable,
                self.steps.len()
            )
        });
        self.steps.truncate(steps);
        self.durable = steps;
        let report = db.verify()?;
        // What is read without power is told as damage.
        assert!(
            report.is_ok() || db.core().storage.list(Path::new("/")).is_err(),
            "{report:?}"
        );
        Ok(())
    }

    fn all_durable(&mut self) {
        self.durable = self.steps.len();
    }

    /// Trees that are certainly there.
    fn here(&self) -> Vec<usize> {
        (0..self.trees.len())
            .filter(|&i| self.trees[i].life == Life::Here)
            .collect()
    }
}

fn contents(tree: &Tree) -> Result<Map> {
    let entry = |entry: Result<(Key, Value)>| entry.map(|(k, v)| (k.to_vec(), v.to_vec()));
    tree.iter().map(entry).collect()
}

/// One database and what it should hold.
struct World<'a> {
    /// For the lock of the directory and those of trees; the files are in `sim`.
    dir: &'a Path,
    sim: Sim,
    ys: Arc<Ys>,
    history: History,
    random: StdRng,
    case: Case,
}

#[derive(Debug, Clone, Copy)]
struct Case {
    x: IndexXKind,
    y: Of,
    sync: bool,
}

impl<'a> World<'a> {
    fn new(dir: &'a Path, case: Case, seed: u64) -> Self {
        let sim = Sim::default();
        let trees = dir.join("trees");
        let _ = std::fs::remove_dir_all(&trees);
        std::fs::create_dir(&trees).unwrap();
        // The real directory has the lock, and so is not taken for somebody else's.
        sim.tamper(&dir.join("LOCK"), vec![]);
        Self {
            dir,
            sim,
            ys: Arc::default(),
            history: History::default(),
            random: StdRng::seed_from_u64(seed),
            case,
        }
    }

    fn open(&self) -> Result<Db> {
        let durability = if self.case.sync {
            Durability::Sync
        } else {
            // Nothing becomes durable unless somebody waits for it.
            let interval_ms = 600_000;
            Durability::Buffered { interval_ms }
        };
        let factory = Factory {
            ys: self.ys.clone(),
            of: self.case.y,
            sim: self.sim.clone(),
            pages: Arc::new(PageCache::new(0)),
        };
        let options = Options::new(2 << 20)
            .index_x(self.case.x)
            .index_y(IndexYKind::custom("simulated").unwrap())
            .durability(durability)
            .log_limit_bytes(24 << 10)
            .min_segment_bytes(4 << 10)
            .register_index_y("simulated", Arc::new(factory))?;
        Db::open_on(
            Arc::new(self.sim.clone()) as Arc<dyn Storage>,
            self.dir,
            options,
        )
    }

    /// Opens, checks what came back, and does so many operations; until the power goes.
    fn live(&mut self, operations: usize) -> Result<()> {
        let db = self.open()?;
        self.history.settle(&db)?;
        for _ in 0..operations {
            self.operation(&db)?;
        }
        if self.random.random() {
            db.close()?;
            self.history.all_durable();
        }
        Ok(())
    }

    fn crash(&mut self) {
        self.sim = self.sim.crash(self.random.random());
        self.ys.crash(&mut self.random);
    }

    fn operation(&mut self, db: &Db) -> Result<()> {
        let here = self.history.here();
        let Some(&tree) = here.get(self.random.random_range(0..here.len().max(1))) else {
            return self.create(db);
        };
        let handle = |world: &Self, tree: usize| {
            let name = world.history.trees[tree].name;
            db.tree_with(name, options(name))
        };
        let core = db.core();
        match self.random.random_range(0..100) {
            0..=44 => self.write(db, tree)?,
            45..=62 => self.batch(db, &here)?,
            63..=71 => {
                let joined = core.all_joined();
                joined[self.random.random_range(0..joined.len())].flush()?;
            }
            72..=74 => self.remove_range(&handle(self, tree)?, tree)?,
            75..=77 => core.all_joined().iter().for_each(|tree| {
                tree.x.cut(&[], None, tree.settled(), false, usize::MAX);
            }),
            78..=79 => {
                let now = self.history.state(self.history.steps.len());
                let key = vec![self.random.random_range(0..KEYS)];
                let found = handle(self, tree)?.get(&key)?;
                assert_eq!(found.as_deref(), now[tree].get(&key).map(|v| &v[..]));
            }
            80..=84 => {
                db.sync()?;
                self.history.all_durable();
            }
            85..=86 => {
                db.flush()?;
                self.history.all_durable();
            }
            87..=90 => self.load(&handle(self, tree)?, tree)?,
            91..=92 => {
                truncate::truncate(&**core, &core.shared)?;
            }
            93..=95 => self.create(db)?,
            96..=97 => {
                self.history.trees[tree].life = Life::Ending;
                db.drop_tree(self.history.trees[tree].name)?;
                self.history.trees[tree].life = Life::Gone;
            }
            98 => {
                for tree in core.all_joined() {
                    tree.flush()?;
                    tree.sweep(&[], None, || Ok(()))?;
                }
            }
            _ => {
                let now = self.history.state(self.history.steps.len());
                for tree in here {
                    assert_eq!(contents(&handle(self, tree)?)?, now[tree]);
                }
            }
        }
        Ok(())
    }

    fn write(&mut self, db: &Db, tree: usize) -> Result<()> {
        let write = self.any_write(tree);
        self.history.steps.push(vec![write.clone()]);
        let name = self.history.trees[tree].name;
        let tree = db.tree_with(name, options(name))?;
        match write.value {
            Some(part) if write.merge => match tree.merge([write.key], part) {
                // It makes no difference.
                Err(Error::MergeRefused { .. }) => {}
                merged => merged?,
            },
            Some(value) => tree.insert([write.key], value)?,
            None if self.expires(&tree) => {
                tree.insert_until([write.key], "dead", LONG_AGO)?;
            }
            None => tree.remove([write.key])?,
        }
        self.acknowledge();
        Ok(())
    }

    /// A batch of writes to some of the trees `here`.
    fn batch(&mut self, db: &Db, here: &[usize]) -> Result<()> {
        let mut batch = db.batch();
        let mut writes = Vec::new();
        for _ in 0..self.random.random_range(1..7) {
            let tree = here[self.random.random_range(0..here.len())];
            let write = self.any_write(tree);
            let name = self.history.trees[tree].name;
            let handle = db.tree_with(name, options(name))?;
            match &write.value {
                Some(part) if write.merge => batch.merge(&handle, [write.key], part),
                Some(value) => batch.insert(&handle, [write.key], value),
                None if self.expires(&handle) => {
                    batch.insert_until(&handle, [write.key], "dead", LONG_AGO);
                }
                None => batch.remove(&handle, [write.key]),
            }
            writes.push(write);
        }
        self.history.steps.push(writes);
        match batch.commit() {
            Err(Error::MergeRefused { .. }) => drop(self.history.steps.pop()),
            committed => {
                committed?;
                self.acknowledge();
            }
        }
        Ok(())
    }

    /// Removes a few neighbours, or everything.
    fn remove_range(&mut self, handle: &Tree, tree: usize) -> Result<()> {
        let (from, to) = match self.random.random_range(0..4) {
            0 => (0, KEYS),
            _ => {
                let from = self.random.random_range(0..KEYS);
                (from, (from + self.random.random_range(1..6)).min(KEYS))
            }
        };
        let removal = |key| Write {
            tree,
            key,
            value: None,
            merge: false,
        };
        self.history.steps.push((from..to).map(removal).collect());
        match (from, to) {
            (0, KEYS) => handle.clear()?,
            _ => handle.remove_range([from]..[to])?,
        }
        // Whatever the log promises else.
        self.history.all_durable();
        Ok(())
    }

    /// Loads a gap between two keys, sometimes after it was made by removals that the log has.
    fn load(&mut self, handle: &Tree, tree: usize) -> Result<()> {
        let from = self.random.random_range(0..KEYS);
        let to = (from + self.random.random_range(1..6)).min(KEYS);
        if self.random.random() {
            for key in from..to {
                self.history.steps.push(vec![Write {
                    tree,
                    key,
                    value: None,
                    merge: false,
                }]);
                handle.remove([key])?;
                self.acknowledge();
            }
        }
        let now = self.history.state(self.history.steps.len());
        let empty = now[tree].range(vec![from]..vec![to]).next().is_none();
        let number = self.history.steps.len() as u64;
        let writes: Vec<Write> = (from..to)
            .map(|key| {
                let value = Some([&number.to_le_bytes()[..], &[key; 40]].concat());
                Write {
                    tree,
                    key,
                    value,
                    merge: false,
                }
            })
            .collect();
        let load = writes.clone();
        if empty {
            self.history.steps.push(writes);
        }
        let entries = load
            .iter()
            .map(|w| ([w.key], w.value.as_deref().unwrap_or_default()));
        match handle.load_sorted(entries) {
            Err(crate::Error::RangeNotEmpty { .. }) if !empty => Ok(()),
            loaded => {
                assert_eq!(loaded?, load.len() as u64);
                assert!(empty);
                // Whatever the log promises else: it is durable, and so is all before.
                self.history.all_durable();
                Ok(())
            }
        }
    }

    /// Makes a tree that is not there, if there is one.
    fn create(&mut self, db: &Db) -> Result<()> {
        let here = self.history.here();
        let taken = |name: &str| here.iter().any(|&i| self.history.trees[i].name == name);
        let Some(name) = NAMES.into_iter().find(|name| !taken(name)) else {
            return Ok(());
        };
        let at = self.history.trees.len();
        let life = Life::Begun;
        self.history.trees.push(Incarnation { name, life });
        db.tree_with(name, options(name))?;
        self.history.trees[at].life = Life::Here;
        let trees = db.core().all_trees();
        let number = trees
            .iter()
            .find(|t| t.entry.name == name)
            .unwrap()
            .entry
            .id;
        assert!(
            !self.history.numbers.contains(&number),
            "number {number} again"
        );
        self.history.numbers.push(number);
        Ok(())
    }

    fn any_write(&mut self, tree: usize) -> Write {
        let key = self.random.random_range(0..KEYS);
        let long = self.random.random_range(0..12) == 0;
        let merge = self.history.trees[tree].name != EXPIRING && self.random.random();
        let most = match (merge, long) {
            (true, _) => 60,
            (false, true) => 3000,
            (false, false) => 200,
        };
        let len = self.random.random_range(0..most);
        // No two writes have the same value.
        let mut value = (self.history.steps.len() as u64).to_le_bytes().to_vec();
        value.resize(8 + len, key);
        let value = (self.random.random_range(0..4) > 0).then_some(value);
        Write {
            tree,
            key,
            value,
            merge,
        }
    }

    /// Whether a key of `tree` is to be made absent by an entry that has expired.
    fn expires(&mut self, tree: &Tree) -> bool {
        tree.ttl().is_some() && self.random.random()
    }

    fn acknowledge(&mut self) {
        if self.case.sync {
            self.history.all_durable();
        }
    }
}

/// I/Os of a first life that nothing happens to.
fn ios(dir: &Path, case: Case) -> u64 {
    let mut world = World::new(dir, case, 0);
    world.live(FIRST_LIFE).unwrap();
    world.sim.ios()
}

/// Power fails at I/O number `at` of the first life, and some time in the second; the third finds
/// what it must.
fn run(dir: &Path, case: Case, at: u64, seed: u64) {
    let mut world = World::new(dir, case, seed);
    world.sim.fail_at(at, Fault::PowerLoss, true);
    let _ = world.live(FIRST_LIFE);
    world.crash();
    let again = world.random.random_range(1..120);
    world.sim.fail_at(again, Fault::PowerLoss, true);
    let _ = world.live(SECOND_LIFE);
    world.crash();
    world.live(6).unwrap();
    // Nothing is lost without a crash.
    world.history.all_durable();
    let db = world.open().unwrap();
    world.history.settle(&db).unwrap();
    db.close().unwrap();
}

fn every_io(case: Case) {
    let dir = tempfile::tempdir().unwrap();
    let ios = ios(dir.path(), case);
    assert!(ios > 60, "{ios}");
    let asked = std::env::var("INDEXY_POWER_SEEDS").ok();
    let seeds: u64 = asked.as_ref().map_or(1, |s| s.parse().unwrap());
    let sample = match case.y {
        Of::Memory => SAMPLE,
        Of::Lsm | Of::Paged => SAMPLE_ON_DISK,
    };
    let stride = match asked {
        Some(_) => 1,
        None => ios.div_ceil(sample),
    };
    for at in (1..=ios + ios / 4).step_by(stride as usize) {
        for seed in 0..seeds {
            let seed = at * 1000 + seed;
            let what = std::panic::AssertUnwindSafe(|| run(dir.path(), case, at, seed));
            if let Err(panic) = std::panic::catch_unwind(what) {
                eprintln!("power failure at I/O {at}, seed {seed}, {case:?}");
                std::panic::resume_unwind(panic);
            }
        }
    }
}

/// What is in Y, is removed there without being durable, and lies in the range of a load that fails
/// after its record: the record hides the removal, which so has to be durable before.
#[test]
fn i8_the_record_of_a_load_that_failed_brings_nothing_back() {
    let dir = tempfile::tempdir().unwrap();
    let case = case(IndexXKind::Art, Of::Memory, true);
    let mut world = World::new(dir.path(), case, 1);
    let db = world.open().unwrap();
    let tree = db.tree("a").unwrap();
    tree.insert([5], "old").unwrap();
    db.flush().unwrap();
    tree.remove([5]).unwrap();
    db.core().all_joined()[0].flush().unwrap();
    let y = world.ys.in_memory.lock().values().next().unwrap().clone();
    for _ in 0..2 {
        let failure = crate::Error::io("write", "y", std::io::Error::other("it"));
        y.fail(crate::y::memory::Op::WriteRun, 0, 0, failure);
    }
    assert!(tree.load_sorted([([4], ""), ([6], "")]).is_err());
    assert_eq!(contents(&tree).unwrap(), Map::new());
    world.sim = world.sim.crash(1);
    y.crash();
    drop((tree, db));
    let db = world.open().unwrap();
    assert_eq!(contents(&db.tree("a").unwrap()).unwrap(), Map::new());
}

fn case(x: IndexXKind, y: Of, sync: bool) -> Case {
    Case { x, y, sync }
}

#[test]
fn i8_art_sync() {
    every_io(case(IndexXKind::Art, Of::Memory, true));
}

#[test]
fn i8_art_buffered() {
    every_io(case(IndexXKind::Art, Of::Memory, false));
}

#[test]
fn i8_bplus_sync() {
    every_io(case(IndexXKind::BPlus, Of::Memory, true));
}

#[test]
fn i8_bplus_buffered() {
    every_io(case(IndexXKind::BPlus, Of::Memory, false));
}

#[test]
fn i8_art_over_an_lsm_tree_sync() {
    every_io(case(IndexXKind::Art, Of::Lsm, true));
}

#[test]
fn i8_bplus_over_an_lsm_tree_buffered() {
    every_io(case(IndexXKind::BPlus, Of::Lsm, false));
}

#[test]
fn i8_art_over_a_paged_tree_buffered() {
    every_io(case(IndexXKind::Art, Of::Paged, false));
}

#[test]
fn i8_bplus_over_a_paged_tree_sync() {
    every_io(case(IndexXKind::BPlus, Of::Paged, true));
}
