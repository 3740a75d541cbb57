//! Instructions of one call, exact: what else the machine does has no part in them.
//!
//! Run: `cargo bench -p indexy --bench instructions [-- NAME...]`. Needs valgrind. A line per
//! workload: instructions averaged over all keys, and the ratio to the workload that it is compared
//! with. `KEYS=1000000` sets the number of keys (default 200,000), `PAIR=bptree` the other memory
//! index, `OUT=dir` keeps callgrind's files, for `callgrind_annotate`.
//!
//! Each workload runs in a process of its own, where callgrind counts what the thread that calls
//! does within `collected`. Such a process says how long a call took: run the program itself with
//! `INSTRUCTIONS_OF=get`, without cargo and valgrind, to compare two builds by turns. Keys and
//! values have 8 bytes, keys are random, all are in memory, over an LSM tree.
#![allow(missing_docs, reason = "a program")]
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program that measures, and ends at the first error"
)]

use indexy::{Admission, Db, HotSet, IndexXKind, Options, Tree, TreeOptions};
use std::{
    hint::black_box,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

/// More than the keys take, with images of all of them.
const BUDGET_BYTES: usize = 256 << 20;
/// One that other entries fill so far that regions are watched.
const SHORT_BUDGET_BYTES: usize = 32 << 20;
/// Names the workload to the process that runs it.
const CHILD: &str = "INSTRUCTIONS_OF";

/// A workload: its name, the one that it is compared with, and what it does.
type Workload = (&'static str, &'static str, fn(&Setting));

const WORKLOADS: [Workload; 12] = [
    ("get", "get", get),
    ("get-counted", "get", get_counted),
    ("get-watched", "get", get_watched),
    ("get-unchanged", "get", get_unchanged),
    ("get-probed", "get", get_probed),
    ("insert", "insert", insert),
    ("insert-beside", "insert", insert_beside),
    ("overwrite", "overwrite", overwrite),
    ("overwrite-first", "overwrite", overwrite_first),
    ("overwrite-again", "overwrite", overwrite_again),
    ("take", "take", take),
    ("pop", "take", pop),
];

fn main() {
    if let Ok(name) = std::env::var(CHILD) {
        let workload = WORKLOADS.iter().find(|(of, ..)| *of == name);
        let (name, _, run) = workload.unwrap();
        return run(&Setting::new(name));
    }
    let names: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let scratch = tempfile::tempdir().unwrap();
    let out = std::env::var("OUT").map_or(scratch.path().to_path_buf(), Into::into);
    std::fs::create_dir_all(&out).unwrap();
    let mut counted: Vec<(&str, f64)> = Vec::new();
    for (name, base, _) in WORKLOADS {
        if names.is_empty() || names.iter().any(|wanted| wanted == name) {
            let each = count(name, &out) / keys() as f64;
            counted.push((name, each));
            let base = counted.iter().find(|(of, _)| *of == base);
            let ratio = base.map_or(String::new(), |(_, base)| format!("{:.3}", each / base));
            println!("{name:16} {each:8.1} {ratio:>8}");
        }
    }
}

fn keys() -> usize {
    std::env::var("KEYS").map_or(200_000, |keys| keys.parse().unwrap())
}

/// Instructions of all calls of a workload.
fn count(name: &str, out: &Path) -> f64 {
    let file = out.join(format!("callgrind.{name}"));
    let output = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg("--toggle-collect=*instructions*collected*")
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(std::env::current_exe().unwrap())
        .env(CHILD, name)
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{log}");
    let text = std::fs::read_to_string(file).unwrap();
    let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
    total.unwrap().trim().parse().unwrap()
}

struct Setting {
    db: Db,
    tree: Tree,
    keys: Vec<[u8; 8]>,
    /// The keys in another order.
    asked: Vec<[u8; 8]>,
    _dir: tempfile::TempDir,
}

impl Setting {
    fn new(name: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let counted = name == "get-counted" || name == "get-watched";
        let budget = match name {
            "get-watched" => SHORT_BUDGET_BYTES,
            _ => BUDGET_BYTES,
        };
        let kind = match std::env::var("PAIR").as_deref() {
            Ok("bptree") => IndexXKind::BPlus,
            _ => IndexXKind::Art,
        };
        let mut options = Options::new(budget).index_x(kind);
        if counted {
            let every = Duration::from_secs(3600);
            options = options.hot_set(HotSet::Keep { every });
        }
        let db = Db::open(dir.path(), options).unwrap();
        let admission = match counted {
            true => Admission::Top { percent: 10 },
            false => Admission::Always,
        };
        let options = TreeOptions::new().admission(admission);
        let tree = db.tree_with("t", options).unwrap();
        let keys: Vec<_> = (0..keys() as u64).map(|n| mixed(n).to_be_bytes()).collect();
        let mut asked = keys.clone();
        asked.sort_unstable_by_key(|key| mixed(u64::from_be_bytes(*key)));
        Self {
            db,
            tree,
            keys,
            asked,
            _dir: dir,
        }
    }

    fn write(&self, keys: &[[u8; 8]], value: u64) {
        for key in keys {
            self.tree.insert(key, value.to_le_bytes()).unwrap();
        }
    }
}

/// A bijection that looks random (the finalizer of splitmix64).
fn mixed(n: u64) -> u64 {
    let n = n.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ (n >> 31)
}

/// What callgrind counts.
#[inline(never)]
fn collected(act: impl FnOnce()) {
    act();
    black_box(());
}

/// Says how long each call of `act`, one a key, takes.
fn measured(act: impl FnOnce()) {
    let begun = Instant::now();
    collected(act);
    let nanos = begun.elapsed().as_nanos() as f64;
    println!("{:.1} ns", nanos / keys() as f64);
}

fn get(set: &Setting) {
    set.write(&set.keys, 1);
    measured(|| {
        for key in &set.asked {
            assert!(black_box(set.tree.get(key)).unwrap().is_some());
        }
    });
}

/// With all that counts reads, and decides what they bring into memory.
fn get_counted(set: &Setting) {
    get(set);
}

/// The same, and memory is so full that regions count their accesses, and reads mark what they
/// find.
fn get_watched(set: &Setting) {
    set.write(&set.keys, 1);
    let filler = set.db.tree("filler").unwrap();
    // The low watermark lies at 212 of 256 parts, the high one at 226.
    let is_low = || set.db.stats().memory_used_bytes >= SHORT_BUDGET_BYTES as u64 * 216 / 256;
    let filled = (0_u64..100_000).find(|n| {
        filler.insert(mixed(*n).to_be_bytes(), [7; 1000]).unwrap();
        is_low()
    });
    assert!(filled.is_some(), "memory is not short");
    // The cleaner looks in the background.
    std::thread::sleep(Duration::from_secs(2));
    measured(|| {
        for key in &set.asked {
            assert!(black_box(set.tree.get(key)).unwrap().is_some());
        }
    });
    let stats = set.db.stats();
    assert_eq!((stats.releases, stats.misses), (0, 0), "all is in memory");
}

/// Through a snapshot since which nothing was written.
fn get_unchanged(set: &Setting) {
    set.write(&set.keys, 1);
    let snapshot = set.db.snapshot().unwrap();
    measured(|| {
        for key in &set.asked {
            assert!(black_box(snapshot.get(&set.tree, key)).unwrap().is_some());
        }
    });
}

/// Through a snapshot since which every key was written.
fn get_probed(set: &Setting) {
    set.write(&set.keys, 1);
    let snapshot = set.db.snapshot().unwrap();
    set.write(&set.keys, 2);
    measured(|| {
        for key in &set.asked {
            let value = black_box(snapshot.get(&set.tree, key)).unwrap();
            assert!(value.unwrap()[0] == 1);
        }
    });
}

fn insert(set: &Setting) {
    measured(|| set.write(&set.asked, 1));
}

/// With a snapshot open that needs an image of each key.
fn insert_beside(set: &Setting) {
    let _snapshot = set.db.snapshot().unwrap();
    measured(|| set.write(&set.asked, 1));
}

fn overwrite(set: &Setting) {
    set.write(&set.keys, 1);
    measured(|| set.write(&set.asked, 2));
}

/// Removes every key, and has its value.
fn take(set: &Setting) {
    set.write(&set.keys, 1);
    measured(|| {
        for key in &set.asked {
            assert!(black_box(set.tree.take(key)).unwrap().is_some());
        }
    });
}

/// The same from both ends in turns.
fn pop(set: &Setting) {
    set.write(&set.keys, 1);
    measured(|| {
        for n in 0..set.keys.len() {
            let popped = match n % 2 {
                0 => set.tree.pop_first(),
                _ => set.tree.pop_last(),
            };
            assert!(black_box(popped).unwrap().is_some());
        }
    });
}

/// With a snapshot open that needs an image of each key.
fn overwrite_first(set: &Setting) {
    set.write(&set.keys, 1);
    let _snapshot = set.db.snapshot().unwrap();
    measured(|| set.write(&set.asked, 2));
}

/// With a snapshot open that has an image of each key.
fn overwrite_again(set: &Setting) {
    set.write(&set.keys, 1);
    let _snapshot = set.db.snapshot().unwrap();
    set.write(&set.keys, 2);
    measured(|| set.write(&set.asked, 3));
}
