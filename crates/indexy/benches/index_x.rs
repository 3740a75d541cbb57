//! What an operation of the memory index costs, and what an entry takes: both trees, without the
//! log, the disk index and the framework around them.
//!
//! Run: `cargo bench -p indexy --bench index_x`; `KEYS=10000000` sets the number of keys.
//!
//! The trees' files are compiled a second time here, so that the library need not show them.
#![allow(
    dead_code,
    unused_imports,
    missing_docs,
    reason = "compiled for measurements only"
)]

#[path = "../src/key.rs"]
mod key;
#[path = "../src/limits.rs"]
mod limits;
#[path = "../src/mem/mod.rs"]
mod mem;
#[path = "../src/sync.rs"]
mod sync;
#[path = "../src/x/mod.rs"]
mod x;

use divan::{Bencher, black_box, counter::ItemsCount};
use mem::{Memory, budget::Budget};
use std::{collections::BTreeMap, sync::Arc};
use x::{Chunk, IndexX, Lookup, Order, ScanLimits, art::Art, bptree::BPlus};

/// Operations of one sample.
const OPERATIONS: u64 = 1 << 16;
/// Spreads the keys that are read over all keys.
const STRIDE: u64 = 7_368_787;

fn main() {
    for (what, keys) in [("8 random bytes", KeyKind::Random), ("URLs", KeyKind::Url)] {
        println!(
            "{what}: {}, {}",
            bytes_per_key::<Art>(keys),
            bytes_per_key::<BPlus>(keys)
        );
    }
    divan::main();
}

fn count() -> u64 {
    let given = std::env::var("KEYS").ok().and_then(|n| n.parse().ok());
    given.unwrap_or(1_000_000)
}

/// A tree to measure.
trait Measured: IndexX {
    const NAME: &str;
    fn empty(memory: Arc<Memory>) -> Self;
}

impl Measured for Art {
    const NAME: &str = "ART";
    fn empty(memory: Arc<Memory>) -> Self {
        Art::new(memory, false)
    }
}

impl Measured for BPlus {
    const NAME: &str = "B+ tree";
    fn empty(memory: Arc<Memory>) -> Self {
        BPlus::new(memory, false)
    }
}

#[derive(Clone, Copy, Debug)]
enum KeyKind {
    Ascending,
    Random,
    /// 24 bytes, the first four in common, as YCSB's keys.
    User,
    /// 44 bytes with long common parts.
    Url,
}

const KINDS: [KeyKind; 4] = [
    KeyKind::Ascending,
    KeyKind::Random,
    KeyKind::User,
    KeyKind::Url,
];

impl KeyKind {
    fn key(self, i: u64) -> Vec<u8> {
        match self {
            Self::Ascending => i.to_be_bytes().to_vec(),
            Self::Random => spread(i).to_be_bytes().to_vec(),
            Self::User => format!("user{:020}", spread(i)).into_bytes(),
            Self::Url => {
                let h = spread(i);
                let (site, part) = (h % 5000, h % 997);
                format!("https://example.org/{site:04}/articles/{part:03}/{i:08}").into_bytes()
            }
        }
    }

    /// The keys of one sample, made beforehand: `first`, and every `stride`-th after it of `n`.
    fn keys(self, first: u64, stride: u64, n: u64) -> Vec<Vec<u8>> {
        (0..OPERATIONS)
            .map(|i| self.key((first + i).wrapping_mul(stride) % n))
            .collect()
    }
}

fn spread(n: u64) -> u64 {
    let mut z = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z ^ (z >> 27)
}

fn memory() -> Arc<Memory> {
    Memory::new(Arc::new(Budget::new(8 << 30)))
}

fn put<X: IndexX>(tree: &X, key: &[u8], value: u64) {
    let put = tree.put(key, Some(&value.to_le_bytes()), || Ok::<(), ()>(()));
    assert!(put.is_ok());
}

fn filled<X: Measured>(kind: KeyKind, n: u64) -> X {
    let tree = X::empty(memory());
    (0..n).for_each(|i| put(&tree, &kind.key(i), i));
    tree
}

