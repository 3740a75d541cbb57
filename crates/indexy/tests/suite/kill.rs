//! A real process with four writers is killed (SIGKILL) again and again; what the next one finds is
//! checked (I8).
//!
//! Each writer numbers its writes and notes, in a file of its own, which one it has begun, which
//! was acknowledged and up to which one the log was synced (or everything flushed). The notes are
//! plain writes to a file: they survive the death of the process, not of the machine.
//! `INDEXY_KILL_ROUNDS` (default 3) a case; `INDEXY_KILL_SEED` says when, and with case and round
//! under which policies.

use crate::{
    pairs::{self, Pair},
    places::fast_dir,
    policy_choice,
    support::{MIB, Random, assert_sound, child, child_argument, open, setting, side_by_side},
};
use indexy::{Db, Durability, Options, Tree, TreeOptions};
use std::{
    fs::File,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    process::Child,
    time::Duration,
};

const WRITERS: u64 = 4;
/// A writer's keys, overwritten round and round; prime, so that every key sees every kind of write.
const KEYS: u64 = 4003;

/// How a case is opened. Its text is what the child gets.
#[derive(Clone, Copy)]
struct Opened<'a> {
    durability: &'a str,
    pair: Pair,
    /// Number of the policies.
    policies: u64,
}

impl Opened<'_> {
    fn argument(self, dir: &Path) -> String {
        let pair = pairs::name(self.pair);
        let (durability, policies) = (self.durability, self.policies);
        format!("{durability} {pair} {policies} {}", dir.display())
    }
}

fn options(opened: Opened<'_>) -> Options {
    let durability = match opened.durability {
        "none" => Durability::None,
        "buffered" => Durability::Buffered { interval_ms: 20 },
        _ => Durability::Sync,
    };
    let options = Options::new(2 * MIB)
        .durability(durability)
        .log_limit_bytes(8 << 20);
    policy_choice::chosen(opened.policies).options(pairs::options(opened.pair, options))
}

// --- what a writer does, and what it leaves ------------------------------------

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Insert,
    Remove,
    /// The same key in both trees, which are of two pairs.
    Batch,
}

fn kind(n: u64) -> Kind {
    match (n % 7, n % 5) {
        (3, _) => Kind::Remove,
        (_, 4) => Kind::Batch,
        _ => Kind::Insert,
    }
}

fn key(writer: u64, n: u64) -> Vec<u8> {
    let slot = n % KEYS;
    [
        &slot.wrapping_mul(0x9E37_79B9).to_le_bytes()[..3],
        &writer.to_be_bytes()[7..],
        &slot.to_be_bytes()[..],
    ]
    .concat()
}

/// `seen`: the shared counter as the writer had seen it before.
fn value(writer: u64, n: u64, seen: u64) -> Vec<u8> {
    let mut value: Vec<u8> = [n.to_be_bytes(), seen.to_be_bytes()].concat();
    value.extend((0..(n * 37) % 250).map(|i| (i + n + writer) as u8));
    value
}

fn word(value: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(value[at..at + 8].try_into().unwrap())
}

/// The write that key `slot` shows after the first `count` writes, in the first and in the second
/// tree.
fn expected(count: u64, slot: u64) -> (Option<u64>, Option<u64>) {
    let mut last = (count > slot).then(|| (count - 1 - slot) / KEYS * KEYS + slot);
    let first = last.filter(|&n| kind(n) != Kind::Remove);
    while let Some(n) = last {
        if kind(n) == Kind::Batch {
            break;
        }
        last = n.checked_sub(KEYS);
    }
    (first, last)
}

// --- notes ------------------------------------------------------------------------

const STARTED: u64 = 0;
const ACKNOWLEDGED: u64 = 8;
const SAFE: u64 = 16;

fn notes(dir: &Path, writer: u64) -> PathBuf {
    dir.join(format!("notes-{writer}"))
}

fn note(file: &File, at: u64, n: u64) {
    file.write_all_at(&n.to_be_bytes(), at).unwrap();
}

fn noted(dir: &Path, writer: u64, at: u64) -> u64 {
    let mut bytes = [0; 8];
    match File::open(notes(dir, writer)) {
        // A short file reads as zeros.
        Ok(file) => drop(file.read_at(&mut bytes, at)),
        Err(_) => return 0,
    }
    u64::from_be_bytes(bytes)
}

// --- the child ----------------------------------------------------------------------

#[test]
fn writing_child() {
    let Some(argument) = child_argument() else {
        return;
    };
    let mut parts = argument.splitn(4, ' ');
    let [durability, pair, policies, dir] = [(); 4].map(|()| parts.next().unwrap());
    let opened = Opened {
        durability,
        pair: pairs::named(pair),
        policies: policies.parse().unwrap(),
    };
    let dir = Path::new(dir);
    let db = open(&dir.join("db"), &options(opened));
    let trees = trees(&db, opened);
    let starts: Vec<u64> = find(&trees).iter().map(Found::count).collect();
    std::thread::scope(|s| {
        for (writer, &from) in starts.iter().enumerate() {
            let (db, trees) = (&db, &trees);
            s.spawn(move || write(db, trees, durability, dir, writer as u64, from));
        }
    });
}

