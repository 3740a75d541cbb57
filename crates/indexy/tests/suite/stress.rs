//! Eight threads at a small budget do everything at once; every read is checked against a history
//! of its key.
//!
//! `INDEXY_STRESS_SECONDS` (default 2) says how long each case runs, `INDEXY_STRESS_SEED` where its
//! random numbers start.

use crate::{
    history::{History, parse},
    pairs,
    support::{MIB, Random, StopAtDrop, assert_sound, open, setting, side_by_side},
};
use indexy::{Db, Durability, Options, Tree};
use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    time::{Duration, Instant},
};

const THREADS: u64 = 8;
const KEYS: u64 = 60_000;
const COUNTERS: u64 = 5;
/// A slow machine gets so much longer to do enough.
const LONGEST: Duration = Duration::from_secs(60);

struct Run {
    db: Db,
    tree: Tree,
    /// Shared counters live in a tree of their own, of another pair.
    counters: Tree,
    added: AtomicU64,
    history: History,
    done: AtomicBool,
}

fn counter(n: u64) -> Vec<u8> {
    format!("counter {n}").into_bytes()
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes.try_into().unwrap())
}

impl Run {
    /// A key that belongs to thread `t`.
    fn own(&self, t: u64, random: &mut Random) -> u64 {
        random.below(self.history.len() / THREADS) * THREADS + t
    }

    fn write(&self, t: u64, random: &mut Random) {
        let n = self.own(t, random);
        let (key, before) = (self.history.key(n), self.history.newest(n));
        let old = self.history.value(n, before);
        let write = self.history.begin(n);
        let new = self.history.value(n, write);
        match random.below(5) {
            0 => {
                let swapped = self.tree.compare_and_swap(&key, old, new);
                assert!(swapped.unwrap(), "nobody else writes key {n}");
            }
            1 => {
                let result = self.tree.update(&key, |found| {
                    assert!(
                        found == old.as_deref(),
                        "update of key {n} found another value"
                    );
                    new.clone()
                });
                assert!(result.unwrap().as_deref() == new.as_deref());
            }
            2 if new.is_none() => {
                let taken = self.tree.take(&key).unwrap();
                assert!(taken.as_deref() == old.as_deref(), "take of key {n}");
            }
            _ => match new {
                Some(new) => self.tree.insert(&key, new).unwrap(),
                None => self.tree.remove(&key).unwrap(),
            },
        }
        self.history.acknowledge(n, write);
    }

    fn batch(&self, t: u64, random: &mut Random) {
        let mut keys: Vec<u64> = (0..random.below(20)).map(|_| self.own(t, random)).collect();
        keys.sort_unstable();
        keys.dedup();
        let mut batch = self.db.batch();
        let writes: Vec<_> = keys.iter().map(|&n| (n, self.history.begin(n))).collect();
        for &(n, write) in &writes {
            // Large values have writes of their own; together they could be more than a batch
            // takes.
            match self.history.value(n, write) {
                Some(value) if value.len() < 10_000 => {
                    batch.insert(&self.tree, self.history.key(n), value);
                }
                Some(value) => self.tree.insert(self.history.key(n), value).unwrap(),
                None => batch.remove(&self.tree, self.history.key(n)),
            }
        }
        // One batch over two pairs.
        batch.insert(
            &self.counters,
            format!("batch of thread {t}"),
            keys.len().to_be_bytes(),
        );
        batch.commit().unwrap();
        for (n, write) in writes {
            self.history.acknowledge(n, write);
        }
    }

