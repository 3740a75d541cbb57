//! What one tree, one batch or one budget does to its neighbours: nobody waits for something that
//! does not concern it.

use crate::{
    custom_y::FileY,
    places::fast_dir,
    support::{MIB, open},
};
use indexy::{
    Db, Durability, Error, IndexYKind, Options, Result, TreeOptions, Value,
    index_y::{
        Capabilities, IndexY, IndexYFactory, IndexYShared, Maintained, Order, RunSource, YIter,
    },
};
use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

/// How the disk index of one tree behaves.
#[derive(Default)]
struct Manners {
    /// Maintenance always has more to do.
    busy: AtomicBool,
    /// Runs wait for maintenance, once.
    congested: AtomicBool,
    /// A run takes so long.
    run_ms: AtomicU64,
}

struct MannersY {
    y: FileY,
    manners: Arc<Manners>,
}

impl IndexY for MannersY {
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
        std::thread::sleep(Duration::from_millis(self.manners.run_ms.load(SeqCst)));
        self.y.write_run(source)
    }
    fn make_durable(&self) -> Result<()> {
        self.y.make_durable()
    }
    fn maintain(&self) -> Result<Maintained> {
        if self.manners.busy.load(SeqCst) {
            std::thread::sleep(Duration::from_millis(5));
            return Ok(Maintained::More);
        }
        self.manners.congested.store(false, SeqCst);
        self.y.maintain()
    }
    fn congested(&self) -> bool {
        self.manners.congested.load(SeqCst)
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

/// The manners of every tree, in the order in which they were opened.
#[derive(Default, Clone)]
struct Factory(Arc<Mutex<Vec<Arc<Manners>>>>);

impl IndexYFactory for Factory {
    fn share(&self, _cache_bytes: usize) -> Result<Arc<dyn IndexYShared>> {
        Ok(Arc::new(self.clone()))
    }
}

impl IndexYShared for Factory {
    fn open(&self, dir: &Path, read_only: bool) -> Result<Arc<dyn IndexY>> {
        let manners = Arc::<Manners>::default();
        self.0.lock().unwrap().push(manners.clone());
        let y = FileY::open(dir, read_only)?;
        Ok(Arc::new(MannersY { y, manners }))
    }
    fn memory_bytes(&self) -> usize {
        0
    }
    fn set_memory(&self, _cache_bytes: usize) {}
}

fn with_manners(dir: &Path, budget: usize) -> (Db, Factory) {
    let factory = Factory::default();
    let options = Options::new(budget)
        .index_y(IndexYKind::custom("manners").unwrap())
        .register_index_y("manners", Arc::new(factory.clone()))
        .unwrap();
    (Db::open(dir, options).unwrap(), factory)
}

/// One tree has maintenance to do without end; another one is congested until it is maintained.
#[test]
fn a_tree_with_much_maintenance_does_not_keep_another_congested() {
    const WRITES: u32 = 40_000;
    let dir = fast_dir();
    let (db, factory) = with_manners(dir.path(), 2 * MIB);
    let _busy = db.tree("busy").unwrap();
    let tree = db.tree("congested").unwrap();
    let manners = factory.0.lock().unwrap().clone();
    manners[0].busy.store(true, SeqCst);
    std::thread::sleep(Duration::from_millis(300));
    manners[1].congested.store(true, SeqCst);
    let from = Instant::now();
    for n in 0..WRITES {
        tree.insert(n.to_be_bytes(), [7; 100]).unwrap();
    }
    assert!(
        from.elapsed() < Duration::from_secs(40),
        "{:?}",
        from.elapsed()
    );
    manners[0].busy.store(false, SeqCst);
    assert_eq!(tree.len().unwrap(), u64::from(WRITES));
}

/// A value that goes past X waits for a run of its tree. A long record of another tree does not.
#[test]
fn a_value_that_waits_for_a_run_holds_no_room_in_the_log() {
    let dir = fast_dir();
    let (db, factory) = with_manners(dir.path(), 8 * MIB);
    let (slow, other) = (db.tree("slow").unwrap(), db.tree("other").unwrap());
    slow.insert("k", "v").unwrap();
    let manners = factory.0.lock().unwrap()[0].clone();
    manners.run_ms.store(4000, SeqCst);
    std::thread::scope(|s| {
        s.spawn(|| db.flush().unwrap());
        std::thread::sleep(Duration::from_millis(300));
        s.spawn(|| slow.insert("large", vec![1; 2 * MIB]).unwrap());
        std::thread::sleep(Duration::from_millis(300));
        let from = Instant::now();
        other.insert("long", vec![1; 100 << 10]).unwrap();
        let waited = from.elapsed();
        manners.run_ms.store(0, SeqCst);
        assert!(waited < Duration::from_secs(2), "{waited:?}");
    });
    assert_eq!(slow.get("large").unwrap().unwrap().len(), 2 * MIB);
}

/// A resident tree that filled the budget was dropped: it is no reason to refuse anything.
#[test]
fn a_resident_tree_that_was_dropped_takes_no_room() {
    let dir = fast_dir();
    let db = open(dir.path(), &Options::new(8 * MIB));
    let resident = TreeOptions::new().resident(true);
    let full = db.tree_with("full", resident).unwrap();
    let refused = (0u32..).find_map(|n| full.insert(n.to_be_bytes(), [7; 100]).err());
    assert!(matches!(refused, Some(Error::ResidentTreesTooLarge { .. })));
    drop(full);
    db.drop_tree("full").unwrap();
    let tree = db.tree("t").unwrap();
    for n in 0u32.. {
        if n % 1000 == 0 && db.stats().memory_used_bytes >= 4 * MIB as u64 {
            break;
        }
        tree.insert(n.to_be_bytes(), [7; 100]).unwrap();
    }
    for _ in 0..5 {
        let mut batch = db.batch();
        let bytes = batch.limit() * 9 / 10 / 16;
        for n in 0..16u8 {
            batch.insert(&tree, [n], vec![1; bytes - 100]);
        }
        batch.commit().unwrap();
    }
}

/// What other batches have in the log is written soon: it does not make a batch too large.
#[test]
fn a_batch_within_the_limit_is_taken_beside_others() {
    let dir = fast_dir();
    let options = Options::new(2 * MIB).durability(Durability::Sync);
    let db = open(dir.path(), &options);
    for n in 0..100 {
        let tree = db.tree(&format!("x{n}")).unwrap();
        tree.insert("k", "v").unwrap();
    }
    db.flush().unwrap();
    let tree = db.tree("t").unwrap();
    // What the trees hold is counted five times a second.
    std::thread::sleep(Duration::from_millis(500));
    let each = db.batch().limit() * 8 / 10 / 16;
    std::thread::scope(|s| {
        for writer in 0..6u8 {
            let (db, tree) = (&db, &tree);
            s.spawn(move || {
                for round in 0..30u8 {
                    let mut batch = db.batch();
                    for n in 0..16 {
                        batch.insert(tree, [writer, n], vec![round; each - 100]);
                    }
                    batch.commit().unwrap();
                }
            });
        }
    });
}

/// The log has a batch that is larger than the whole budget of the next open.
#[test]
fn a_log_opens_with_a_budget_smaller_than_its_largest_batch() {
    const KEYS: u32 = 14_000;
    let dir = fast_dir();
    {
        let options = Options::new(64 * MIB).durability(Durability::Sync);
        let db = open(dir.path(), &options);
        let tree = db.tree("t").unwrap();
        let mut batch = db.batch();
        for n in 0..KEYS {
            batch.insert(&tree, n.to_be_bytes(), [7; 1000]);
        }
        batch.commit().unwrap();
    }
    let from = Instant::now();
    let db = open(dir.path(), &Options::new(4 * MIB));
    assert!(
        from.elapsed() < Duration::from_secs(30),
        "{:?}",
        from.elapsed()
    );
    assert_eq!(db.tree("t").unwrap().len().unwrap(), u64::from(KEYS));
}
