//! The hot set: what a restart brings back into memory before it is asked for.

use crate::{
    pairs::{self, Pair},
    places::fast_dir,
    support::{
        MIB, Random, StopAtDrop, assert_sound, child, child_argument, fingerprint, open,
        side_by_side, wait,
    },
};
use indexy::{Db, Error, HotSet, Options, Stats, Tree};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

/// Nothing takes longer.
const LIMIT: Duration = Duration::from_secs(60);
const AT_THE_END: HotSet = HotSet::Keep {
    every: Duration::MAX,
};

fn keeping(budget: usize) -> Options {
    Options::new(budget).hot_set(AT_THE_END)
}

fn hot_file(dir: &Path) -> PathBuf {
    dir.join("HOT")
}

/// Scattered, as hashes are.
fn key(n: u64) -> Vec<u8> {
    let scattered = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    format!("user{scattered:020}").into_bytes()
}

fn value(n: u64) -> Vec<u8> {
    vec![n as u8; 60 + (n % 80) as usize]
}

fn fill(tree: &Tree, keys: u64) {
    (0..keys).for_each(|n| tree.insert(key(n), value(n)).unwrap());
}

/// A number below `keys`, the small ones far oftener: about what zipf with 0.99 gives.
fn skewed(random: &mut Random, keys: u64) -> u64 {
    let unit = random.below(1 << 30) as f64 / f64::from(1 << 30);
    (keys as f64).powf(unit) as u64 % keys
}

/// Part of `gets` skewed gets that memory answers.
fn hit_ratio(db: &Db, tree: &Tree, (seed, gets): (u64, u64), keys: u64) -> f64 {
    let before = db.stats();
    let mut random = Random(seed);
    for _ in 0..gets {
        let n = skewed(&mut random, keys);
        assert_eq!(tree.get(key(n)).unwrap().as_deref(), Some(&value(n)[..]));
    }
    let after = db.stats();
    let (hits, misses) = (after.hits - before.hits, after.misses - before.misses);
    hits as f64 / (hits + misses) as f64
}

fn wait_until_warm(db: &Db) -> Stats {
    wait_for(db, |stats| !stats.warming)
}