    fn read(&self, random: &mut Random) {
        // Some keys are hot.
        let spread = if random.one_in(2) {
            500
        } else {
            self.history.len()
        };
        let n = random.below(spread);
        let key = self.history.key(n);
        match random.below(4) {
            0 => {
                let ns: Vec<u64> = (0..32).map(|_| random.below(self.history.len())).collect();
                let looks: Vec<_> = ns.iter().map(|&n| self.history.look(n)).collect();
                let keys: Vec<_> = ns.iter().map(|&n| self.history.key(n)).collect();
                let found = self.tree.multi_get(&keys).unwrap();
                for (look, found) in looks.iter().zip(found) {
                    self.history.check(look, found.as_deref());
                }
            }
            1 => {
                let look = self.history.look(n);
                let found = self.tree.get_with(&key, <[u8]>::to_vec).unwrap();
                self.history.check(&look, found.as_deref());
            }
            _ => {
                let look = self.history.look(n);
                let found = self.tree.get(&key).unwrap();
                self.history.check(&look, found.as_deref());
            }
        }
    }

    /// I9: in order, each key once, with values that may be; and every key that was there all the
    /// while.
    fn scan(&self, random: &mut Random) {
        let from = self.history.key(random.below(self.history.len()));
        let looks: Vec<_> = (0..self.history.len())
            .map(|n| self.history.look(n))
            .collect();
        let limit = random.below(3000) as usize;
        let reverse = random.one_in(2);
        let scan = if reverse {
            self.tree.range(..&from[..]).rev().take(limit).collect()
        } else {
            self.tree.range(&from[..]..).take(limit).collect()
        };
        let mut seen: Vec<(indexy::Key, indexy::Value)> = Result::unwrap(scan);
        let complete = seen.len() < limit;
        if reverse {
            seen.reverse();
        }
        assert!(seen.is_sorted_by(|a, b| a.0 < b.0), "out of order or twice");
        for (key, value) in &seen {
            let (n, _) = parse(value);
            assert!(
                self.history.key(n) == **key,
                "a value of key {n} under {key:?}"
            );
            self.history.check(&looks[n as usize], Some(value));
        }
        let (Some(first), Some(last)) = (seen.first(), seen.last()) else {
            return;
        };
        let inside = |key: &[u8]| match (complete, reverse) {
            (true, true) => key < &from[..],
            (true, false) => key >= &from[..],
            _ => *first.0 <= *key && *key <= *last.0,
        };
        for n in (0..self.history.len()).filter(|_| random.one_in(20)) {
            let key = self.history.key(n);
            if inside(&key) && self.history.certainly_there(&looks[n as usize]) {
                let found = seen.binary_search_by(|(k, _)| (**k).cmp(&key[..]));
                assert!(
                    found.is_ok(),
                    "key {n} was there all the while and not seen"
                );
            }
        }
    }

    fn count(&self, random: &mut Random) {
        let key = counter(random.below(COUNTERS));
        if random.one_in(2) {
            let add = |old: Option<&[u8]>| Some((old.map_or(0, number) + 1).to_be_bytes().to_vec());
            self.counters.update(&key, add).unwrap();
        } else {
            loop {
                let old = self.counters.get(&key).unwrap();
                let new = old.as_deref().map_or(0, number) + 1;
                let swapped = self
                    .counters
                    .compare_and_swap(&key, old, Some(new.to_be_bytes()));
                if swapped.unwrap() {
                    break;
                }
            }
        }
        self.added.fetch_add(1, SeqCst);
    }

    fn work(&self, t: u64, seed: u64) {
        let mut random = Random(seed * 1000 + t);
        while !self.done.load(SeqCst) {
            match random.below(1000) {
                0..=399 => self.write(t, &mut random),
                400..=439 => self.batch(t, &mut random),
                440..=979 => self.read(&mut random),
                980..=982 => self.scan(&mut random),
                _ => self.count(&mut random),
            }
        }
    }

