//! Whole databases over pools: larger than their memory, dropped, with memory servers that are
//! lost while they work.

use indexy::{Db, IndexXKind, IndexYKind, Options, index_y::IndexYFactory};
use indexy_dex::{
    offload,
    remote::{
        Counts, Latency, Model, Region, RemoteMemory, Secret,
        shm::{Shm, ShmServer},
    },
};
use indexy_dex_y::{DexFactory, NAME, Pools};
use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};
use tempfile::TempDir;

const KEYS: u32 = 60_000;
const BUDGET: usize = 4 << 20;

fn options(factory: Arc<dyn IndexYFactory>, x: IndexXKind) -> Options {
    let options = Options::new(BUDGET)
        .register_index_y(NAME, factory)
        .unwrap();
    options
        .index_x(x)
        .index_y(IndexYKind::custom(NAME).unwrap())
}

/// Modelled pools; the last one's verbs can be asked for.
#[derive(Clone, Default)]
struct Modelled(Arc<Mutex<Option<Arc<Model>>>>);

impl Modelled {
    fn counts(&self) -> Counts {
        let last = self.0.lock().unwrap();
        last.as_ref()
            .map_or_else(Counts::default, |model| model.counts())
    }
}

impl Pools for Modelled {
    type Memory = Arc<Model>;

    fn empty(&self, _: &Path) -> indexy_dex::Result<Arc<Model>> {
        let regions = (0..2).map(|_| Region::create(256 << 20).map(Arc::new));
        let regions = regions.collect::<indexy_dex::Result<_>>()?;
        let model = Arc::new(Model::new(regions, offload::serve, Latency::rdma()));
        *self.0.lock().unwrap() = Some(Arc::clone(&model));
        Ok(model)
    }

    fn gave_up(&self, _: &Path, why: &indexy_dex::Error) {
        panic!("{why}");
    }
}

fn key(i: u32) -> [u8; 8] {
    u64::from(i)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .to_be_bytes()
}

fn value(i: u32) -> [u8; 100] {
    [i as u8; 100]
}

/// Everything is there, by point reads and by scans in both orders.
fn check(db: &Db, from: u32) {
    let tree = db.tree("t").unwrap();
    for i in (0..KEYS).step_by(7) {
        let expected = (i >= from).then(|| value(i).to_vec());
        assert_eq!(
            tree.get(key(i)).unwrap().map(|v| v.to_vec()),
            expected,
            "{i}"
        );
    }
    let mut keys: Vec<_> = (from..KEYS).map(key).collect();
    keys.sort_unstable();
    assert!(
        tree.iter()
            .map(|e| e.unwrap().0)
            .eq(keys.iter().map(|k| &k[..]))
    );
    keys.reverse();
    assert!(
        tree.iter()
            .rev()
            .map(|e| e.unwrap().0)
            .eq(keys.iter().map(|k| &k[..]))
    );
    let report = db.verify().unwrap();
    assert!(report.is_ok(), "{report:?}");
}

#[test]
fn a_database_larger_than_its_memory_comes_back() {
    for x in [IndexXKind::None, IndexXKind::Art, IndexXKind::BPlus] {
        let dir = tempfile::tempdir().unwrap();
        let pools = Modelled::default();
        let factory = || Arc::new(DexFactory::<_, 16>::new(pools.clone()));
        let db = Db::open(dir.path(), options(factory(), x)).unwrap();
        let tree = db.tree("t").unwrap();
        for i in 0..KEYS {
            tree.insert(key(i), value(i)).unwrap();
        }
        assert_eq!(tree.pair().1.to_string(), "custom:dex");
        assert!(pools.counts().writes > 1_000, "{x:?}: runs reach the pool");
        let stats = db.stats();
        assert!(
            stats.memory_used_bytes <= stats.memory_budget_bytes,
            "{stats:?}"
        );
        check(&db, 0);
        drop((tree, db));
        // The pool is another one, and filled from the disk.
        let db = Db::open(dir.path(), options(factory(), x)).unwrap();
        let filled = pools.counts();
        check(&db, 0);
        assert!(
            (pools.counts() - filled).reads > 1_000,
            "{x:?}: reads go to the pool"
        );
        let tree = db.tree("t").unwrap();
        for i in 0..KEYS / 2 {
            tree.remove(key(i)).unwrap();
        }
        db.flush().unwrap();
        check(&db, KEYS / 2);
        db.close().unwrap();
        let db = Db::open(dir.path(), options(factory(), x)).unwrap();
        check(&db, KEYS / 2);
    }
}

