//! What calls of the public API cost that a queue, a time series and a table of rows make: ends,
//! short ranges, counts, removals of all, and loads with values of several lengths.
//!
//! Run: `cargo bench -p indexy --bench tree [-- NAME...]`. A line per workload and memory index.
//! `ENTRIES=5000000` sets the number of rows (default 1 M), `DIR` the directory (default a
//! temporary one), `PAIR=art` or `PAIR=bptree` one memory index, `SECONDS` the length of the
//! workloads that have none (default 2), `VALUE_BYTES` one length for loads.
#![allow(missing_docs, reason = "a program")]
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program that measures, and ends at the first error"
)]

use indexy::{Admission, Db, Fetch, IndexXKind, IndexYKind, Options, Ticket, Tree, TreeOptions};
use std::{
    collections::VecDeque,
    hint::black_box,
    path::PathBuf,
    time::{Duration, Instant},
};

/// Lengths of a row: those of redb's benchmark.
const ROW_KEY_BYTES: usize = 24;
const ROW_VALUE_BYTES: usize = 150;
/// A row in memory, about.
const ROW_BYTES: usize = 240;
/// Entries that a queue has lost at its front, and those that it has left.
const POPPED: u64 = 100_000;
const LEFT: u64 = 100_000;
/// Bytes that a load writes: as many entries as that makes.
const LOADED_BYTES: usize = 192 << 20;

/// Keys that are fetched at once, and how many at each turn.
const AT_ONCE: usize = 64;
const FETCHED: u64 = 100_000;
const TURNS: usize = 5;

/// What is timed as one.
const SLICE: Duration = Duration::from_millis(25);

/// A workload: its name, and what it does in a setting.
type Workload = (&'static str, fn(&Setting));

const WORKLOADS: [Workload; 9] = [
    ("ranges", ranges_in_memory),
    ("ranges-cold", ranges_over_the_budget),
    ("first", first_of_a_queue),
    ("pops", pops_in_memory),
    ("pops-cold", pops_over_the_budget),
    ("len", lengths),
    ("clear", clears),
    ("load", loads),
    ("fetch", fetches),
];

fn main() {
    let names: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let pair = std::env::var("PAIR").unwrap_or_default();
    for (kind, x) in [("art", IndexXKind::Art), ("bptree", IndexXKind::BPlus)] {
        for (name, run) in WORKLOADS {
            let wanted = names.is_empty() || names.iter().any(|n| n == name);
            if wanted && (pair.is_empty() || pair == kind) {
                run(&Setting { name, kind, x });
            }
        }
    }
}

/// What a workload runs in.
struct Setting {
    name: &'static str,
    kind: &'static str,
    x: IndexXKind,
}

impl Setting {
    /// A new database with a tree.
    fn open(&self, budget: usize) -> Opened {
        let parent = std::env::var_os("DIR").map_or_else(std::env::temp_dir, PathBuf::from);
        let dir = tempfile::tempdir_in(parent).unwrap();
        let db = Db::open(dir.path(), Options::new(budget).index_x(self.x)).unwrap();
        let tree = db.tree("t").unwrap();
        Opened { tree, db, dir }
    }

    fn rows(&self, rows: u64, budget: usize) -> Opened {
        let opened = self.open(budget);
        let value = [7; ROW_VALUE_BYTES];
        for n in 0..rows {
            opened.tree.insert(row_key(n), value).unwrap();
        }
        opened
    }

    fn say(&self, what: &str, operations: u64, (took, of_processor): Times) {
        let each = took.as_secs_f64() / operations as f64;
        let of_processor = of_processor.as_secs_f64() / operations as f64;
        println!(
            "{:>6} {:>11} {what:<40} {:>10.1} k/s {:>10.2} us {:>10.2} us of processor",
            self.kind,
            self.name,
            1e-3 / each,
            each * 1e6,
            of_processor * 1e6,
        );
    }

    /// Calls `act` with 0, 1, 2... for some time, and says what the fastest of many slices of it
    /// took: what another program takes of the machine is not in it.
    fn repeat(&self, what: &str, mut act: impl FnMut(u64)) {
        let (start, end) = (Instant::now(), Duration::from_secs(number("SECONDS", 2)));
        let mut n = 0;
        let mut fastest = (1, (Duration::MAX, Duration::MAX));
        while start.elapsed() < end {
            let (slice, first) = (Stopwatch::start(), n);
            while slice.start.elapsed() < SLICE {
                for _ in 0..16 {
                    act(n);
                    n += 1;
                }
            }
            fastest = faster(fastest, (n - first, slice.stop()));
        }
        self.say(what, fastest.0, fastest.1);
    }
}

/// Time that passed, and time of the processor that this thread took.
type Times = (Duration, Duration);

/// The one of two that took less of the processor for each operation.
fn faster(a: (u64, Times), b: (u64, Times)) -> (u64, Times) {
    let each = |(n, (_, took)): (u64, Times)| took.as_secs_f64() / n as f64;
    if each(b) < each(a) { b } else { a }
}

struct Stopwatch {
    start: Instant,
    of_processor: Duration,
}

impl Stopwatch {
    fn start() -> Self {
        Self {
            of_processor: Self::of_processor(),
            start: Instant::now(),
        }
    }

    fn stop(&self) -> Times {
        let took = self.start.elapsed();
        (took, Self::of_processor() - self.of_processor)
    }

    /// Of this thread, so far.
    fn of_processor() -> Duration {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let nanos = text.split(' ').next().and_then(|n| n.parse().ok());
        Duration::from_nanos(nanos.unwrap_or_default())
    }
}

/// A database in a directory that goes with it.
struct Opened {
    tree: Tree,
    db: Db,
    dir: tempfile::TempDir,
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.db.close().unwrap();
        assert!(self.dir.path().exists());
    }
}

