//! What a range costs that was removed, where Index X does not know of it: a test of the disk
//! indexes that count the pages they read.

#![forbid(unsafe_code)]

use super::{
    conformance::{Entries, Store, put, scan, write},
    contract::IndexY,
};
use crate::x::Order;

const KEYS: u32 = 100_000;
const FROM: u32 = 20_000;
const TO: u32 = 80_000;

/// Pages that are read for 1500 keys, one at a time and all at once, and two scans of a range of
/// which nothing is in the cache. `reads`: the pages that the tree has read so far.
pub(crate) fn pages_of_a_removed_range<S: Store>(store: &S, reads: impl Fn(&S::Y) -> u64) -> u64 {
    let key = |n: u32| n.to_be_bytes();
    let y = store.open();
    let entries: Entries = (0..KEYS).map(|n| put(&key(n), &[7; 40])).collect();
    write(&y, &entries).unwrap();
    y.make_durable().unwrap();
    drop(y);
    let y = store.open();
    y.remove_range(&key(FROM), Some(&key(TO))).unwrap();
    let before = reads(&y);
    let removed: Vec<_> = (FROM..TO).step_by(40).map(key).collect();
    for key in &removed {
        assert_eq!(y.get(key).unwrap(), None);
    }
    let many: Vec<&[u8]> = removed.iter().map(|key| &key[..]).collect();
    assert!(y.multi_get(&many).unwrap().iter().all(Option::is_none));
    for order in [Order::Ascending, Order::Descending] {
        let left = scan(&y, &key(FROM), Some(&key(TO)), order);
        assert!(left.is_empty(), "{order:?}");
    }
    let pages = reads(&y) - before;
    assert_eq!(
        scan(&y, b"", None, Order::Ascending).len() as u32,
        KEYS - (TO - FROM)
    );
    pages
}