/// One memory server, which goes when the test says so.
#[derive(Clone)]
struct Mortal {
    folder: Arc<TempDir>,
    server: Arc<Mutex<Option<ShmServer>>>,
    given_up: Arc<Mutex<Vec<String>>>,
}

impl Pools for Mortal {
    type Memory = Shm;

    fn empty(&self, _: &Path) -> indexy_dex::Result<Shm> {
        let path = self.folder.path().join("pool");
        let secret = Secret::new(*b"sixteen letters.").unwrap();
        let region = Arc::new(Region::create(256 << 20)?);
        let server = ShmServer::start(&path, region, offload::serve, secret.clone(), 2).unwrap();
        *self.server.lock().unwrap() = Some(server);
        Shm::connect_as(0, &[path], &secret, Duration::from_secs(1))
    }

    fn gave_up(&self, _: &Path, why: &indexy_dex::Error) {
        self.given_up.lock().unwrap().push(why.to_string());
    }
}

#[test]
fn a_lost_memory_server_costs_reads_of_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let pools = Mortal {
        folder: Arc::new(tempfile::tempdir().unwrap()),
        server: Arc::default(),
        given_up: Arc::default(),
    };
    let factory = Arc::new(DexFactory::<_, 32>::new(pools.clone()));
    let db = Db::open(dir.path(), options(factory, IndexXKind::Art)).unwrap();
    let tree = db.tree("t").unwrap();
    for i in 0..KEYS / 2 {
        tree.insert(key(i), value(i)).unwrap();
    }
    db.flush().unwrap();
    assert!(pools.given_up.lock().unwrap().is_empty());
    // The memory server ends while readers and a writer go on.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for i in KEYS / 2..KEYS {
                tree.insert(key(i), value(i)).unwrap();
                if i == KEYS * 3 / 4 {
                    drop(pools.server.lock().unwrap().take());
                }
            }
        });
        for round in 0..3 {
            for i in (round..KEYS / 2).step_by(5) {
                let found = tree.get(key(i)).unwrap().expect("was written");
                assert_eq!(found, value(i));
            }
        }
    });
    db.flush().unwrap();
    check(&db, 0);
    let given_up = pools.given_up.lock().unwrap().clone();
    assert_eq!(given_up.len(), 1, "{given_up:?}");
    drop((tree, db));
    // Another memory server, filled from the disk.
    std::fs::remove_file(pools.folder.path().join("pool")).ok();
    let factory = Arc::new(DexFactory::<_, 32>::new(pools.clone()));
    let db = Db::open(dir.path(), options(factory, IndexXKind::Art)).unwrap();
    check(&db, 0);
    assert_eq!(pools.given_up.lock().unwrap().len(), 1);
}

/// What is left of the keys when those of the lower half are gone.
fn check_upper_half(db: &Db) {
    let tree = db.tree("t").unwrap();
    let mut keys: Vec<_> = (0..KEYS).map(key).filter(|key| key[0] >= 0x80).collect();
    keys.sort_unstable();
    let found = tree.iter().map(|entry| entry.unwrap().0);
    assert!(found.eq(keys.iter().map(|key| &key[..])));
    for i in (0..KEYS).step_by(11) {
        let is_there = tree.get(key(i)).unwrap().is_some();
        assert_eq!(is_there, key(i)[0] >= 0x80, "{i}");
    }
    let report = db.verify().unwrap();
    assert!(report.is_ok(), "{report:?}");
}