fn number(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok().and_then(|n| n.parse().ok());
    given.unwrap_or(default)
}

fn entries() -> u64 {
    number("ENTRIES", 1_000_000)
}

/// A bijection of all numbers that looks random.
fn mixed(n: u64) -> u64 {
    let mut x = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x = (x ^ x >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    x ^ x >> 32
}

fn row_key(n: u64) -> [u8; ROW_KEY_BYTES] {
    let mut key = [0; ROW_KEY_BYTES];
    for (i, part) in key.chunks_exact_mut(8).enumerate() {
        part.copy_from_slice(&mixed(n + ((i as u64) << 40)).to_be_bytes());
    }
    key
}

/// Room for all rows and more.
fn ample() -> usize {
    (entries() as usize * ROW_BYTES * 2).max(64 << 20)
}

/// A quarter of the rows.
fn scarce() -> usize {
    (entries() as usize * (ROW_KEY_BYTES + ROW_VALUE_BYTES) / 4).max(4 << 20)
}

fn ten_from_anywhere(setting: &Setting, tree: &Tree) {
    setting.repeat("10 from a random place", |n| {
        let from = row_key(n + (1 << 50));
        for entry in tree.range(from..).take(10) {
            black_box(entry.unwrap());
        }
    });
}

fn ranges_in_memory(setting: &Setting) {
    ten_from_anywhere(setting, &setting.rows(entries(), ample()).tree);
}

fn ranges_over_the_budget(setting: &Setting) {
    ten_from_anywhere(setting, &setting.rows(entries(), scarce()).tree);
}

/// Removes the front of a queue that was written to disk, and asks for the first entry left.
fn first_of_a_queue(setting: &Setting) {
    for (what, budget, filler) in [
        ("behind 100 k pops, in memory", 64 << 20, 0),
        ("behind 100 k pops, front on disk", 16 << 20, 200_000_u64),
    ] {
        let opened = setting.open(budget);
        let tree = &opened.tree;
        for n in 0..POPPED + LEFT {
            tree.insert(n.to_be_bytes(), [1; 32]).unwrap();
        }
        opened.db.flush().unwrap();
        // What pushes the front out of memory lies behind it.
        for n in 0..filler {
            tree.insert(((1 << 60) + mixed(n) / 16).to_be_bytes(), [1; 64])
                .unwrap();
        }
        opened.db.flush().unwrap();
        for n in 0..POPPED {
            tree.remove(n.to_be_bytes()).unwrap();
        }
        let first = || tree.first().unwrap().unwrap().0;
        // It passes what was removed; those that follow know where that ends.
        let start = Stopwatch::start();
        assert_eq!(first(), POPPED.to_be_bytes());
        setting.say(&format!("{what}, once"), 1, start.stop());
        setting.repeat(what, |_| {
            black_box(first());
        });
    }
}

fn pop_both_ends(setting: &Setting, opened: &Opened, what: &str) {
    let pops = number("POPS", entries() / 2);
    let start = Stopwatch::start();
    for n in 0..pops {
        let popped = match n % 2 {
            0 => opened.tree.pop_first(),
            _ => opened.tree.pop_last(),
        };
        assert!(popped.unwrap().is_some());
    }
    setting.say(what, pops, start.stop());
}

fn pops_in_memory(setting: &Setting) {
    let opened = setting.rows(entries(), ample());
    pop_both_ends(setting, &opened, "both ends");
    let opened = setting.rows(entries(), ample());
    opened.db.flush().unwrap();
    pop_both_ends(setting, &opened, "both ends, written to disk before");
}

fn pops_over_the_budget(setting: &Setting) {
    let opened = setting.rows(entries(), scarce());
    pop_both_ends(setting, &opened, "both ends");
}

fn lengths(setting: &Setting) {
    for (what, budget) in [("in memory", ample()), ("over the budget", scarce())] {
        let opened = setting.rows(entries(), budget);
        let start = Stopwatch::start();
        let counted = opened.tree.len().unwrap();
        assert_eq!(counted, entries());
        setting.say(what, counted, start.stop());
    }
}

fn clears(setting: &Setting) {
    let clear = |what: &str, opened: &Opened| {
        let start = Stopwatch::start();
        opened.tree.clear().unwrap();
        setting.say(what, 1, start.stop());
        assert!(opened.tree.is_empty().unwrap());
    };
    let small = setting.open(ample());
    for n in 0..entries() {
        small
            .tree
            .insert(mixed(n).to_be_bytes(), n.to_be_bytes())
            .unwrap();
    }
    clear("8 B/8 B, in memory", &small);
    for (what, budget, flushed) in [
        ("rows, in memory", ample(), false),
        ("rows, in memory and on disk", ample(), true),
        ("rows, over the budget", scarce(), true),
    ] {
        let opened = setting.rows(entries(), budget);
        if flushed {
            opened.db.flush().unwrap();
        }
        clear(what, &opened);
    }
}

/// Loads of random keys at a budget of a quarter of the data, then reads of what is in memory.
fn loads(setting: &Setting) {
    let only = number("VALUE_BYTES", 0) as usize;
    for value_bytes in [8, 64, 256, 1024, 4096] {
        if only != 0 && only != value_bytes {
            continue;
        }
        let rows = (LOADED_BYTES / (value_bytes + 8)) as u64 * number("LOAD_PERCENT", 100) / 100;
        let budget = rows as usize * (value_bytes + 8) / 4;
        let opened = setting.open(budget);
        let value = vec![3; value_bytes];
        let start = Stopwatch::start();
        for n in 0..rows {
            opened.tree.insert(mixed(n).to_be_bytes(), &value).unwrap();
        }
        setting.say(
            &format!("load, values of {value_bytes}"),
            rows,
            start.stop(),
        );
        let stats = opened.db.stats();
        println!(
            "{:>18} {} of {rows} in memory, {:.1} B each, {:.1} of the budget",
            "",
            stats.x_keys,
            stats.x_bytes as f64 / stats.x_keys as f64,
            budget as f64 / stats.x_keys as f64
        );
    }
}

/// Cold keys by one thread: `get`, `multi_get` of [`AT_ONCE`], and `try_get` with as many tickets
/// under way, in turns. Rows of 8 and 100 bytes, twice as many as `ENTRIES`, read past the page
/// cache.
fn fetches(setting: &Setting) {
    for (name, index_y) in [
        ("LSM tree", IndexYKind::Lsm),
        ("paged tree", IndexYKind::BPlus { page_bytes: 4096 }),
    ] {
        let parent = std::env::var_os("DIR").map_or_else(std::env::temp_dir, PathBuf::from);
        let dir = tempfile::tempdir_in(parent).unwrap();
        let options = Options::new(16 << 20).index_x(setting.x).index_y(index_y);
        let db = Db::open(dir.path(), options.direct_reads(true)).unwrap();
        let cold = TreeOptions::new().admission(Admission::Never);
        let tree = db.tree_with("t", cold).unwrap();
        let rows = 2 * entries();
        let mut keys: Vec<u64> = (0..rows).map(mixed).collect();
        keys.sort_unstable();
        let row = |key: &u64| (key.to_be_bytes(), [7u8; 100]);
        tree.load_sorted(keys.iter().map(row)).unwrap();
        drop(keys);
        let mut at = 0;
        let mut next = || {
            at += 1;
            mixed(at * 7_919 % rows).to_be_bytes()
        };
        for _ in 0..TURNS {
            let start = Stopwatch::start();
            for _ in 0..FETCHED / 4 {
                assert!(tree.get(next()).unwrap().is_some());
            }
            setting.say(&format!("{name}, get"), FETCHED / 4, start.stop());
            let start = Stopwatch::start();
            for _ in 0..FETCHED / AT_ONCE as u64 {
                let keys: [_; AT_ONCE] = std::array::from_fn(|_| next());
                let values = tree.multi_get(keys).unwrap();
                assert!(values.iter().all(Option::is_some));
            }
            setting.say(&format!("{name}, multi_get"), FETCHED, start.stop());
            let start = Stopwatch::start();
            fetch_later(&tree, &mut next);
            setting.say(&format!("{name}, try_get"), FETCHED, start.stop());
        }
        db.close().unwrap();
    }
}

fn fetch_later(tree: &Tree, next: &mut impl FnMut() -> [u8; 8]) {
    let mut waits: VecDeque<Ticket> = VecDeque::new();
    for _ in 0..FETCHED {
        match tree.try_get(next()).unwrap() {
            Fetch::Now(value) => assert!(value.is_some()),
            Fetch::Later(ticket) => waits.push_back(ticket),
        }
        if waits.len() > AT_ONCE {
            let value = waits.pop_front().unwrap().wait().unwrap();
            assert!(value.is_some());
        }
    }
    for ticket in waits {
        assert!(ticket.wait().unwrap().is_some());
    }
}
