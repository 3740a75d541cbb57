//! The log under a database whose data fit in memory: appends, and writes that wait for the device.
//!
//! `cargo bench -p indexy --bench wal`. `INDEXY_BENCH_DIR` names the directory to measure in.

use divan::{Bencher, counter::ItemsCount};
use indexy::{Db, Durability, Options, Tree};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tempfile::TempDir;

/// Data that stay in memory, so that nothing but the log writes.
const BUDGET_BYTES: usize = 256 << 20;
/// Keys that are written again and again.
const KEYS: u64 = 100_000;

fn main() {
    divan::main();
}

fn open(durability: Durability) -> (Db, Tree, TempDir) {
    let place = std::env::var_os("INDEXY_BENCH_DIR");
    let dir = place
        .map_or_else(TempDir::new, TempDir::new_in)
        .expect("a directory");
    let options = Options::new(BUDGET_BYTES).durability(durability);
    let db = Db::open(dir.path(), options).expect("open");
    let tree = db.tree("t").expect("tree");
    (db, tree, dir)
}

fn writes(bencher: Bencher<'_, '_>, durability: Durability) {
    let (_db, tree, _dir) = open(durability);
    let drawn = AtomicU64::new(0);
    bencher.counter(ItemsCount::new(1u32)).bench(|| {
        let i = drawn.fetch_add(1, Relaxed);
        tree.insert((i % KEYS).to_be_bytes(), i.to_le_bytes())
    });
}

/// The base line: no log at all.
#[divan::bench(threads = [1, 2, 4], sample_count = 50, sample_size = 2000)]
fn without_a_log(bencher: Bencher<'_, '_>) {
    writes(bencher, Durability::None);
}

/// An append is a reservation and a copy; the device is behind.
#[divan::bench(threads = [1, 2, 4], sample_count = 50, sample_size = 2000)]
fn buffered(bencher: Bencher<'_, '_>) {
    writes(bencher, Durability::Buffered { interval_ms: 100 });
}

/// Each write waits for a sync, which those of other threads share.
#[divan::bench(threads = [1, 2, 4, 16], sample_count = 50, sample_size = 20)]
fn synced(bencher: Bencher<'_, '_>) {
    writes(bencher, Durability::Sync);
}