fn bytes_per_key<X: Measured>(kind: KeyKind) -> String {
    let n = count();
    let each = filled::<X>(kind, n).stats().bytes as f64 / n as f64;
    format!("{} {each:.1} bytes a key", X::NAME)
}

/// New keys into a tree that has `count()` of them.
#[divan::bench(types = [Art, BPlus], args = KINDS, sample_count = 20)]
fn insert<X: Measured>(bencher: Bencher<'_, '_>, kind: KeyKind) {
    let mut next = count();
    let tree = filled::<X>(kind, next);
    bencher
        .counter(ItemsCount::new(OPERATIONS))
        .with_inputs(|| {
            next += OPERATIONS;
            kind.keys(next - OPERATIONS, 1, u64::MAX)
        })
        .bench_local_refs(|keys| keys.iter().for_each(|key| put(&tree, key, 1)));
}

#[divan::bench(types = [Art, BPlus], args = KINDS, sample_count = 20)]
fn overwrite<X: Measured>(bencher: Bencher<'_, '_>, kind: KeyKind) {
    let n = count();
    let tree = filled::<X>(kind, n);
    let mut first = 0;
    bencher
        .counter(ItemsCount::new(OPERATIONS))
        .with_inputs(|| {
            first += OPERATIONS;
            kind.keys(first, STRIDE, n)
        })
        .bench_local_refs(|keys| keys.iter().for_each(|key| put(&tree, key, 2)));
}

#[divan::bench(types = [Art, BPlus], args = KINDS, sample_count = 20, threads = [1, 2])]
fn get<X: Measured>(bencher: Bencher<'_, '_>, kind: KeyKind) {
    let n = count();
    let tree = filled::<X>(kind, n);
    bencher
        .counter(ItemsCount::new(OPERATIONS))
        .with_inputs(|| kind.keys(0, STRIDE, n))
        .bench_refs(|keys| {
            for key in keys.iter() {
                let found = tree.get(key, |value| value.first().copied());
                assert!(matches!(black_box(found), Lookup::Found(_)));
            }
        });
}

#[divan::bench(types = [Art, BPlus], sample_count = 20)]
fn get_absent<X: Measured>(bencher: Bencher<'_, '_>) {
    let kind = KeyKind::Random;
    let tree = filled::<X>(kind, count());
    bencher
        .counter(ItemsCount::new(OPERATIONS))
        .with_inputs(|| kind.keys(1 << 40, 1, u64::MAX))
        .bench_local_refs(|keys| {
            for key in keys.iter() {
                assert_eq!(black_box(tree.get(key, |_| ())), Lookup::Absent);
            }
        });
}

/// All keys, in chunks as the framework asks for them.
#[divan::bench(types = [Art, BPlus], args = KINDS, sample_count = 10)]
fn scan<X: Measured>(bencher: Bencher<'_, '_>, kind: KeyKind) {
    let n = count();
    let tree = filled::<X>(kind, n);
    bencher
        .counter(ItemsCount::new(n))
        .bench_local(|| assert_eq!(scan_all(&tree), n));
}

fn scan_all<X: IndexX>(tree: &X) -> u64 {
    let limits = ScanLimits {
        bytes: 256 << 10,
        entries: 4096,
        leaves: 4096,
        leaves_if_mounted: 4096,
    };
    let (mut chunk, mut from, mut seen) = (Chunk::default(), Vec::new(), 0);
    loop {
        tree.scan(&from, None, Order::Ascending, limits, &mut chunk);
        seen += chunk.entries.len() as u64;
        match chunk.resume.take() {
            Some(resume) => from = resume,
            None => return seen,
        }
    }
}

/// The peer: the ordered map of the standard library, with keys as an owner of strings has them.
#[divan::bench(args = KINDS, sample_count = 20)]
fn get_from_a_btree_map(bencher: Bencher<'_, '_>, kind: KeyKind) {
    let n = count();
    let map: BTreeMap<Box<[u8]>, u64> = (0..n).map(|i| (kind.key(i).into(), i)).collect();
    bencher
        .counter(ItemsCount::new(OPERATIONS))
        .with_inputs(|| kind.keys(0, STRIDE, n))
        .bench_local_refs(|keys| {
            for key in keys.iter() {
                assert!(black_box(map.get(&key[..])).is_some());
            }
        });
}
