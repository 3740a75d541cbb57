//! The contract of a disk index, kept by the parts of the tree.

#![forbid(unsafe_code)]

use super::{
    compaction::level_sizes::{LEVEL0_CONGESTED, LevelSizes, Step},
    keys, manifest,
    read::{
        merge::{Merge, Range},
        multi_get, verify,
    },
    table::cursor::Bounds,
    tree::{LsmY, leveled},
    write,
};
use crate::{
    error::Result,
    key::Value,
    limits::{MAX_KEY_BYTES, MAX_VALUE_BYTES},
    x::Order,
    y::contract::{Capabilities, IndexY, Maintained, RunSource, YIter},
};
use lsm_tree::compaction::PullDown;
use std::{
    path::Path,
    sync::{Arc, atomic::Ordering::Relaxed},
};

/// Payload of a run: with less, level 0 fills with small tables faster than it is worth; with more,
/// a run is long in flight, and is more than one table. In between it grows with the budget.
const PREFERRED_RUN_BYTES: (usize, usize) = (8 << 20, 48 << 20);
/// Entries that [`LsmY::is_empty`] looks at before it gives up.
const EMPTY_SEARCH_ENTRIES: usize = 1024;

/// Files are removed when the last holder of a table goes: the engine, a snapshot, or an iterator.
/// Iterators borrow this, the engine has no threads, and snapshots are held by nothing else: so all
/// of that has happened when this drop returns.
impl Drop for LsmY {
    fn drop(&mut self) {
        self.snapshot().discount_filters();
    }
}

impl IndexY for LsmY {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_key_bytes: MAX_KEY_BYTES,
            max_value_bytes: MAX_VALUE_BYTES,
            // Of the budget a twelfth is cache.
            preferred_run_bytes: (self.shared.memory_bytes() / 4 * 3)
                .clamp(PREFERRED_RUN_BYTES.0, PREFERRED_RUN_BYTES.1),
        }
    }

    fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        self.snapshot().get(&keys::stored(key))
    }

    fn multi_get(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        multi_get::multi_get(&self.snapshot(), keys)
    }

    fn range(&self, from: &[u8], to: Option<&[u8]>, order: Order) -> Result<YIter<'_>> {
        Ok(Box::new(Range::new(self.snapshot(), from, to, order)))
    }

    fn write_run(&self, source: &mut dyn RunSource) -> Result<()> {
        let _one_writer = self.writing.lock();
        let tree = self.writable()?;
        let written = write::write_run(tree, &self.dir, source);
        match written {
            Ok(()) => {
                self.publish(tree)?;
                self.snapshot().schedule.wrote();
                Ok(())
            }
            Err(e) => {
                self.after_failure(tree);
                // Against the order of the locks, so only tried; else `maintain` does it.
                if let Some(_no_maintenance) = self.maintaining.try_lock() {
                    self.clean_up(tree);
                }
                Err(e)
            }
        }
    }

    fn make_durable(&self) -> Result<()> {
        // `write_run` returns after the tables, the manifest and their directories are synced.
        self.poison.check()
    }

    fn maintain(&self) -> Result<Maintained> {
        let _one_maintainer = self.maintaining.lock();
        self.reap();
        let tree = self.writable()?;
        if self.litter.load(Relaxed)
            && let Some(_no_run) = self.writing.try_lock()
        {
            self.clean_up(tree);
        }
        if self.cancel.is_set() {
            return Ok(Maintained::Idle);
        }
        // Not held any longer: files of a step that fails are removed only when nobody has an old
        // snapshot.
        let before = self.snapshot();
        let (version, schedule) = (before.version, Arc::clone(&before.schedule));
        let (mode, trigger) = schedule.plan(before.level0, self.table_bytes);
        let total = before.level_bytes.iter().sum();
        drop(before);
        let sizes = LevelSizes::of(total, self.table_bytes, trigger);
        self.compact(tree, Arc::new(leveled(&sizes)))?;
        let now = self.snapshot();
        let idle = now.version == version;
        let step = idle.then(|| sizes.when_idle(now.level0.runs, &now.level_bytes));
        drop(now);
        if let Some(Step::PullDown(from, to)) = step {
            self.compact(tree, Arc::new(PullDown(from, to)))?;
        }
        let changed = self.snapshot().version != version;
        schedule.done(mode, changed);
        if changed {
            Ok(Maintained::More)
        } else {
            Ok(Maintained::Idle)
        }
    }

    fn congested(&self) -> bool {
        self.snapshot().level0.runs >= LEVEL0_CONGESTED
    }

    fn interrupt(&self) {
        self.cancel.set();
    }

    fn is_empty(&self) -> Result<bool> {
        let everything = Bounds::everything();
        let mut merge = Merge::new(self.snapshot(), everything, Order::Ascending);
        for _ in 0..EMPTY_SEARCH_ENTRIES {
            match merge.next_entry()? {
                None => return Ok(true),
                Some(entry) if !entry.is_tombstone() => return Ok(false),
                Some(_) => {}
            }
        }
        Ok(false)
    }

    fn approximate_len(&self) -> u64 {
        let snapshot = self.snapshot();
        // A tombstone mostly stands over one older entry.
        snapshot.entries.saturating_sub(2 * snapshot.tombstones)
    }

    fn memory_bytes(&self) -> usize {
        // Snapshots share most of their tables: each one counts once.
        let (current, retired) = (self.snapshot(), self.retired.lock());
        let snapshots = retired.iter().chain([&current]);
        let mut tables: Vec<_> = snapshots
            .flat_map(|s| &s.runs)
            .flat_map(|run| &run.tables)
            .collect();
        tables.sort_unstable_by_key(|table| Arc::as_ptr(table));
        tables.dedup_by_key(|table| Arc::as_ptr(table));
        tables.iter().map(|table| table.memory_bytes()).sum()
    }

    fn disk_bytes(&self) -> u64 {
        self.snapshot().disk_bytes
    }

    fn run_count(&self) -> usize {
        self.snapshot().runs.len()
    }

    fn verify(&self) -> Result<u64> {
        verify::verify(&self.snapshot())
    }

    fn release_files(&self) -> bool {
        let Some(_no_maintenance) = self.maintaining.try_lock() else {
            return false;
        };
        let Some(_no_run) = self.writing.try_lock() else {
            return false;
        };
        self.reap();
        let released = self.retired.lock().is_empty();
        self.released.fetch_or(released, Relaxed);
        released
    }

    fn settled(&self) -> bool {
        self.tree.is_none() || self.snapshot().schedule.settled()
    }

    fn copies_beside_runs(&self) -> bool {
        true
    }

    fn copy_to(&self, dest: &Path) -> Result<()> {
        let (image, _snapshot) = {
            let _no_maintenance = self.maintaining.lock();
            let _no_run = self.writing.lock();
            // Holding the snapshot keeps the tables.
            (manifest::copy::Image::of(&self.dir)?, self.snapshot())
        };
        image.write(dest)
    }
}