/// Both trees; the second one is of another pair.
fn trees(db: &Db, opened: Opened<'_>) -> (Tree, Tree) {
    let policies = policy_choice::chosen(opened.policies);
    let b = policies.open_tree(db, "b", pairs::second(opened.pair));
    (policies.open_tree(db, "a", TreeOptions::new()), b)
}

fn write(db: &Db, (a, b): &(Tree, Tree), durability: &str, dir: &Path, writer: u64, from: u64) {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(notes(dir, writer))
        .unwrap();
    let from = if durability == "none" {
        // What is there is no prefix: everything after the last flush is done once more.
        noted(dir, writer, SAFE)
    } else {
        // Whatever was begun and is not there has not happened.
        note(&file, ACKNOWLEDGED, from);
        note(&file, SAFE, from);
        from
    };
    // Without a log some of what was begun before may be there.
    let begun = match durability {
        "none" => noted(dir, writer, STARTED),
        _ => from,
    };
    note(&file, STARTED, begun);
    let mut random = Random(from + writer);
    for n in from.. {
        let mut seen = 0;
        if n.is_multiple_of(3) {
            let add = |old: Option<&[u8]>| {
                Some((old.map_or(0, |v| word(v, 0)) + 1).to_be_bytes().to_vec())
            };
            seen = word(&a.update(b"shared", add).unwrap().unwrap(), 0);
        }
        note(&file, STARTED, begun.max(n + 1));
        match kind(n) {
            Kind::Insert => a.insert(key(writer, n), value(writer, n, seen)).unwrap(),
            Kind::Remove => a.remove(key(writer, n)).unwrap(),
            Kind::Batch => {
                let mut batch = db.batch();
                batch.insert(a, key(writer, n), value(writer, n, seen));
                batch.insert(b, key(writer, n), value(writer, n, seen));
                batch.commit().unwrap();
            }
        }
        note(&file, ACKNOWLEDGED, n + 1);
        match durability {
            "sync" => note(&file, SAFE, n + 1),
            "buffered" if random.one_in(3000) => {
                db.sync().unwrap();
                note(&file, SAFE, n + 1);
            }
            "none" if random.one_in(5000) => {
                db.flush().unwrap();
                note(&file, SAFE, n + 1);
            }
            "buffered" if random.one_in(20_000) => db.flush().unwrap(),
            _ => {}
        }
    }
}

// --- the parent ---------------------------------------------------------------------

/// What is there of one writer.
struct Found {
    /// The newest write of every key, in both trees.
    a: Vec<Option<u64>>,
    b: Vec<Option<u64>>,
    /// The highest value of the shared counter that a write had seen.
    seen: u64,
    /// It is what the first so many writes leave, ascending; empty if it is no prefix. A removal of
    /// what was not there changes nothing, so that there can be two answers.
    counts: Vec<u64>,
}

impl Found {
    /// All writes up to the newest one that shows.
    fn count(&self) -> u64 {
        let newest = self.a.iter().flatten().max().map_or(0, |n| n + 1);
        self.counts.last().copied().unwrap_or(newest)
    }
}

fn find((a, b): &(Tree, Tree)) -> Vec<Found> {
    (0..WRITERS)
        .map(|writer| find_writer(a, b, writer))
        .collect()
}

fn find_writer(a: &Tree, b: &Tree, writer: u64) -> Found {
    let mut seen = 0;
    let mut all = |tree: &Tree| -> Vec<Option<u64>> {
        (0..KEYS)
            .map(|slot| {
                let found = tree.get(key(writer, slot)).unwrap()?;
                let (n, had_seen) = (word(&found, 0), word(&found, 8));
                assert!(
                    found == value(writer, n, had_seen),
                    "writer {writer}: damaged value of write {n}"
                );
                assert_eq!(n % KEYS, slot, "a value of another key");
                seen = seen.max(had_seen);
                Some(n)
            })
            .collect()
    };
    let (a, b) = (all(a), all(b));
    let newest = a.iter().flatten().max().map_or(0, |n| n + 1);
    // The very last write may have been a removal.
    let fits = |count: u64| {
        (0..KEYS).all(|slot| expected(count, slot) == (a[slot as usize], b[slot as usize]))
    };
    let counts = (newest..=newest + 1).filter(|&count| fits(count)).collect();
    Found { a, b, seen, counts }
}

