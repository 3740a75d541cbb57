//! The conformance suite on real files, and what is special about this engine.

use super::{
    file::{
        PAGES_START,
        superblock::{self, Superblock},
    },
    *,
};
use crate::y::page::{self, node};
use crate::y::pool::PageCache;
use crate::{
    error::{Error, Result},
    storage::Storage,
    x::Order,
    y::{
        conformance::{Store, conformance_tests},
        contract::IndexY,
    },
};
use std::{
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering::Relaxed},
};
use tempfile::TempDir;

mod by_byte;
mod compact;
mod crash;
mod damage;
mod decode;
mod density;
mod extents;
mod loads;
mod located;
mod neighbours;
mod notes;
mod ranges;
mod shrink;
mod stress;

/// A tree in a temporary directory.
pub(super) struct OnDisk {
    dir: TempDir,
    storage: Arc<dyn Storage>,
    shared: PageCache,
    page_bytes: u32,
}

impl OnDisk {
    pub(super) fn new(page_bytes: u32, memory_bytes: usize) -> Self {
        Self::of(device(), page_bytes, memory_bytes)
    }

    /// One that is read by the byte.
    pub(super) fn mapped(page_bytes: u32, memory_bytes: usize) -> Self {
        Self::of(mapped(), page_bytes, memory_bytes)
    }

    fn of(storage: Arc<dyn Storage>, page_bytes: u32, memory_bytes: usize) -> Self {
        Self {
            dir: TempDir::new().unwrap(),
            storage,
            shared: PageCache::new(memory_bytes),
            page_bytes,
        }
    }

    fn open_at(&self, path: &Path) -> PagedY {
        PagedY::open(&self.storage, path, self.page_bytes, &self.shared, 1, false).unwrap()
    }
}

impl Store for OnDisk {
    type Y = PagedY;
    fn open(&self) -> PagedY {
        self.open_at(&self.dir.path().join("tree"))
    }
    fn open_copy(&self, dir: &Path) -> PagedY {
        self.open_at(dir)
    }
    fn copy_dir(&self) -> PathBuf {
        self.dir.path().join("copy")
    }
    fn dir(&self) -> Option<PathBuf> {
        Some(self.dir.path().join("tree"))
    }
    fn open_read_only(&self, dir: &Path) -> Option<Result<PagedY>> {
        let (storage, shared) = (&self.storage, &self.shared);
        Some(PagedY::open(storage, dir, self.page_bytes, shared, 1, true))
    }
}

mod pages_of_4_kib {
    use super::*;
    conformance_tests!(OnDisk::new(4096, 4 << 20));
}

/// With as few frames as a pool can have.
mod pages_of_16_kib_tiny_pool {
    use super::*;
    conformance_tests!(OnDisk::new(16384, 0));
}

mod by_the_byte {
    use super::*;
    conformance_tests!(OnDisk::mapped(4096, 256 << 10));
}

/// Cold and warm, with room for all pages and for next to none: what single reads find, in the
/// order asked.
#[test]
fn many_at_once_find_what_single_reads_find() {
    use crate::y::conformance::{Entries, put, write};
    let by_block = [0, 128 << 10, 8 << 20].map(|bytes| OnDisk::new(4096, bytes));
    for store in by_block.into_iter().chain([OnDisk::mapped(4096, 0)]) {
        let key = |i: u32| (i * 2).wrapping_mul(0x9e37_79b1).to_be_bytes();
        let y = store.open();
        let mut run: Entries = (0..20_000u32)
            .map(|i| {
                put(
                    &key(i),
                    &vec![i as u8; if i % 500 == 7 { 9000 } else { 40 }],
                )
            })
            .collect();
        run.sort();
        write(&y, &run).unwrap();
        drop(y);
        let y = store.open();
        for round in 0..20u32 {
            let wanted: Vec<Vec<u8>> = (0..300u32)
                .map(|i| match (i * 71 + round * 997) % 21_000 {
                    absent @ 20_000.. => absent.to_be_bytes().to_vec(),
                    there => key(there).to_vec(),
                })
                .collect();
            let wanted: Vec<&[u8]> = wanted.iter().map(|k| &k[..]).collect();
            let found = y.multi_get(&wanted).unwrap();
            for (key, value) in wanted.iter().zip(found) {
                assert_eq!(value, y.get(key).unwrap());
            }
        }
        assert!(y.multi_get(&[]).unwrap().is_empty());
    }
}

/// After the directory was unlocked the file is somebody else's: what was published is durable by
/// then, and a late drop writes nothing.
#[test]
fn a_tree_that_released_its_file_leaves_it_alone() {
    use crate::y::conformance::{put, write};
    let store = OnDisk::new(4096, 4 << 20);
    let y = store.open();
    write(&y, &vec![put(b"a", b"1")]).unwrap();
    y.make_durable().unwrap();
    write(&y, &vec![put(b"b", b"2")]).unwrap();
    assert!(y.release_files());
    let next = store.open();
    assert_eq!(next.get(b"b").unwrap().as_deref(), Some(&b"2"[..]));
    write(&next, &vec![put(b"c", b"3")]).unwrap();
    next.make_durable().unwrap();
    assert!(matches!(
        write(&y, &vec![put(b"d", b"4")]),
        Err(Error::Closed)
    ));
    assert!(matches!(y.make_durable(), Err(Error::Closed)));
    drop(y);
    drop(next);
    let y = store.open();
    assert_eq!(y.verify().unwrap(), 3);
    assert_eq!(y.get(b"c").unwrap().as_deref(), Some(&b"3"[..]));
}
