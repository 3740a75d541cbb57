//! The contract of a disk index, kept by the parts of the tree.

use super::{load::Load, read::range::Range, removal::Removal, table::Codec, tree::LsmY};
use crate::{
    error::{Error, Result},
    key::Value,
    limits::{MAX_KEY_BYTES, MAX_VALUE_BYTES},
    x::Order,
    y::Compression,
    y::contract::{
        Capabilities, IndexY, KeyRange, Maintained, RangeRemoval, RunSource, SortedLoad, YIter,
    },
};
use std::{path::Path, sync::atomic::Ordering::Relaxed};

/// Payload of a run: with less there are many small tables; with more, a run is long in flight. In
/// between it grows with the budget.
const PREFERRED_RUN_BYTES: (usize, usize) = (8 << 20, 48 << 20);
/// Entries that [`LsmY::is_empty`] looks at before it gives up.
const EMPTY_SEARCH_ENTRIES: u64 = 1024;

/// Without a crash everything acknowledged is there after a reopen. What fails here comes back from
/// the log. Iterators borrow this, so no reader is left.
impl Drop for LsmY {
    fn drop(&mut self) {
        let _ = self.versions.close();
    }
}

impl IndexY for LsmY {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_key_bytes: MAX_KEY_BYTES,
            max_value_bytes: MAX_VALUE_BYTES,
            // Of the budget a twelfth is cache.
            preferred_run_bytes: (self.pool.bytes() / 4 * 3)
                .clamp(PREFERRED_RUN_BYTES.0, PREFERRED_RUN_BYTES.1),
        }
    }

    fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        self.get_newest(key)
    }

    fn multi_get(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        self.get_many(keys)
    }

    fn range(&self, from: &[u8], to: Option<&[u8]>, order: Order) -> Result<YIter<'_>> {
        Ok(Box::new(Range::new(self, from, to, order)))
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

    fn set_compression(&self, compression: Compression) -> Result<()> {
        *self.codec.lock() = Codec::for_writing(compression)?;
        Ok(())
    }

    fn begin_load(&self) -> Result<Option<Box<dyn SortedLoad + '_>>> {
        Ok(Some(Box::new(Load::begin(self)?)))
    }

    fn make_durable(&self) -> Result<()> {
        match self.versions.commit() {
            // Nothing of it was written.
            Err(Error::ReadOnly) => Ok(()),
            made => made,
        }
    }

    fn maintain(&self) -> Result<Maintained> {
        let mut known = self.maintaining.lock();
        self.writable()?;
        // Those that readers have left meanwhile. What stays is tried again.
        let _ = self.versions.reap();
        self.pool.replenish();
        if self.interrupted.load(Relaxed) {
            return Ok(Maintained::Idle);
        }
        Ok(match self.do_what_is_due(&mut known)? {
            true => Maintained::More,
            false => Maintained::Idle,
        })
    }

    fn compact(&self, from: &[u8], to: Option<&[u8]>) -> Result<Maintained> {
        let mut known = self.maintaining.lock();
        self.writable()?;
        if self.interrupted.load(Relaxed) {
            return Ok(Maintained::Idle);
        }
        if self.compact_step(from, to, &mut known)? {
            return Ok(Maintained::More);
        }
        // What nobody reads any more goes with the commit.
        self.versions.commit()?;
        match self.damaged.first(from, to) {
            Some(found) => Err(found),
            None => Ok(Maintained::Idle),
        }
    }

    fn dead_bytes(&self) -> u64 {
        self.versions.current().totals().dead_bytes()
    }

    fn damaged(&self) -> u64 {
        self.damaged.count()
    }

    fn congested(&self) -> bool {
        self.is_congested()
    }

    fn interrupt(&self) {
        self.interrupted.store(true, Relaxed);
    }

    fn is_empty(&self) -> Result<bool> {
        let version = self.versions.current();
        if version.is_empty() {
            return Ok(true);
        }
        if version.totals().live.entries > EMPTY_SEARCH_ENTRIES {
            return Ok(false);
        }
        drop(version);
        // What cannot be read is something: whoever reads its keys hears of it.
        Ok(Range::new(self, &[], None, Order::Ascending)
            .next()
            .is_none())
    }

    fn approximate_len(&self) -> u64 {
        let live = self.versions.current().totals().live;
        // A delete mostly stands over one older entry.
        live.entries.saturating_sub(2 * live.deletes)
    }

    fn memory_bytes(&self) -> usize {
        let tables = self.memory_bytes.load(Relaxed) + self.load_bytes.load(Relaxed);
        size_of::<Self>() + tables
    }

    fn disk_bytes(&self) -> u64 {
        self.versions.disk_bytes()
    }

    fn run_count(&self) -> usize {
        self.versions.current().totals().depth
    }

    fn verify(&self) -> Result<u64> {
        self.verify_all()
    }

    fn damage(&self, found: &mut dyn FnMut(Error)) {
        self.find_damage(found);
    }

    fn release_files(&self) -> bool {
        let Some(_no_maintenance) = self.maintaining.try_lock() else {
            return false;
        };
        let Some(_no_run) = self.writing.try_lock() else {
            return false;
        };
        if self.loads.load(Relaxed) > 0 {
            return false;
        }
        // A failure is told by whoever needs what was to be written.
        let released = self.versions.release().unwrap_or(true);
        self.released.fetch_or(released, Relaxed);
        released
    }

    fn settled(&self) -> bool {
        self.clock.settled()
    }

    fn copies_beside_runs(&self) -> bool {
        true
    }

    fn copy_to(&self, dest: &Path) -> Result<()> {
        self.copy_current(dest)
    }
}
