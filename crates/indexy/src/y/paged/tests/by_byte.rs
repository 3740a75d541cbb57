//! Leaves and extents that are looked at where they lie.

use super::*;
use crate::y::{
    conformance::{Entries, Store, put, write},
    page::Kind,
};
use std::{fs::OpenOptions, os::unix::fs::FileExt, path::Path};

const KEYS: u32 = 3_000;
const LARGE: usize = 20_000;

fn key(n: u32) -> [u8; 4] {
    (n * 2).to_be_bytes()
}

/// One in a hundred is large.
fn value(n: u32, version: u8) -> Vec<u8> {
    let len = if n.is_multiple_of(100) { LARGE } else { 100 };
    vec![version.wrapping_add(n as u8); len]
}

fn fill(y: &PagedY, version: u8) {
    let run: Entries = (0..KEYS)
        .map(|n| put(&key(n), &value(n, version)))
        .collect();
    write(y, &run).unwrap();
    y.make_durable().unwrap();
}

fn check(y: &PagedY, version: u8) {
    for n in 0..KEYS {
        let found = y.get(&key(n)).unwrap();
        assert_eq!(found.as_deref(), Some(&value(n, version)[..]), "{n}");
    }
}

/// A tree of which no leaf is in the pool, and its file.
fn fresh(store: &OnDisk) -> (PagedY, PathBuf) {
    let y = store.open();
    fill(&y, 1);
    drop(y);
    (store.open(), store.dir().unwrap().join("pages"))
}

/// Pages of `kind` in the file.
fn pages_of(path: &Path, kind: Kind) -> Vec<u64> {
    let bytes = std::fs::read(path).unwrap();
    let pages = bytes.chunks(4096).enumerate().skip(4);
    pages
        .filter(|(_, page)| page::Header::read(page).is_some_and(|h| h.kind == kind))
        .map(|(number, _)| number as u64)
        .collect()
}

fn flip(path: &Path, at: u64) {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
}

#[test]
fn leaves_take_no_frames() {
    let store = OnDisk::mapped(4096, 4 << 20);
    let (y, path) = fresh(&store);
    check(&y, 1);
    let leaves = pages_of(&path, Kind::FixedLeaf).len() + pages_of(&path, Kind::Leaf).len();
    let cached = || {
        let all = 0..y.space.lock().end();
        all.filter(|page| y.pages.pool.contains(y.pages.tag(*page)))
            .count()
    };
    assert!(leaves > 50 && cached() < 10, "{} of {leaves}", cached());
    assert!(y.pages.file.memory_bytes() > 0);
    // Again, with many keys at once and in both directions.
    let keys: Vec<[u8; 4]> = (0..KEYS).map(key).collect();
    let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    for (n, found) in y.multi_get(&keys).unwrap().into_iter().enumerate() {
        assert_eq!(found.as_deref(), Some(&value(n as u32, 1)[..]));
    }
    for order in [Order::Ascending, Order::Descending] {
        let all = y.range(b"", None, order).unwrap();
        assert_eq!(all.map(Result::unwrap).count(), KEYS as usize);
    }
    assert!(cached() < 10, "{}", cached());
    assert_eq!(y.get(&[0, 0, 0, 1]).unwrap(), None);
}

/// Each page is checked when it is first looked at.
#[test]
fn damage_is_found_at_the_first_look() {
    for (kind, at) in [
        (Kind::Leaf, 3000),
        (Kind::FixedLeaf, 3000),
        (Kind::Extent, 9000),
    ] {
        let store = OnDisk::mapped(4096, 4 << 20);
        let (y, path) = fresh(&store);
        let Some(page) = pages_of(&path, kind).first().copied() else {
            continue;
        };
        flip(&path, page * 4096 + at);
        let bad: Vec<u32> = (0..KEYS).filter(|n| y.get(&key(*n)).is_err()).collect();
        assert!(!bad.is_empty() && bad.len() < 100, "{kind:?}: {bad:?}");
        for n in bad {
            let error = y.get(&key(n)).unwrap_err();
            assert!(matches!(error, Error::Corrupt { .. }), "{error}");
            assert!(
                error.to_string().contains(&format!("page {page}")),
                "{error}"
            );
        }
        // What is damaged is not remembered as checked.
        flip(&path, page * 4096 + at);
        check(&y, 1);
    }
}

/// A page that is written again is checked again.
#[test]
fn what_is_written_anew_is_checked_anew() {
    let store = OnDisk::mapped(4096, 0);
    let (y, path) = fresh(&store);
    // Places are used again from the second round on.
    for version in 2..9 {
        check(&y, version - 1);
        fill(&y, version);
        y.maintain().unwrap();
    }
    for page in y.space.lock().current().pages() {
        flip(&path, page * 4096 + 3000);
    }
    let mut found = 0;
    for n in 0..KEYS {
        match y.get(&key(n)) {
            Err(Error::Corrupt { .. }) => found += 1,
            // From a frame.
            Ok(Some(same)) => assert_eq!(same, value(n, 8)),
            other => panic!("{n}: {other:?}"),
        }
    }
    assert!(found > KEYS * 9 / 10, "{found}");
}

/// Somebody else has the file: what an old handle still reads is of its own version, or an error.
#[test]
fn after_the_release_everything_is_checked() {
    let store = OnDisk::mapped(4096, 0);
    let (y, _) = fresh(&store);
    check(&y, 1);
    assert!(y.release_files());
    let next = store.open();
    // The pages of the version that the old handle has are used again from the second round on.
    for version in 2..5 {
        fill(&next, version);
        next.maintain().unwrap();
    }
    let mut errors = 0;
    for n in 0..KEYS {
        match y.get(&key(n)) {
            Err(Error::Corrupt { .. }) => errors += 1,
            Ok(Some(same)) => assert_eq!(same, value(n, 1)),
            other => panic!("{n}: {other:?}"),
        }
    }
    assert!(errors > 0);
    check(&next, 4);
}
