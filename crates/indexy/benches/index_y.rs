//! The disk indexes alone (`IndexXKind::None`): gets, many gets at once, short scans, and a load,
//! over a database some ten times its budget; and gets of one whose pages are all in memory.
//!
//! `cargo bench -p indexy --bench index_y`. `INDEXY_BENCH_DIR` names the directory to measure in; a
//! memory cgroup keeps the page cache from hiding the device.

use divan::{Bencher, counter::ItemsCount};
use indexy::{Db, Durability, IndexXKind, IndexYKind, Options, Tree};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tempfile::TempDir;

const KEYS: u64 = 2_000_000;
const LOADED_KEYS: u64 = 300_000;
const CACHED_KEYS: u64 = 8_000_000;
const BUDGET_BYTES: usize = 8 << 20;
/// Of the database that is in memory.
const LARGE_BUDGET_BYTES: usize = 1 << 30;
const KEYS_AT_ONCE: u64 = 64;
const KINDS: [&str; 2] = ["lsm", "paged"];

fn main() {
    divan::main();
}

fn directory() -> TempDir {
    let place = std::env::var_os("INDEXY_BENCH_DIR");
    place
        .map_or_else(TempDir::new, TempDir::new_in)
        .expect("a directory")
}

/// Key number `i`: distinct, and in no order.
fn key(i: u64) -> [u8; 8] {
    let mut x = i.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)).to_be_bytes()
}

fn open(kind: &str, dir: &TempDir) -> (Db, Tree) {
    open_in(BUDGET_BYTES, kind, dir)
}

fn open_in(budget_bytes: usize, kind: &str, dir: &TempDir) -> (Db, Tree) {
    let y = match kind {
        "lsm" => IndexYKind::Lsm,
        _ => IndexYKind::BPlus { page_bytes: 4096 },
    };
    let options = Options::new(budget_bytes)
        .index_x(IndexXKind::None)
        .index_y(y)
        .durability(Durability::None);
    let db = Db::open(dir.path(), options).expect("open");
    let tree = db.tree("t").expect("tree");
    (db, tree)
}

fn fill(db: &Db, tree: &Tree, keys: u64) {
    for i in 0..keys {
        tree.insert(key(i), i.to_le_bytes()).expect("insert");
    }
    db.flush().expect("flush");
}

/// The next of a sequence of key numbers, for each call.
fn next_key(drawn: &AtomicU64) -> u64 {
    next_of(KEYS, drawn)
}

fn next_of(keys: u64, drawn: &AtomicU64) -> u64 {
    u64::from_be_bytes(key(drawn.fetch_add(1, Relaxed))) % keys
}

#[divan::bench(args = KINDS, threads = [1, 2], sample_count = 50, sample_size = 200)]
fn get(bencher: Bencher<'_, '_>, kind: &str) {
    let dir = directory();
    let (db, tree) = open(kind, &dir);
    fill(&db, &tree, KEYS);
    let drawn = AtomicU64::new(0);
    bencher.counter(ItemsCount::new(1u32)).bench(|| {
        tree.get(key(next_key(&drawn)))
            .expect("get")
            .expect("there")
    });
}

/// What was written has left the write buffer: a new one is empty.
#[divan::bench(args = KINDS, sample_count = 50, sample_size = 50_000)]
fn get_cached(bencher: Bencher<'_, '_>, kind: &str) {
    let dir = directory();
    let (db, tree) = open_in(LARGE_BUDGET_BYTES, kind, &dir);
    fill(&db, &tree, CACHED_KEYS);
    drop(tree);
    db.close().expect("close");
    let (_db, tree) = open_in(LARGE_BUDGET_BYTES, kind, &dir);
    let there = |i| tree.get(key(i)).expect("get").expect("there");
    (0..CACHED_KEYS).for_each(|i| drop(there(i)));
    let drawn = AtomicU64::new(0);
    bencher
        .counter(ItemsCount::new(1u32))
        .bench(|| there(next_of(CACHED_KEYS, &drawn)));
}

#[divan::bench(args = KINDS, sample_count = 50, sample_size = 20)]
fn multi_get(bencher: Bencher<'_, '_>, kind: &str) {
    let dir = directory();
    let (db, tree) = open(kind, &dir);
    fill(&db, &tree, KEYS);
    let drawn = AtomicU64::new(0);
    bencher
        .counter(ItemsCount::new(KEYS_AT_ONCE))
        .with_inputs(|| {
            let keys = (0..KEYS_AT_ONCE).map(|_| key(next_key(&drawn)));
            keys.collect::<Vec<_>>()
        })
        .bench_refs(|keys| tree.multi_get(keys).expect("multi_get"));
}

#[divan::bench(args = KINDS, sample_count = 50, sample_size = 20)]
fn scan_of_100(bencher: Bencher<'_, '_>, kind: &str) {
    let dir = directory();
    let (db, tree) = open(kind, &dir);
    fill(&db, &tree, KEYS);
    let drawn = AtomicU64::new(0);
    bencher.counter(ItemsCount::new(100u32)).bench(|| {
        let from = key(next_key(&drawn));
        tree.range(from..).take(100).map(Result::unwrap).count()
    });
}

#[divan::bench(args = KINDS, sample_count = 3, sample_size = 1)]
fn load(bencher: Bencher<'_, '_>, kind: &str) {
    bencher
        .counter(ItemsCount::new(LOADED_KEYS))
        .with_inputs(|| {
            let dir = directory();
            (open(kind, &dir), dir)
        })
        .bench_refs(|((db, tree), _)| fill(db, tree, LOADED_KEYS));
}
