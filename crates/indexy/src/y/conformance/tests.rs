//! The suite finds what it is there to find: a Y with one fault fails the behaviour that speaks of
//! it.

use super::*;
use crate::{
    error::Result,
    key::{Key, Value},
    storage::Buffered,
    x::Order,
    y::{Capabilities, IndexY, Maintained, RunSource, YIter, paged::PagedY, pool::PageCache},
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// What is wrong with a [`Faulty`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Its iterators write a file when they are dropped, released or not.
    LateIterator,
    /// A thread of it goes on writing after the drop.
    LateThread,
}

/// A paged tree with a fault.
struct Faulty {
    y: PagedY,
    dir: PathBuf,
    fault: Fault,
}

struct LateIterator<'y> {
    entries: YIter<'y>,
    file: PathBuf,
}

impl Iterator for LateIterator<'_> {
    type Item = Result<(Key, Value)>;
    fn next(&mut self) -> Option<Self::Item> {
        self.entries.next()
    }
}

impl Drop for LateIterator<'_> {
    fn drop(&mut self) {
        std::fs::write(&self.file, "late").unwrap();
    }
}

impl Drop for Faulty {
    fn drop(&mut self) {
        if self.fault == Fault::LateThread {
            let file = self.dir.join("late");
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(50));
                std::fs::write(file, "late")
            });
        }
    }
}

impl IndexY for Faulty {
    fn capabilities(&self) -> Capabilities {
        self.y.capabilities()
    }
    fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        self.y.get(key)
    }
    fn range(&self, from: &[u8], to: Option<&[u8]>, order: Order) -> Result<YIter<'_>> {
        let entries = self.y.range(from, to, order)?;
        Ok(match self.fault {
            Fault::LateThread => entries,
            Fault::LateIterator => Box::new(LateIterator {
                entries,
                file: self.dir.join("late"),
            }),
        })
    }
    fn write_run(&self, source: &mut dyn RunSource) -> Result<()> {
        self.y.write_run(source)
    }
    fn make_durable(&self) -> Result<()> {
        self.y.make_durable()
    }
    fn maintain(&self) -> Result<Maintained> {
        self.y.maintain()
    }
    fn congested(&self) -> bool {
        self.y.congested()
    }
    fn is_empty(&self) -> Result<bool> {
        self.y.is_empty()
    }
    fn approximate_len(&self) -> u64 {
        self.y.approximate_len()
    }
    fn memory_bytes(&self) -> usize {
        self.y.memory_bytes()
    }
    fn disk_bytes(&self) -> u64 {
        self.y.disk_bytes()
    }
    fn run_count(&self) -> usize {
        self.y.run_count()
    }
    fn verify(&self) -> Result<u64> {
        self.y.verify()
    }
    fn release_files(&self) -> bool {
        self.y.release_files()
    }
    fn copy_to(&self, dest: &Path) -> Result<()> {
        self.y.copy_to(dest)
    }
}

struct FaultyStore {
    dir: tempfile::TempDir,
    shared: PageCache,
    fault: Fault,
}

fn with(fault: Fault) -> FaultyStore {
    FaultyStore {
        dir: tempfile::tempdir().unwrap(),
        shared: PageCache::new(1 << 20),
        fault,
    }
}

impl Store for FaultyStore {
    type Y = Faulty;
    fn open(&self) -> Faulty {
        self.open_copy(&self.dir.path().join("tree"))
    }
    fn open_copy(&self, dir: &Path) -> Faulty {
        let storage = Arc::new(Buffered) as _;
        Faulty {
            y: PagedY::open(&storage, dir, 4096, &self.shared, 1, false).unwrap(),
            dir: dir.to_path_buf(),
            fault: self.fault,
        }
    }
    fn copy_dir(&self) -> PathBuf {
        self.dir.path().join("copy")
    }
    fn dir(&self) -> Option<PathBuf> {
        Some(self.dir.path().join("tree"))
    }
}

#[test]
#[should_panic(expected = "the iterator changed files")]
fn an_iterator_that_outlives_the_release_is_found() {
    an_open_iterator_keeps_the_files_or_leaves_them(&with(Fault::LateIterator));
}

#[test]
#[should_panic(expected = "files changed after the drop")]
fn a_thread_that_outlives_the_drop_is_found() {
    a_drop_ends_all_work(&with(Fault::LateThread));
}