#[test]
fn a_range_is_removed_at_once() {
    for x in [IndexXKind::None, IndexXKind::Art] {
        let dir = tempfile::tempdir().unwrap();
        let pools = Modelled::default();
        let factory = || Arc::new(DexFactory::<_, 16>::new(pools.clone()));
        let db = Db::open(dir.path(), options(factory(), x)).unwrap();
        let tree = db.tree("t").unwrap();
        for i in 0..KEYS {
            tree.insert(key(i), value(i)).unwrap();
        }
        db.flush().unwrap();
        let before = pools.counts();
        tree.remove_range(..[0x80]).unwrap();
        let verbs = (pools.counts() - before).verbs();
        assert!(
            verbs < u64::from(KEYS) / 2,
            "{x:?}: {verbs} verbs, key by key"
        );
        check_upper_half(&db);
        drop((tree, db));
        let db = Db::open(dir.path(), options(factory(), x)).unwrap();
        check_upper_half(&db);
        db.tree("t").unwrap().clear().unwrap();
        assert!(db.tree("t").unwrap().iter().next().is_none());
        assert!(db.verify().unwrap().is_ok());
    }
}

#[test]
fn a_range_is_removed_from_a_pool_that_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let pools = Mortal {
        folder: Arc::new(tempfile::tempdir().unwrap()),
        server: Arc::default(),
        given_up: Arc::default(),
    };
    let factory = || Arc::new(DexFactory::<_, 32>::new(pools.clone()));
    let db = Db::open(dir.path(), options(factory(), IndexXKind::Art)).unwrap();
    let tree = db.tree("t").unwrap();
    for i in 0..KEYS {
        tree.insert(key(i), value(i)).unwrap();
    }
    db.flush().unwrap();
    drop(pools.server.lock().unwrap().take());
    tree.remove_range(..[0x80]).unwrap();
    check_upper_half(&db);
    assert_eq!(pools.given_up.lock().unwrap().len(), 1);
    drop((tree, db));
    // A pool that was lost is filled again.
    std::fs::remove_file(pools.folder.path().join("pool")).ok();
    let db = Db::open(dir.path(), options(factory(), IndexXKind::Art)).unwrap();
    check_upper_half(&db);
    assert_eq!(pools.given_up.lock().unwrap().len(), 1);
}

#[test]
fn without_a_memory_index_nothing_stalls() {
    let dir = tempfile::tempdir().unwrap();
    let pools = Modelled::default();
    let factory = Arc::new(DexFactory::<_, 16>::new(pools));
    let db = Db::open(dir.path(), options(factory, IndexXKind::None)).unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let (workers, rounds) = (3, 40);
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let (db, tell) = (&db, tell.clone());
            scope.spawn(move || {
                let tree = db.tree("t").unwrap();
                for round in 0..rounds {
                    for i in 0..500 {
                        let i = (round * 500 + i) * workers + worker;
                        tree.insert(key(i), value(i)).unwrap();
                        // Its own, and somebody's.
                        assert!(tree.get(key(i)).unwrap().is_some());
                        tree.get(key(i / 2)).unwrap();
                    }
                    if round % 10 == worker {
                        db.flush().unwrap();
                    }
                    tell.send(()).unwrap();
                }
            });
        }
        drop(tell);
        let mut told_of = 0;
        loop {
            // Much longer than a round takes.
            match told.recv_timeout(Duration::from_secs(30)) {
                Ok(()) => told_of += 1,
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
                Err(error) => {
                    // The scope would wait for the threads for ever.
                    eprintln!("{error} after {told_of} rounds");
                    std::process::abort();
                }
            }
        }
        assert_eq!(told_of, workers * rounds);
    });
    check(&db, 0);
}
