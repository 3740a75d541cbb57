//! How many bytes the file takes for a key.

use super::*;
use crate::y::conformance::{Entries, put, write};

/// Bytes of the file for each of `keys` keys of 8 bytes with values of 8, in runs of `run`.
fn bytes_a_key(keys: u64, run: usize, key: impl Fn(u64) -> u64) -> f64 {
    let store = OnDisk::new(4096, 16 << 20);
    let y = store.open();
    let all: Vec<u64> = (0..keys).map(key).collect();
    for keys in all.chunks(run) {
        let mut entries: Entries = keys
            .iter()
            .map(|k| put(&k.to_be_bytes(), &[7; 8]))
            .collect();
        entries.sort();
        write(&y, &entries).unwrap();
        y.make_durable().unwrap();
    }
    assert_eq!(y.verify().unwrap(), keys);
    let used = y.space.lock().current().count() * 4096;
    used as f64 / keys as f64
}

/// Fixed leaves: 16 bytes of data take little more than those, whatever the order they came in.
#[test]
fn small_entries_of_one_length_take_little_more_than_their_bytes() {
    let keys = std::env::var("INDEXY_DENSITY_KEYS").map_or(100_000, |n| n.parse().unwrap());
    let random = bytes_a_key(keys, 10_000, mixed);
    let ascending = bytes_a_key(keys, 10_000, |i| i << 20);
    eprintln!("bytes a key: random {random:.2}, ascending {ascending:.2}");
    assert!(random < 24.0, "{random}");
    assert!(ascending < 17.0, "{ascending}");
}

/// A number for each `i`, as good as random.
fn mixed(i: u64) -> u64 {
    let mut x = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