fn check(dir: &Path, opened: Opened<'_>) {
    let durability = opened.durability;
    let db = open(&dir.join("db"), &options(opened));
    assert_sound(&db);
    let trees = trees(&db, opened);
    let shared = trees.0.get(b"shared").unwrap().map_or(0, |v| word(&v, 0));
    for (writer, found) in find(&trees).into_iter().enumerate() {
        let writer = writer as u64;
        let [started, acknowledged, safe] =
            [STARTED, ACKNOWLEDGED, SAFE].map(|at| noted(dir, writer, at));
        let notes =
            format!("writer {writer}: started {started}, acknowledged {acknowledged}, safe {safe}");
        if durability == "none" {
            for slot in 0..KEYS {
                let floor = expected(safe, slot);
                for (found, floor) in [
                    (found.a[slot as usize], floor.0),
                    (found.b[slot as usize], floor.1),
                ] {
                    // A key that is absent may have been removed since.
                    let old = found.is_some_and(|n| floor.is_some_and(|floor| n < floor));
                    let begun = found.is_none_or(|n| n < started);
                    assert!(
                        !old && begun,
                        "{notes}: key {slot} shows {found:?}, was {floor:?}"
                    );
                }
                if let (Some(n), None) = (expected(safe, slot).0, found.a[slot as usize]) {
                    let removed = (1..)
                        .map(|i| n + i * KEYS)
                        .take_while(|&n| n < started)
                        .any(|n| kind(n) == Kind::Remove);
                    assert!(removed, "{notes}: key {slot} is gone");
                }
            }
            continue;
        }
        assert!(
            !found.counts.is_empty(),
            "{notes}: not a prefix near {}",
            found.count()
        );
        assert!(
            found.counts.iter().any(|n| (safe..=started).contains(n)),
            "{notes}: {:?} writes are there",
            found.counts
        );
        // What a write had seen was logged before it.
        assert!(
            found.seen <= shared,
            "{notes}: saw {} of {shared}",
            found.seen
        );
    }
    db.close().unwrap();
}

fn start(dir: &Path, opened: Opened<'_>) -> Child {
    child("kill::writing_child", &opened.argument(dir))
        .spawn()
        .unwrap()
}

/// Tests of this file that kill.
const CASES: usize = 3;
/// From the policies of a round to those of the next one: more than there are pairs in all tests.
const POLICIES_A_ROUND: u64 = 100;

fn run(number: usize, durability: &str) {
    let first = setting("INDEXY_KILL_SEED", 1) + number as u64;
    let numbers = (first..).step_by(CASES);
    let pairs = pairs::chosen(number, CASES).into_iter();
    side_by_side(pairs.zip(numbers), |(pair, policies)| {
        run_with(Opened {
            durability,
            pair,
            policies,
        });
    });
}

fn run_with(mut opened: Opened<'_>) {
    let rounds = setting("INDEXY_KILL_ROUNDS", 3);
    let dir = fast_dir();
    let mut random = Random(setting("INDEXY_KILL_SEED", 1));
    for round in 0..rounds {
        println!(
            "{} round {round}: {:?}",
            opened.argument(dir.path()),
            policy_choice::chosen(opened.policies)
        );
        let mut child = start(dir.path(), opened);
        // Now and then while it is still recovering.
        let life = if round % 3 == 2 {
            random.below(60)
        } else {
            200 + random.below(900)
        };
        std::thread::sleep(Duration::from_millis(life));
        assert!(
            child.try_wait().unwrap().is_none(),
            "the writers have failed"
        );
        child.kill().unwrap();
        child.wait().unwrap();
        // Opened and closed twice: recovery of what a recovery left.
        if dir.path().join("db").exists() {
            check(dir.path(), opened);
            check(dir.path(), opened);
        }
        opened.policies += POLICIES_A_ROUND;
    }
    let writes: u64 = (0..WRITERS)
        .map(|w| noted(dir.path(), w, ACKNOWLEDGED))
        .sum();
    println!(
        "{}, {}: {writes} writes in {rounds} lives",
        opened.durability,
        pairs::name(opened.pair)
    );
    assert!(writes > 0);
}

#[test]
fn i8_buffered_keeps_a_prefix() {
    run(0, "buffered");
}

#[test]
fn i8_sync_keeps_what_was_acknowledged() {
    run(1, "sync");
}

#[test]
fn without_a_log_keys_are_as_new_as_the_last_flush() {
    run(2, "none");
}

/// The checker itself: it tells a state that is no prefix.
#[test]
fn a_lost_write_is_noticed() {
    let dir = fast_dir();
    let opened = Opened {
        durability: "buffered",
        pair: pairs::chosen(0, 1)[0],
        policies: 0,
    };
    let db = open(dir.path(), &options(opened));
    let (a, b) = trees(&db, opened);
    for n in 0..3 * KEYS {
        match kind(n) {
            Kind::Insert => a.insert(key(0, n), value(0, n, 0)).unwrap(),
            Kind::Remove => a.remove(key(0, n)).unwrap(),
            Kind::Batch => {
                a.insert(key(0, n), value(0, n, 0)).unwrap();
                b.insert(key(0, n), value(0, n, 0)).unwrap();
            }
        }
        if n % 1000 == 0 || n > 3 * KEYS - 20 {
            let found = find_writer(&a, &b, 0);
            assert!(found.counts.contains(&(n + 1)), "after write {n}");
        }
    }
    let n = (0..3 * KEYS - 100)
        .rev()
        .find(|&n| kind(n) == Kind::Batch)
        .unwrap();
    b.remove(key(0, n)).unwrap();
    assert!(find_writer(&a, &b, 0).counts.is_empty(), "half a batch");
}
