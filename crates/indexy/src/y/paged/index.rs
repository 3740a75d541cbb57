//! The contract of a disk index, kept by the parts of the tree.

use super::{
    read::cursor::Cursor,
    tree::PagedY,
    write::{Load, Removal},
};
use crate::{
    error::{Error, Result},
    key::Value,
    limits::{MAX_KEY_BYTES, MAX_VALUE_BYTES},
    x::Order,
    y::contract::{
        Capabilities, GotAt, IndexY, KeyRange, Located, Locator, Maintained, RangeRemoval, Reach,
        RunSource, SortedLoad, YIter,
    },
};
use std::{path::Path, sync::atomic::Ordering::Relaxed};

/// Payload of a run that is worth the path that it rewrites.
const PREFERRED_RUN_BYTES: usize = 256 << 10;

/// Without a crash everything acknowledged is there after a reopen. What fails here comes back from
/// the log.
impl Drop for PagedY {
    fn drop(&mut self) {
        let _ = self.commit();
    }
}

impl IndexY for PagedY {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_key_bytes: MAX_KEY_BYTES,
            max_value_bytes: MAX_VALUE_BYTES,
            preferred_run_bytes: PREFERRED_RUN_BYTES,
        }
    }

    fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        self.pages.get(&self.version.load().root, key)
    }

    fn multi_get(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        self.multi_get_in(&self.version.load(), keys)
    }

    fn locate(&self, key: &[u8], reach: Reach) -> Result<Located> {
        self.locate_now(key, reach)
    }

    fn get_at(&self, key: &[u8], locator: &Locator) -> Result<GotAt> {
        self.get_at_place(key, locator)
    }

    fn range(&self, from: &[u8], to: Option<&[u8]>, order: Order) -> Result<YIter<'_>> {
        Ok(Box::new(Cursor::new(self, from, to, order)))
    }

    fn write_run(&self, source: &mut dyn RunSource) -> Result<()> {
        let _one_writer = self.writing.lock();
        self.writable()?;
        self.apply_run(source)
    }

    fn removes_ranges(&self) -> bool {
        true
    }

    fn remove_range(&self, from: &[u8], to: Option<&[u8]>) -> Result<()> {
        self.begin_removal(&[(from, to)])?.publish()
    }

    fn begin_removal<'y>(&'y self, ranges: &[KeyRange<'_>]) -> Result<Box<dyn RangeRemoval + 'y>> {
        Ok(Box::new(Removal::begin(self, ranges)?))
    }

    fn begin_load(&self) -> Result<Option<Box<dyn SortedLoad + '_>>> {
        Ok(Some(Box::new(Load::begin(self)?)))
    }

    fn make_durable(&self) -> Result<()> {
        if self.read_only {
            return Ok(());
        }
        self.commit()
    }

    fn maintain(&self) -> Result<Maintained> {
        self.pages.pool.replenish();
        // A step of compaction reaps by itself. Its caller is not waited for: other trees want
        // maintenance, too.
        let Some(_one_maintainer) = self.maintaining.try_lock() else {
            return Ok(Maintained::Idle);
        };
        self.reap();
        self.shrink()?;
        Ok(Maintained::Idle)
    }

    fn compact(&self, _: &[u8], _: Option<&[u8]>) -> Result<Maintained> {
        let mut pass = self.maintaining.lock();
        self.writable()?;
        if self.interrupted.load(Relaxed) {
            return Ok(Maintained::Idle);
        }
        self.compact_step(&mut pass)
    }

    fn dead_bytes(&self) -> u64 {
        self.pages.file.offset(self.space.lock().free_pages())
    }

    fn interrupt(&self) {
        self.interrupted.store(true, Relaxed);
    }

    fn congested(&self) -> bool {
        false
    }

    fn is_empty(&self) -> Result<bool> {
        Ok(self.version.load().root.page == 0)
    }

    fn approximate_len(&self) -> u64 {
        self.version.load().entries
    }

    fn memory_bytes(&self) -> usize {
        // A commit works on copies of the map.
        let map = self
            .committed
            .try_lock()
            .map_or(0, |c| c.map.memory_bytes());
        size_of::<Self>()
            + self.pages.file.memory_bytes()
            + 2 * self.space.lock().memory_bytes()
            + 2 * map
            + self.load_bytes.load(Relaxed)
    }

    fn disk_bytes(&self) -> u64 {
        self.pages.file.offset(self.space.lock().end())
    }

    fn run_count(&self) -> usize {
        usize::from(self.version.load().root.page != 0)
    }

    fn verify(&self) -> Result<u64> {
        self.verify_all()
    }

    fn damage(&self, found: &mut dyn FnMut(Error)) {
        self.find_damage(found);
    }

    fn release_files(&self) -> bool {
        self.reap();
        let Some(_no_run) = self.writing.try_lock() else {
            return false;
        };
        if self.loads.load(Relaxed) > 0 {
            return false;
        }
        let settled = self.space.lock().settled();
        if settled {
            // What was published becomes durable now or, out of the log, with the next owner: not
            // when this is dropped, over what that one has written by then.
            let _ = self.commit();
            // Runs and commits look at it under their locks, so that none which began before goes
            // on behind it.
            let _no_commit = self.committed.lock();
            self.released.store(true, Relaxed);
            // A reader of the present version goes on: it reads, and checks, what the next owner
            // may have written.
            self.pages.file.end_views();
        }
        settled
    }

    fn copies_beside_runs(&self) -> bool {
        true
    }

    fn copy_to(&self, dest: &Path) -> Result<()> {
        self.copy_durable(dest)
    }
}
