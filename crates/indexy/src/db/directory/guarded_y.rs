//! An Index Y together with the directory that it lives in.
//!
//! Keeps two promises of [`super::owned`], for whichever Index Y is inside:
//! - the directory is locked until the Index Y is gone: it is dropped first, whoever drops it;
//! - before every call that may create, replace or remove files the directory is looked at, and
//!   when it is another's, the Index Y is neither called nor dropped.

#![forbid(unsafe_code)]

use super::owned::{Hold, OwnedDirectory};
use crate::{
    error::{Error, Result},
    key::Value,
    x::Order,
    y::{
        Capabilities, Compression, GotAt, IndexY, KeyRange, Located, Locator, Maintained,
        RangeRemoval, Reach, RunSource, SortedLoad, YIter,
    },
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// See the module header. The order of the first two fields is what it is for: a struct drops its
/// fields as they are declared.
pub(crate) struct GuardedY {
    y: Arc<dyn IndexY>,
    hold: Hold,
    /// The tree's own folder.
    dir: PathBuf,
}

impl GuardedY {
    pub(crate) fn new(y: Arc<dyn IndexY>, directory: &Arc<OwnedDirectory>, dir: &Path) -> Self {
        Self {
            y,
            hold: directory.hold(),
            dir: dir.to_path_buf(),
        }
    }

    /// What `result` is, unless the directory was moved during the call: then that is the reason
    /// for whatever went wrong with its files.
    fn explained<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| match self.hold.directory.check() {
            Err(moved @ Error::DirectoryMoved { .. }) => moved,
            _ => error,
        })
    }
}

impl Drop for GuardedY {
    fn drop(&mut self) {
        if !self.hold.directory.may_drop(&self.dir) {
            // Never dropped, on purpose: its drop would write to another owner's files.
            std::mem::forget(Arc::clone(&self.y));
        }
    }
}

impl IndexY for GuardedY {
    fn capabilities(&self) -> Capabilities {
        self.y.capabilities()
    }

    fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        self.explained(self.y.get(key))
    }

    fn multi_get(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        self.explained(self.y.multi_get(keys))
    }

    fn locate(&self, key: &[u8], reach: Reach) -> Result<Located> {
        self.explained(self.y.locate(key, reach))
    }

    fn get_at(&self, key: &[u8], locator: &Locator) -> Result<GotAt> {
        self.explained(self.y.get_at(key, locator))
    }

    fn range(&self, from: &[u8], to: Option<&[u8]>, order: Order) -> Result<YIter<'_>> {
        self.y.range(from, to, order)
    }

    fn set_compression(&self, compression: Compression) -> Result<()> {
        self.y.set_compression(compression)
    }

    fn write_run(&self, source: &mut dyn RunSource) -> Result<()> {
        self.hold.directory.check()?;
        self.explained(self.y.write_run(source))
    }

    fn removes_ranges(&self) -> bool {
        self.y.removes_ranges()
    }

    fn remove_range(&self, from: &[u8], to: Option<&[u8]>) -> Result<()> {
        self.hold.directory.check()?;
        self.explained(self.y.remove_range(from, to))
    }

    fn begin_removal<'y>(&'y self, ranges: &[KeyRange<'_>]) -> Result<Box<dyn RangeRemoval + 'y>> {
        self.hold.directory.check()?;
        let removal = self.explained(self.y.begin_removal(ranges))?;
        Ok(Box::new(GuardedRemoval { y: self, removal }))
    }

    fn begin_load(&self) -> Result<Option<Box<dyn SortedLoad + '_>>> {
        self.hold.directory.check()?;
        let begun = self.explained(self.y.begin_load())?;
        Ok(begun
            .map(|load| -> Box<dyn SortedLoad + '_> { Box::new(GuardedLoad { y: self, load }) }))
    }

    fn make_durable(&self) -> Result<()> {
        self.hold.directory.check()?;
        self.explained(self.y.make_durable())
    }

    fn maintain(&self) -> Result<Maintained> {
        self.hold.directory.check()?;
        self.explained(self.y.maintain())
    }

    fn compact(&self, from: &[u8], to: Option<&[u8]>) -> Result<Maintained> {
        self.hold.directory.check()?;
        self.explained(self.y.compact(from, to))
    }

    fn dead_bytes(&self) -> u64 {
        self.y.dead_bytes()
    }

    fn damaged(&self) -> u64 {
        self.y.damaged()
    }

    fn interrupt(&self) {
        self.y.interrupt();
    }

    fn congested(&self) -> bool {
        self.y.congested()
    }

    fn settled(&self) -> bool {
        self.y.settled()
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

    fn damage(&self, found: &mut dyn FnMut(Error)) {
        self.y.damage(found);
    }

    /// Where the directory is another's there is nothing to release: the drop leaves it alone.
    fn release_files(&self) -> bool {
        match self.hold.directory.check() {
            Err(Error::DirectoryMoved { .. }) => true,
            _ => self.y.release_files(),
        }
    }

    fn copies_beside_runs(&self) -> bool {
        self.y.copies_beside_runs()
    }

    fn copy_to(&self, dest: &Path) -> Result<()> {
        self.y.copy_to(dest)
    }
}

/// A removal: looks before it writes for good.
struct GuardedRemoval<'y> {
    y: &'y GuardedY,
    removal: Box<dyn RangeRemoval + 'y>,
}

impl RangeRemoval for GuardedRemoval<'_> {
    fn publish(self: Box<Self>) -> Result<()> {
        self.y.hold.directory.check()?;
        let published = self.removal.publish();
        self.y.explained(published)
    }
}

/// A load into the directory: looks before whatever makes files or changes what names them.
struct GuardedLoad<'y> {
    y: &'y GuardedY,
    load: Box<dyn SortedLoad + 'y>,
}

impl SortedLoad for GuardedLoad<'_> {
    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let added = self.load.add(key, value);
        self.y.explained(added)
    }

    fn seal(&mut self) -> Result<()> {
        self.y.hold.directory.check()?;
        let sealed = self.load.seal();
        self.y.explained(sealed)
    }

    fn publish(self: Box<Self>) -> Result<()> {
        self.y.hold.directory.check()?;
        let published = self.load.publish();
        self.y.explained(published)
    }
}

#[cfg(test)]
mod tests {
    /// A method with a default that was not passed on would silently be the default's.
    #[test]
    fn every_method_of_the_contract_is_passed_on() {
        let contract = include_str!("../../y/contract.rs");
        let contract = contract.split("pub trait IndexY: ").nth(1).unwrap();
        let own = include_str!("guarded_y.rs");
        let names: Vec<&str> = contract
            .lines()
            .filter_map(|line| line.strip_prefix("    fn ")?.split(['(', '<']).next())
            .collect();
        assert!(names.len() > 15, "{names:?}");
        for name in names {
            assert!(own.contains(&format!("self.y.{name}(")), "{name}");
        }
    }
}
