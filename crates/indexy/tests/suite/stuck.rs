//! An Index Y that hangs, or panics, while a run is written: nobody hangs with it, nothing is lost.

use crate::{
    custom_y::FileY,
    places::fast_dir,
    support::{MIB, assert_sound, open},
};
use indexy::{
    Durability, Error, IndexYKind, Options, Result, Tree, Value,
    index_y::{
        Capabilities, IndexY, IndexYFactory, IndexYShared, Maintained, Order, RunSource, YIter,
    },
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// What the next runs do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    Good,
    /// They stop, the source not drained yet.
    Hangs,
    /// They panic when Y has all entries in hand and shows none.
    Panics,
    /// Runs are good, maintenance panics.
    MaintenancePanics,
}

struct Moods {
    now: Mutex<Mood>,
    changed: Condvar,
}

/// Y is well again at the end, also of a test that fails: it would wait for Y for ever.
struct Recovery<'a>(&'a Moods);

impl Drop for Recovery<'_> {
    fn drop(&mut self) {
        self.0.set(Mood::Good);
    }
}

impl Moods {
    fn set(&self, mood: Mood) {
        *self.now.lock().unwrap() = mood;
        self.changed.notify_all();
    }

    fn wait_while_hanging(&self) -> Mood {
        let now = self.now.lock().unwrap();
        *self.changed.wait_while(now, |m| *m == Mood::Hangs).unwrap()
    }
}

struct MoodyY {
    y: FileY,
    moods: Arc<Moods>,
}

/// Takes the run and panics instead of publishing it.
struct Unpublished<'a>(&'a mut dyn RunSource);

impl RunSource for Unpublished<'_> {
    fn drain(
        &mut self,
        sink: &mut dyn FnMut(indexy::index_y::RunEntry<'_>) -> Result<()>,
    ) -> Result<()> {
        self.0.drain(sink)
    }

    fn before_publish(&mut self) -> Result<()> {
        panic!("this Y is not well");
    }
}

impl IndexY for MoodyY {
    fn capabilities(&self) -> Capabilities {
        self.y.capabilities()
    }
    fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        self.y.get(key)
    }
    fn range(&self, from: &[u8], to: Option<&[u8]>, order: Order) -> Result<YIter<'_>> {
        self.y.range(from, to, order)
    }
    fn write_run(&self, source: &mut dyn RunSource) -> Result<()> {
        match self.moods.wait_while_hanging() {
            Mood::Panics => self.y.write_run(&mut Unpublished(source)),
            _ => self.y.write_run(source),
        }
    }
    fn make_durable(&self) -> Result<()> {
        self.y.make_durable()
    }
    fn maintain(&self) -> Result<Maintained> {
        let mood = *self.moods.now.lock().unwrap();
        assert!(
            mood != Mood::MaintenancePanics,
            "this Y is not well, and panicked"
        );
        self.y.maintain()
    }
    fn congested(&self) -> bool {
        self.y.congested()
    }
    fn is_empty(&self) -> Result<bool> {
        self.y.is_empty()
    }
    fn approximate_len(&self) -> u64 {
        self.y.approximate_len()
    }
    fn memory_bytes(&self) -> usize {
        self.y.memory_bytes()
    }
    fn disk_bytes(&self) -> u64 {
        self.y.disk_bytes()
    }
    fn run_count(&self) -> usize {
        self.y.run_count()
    }
    fn verify(&self) -> Result<u64> {
        self.y.verify()
    }
    fn copy_to(&self, dest: &Path) -> Result<()> {
        self.y.copy_to(dest)
    }
}

struct Factory(Arc<Moods>);

impl IndexYFactory for Factory {
    fn share(&self, _cache_bytes: usize) -> Result<Arc<dyn IndexYShared>> {
        Ok(Arc::new(Self(self.0.clone())))
    }
    fn work_bytes(&self) -> usize {
        0
    }
}

