//! Who owns the directory: it is locked as long as anything of an open database may write there, in
//! whatever order a program drops its handles.
//!
//! An opener in another thread tries all the while. It must not get in before the last Index Y is
//! gone, and finds everything. One Index Y from outside takes its time to drop; those of this crate
//! do where syncs are slow (the shim).

use crate::{
    custom_y::FileY,
    pairs,
    places::fast_dir,
    support::{
        MIB, StopAtDrop, assert_sound, child, child_argument, open, shim, side_by_side, tell, wait,
    },
};
use indexy::{
    Batch, Db, Durability, Error, IndexYKind, Options, Range, Result, Tree, TreeOptions, Value,
    index_y::{
        Capabilities, IndexY, IndexYFactory, IndexYShared, Maintained, Order, RunSource, YIter,
    },
};
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    time::Duration,
};

const DROP_TIME: Duration = Duration::from_millis(60);
const KEYS: u32 = 500;

/// How many there are, the ones being dropped included.
type Alive = Arc<AtomicUsize>;

/// A [`FileY`] that takes its time to drop.
struct SlowY {
    y: Option<FileY>,
    alive: Alive,
}

impl SlowY {
    fn y(&self) -> &FileY {
        self.y.as_ref().unwrap()
    }
}

impl Drop for SlowY {
    fn drop(&mut self) {
        std::thread::sleep(DROP_TIME);
        drop(self.y.take());
        std::thread::sleep(DROP_TIME / 4);
        self.alive.fetch_sub(1, SeqCst);
    }
}

impl IndexY for SlowY {
    fn capabilities(&self) -> Capabilities {
        self.y().capabilities()
    }
    fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        self.y().get(key)
    }
    fn range(&self, from: &[u8], to: Option<&[u8]>, order: Order) -> Result<YIter<'_>> {
        self.y().range(from, to, order)
    }
    fn write_run(&self, source: &mut dyn RunSource) -> Result<()> {
        self.y().write_run(source)
    }
    fn make_durable(&self) -> Result<()> {
        self.y().make_durable()
    }
    fn maintain(&self) -> Result<Maintained> {
        self.y().maintain()
    }
    fn congested(&self) -> bool {
        false
    }
    fn is_empty(&self) -> Result<bool> {
        self.y().is_empty()
    }
    fn approximate_len(&self) -> u64 {
        self.y().approximate_len()
    }
    fn memory_bytes(&self) -> usize {
        self.y().memory_bytes()
    }
    fn disk_bytes(&self) -> u64 {
        self.y().disk_bytes()
    }
    fn run_count(&self) -> usize {
        self.y().run_count()
    }
    fn verify(&self) -> Result<u64> {
        self.y().verify()
    }
    fn release_files(&self) -> bool {
        self.y().release_files()
    }
    fn copy_to(&self, dest: &Path) -> Result<()> {
        self.y().copy_to(dest)
    }
}

/// One database has these at a time.
struct Slow(Alive);

impl IndexYFactory for Slow {
    /// The first tree of a database is about to be opened: of the one before there must be nothing
    /// left.
    fn share(&self, _: usize) -> Result<Arc<dyn IndexYShared>> {
        assert_eq!(self.0.load(SeqCst), 0, "the one before still writes");
        Ok(Arc::new(SlowShared(self.0.clone())))
    }
}

struct SlowShared(Alive);

impl IndexYShared for SlowShared {
    fn open(&self, dir: &Path, read_only: bool) -> Result<Arc<dyn IndexY>> {
        self.0.fetch_add(1, SeqCst);
        Ok(Arc::new(SlowY {
            y: Some(FileY::open(dir, read_only)?),
            alive: self.0.clone(),
        }))
    }
    fn memory_bytes(&self) -> usize {
        0
    }
    fn set_memory(&self, _: usize) {}
}

fn slow_options(alive: &Alive) -> Options {
    Options::new(4 * MIB)
        .register_index_y("slow", Arc::new(Slow(alive.clone())))
        .unwrap()
        .index_y(IndexYKind::custom("slow").unwrap())
}

/// Every kind of handle that a program may have.
struct Handles {
    db: Db,
    tree: Tree,
    batch: Batch,
    range: Range,
    dropped: Tree,
}