    fn disturb(&self, seed: u64) {
        let mut random = Random(seed);
        let copies = tempfile::tempdir().unwrap();
        while !self.done.load(SeqCst) {
            match random.below(8) {
                0 => self.db.flush().unwrap(),
                1 => self.db.sync().unwrap(),
                2 | 3 => {
                    let budget = (3 + random.below(4) as usize) * MIB;
                    self.db.set_memory_budget(budget).unwrap();
                }
                4 => assert_sound(&self.db),
                5 => {
                    let path = copies.path().join("copy");
                    self.db.checkpoint(&path).unwrap();
                    let copy = open(&path, &Options::new(4 * MIB));
                    assert_sound(&copy);
                    drop(copy);
                    std::fs::remove_dir_all(path).unwrap();
                }
                _ => std::thread::sleep(Duration::from_millis(random.below(300))),
            }
            let _ = self.db.stats();
        }
    }

    /// All of it happened: runs, and but for mere buffers cuts and loads.
    fn enough(&self) -> bool {
        let stats = self.db.stats();
        let buffer = pairs::keeps_nothing(self.tree.pair());
        let loads = stats.y_reads > 2 * stats.uncached_reads && stats.released_regions > 10;
        stats.cleaned_runs > 10 && stats.y_reads > 1000 && (buffer || loads)
    }

    fn check_everything(&self) {
        for n in 0..self.history.len() {
            let found = self.tree.get(self.history.key(n)).unwrap();
            self.history.check(&self.history.look(n), found.as_deref());
        }
        let sum: u64 = (0..COUNTERS)
            .filter_map(|n| self.counters.get(counter(n)).unwrap())
            .map(|v| number(&v))
            .sum();
        assert_eq!(
            sum,
            self.added.load(SeqCst),
            "additions are lost or doubled"
        );
        assert_sound(&self.db);
    }
}

/// Tests of this file.
const CASES: usize = 3;

/// [`run_with`] the pairs of test `number`.
fn run(number: usize, options: &Options) {
    side_by_side(pairs::chosen(number, CASES), |pair| {
        println!("{}", pairs::name(pair));
        run_with(pair, &pairs::options(pair, options.clone()));
    });
}

fn run_with(pair: pairs::Pair, options: &Options) {
    let seconds = setting("INDEXY_STRESS_SECONDS", 2);
    let seed = setting("INDEXY_STRESS_SEED", 1);
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), options);
    let run = Run {
        tree: db.tree("t").unwrap(),
        counters: db.tree_with("counters", pairs::second(pair)).unwrap(),
        db,
        added: AtomicU64::new(0),
        history: History::new(KEYS, 40_000),
        done: AtomicBool::new(false),
    };
    std::thread::scope(|s| {
        let _stop = StopAtDrop(&run.done);
        let workers: Vec<_> = (0..THREADS)
            .map(|t| {
                s.spawn({
                    let run = &run;
                    move || run.work(t, seed)
                })
            })
            .collect();
        let disturber = s.spawn(|| run.disturb(seed));
        let end = Instant::now() + Duration::from_secs(seconds);
        let latest = end + LONGEST;
        while (Instant::now() < end || Instant::now() < latest && !run.enough())
            && !workers.iter().any(|w| w.is_finished())
            && !disturber.is_finished()
        {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    run.check_everything();
    let stats = run.db.stats();
    println!("stress: {stats:?}");
    assert!(run.enough(), "{stats:?}");
    let Run {
        db,
        tree,
        counters,
        added,
        history,
        ..
    } = run;
    drop((tree, counters));
    db.close().unwrap();
    drop(db);
    let db = open(dir.path(), options);
    let run = Run {
        tree: db.tree("t").unwrap(),
        counters: db.tree_with("counters", pairs::second(pair)).unwrap(),
        db,
        added,
        history,
        done: AtomicBool::new(true),
    };
    run.check_everything();
}

#[test]
fn eight_threads_buffered() {
    run(0, &Options::new(4 * MIB));
}

#[test]
fn eight_threads_without_a_log() {
    run(1, &Options::new(4 * MIB).durability(Durability::None));
}

#[test]
fn eight_threads_sync_with_a_short_log() {
    let options = Options::new(4 * MIB).durability(Durability::Sync);
    run(2, &options.log_limit_bytes(2 << 20));
}