impl IndexYShared for Factory {
    fn open(&self, dir: &Path, read_only: bool) -> Result<Arc<dyn IndexY>> {
        Ok(Arc::new(MoodyY {
            y: FileY::open(dir, read_only)?,
            moods: self.0.clone(),
        }))
    }
    fn memory_bytes(&self) -> usize {
        0
    }
    fn set_memory(&self, _cache_bytes: usize) {}
}

fn moods() -> Arc<Moods> {
    Arc::new(Moods {
        now: Mutex::new(Mood::Good),
        changed: Condvar::new(),
    })
}

fn options(moods: &Arc<Moods>) -> Options {
    Options::new(3 * MIB)
        .index_y(IndexYKind::custom("moody").unwrap())
        .durability(Durability::Buffered { interval_ms: 20 })
        .register_index_y("moody", Arc::new(Factory(moods.clone())))
        .unwrap()
}

const WRITERS: u64 = 8;
/// Written while Y is well.
const FIRST: u64 = 3000;
const PATIENCE: Duration = Duration::from_secs(30);

fn key(n: u64) -> [u8; 8] {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

fn value(n: u64) -> [u8; 300] {
    [n as u8; 300]
}

fn fill(tree: &Tree, keys: std::ops::Range<u64>) {
    for n in keys {
        tree.insert(key(n), value(n)).unwrap();
    }
}

fn check(tree: &Tree, keys: std::ops::Range<u64>) {
    for n in keys {
        assert_eq!(
            tree.get(key(n)).unwrap().as_deref(),
            Some(&value(n)[..]),
            "{n}"
        );
    }
}

/// All writers write until they cannot; returns the number of acknowledged writes of each, and why
/// it stopped.
fn write_until_refused(tree: &Tree) -> Vec<(u64, Error)> {
    let write = |t: u64| {
        let mut n = 0;
        loop {
            let id = FIRST + n * WRITERS + t;
            match tree.insert(key(id), value(id)) {
                Ok(()) => n += 1,
                Err(error) => return (n, error),
            }
        }
    };
    std::thread::scope(|s| {
        let threads: Vec<_> = (0..WRITERS).map(|t| s.spawn(move || write(t))).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

#[test]
fn a_panic_of_the_cleaner_poisons_and_wakes_everybody() {
    a_panic_poisons_and_wakes_everybody(Mood::Panics);
}

#[test]
fn a_panic_of_the_compactor_poisons_and_wakes_everybody() {
    a_panic_poisons_and_wakes_everybody(Mood::MaintenancePanics);
}

fn a_panic_poisons_and_wakes_everybody(mood: Mood) {
    let dir = fast_dir();
    let moods = moods();
    let db = open(dir.path(), &options(&moods));
    let tree = db.tree("t").unwrap();
    fill(&tree, 0..FIRST);
    db.sync().unwrap();
    moods.set(mood);
    let start = Instant::now();
    let stopped = write_until_refused(&tree);
    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    for (_, error) in &stopped {
        assert!(matches!(error, Error::Poisoned { .. }), "{error}");
        assert!(error.to_string().contains("panicked"), "{error}");
    }
    // Reads go on, writes do not, and the end comes quickly.
    let check_all = |tree: &Tree| {
        check(tree, 0..FIRST);
        for (t, (n, _)) in stopped.iter().enumerate() {
            (0..*n).for_each(|i| {
                let id = FIRST + i * WRITERS + t as u64;
                check(tree, id..id + 1);
            });
        }
    };
    check_all(&tree);
    moods.set(Mood::Good);
    for refused in [db.flush(), db.sync(), tree.remove(key(0))] {
        assert!(
            matches!(refused, Err(Error::Poisoned { .. })),
            "{refused:?}"
        );
    }
    assert!(matches!(db.close(), Err(Error::Poisoned { .. })));
    drop((tree, db));
    assert!(start.elapsed() < PATIENCE);
    // The process did not die: what was acknowledged is in the log, and Y has nothing half.
    let db = open(dir.path(), &options(&moods));
    check_all(&db.tree("t").unwrap());
    assert_sound(&db);
    db.close().unwrap();
}

/// The run's entries are marked clean and Y has none of them: whoever caught the panic must not go
/// on as if nothing was.
#[test]
fn i2_a_panic_in_the_callers_flush_does_not_lose_the_run() {
    let dir = fast_dir();
    let moods = moods();
    let db = open(dir.path(), &options(&moods));
    let tree = db.tree("t").unwrap();
    fill(&tree, 0..FIRST);
    moods.set(Mood::Panics);
    let flushed = catch_unwind(AssertUnwindSafe(|| db.flush()));
    assert!(flushed.is_err(), "{flushed:?}");
    moods.set(Mood::Good);
    // Would take the log of what the run before had.
    for _ in 0..2 {
        let refused = db.flush();
        assert!(
            matches!(refused, Err(Error::Poisoned { .. })),
            "{refused:?}"
        );
    }
    let refused = tree.insert(b"k", b"v");
    assert!(
        matches!(refused, Err(Error::Poisoned { .. })),
        "{refused:?}"
    );
    check(&tree, 0..FIRST);
    drop((tree, db));
    let db = open(dir.path(), &options(&moods));
    check(&db.tree("t").unwrap(), 0..FIRST);
    assert_sound(&db);
}

#[test]
fn i2_a_panic_in_a_large_value_poisons_too() {
    let dir = fast_dir();
    let moods = moods();
    let db = open(dir.path(), &options(&moods));
    let tree = db.tree("t").unwrap();
    tree.insert(b"large", b"small").unwrap();
    moods.set(Mood::Panics);
    let large = vec![7; MIB];
    let put = catch_unwind(AssertUnwindSafe(|| tree.insert(b"large", &large)));
    assert!(put.is_err(), "{put:?}");
    moods.set(Mood::Good);
    assert!(matches!(db.flush(), Err(Error::Poisoned { .. })));
    assert_eq!(tree.get(b"large").unwrap().as_deref(), Some(&b"small"[..]));
}

/// Nobody's reads wait for a Y that hangs; a larger budget helps the writers at once.
#[test]
fn i7_a_y_that_hangs_holds_up_writers_only_until_there_is_room() {
    let dir = fast_dir();
    let moods = moods();
    let db = open(dir.path(), &options(&moods));
    let tree = db.tree("t").unwrap();
    fill(&tree, 0..FIRST);
    db.flush().unwrap();
    moods.set(Mood::Hangs);
    let keys = 5 * MIB as u64 / 300;
    let next = &AtomicU64::new(FIRST);
    std::thread::scope(|s| {
        let _recovery = Recovery(&moods);
        // No writer has a part of its own: one that began early could finish it before there is no
        // room, and only the others would wait.
        let tree = &tree;
        let write_all = move || {
            loop {
                let id = next.fetch_add(1, Relaxed);
                if id >= FIRST + keys {
                    break;
                }
                tree.insert(key(id), value(id)).unwrap();
            }
        };
        let writers: Vec<_> = (0..WRITERS).map(|_| s.spawn(write_all)).collect();
        wait_for(|| db.stats().stalls >= WRITERS);
        assert!(writers.iter().all(|w| !w.is_finished()));
        check(tree, 0..FIRST);
        let used = db.stats().memory_used_bytes;
        assert!(used <= 3 * MIB as u64, "{used} bytes are used");
        let start = Instant::now();
        db.set_memory_budget(32 * MIB).unwrap();
        writers.into_iter().for_each(|w| w.join().unwrap());
        assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
        moods.set(Mood::Good);
    });
    check(&tree, 0..FIRST + keys);
    assert_sound(&db);
}

fn wait_for(done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "waited too long");
        std::thread::sleep(Duration::from_millis(5));
    }
}