fn wait_for(db: &Db, reached: impl Fn(&Stats) -> bool) -> Stats {
    let started = Instant::now();
    loop {
        let stats = db.stats();
        if reached(&stats) {
            return stats;
        }
        assert!(started.elapsed() < LIMIT, "{stats:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_restart_has_the_hit_ratio_of_before() {
    const KEYS: u64 = 250_000;
    let with_x = |pair: &Pair| !pairs::keeps_nothing(*pair);
    let pairs: Vec<_> = pairs::chosen(0, 1).into_iter().filter(with_x).collect();
    side_by_side(pairs, |pair| {
        let name = pairs::name(pair);
        let dir = fast_dir();
        let options = pairs::options(pair, keeping(4 * MIB));
        let db = open(dir.path(), &options);
        let tree = db.tree("t").unwrap();
        fill(&tree, KEYS);
        hit_ratio(&db, &tree, (1, 200_000), KEYS);
        let before = hit_ratio(&db, &tree, (2, 50_000), KEYS);
        let in_memory = db.stats().x_keys;
        db.close().unwrap();
        assert!(hot_file(dir.path()).exists() && !dir.path().join("HOT.next").exists());

        let db = open(dir.path(), &options);
        let tree = db.tree("t").unwrap();
        let stats = wait_until_warm(&db);
        assert!(
            stats.warmed_keys > in_memory / 2,
            "{name}: {in_memory} {stats:?}"
        );
        assert_eq!(
            (stats.hits, stats.misses, stats.y_reads),
            (0, 0, 0),
            "{name}"
        );
        assert_eq!((stats.releases, stats.stalls), (0, 0), "{name}");
        assert!(
            stats.memory_used_bytes <= stats.memory_budget_bytes,
            "{name}: {stats:?}"
        );
        let after = hit_ratio(&db, &tree, (3, 50_000), KEYS);
        assert!(
            after >= before * 0.9,
            "{name}: {before} before, {after} after"
        );
        assert_sound(&db);
        db.close().unwrap();

        // Without warming it is far from that.
        let db = open(dir.path(), &pairs::options(pair, Options::new(4 * MIB)));
        let cold = hit_ratio(&db, &db.tree("t").unwrap(), (3, 5_000), KEYS);
        assert!(cold < before * 0.8, "{name}: {cold}");
    });
}

/// A life in which nobody asks for anything knows nothing of what is hot.
#[test]
fn a_life_without_reads_leaves_the_file() {
    const KEYS: u64 = 250_000;
    let dir = fast_dir();
    let db = open(dir.path(), &keeping(4 * MIB));
    let tree = db.tree("t").unwrap();
    fill(&tree, KEYS);
    hit_ratio(&db, &tree, (1, 200_000), KEYS);
    drop(tree);
    db.close().unwrap();
    let good = std::fs::read(hot_file(dir.path())).unwrap();
    let life = |every, gets| {
        let options = Options::new(4 * MIB).hot_set(HotSet::Keep { every });
        let db = open(dir.path(), &options);
        wait_until_warm(&db);
        hit_ratio(&db, &db.tree("t").unwrap(), (2, gets), KEYS);
        if every < LIMIT {
            std::thread::sleep(20 * every);
        }
        db.close().unwrap();
        std::fs::read(hot_file(dir.path())).unwrap()
    };
    for every in [Duration::MAX, Duration::from_millis(1)] {
        assert!(life(every, 0) == good && life(every, 100) == good);
    }
    assert!(life(Duration::MAX, 50_000) != good);
}

/// The child's part: a long log, and an end without a close.
#[test]
fn ending_child() {
    let Some(dir) = child_argument() else { return };
    let db = open(Path::new(&dir), &keeping(4 * MIB));
    wait_until_warm(&db);
    let tree = db.tree("t").unwrap();
    // More than memory, of other keys.
    (0..100_000).for_each(|n| tree.insert(key(1_000_000 + n), value(n)).unwrap());
    db.sync().unwrap();
    std::process::exit(0);
}

/// What ended under writes has a log that fills memory when it is replayed.
#[test]
fn a_replay_that_leaves_no_room_leaves_the_file() {
    const KEYS: u64 = 250_000;
    let dir = fast_dir();
    let db = open(dir.path(), &keeping(4 * MIB));
    let tree = db.tree("t").unwrap();
    fill(&tree, KEYS);
    hit_ratio(&db, &tree, (1, 200_000), KEYS);
    drop(tree);
    db.close().unwrap();
    let good = std::fs::read(hot_file(dir.path())).unwrap();
    let running = child("hot_set::ending_child", dir.path().to_str().unwrap()).spawn();
    assert!(wait(running.unwrap(), LIMIT));
    let db = open(dir.path(), &keeping(4 * MIB));
    let stats = wait_until_warm(&db);
    // The replay filled memory.
    assert!(stats.warmed_keys < stats.x_keys / 2, "{stats:?}");
    // Fewer than a tenth of the keys would be too few in any case.
    hit_ratio(&db, &db.tree("t").unwrap(), (2, stats.x_keys / 2), KEYS);
    db.close().unwrap();
    assert!(std::fs::read(hot_file(dir.path())).unwrap() == good);
}

/// A database of a few keys in two trees, closed; returns the bytes of its hot set.
fn small(dir: &Path) -> Vec<u8> {
    let db = open(dir, &keeping(4 * MIB));
    for name in ["a", "b"] {
        fill(&db.tree(name).unwrap(), 3);
    }
    db.close().unwrap();
    std::fs::read(hot_file(dir)).unwrap()
}

fn check_small(db: &Db) {
    for name in ["a", "b"] {
        let tree = db.tree(name).unwrap();
        (0..3).for_each(|n| assert_eq!(tree.get(key(n)).unwrap().unwrap(), value(n)));
        assert_eq!(tree.iter().count(), 3);
    }
}

#[test]
fn a_damaged_file_is_ignored() {
    let dir = fast_dir();
    let good = small(dir.path());
    // Nobody makes it anew meanwhile.
    let options = keeping(4 * MIB).read_only(true);
    let check = |bytes: &[u8], expected: u64, what: &str| {
        std::fs::write(hot_file(dir.path()), bytes).unwrap();
        let db = open(dir.path(), &options);
        assert_eq!(wait_until_warm(&db).warmed_keys, expected, "{what}");
        check_small(&db);
    };
    check(&good, 6, "as it was");
    for at in 0..good.len() {
        let mut damaged = good.clone();
        damaged[at] ^= 0x41;
        check(&damaged, 0, &format!("byte {at}"));
    }
    for len in [0, 1, good.len() / 2, good.len() - 1] {
        check(&good[..len], 0, &format!("{len} bytes"));
    }
    check(&[&good[..], b"more"].concat(), 0, "more");
    // In place of a file, whatever it is: the database opens, closes, and goes on.
    std::fs::remove_file(hot_file(dir.path())).unwrap();
    std::fs::create_dir(hot_file(dir.path())).unwrap();
    let db = open(dir.path(), &keeping(4 * MIB));
    assert_eq!(wait_until_warm(&db).warmed_keys, 0);
    check_small(&db);
    db.close().unwrap();
    // The next good save puts things right.
    std::fs::remove_dir(hot_file(dir.path())).unwrap();
    let db = open(dir.path(), &keeping(4 * MIB));
    wait_until_warm(&db);
    check_small(&db);
    db.close().unwrap();
    assert_eq!(
        std::fs::read(hot_file(dir.path())).unwrap().len(),
        good.len()
    );
}

#[test]
fn a_save_that_fails_is_no_error_of_close() {
    let dir = fast_dir();
    let good = small(dir.path());
    // Neither removed nor created.
    std::fs::create_dir_all(dir.path().join("HOT.next/x")).unwrap();
    let db = open(dir.path(), &keeping(4 * MIB));
    assert_eq!(wait_until_warm(&db).warmed_keys, 6);
    db.tree("a").unwrap().insert("new", "value").unwrap();
    db.close().unwrap();
    assert_eq!(std::fs::read(hot_file(dir.path())).unwrap(), good);
    let db = open(dir.path(), &keeping(4 * MIB));
    assert_eq!(db.tree("a").unwrap().get("new").unwrap().unwrap(), b"value");
}

#[test]
fn off_makes_no_file_and_leaves_one() {
    let dir = fast_dir();
    let good = small(dir.path());
    let db = open(dir.path(), &Options::new(4 * MIB));
    let stats = db.stats();
    assert_eq!(
        (stats.warming, stats.warmed_keys, stats.x_keys),
        (false, 0, 0)
    );
    check_small(&db);
    // A copy opens without, too.
    let copy = fast_dir();
    db.checkpoint(copy.path().join("c")).unwrap();
    db.close().unwrap();
    assert_eq!(std::fs::read(hot_file(dir.path())).unwrap(), good);
    assert!(!hot_file(&copy.path().join("c")).exists());
    let db = open(&copy.path().join("c"), &Options::new(4 * MIB));
    check_small(&db);
    db.close().unwrap();
    assert!(!hot_file(&copy.path().join("c")).exists());
}

#[test]
fn read_only_is_warmed_and_writes_nothing() {
    let dir = fast_dir();
    small(dir.path());
    let before = fingerprint(dir.path());
    let every = Duration::from_millis(1);
    let options = Options::new(4 * MIB).hot_set(HotSet::Keep { every });
    let db = open(dir.path(), &options.read_only(true));
    assert_eq!(wait_until_warm(&db).warmed_keys, 6);
    check_small(&db);
    std::thread::sleep(Duration::from_millis(20));
    db.close().unwrap();
    assert!(before == fingerprint(dir.path()));
}

#[test]
fn a_tree_that_was_dropped_and_made_anew_stays_cold() {
    let dir = fast_dir();
    small(dir.path());
    let db = open(dir.path(), &Options::new(4 * MIB));
    db.drop_tree("a").unwrap();
    fill(&db.tree("a").unwrap(), 3);
    db.rename_tree("b", "c").unwrap();
    db.rename_tree("a", "b").unwrap();
    db.close().unwrap();
    let db = open(dir.path(), &keeping(4 * MIB));
    assert_eq!(wait_until_warm(&db).warmed_keys, 3);
    let keys = |name| db.tree(name).unwrap().stats().x_keys;
    assert_eq!((keys("b"), keys("c")), (0, 3));
}

#[test]
fn the_timer_saves_while_the_database_is_open() {
    let dir = fast_dir();
    let every = Duration::from_millis(20);
    let options = Options::new(4 * MIB).hot_set(HotSet::Keep { every });
    let db = open(dir.path(), &options);
    let tree = db.tree("t").unwrap();
    fill(&tree, 100);
    wait_for(&db, |stats| stats.hot_set_keys == 100);
    fill(&tree, 200);
    wait_for(&db, |stats| stats.hot_set_keys == 200);
    // Nobody reads or writes: nothing is saved.
    std::thread::sleep(Duration::from_millis(100));
    let saved = std::fs::metadata(hot_file(dir.path())).unwrap().modified();
    std::thread::sleep(Duration::from_millis(100));
    let later = std::fs::metadata(hot_file(dir.path())).unwrap().modified();
    assert_eq!(saved.unwrap(), later.unwrap());
    // The last handle saves, too.
    fill(&tree, 300);
    drop((db, tree));
    let db = open(dir.path(), &options);
    // From the log, which is replayed: they are there before they could be warmed.
    assert_eq!(wait_until_warm(&db).x_keys, 300);
    db.close().unwrap();
    let db = open(dir.path(), &options);
    assert_eq!(wait_until_warm(&db).warmed_keys, 300);
}

/// A closed database with much to warm, in two trees; returns the bytes of its hot set.
fn large(dir: &Path, options: &Options) -> Vec<u8> {
    let db = open(dir, options);
    for name in ["a", "b"] {
        fill(&db.tree(name).unwrap(), 60_000);
    }
    db.close().unwrap();
    std::fs::read(hot_file(dir)).unwrap()
}

#[test]
fn an_end_during_warming_is_prompt_and_keeps_the_file() {
    let dir = fast_dir();
    let every = Duration::from_micros(1);
    let options = Options::new(32 * MIB).hot_set(HotSet::Keep { every });
    let mut file = large(dir.path(), &options);
    let mut cut_short = 0;
    for round in 0..30 {
        let db = open(dir.path(), &options);
        let tree = db.tree("a").unwrap();
        let started = Instant::now();
        while db.stats().warming && started.elapsed() < Duration::from_micros(round * 500) {}
        let warming = db.stats().warming;
        if !warming {
            // Enough to save it again.
            (0..15_000).for_each(|n| drop(tree.get(key(n)).unwrap().unwrap()));
        }
        drop(tree);
        let ended = Instant::now();
        if round % 2 == 0 {
            db.close().unwrap();
        }
        drop(db);
        assert!(
            ended.elapsed() < Duration::from_secs(10),
            "{:?}",
            ended.elapsed()
        );
        let now = std::fs::read(hot_file(dir.path())).unwrap();
        // It may have ended in between.
        if warming && now == file {
            cut_short += 1;
        }
        assert!(
            now.len() * 10 > file.len() * 9,
            "{} of {}",
            now.len(),
            file.len()
        );
        file = now;
    }
    assert!(cut_short > 0);
    let db = open(dir.path(), &options);
    assert!(wait_until_warm(&db).warmed_keys > 100_000);
}

#[test]
fn drops_of_trees_during_warming_and_saving() {
    let dir = fast_dir();
    let every = Duration::from_millis(1);
    let options = Options::new(32 * MIB).hot_set(HotSet::Keep { every });
    large(dir.path(), &options);
    for name in ["a", "b"] {
        let db = open(dir.path(), &options);
        let started = Instant::now();
        db.drop_tree(name).unwrap();
        assert!(started.elapsed() < Duration::from_secs(10));
        wait_until_warm(&db);
        let tree = db.tree("another").unwrap();
        fill(&tree, 20_000);
        db.drop_tree("another").unwrap();
        assert_sound(&db);
        db.close().unwrap();
    }
    let db = open(dir.path(), &options);
    assert_eq!(wait_until_warm(&db).warmed_keys, 0);
}

/// Four writers, beside warming and saving, each with keys of its own: what they wrote is what
/// there is.
#[test]
fn writers_beside_warming() {
    const KEYS: u64 = 20_000;
    let dir = fast_dir();
    let every = Duration::from_millis(2);
    let options = Options::new(4 * MIB).hot_set(HotSet::Keep { every });
    let db = open(dir.path(), &options);
    fill(&db.tree("t").unwrap(), KEYS);
    let mut model: BTreeMap<Vec<u8>, Vec<u8>> = (0..KEYS).map(|n| (key(n), value(n))).collect();
    db.close().unwrap();
    for round in 0..6 {
        let db = open(dir.path(), &options);
        let tree = db.tree("t").unwrap();
        let written = Mutex::new(Vec::new());
        std::thread::scope(|s| {
            for thread in 0..4 {
                let (tree, written, db) = (&tree, &written, &db);
                s.spawn(move || {
                    let mut random = Random(round * 4 + thread);
                    let mut mine = BTreeMap::new();
                    let mut writes = 0;
                    while db.stats().warming || writes < 2000 {
                        writes += 1;
                        let n = random.below(KEYS / 4) * 4 + thread;
                        let new = (!random.one_in(4)).then(|| value(random.below(1 << 20)));
                        match &new {
                            Some(value) => tree.insert(key(n), value).unwrap(),
                            None => tree.remove(key(n)).unwrap(),
                        }
                        assert_eq!(tree.get(key(n)).unwrap().as_deref(), new.as_deref());
                        mine.insert(key(n), new);
                    }
                    written.lock().unwrap().extend(mine);
                });
            }
        });
        for (key, value) in written.into_inner().unwrap() {
            match value {
                Some(value) => drop(model.insert(key, value)),
                None => drop(model.remove(&key)),
            }
        }
        let found = tree.iter().map(|entry| entry.unwrap());
        let found: Vec<_> = found.map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
        assert!(
            found == model.clone().into_iter().collect::<Vec<_>>(),
            "{round}"
        );
        for n in 0..KEYS {
            let expected = model.get(&key(n)).map(Vec::as_slice);
            assert_eq!(tree.get(key(n)).unwrap().as_deref(), expected);
        }
        assert_sound(&db);
        db.close().unwrap();
    }
}

/// The budget is kept at every moment of warming and saving, whatever else goes on.
#[test]
fn i7_the_budget_is_kept() {
    const KEYS: u64 = 120_000;
    side_by_side(["art-lsm", "bplus-bplus:4096"], |pair| {
        let dir = fast_dir();
        let every = Duration::from_millis(5);
        let options = Options::new(3 * MIB).hot_set(HotSet::Keep { every });
        let options = pairs::options(pairs::named(pair), options);
        let db = open(dir.path(), &options);
        fill(&db.tree("t").unwrap(), KEYS);
        db.close().unwrap();
        for round in 0..3 {
            let db = open(dir.path(), &options);
            let tree = db.tree("t").unwrap();
            let stop = AtomicBool::new(false);
            std::thread::scope(|s| {
                s.spawn(|| {
                    while !stop.load(SeqCst) {
                        let stats = db.stats();
                        let (used, budget) = (stats.memory_used_bytes, stats.memory_budget_bytes);
                        assert!(used <= budget, "{used} of {budget}");
                    }
                });
                let _stop = StopAtDrop(&stop);
                hit_ratio(&db, &tree, (round, 20_000), KEYS);
                wait_until_warm(&db);
                fill(&tree, 20_000);
            });
            db.close().unwrap();
        }
    });
}

#[test]
fn a_poisoned_database_stops_warming_and_saves_nothing() {
    let parent = fast_dir();
    let dir = parent.path().join("db");
    let every = Duration::from_millis(1);
    let options = Options::new(32 * MIB).hot_set(HotSet::Keep { every });
    let file = large(&dir, &options);
    let db = open(&dir, &options);
    let moved = parent.path().join("moved");
    std::fs::rename(&dir, &moved).unwrap();
    // Whatever creates a file next finds out: a save at the latest.
    let refused = db.tree("another");
    assert!(
        matches!(refused, Err(Error::DirectoryMoved { .. })),
        "{refused:?}"
    );
    wait_for(&db, |stats| !stats.warming);
    assert!(db.close().is_err());
    assert_eq!(std::fs::read(hot_file(&moved)).unwrap(), file);
    let db = open(&moved, &options);
    assert!(wait_until_warm(&db).warmed_keys > 100_000);
}

#[test]
fn no_time_between_saves_is_refused() {
    let dir = fast_dir();
    let every = Duration::ZERO;
    let options = Options::new(4 * MIB).hot_set(HotSet::Keep { every });
    let refused = Db::open(dir.path(), options);
    assert!(matches!(
        refused,
        Err(Error::InvalidOption {
            option: "hot_set",
            ..
        })
    ));
}