impl Handles {
    fn open(path: &Path, options: &Options) -> Self {
        let db = open(path, options);
        let dropped = db.tree("dropped").unwrap();
        let tree = db.tree("t").unwrap();
        for i in 0..KEYS {
            tree.insert(i.to_be_bytes(), [1; 100]).unwrap();
            dropped.insert(i.to_be_bytes(), [2; 100]).unwrap();
        }
        db.flush().unwrap();
        for i in KEYS..2 * KEYS {
            tree.insert(i.to_be_bytes(), [1; 100]).unwrap();
        }
        db.sync().unwrap();
        let mut batch = db.batch();
        batch.insert(&tree, b"never committed", b"");
        let mut range = tree.iter();
        assert!(range.next().is_some());
        db.drop_tree("dropped").unwrap();
        Self {
            db,
            tree,
            batch,
            range,
            dropped,
        }
    }
}

/// A way to drop them, and its name.
type DropAll = (&'static str, fn(Handles));

/// Each ends with the handle that it is named for.
const ORDERS: [DropAll; 9] = [
    ("an app without close", |h| {
        struct App {
            _db: Db,
            _tree: Tree,
        }
        drop((h.batch, h.range, h.dropped));
        drop(App {
            _db: h.db,
            _tree: h.tree,
        });
    }),
    ("the database last", |h| {
        drop((h.batch, h.range, h.tree, h.dropped, h.db));
    }),
    ("a tree last", |h| {
        drop((h.batch, h.range, h.db, h.dropped, h.tree));
    }),
    ("a range last", |h| {
        drop((h.batch, h.db, h.tree, h.dropped, h.range));
    }),
    ("a batch last", |h| {
        drop((h.range, h.db, h.tree, h.dropped, h.batch));
    }),
    ("a dropped tree last", |h| {
        drop((h.range, h.db, h.tree, h.batch, h.dropped));
    }),
    ("each in a thread of its own", |h| {
        let Handles {
            db,
            tree,
            batch,
            range,
            dropped,
        } = h;
        std::thread::scope(|s| {
            s.spawn(|| drop(tree));
            s.spawn(|| drop(range));
            s.spawn(|| drop(dropped));
            s.spawn(|| drop(batch));
            s.spawn(|| drop(db));
        });
    }),
    ("closed beside drops", |h| {
        let Handles {
            db,
            tree,
            batch,
            range,
            dropped,
        } = h;
        std::thread::scope(|s| {
            s.spawn(|| drop(dropped));
            s.spawn(|| db.close().unwrap());
            s.spawn(|| drop((tree, range, batch)));
        });
    }),
    ("by a panic", |h| {
        let thread = std::thread::spawn(move || {
            let _h = h;
            std::panic::resume_unwind(Box::new("on purpose"));
        });
        assert!(thread.join().is_err());
    }),
];

/// Opens as soon as it can; everything that was synced is there.
fn next_owner(path: &Path, options: &Options, stop: &AtomicBool) {
    loop {
        match Db::open(path, options.clone()) {
            Ok(db) => {
                let tree = db.tree("t").unwrap();
                let wanted = 2 * KEYS;
                assert_eq!(tree.len().unwrap(), u64::from(wanted));
                for i in 0..wanted {
                    assert_eq!(tree.get(i.to_be_bytes()).unwrap().unwrap(), [1; 100]);
                }
                assert_sound(&db);
                // What the one before would still write is written over this.
                tree.insert(b"next", b"owner").unwrap();
                db.flush().unwrap();
                assert_sound(&db);
                return db.close().unwrap();
            }
            Err(Error::Locked { this_process, .. }) => {
                assert!(this_process);
                assert!(!stop.load(SeqCst), "everything is dropped");
            }
            Err(error) => panic!("{error}"),
        }
        std::thread::yield_now();
    }
}

fn race(path: &Path, options: &Options, drop_all: fn(Handles)) {
    let handles = Handles::open(path, options);
    let done = AtomicBool::new(false);
    let (opening, started) = mpsc::channel();
    std::thread::scope(|s| {
        let _stop = StopAtDrop(&done);
        let next = s.spawn(|| {
            let refused = Db::open(path, options.clone());
            assert!(matches!(refused, Err(Error::Locked { .. })));
            opening.send(()).unwrap();
            next_owner(path, options, &done);
        });
        started.recv().unwrap();
        drop_all(handles);
        next.join().unwrap();
    });
}

#[test]
fn nobody_opens_before_a_slow_index_y_is_gone() {
    for durability in [Durability::default(), Durability::None] {
        for (name, drop_all) in ORDERS {
            eprintln!("{durability:?}, {name}");
            let dir = fast_dir();
            let alive = Alive::default();
            let options = slow_options(&alive).durability(durability);
            // Closed, a database is the next one's although the old Index Ys are still there: they
            // promised to write nothing. What has no log is not saved by a panic.
            let panics = name == "by a panic" && durability == Durability::None;
            if name != "closed beside drops" && !panics {
                race(dir.path(), &options, drop_all);
                assert_eq!(alive.load(SeqCst), 0);
            }
        }
    }
}

/// As `close` promises, although handles live on; also those of a dropped tree.
#[test]
fn closing_frees_the_directory_while_handles_live() {
    for y in [IndexYKind::Lsm, IndexYKind::BPlus { page_bytes: 4096 }] {
        let dir = fast_dir();
        let options = Options::new(4 * MIB).index_y(y);
        let handles = Handles::open(dir.path(), &options);
        handles.db.close().unwrap();
        let next = open(dir.path(), &options);
        let tree = next.tree("t").unwrap();
        for i in 0..KEYS {
            tree.insert(i.to_be_bytes(), [3; 100]).unwrap();
        }
        next.flush().unwrap();
        drop(handles);
        assert_sound(&next);
        for i in 0..KEYS {
            assert_eq!(tree.get(i.to_be_bytes()).unwrap().unwrap(), [3; 100]);
        }
    }
}

/// A failed open gives the directory back, whole.
#[test]
fn an_open_that_fails_half_way_frees_the_directory_when_it_is_done() {
    let dir = fast_dir();
    let alive = Alive::default();
    let options = slow_options(&alive);
    let db = open(dir.path(), &options);
    db.tree("t").unwrap().insert(b"k", b"v").unwrap();
    // The second tree cannot be opened.
    let paged = TreeOptions::new().index_y(IndexYKind::BPlus { page_bytes: 4096 });
    db.tree_with("u", paged).unwrap();
    db.close().unwrap();
    drop(db);
    let pages = dir.path().join("trees/2/pages");
    let whole = std::fs::read(&pages).unwrap();
    std::fs::write(&pages, vec![7; whole.len()]).unwrap();
    std::thread::scope(|s| {
        let others = s.spawn(|| {
            loop {
                match Db::open(dir.path(), options.clone()) {
                    Err(Error::Locked { .. }) => std::thread::yield_now(),
                    Err(Error::Corrupt { .. }) => {}
                    Err(error) => panic!("{error}"),
                    Ok(db) => return db.close().unwrap(),
                }
            }
        });
        for _ in 0..3 {
            match Db::open(dir.path(), options.clone()) {
                Err(Error::Corrupt { .. } | Error::Locked { .. }) => {}
                other => panic!("{other:?}"),
            }
        }
        std::fs::write(&pages, whole).unwrap();
        others.join().unwrap();
    });
    assert_eq!(alive.load(SeqCst), 0);
    assert_sound(&open(dir.path(), &options));
}

/// Syncs take their time, so that what an Index Y of this crate writes when it drops comes late.
#[test]
fn nobody_opens_before_the_last_sync_of_our_own() {
    let scratch = fast_dir();
    let shim = shim(scratch.path());
    let pairs = ["art-lsm", "art-bplus:4096", "bplus-bplus:16384", "none-lsm"];
    side_by_side(pairs, |pair| {
        let child = child("owner::slow_syncs_child", pair)
            .env("LD_PRELOAD", &shim)
            .spawn()
            .unwrap();
        assert!(wait(child, Duration::from_secs(240)), "{pair}");
    });
}

#[test]
fn slow_syncs_child() {
    let Some(pair) = child_argument() else {
        return;
    };
    let options = pairs::options(pairs::named(&pair), Options::new(4 * MIB));
    for (name, drop_all) in ORDERS {
        eprintln!("{pair}, {name}");
        let dir = fast_dir();
        tell("arm/sync/slow/0/forever/trees");
        race(dir.path(), &options, drop_all);
        tell("disarm");
    }
}

#[test]
fn a_file_is_no_database() {
    let dir = fast_dir();
    let file = dir.path().join("file");
    std::fs::write(&file, "x").unwrap();
    for path in [file.clone(), file.join("below")] {
        for read_only in [false, true] {
            let refused = Db::open(&path, Options::new(4 * MIB).read_only(read_only));
            let Err(error @ Error::NotADirectory { .. }) = refused else {
                panic!("{refused:?}");
            };
            assert!(error.to_string().contains("is a file"), "{error}");
        }
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"x");
    // Nothing was left behind by the attempts.
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}
