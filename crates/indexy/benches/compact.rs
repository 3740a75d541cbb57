//! What a compaction takes, and what it leaves on disk: random keys of 8 bytes with values of 8,
//! loaded in a budget of a quarter of them, loaded again, removed one by one.
//!
//! Run: `cargo bench -p indexy --bench compact`. `ENTRIES=5000000` sets the number of keys (default
//! 1 M), `DIR` the directory (default a temporary one). Time is of the processor, of all threads of
//! the program: a compaction goes on in the background as well.
#![allow(missing_docs, reason = "a program")]
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program that measures, and ends at the first error"
)]

use indexy::{Db, Durability, IndexYKind, Options, Tree};
use rustix::{thread::ClockId, time::clock_gettime};
use std::{path::PathBuf, time::Duration};

fn main() {
    let given = |name| std::env::var(name).ok();
    let entries = given("ENTRIES").map_or(1_000_000, |n| n.parse().unwrap());
    let parent = given("DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    for (name, y) in [
        ("LSM tree", IndexYKind::Lsm),
        ("paged tree", IndexYKind::BPlus { page_bytes: 4096 }),
    ] {
        let dir = tempfile::tempdir_in(&parent).unwrap();
        let budget = (entries as usize * 16 / 4).max(4 << 20);
        let options = Options::new(budget).index_y(y);
        let db = Db::open(dir.path(), options.durability(Durability::None)).unwrap();
        let tree = db.tree("t").unwrap();
        for (what, value) in [
            ("loaded once", Some(1)),
            ("again", Some(2)),
            ("removed", None),
        ] {
            change(&tree, entries, value);
            compact(&format!("{name}, {what}"), &db, &tree, entries);
        }
        db.close().unwrap();
    }
}

/// Gives all keys a value, or removes them.
fn change(tree: &Tree, entries: u64, value: Option<u64>) {
    for n in 0..entries {
        match value {
            Some(value) => tree.insert(key(n), value.to_be_bytes()).unwrap(),
            None => tree.remove(key(n)).unwrap(),
        }
    }
}

fn compact(what: &str, db: &Db, tree: &Tree, entries: u64) {
    db.flush().unwrap();
    let before = processor();
    let done = tree.compact::<&[u8]>(..).unwrap();
    let took = processor().checked_sub(before).unwrap();
    println!(
        "{what:<24} {:>12} bytes before, {:>12} after, {:>6.0} ns of processor an entry",
        done.bytes_before,
        done.bytes_after,
        took.as_secs_f64() * 1e9 / entries as f64
    );
}

/// A bijection that looks random.
fn key(n: u64) -> [u8; 8] {
    let x = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (x ^ x >> 32)
        .wrapping_mul(0xD6E8_FEB8_6659_FD93)
        .to_be_bytes()
}

/// What the process took of the processor so far.
fn processor() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}
