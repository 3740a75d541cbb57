//! How a batch is applied.
//!
//! Keeps I8: holds the stripes of all its keys, taken in ascending order, from before its LSN until
//! everything is applied; one log record, so that recovery has all of it or nothing. Keeps I10 and
//! I11: holds the gate from its first image until everything is applied, so that no snapshot sees a
//! part of it. I6 is kept by `framework/journal.rs`.
//!
//! Locks are taken in this order: stripes, room in memory, run locks, room in the log, gate.
//! Nothing waits with the gate held, unless ranges are removed, a condition has to look into images
//! on disk, or images have no room in memory beside the batch and go to disk.

#![forbid(unsafe_code)]

use super::{
    images::{self, Images},
    merge_batch,
    ops::{self, Change, OP_OVERHEAD_BYTES, Op},
};
use crate::{
    db::{
        handle::{Core, TreeCore},
        options::Durability,
    },
    error::{Error, Result},
    framework::{disk_writer::Runs, regions::key_range::united, spill::RunLock},
    versions::{Epoch, Image, Spared},
    wal::{BatchEncoder, Lsn, MAX_BATCH_BYTES},
    y::{KeyRange, RangeRemoval},
};
use parking_lot::MutexGuard;
use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{Ordering, fence},
    },
    time::{Duration, Instant},
};

/// What must hold for a batch to be applied. It is asked with the stripes of all keys and the gate
/// held: what it finds holds until the batch is applied, or the writer who changes it finds the
/// images of the batch.
pub(in crate::db) trait Condition {
    /// Before all else: what the batch leaves itself does not give its snapshot up.
    fn spare(&self) -> Result<Spared<'_>>;

    /// Looks at `key`, which the batch writes, before the batch leaves an image of it.
    fn check_written(&self, tree: &TreeCore, key: &[u8]) -> Result<()>;

    /// Looks at what the batch does not write, after it has left its images.
    fn check_read(&self) -> Result<()>;
}

/// A batch on its way.
pub(super) struct Commit<'a> {
    pub(super) core: &'a Core,
    pub(super) trees: &'a [Arc<TreeCore>],
    pub(super) ops: &'a [Op],
    /// As the batch counts.
    pub(super) bytes: usize,
    /// Some operations remove ranges.
    pub(super) ranges: bool,
    /// Some operations merge.
    pub(super) merges: bool,
    pub(super) condition: Option<&'a dyn Condition>,
}

impl Commit<'_> {
    /// Applies everything, or nothing. `hashes`: of all keys, in the order of stripes.
    pub(super) fn run(&self, hashes: &[u64]) -> Result<()> {
        let core = self.core;
        let log = core.shared.log.get();
        let end = if self.merges {
            let _stripes = self.lock_stripes(hashes);
            self.live()?;
            let limit = batch_limit(core);
            let ops = merge_batch::resolved(self.trees, self.ops, limit)?;
            let ops = match self.ranges {
                true => ops,
                false => ops::last_write_wins(ops),
            };
            let bytes = ops.iter().map(Op::bytes).sum();
            if bytes > limit {
                return Err(Error::BatchTooLarge { bytes, limit });
            }
            let resolved = Commit {
                ops: &ops,
                bytes,
                merges: false,
                ..*self
            };
            resolved.apply_encoded(&resolved.encoded()?)?
        } else {
            let encoder = self.encoded()?;
            let _stripes = self.lock_stripes(hashes);
            self.live()?;
            self.apply_encoded(&encoder)?
        };
        if self.ranges {
            self.trees
                .iter()
                .for_each(|tree| tree.joined.free_removed());
        }
        if let (Some(log), Some(end), Durability::Sync) = (log, end, core.options.durability) {
            log.wait_durable(end)?;
        }
        Ok(())
    }

    /// The operations for the log, if there is one.
    fn encoded(&self) -> Result<BatchEncoder> {
        let mut encoder = BatchEncoder::default();
        if self.core.shared.log.get().is_some() {
            for op in self.ops {
                encoder.push(ops::record(self.trees, op))?;
            }
        }
        Ok(encoder)
    }

    /// The caller holds the stripes.
    fn apply_encoded(&self, encoder: &BatchEncoder) -> Result<Option<Lsn>> {
        loop {
            if let Some(end) = self.attempt(encoder)? {
                return Ok(end);
            }
        }
    }

    /// Waits for room, and applies. `None`: a snapshot has begun, for whose images no room was
    /// asked. That happens once: room is asked for where a snapshot is open.
    fn attempt(&self, encoder: &BatchEncoder) -> Result<Option<Option<Lsn>>> {
        let shared = &self.core.shared;
        let (log, versions) = (shared.log.get(), &shared.versions);
        let record = encoder.bytes() + OP_OVERHEAD_BYTES;
        let copied = log.map_or(0, |log| log.extra_bytes(record));
        let watch = versions.watch();
        let (mut olds, images) = match watch {
            0 => (Olds::new(), 0),
            _ => self.olds(),
        };
        if watch != 0 {
            self.await_image_room();
        }
        // Before this batch holds room of its own: it would wait for itself.
        let admit = |bytes| shared.room.admit(bytes).is_ok();
        self.keep_ranges(watch, admit, RunLock::Free);
        // After the stripes (see `writes.rs`). The log's room is kept until the record is appended.
        let room = &shared.room;
        let needed = self.bytes + room.copy_bytes(copied);
        let request = images::Request {
            core: self.core,
            trees: self.trees,
            needed,
            images,
            conditional: self.condition.is_some(),
        };
        let admitted = request.admit(|bytes| self.may_shrink(bytes));
        let (_admitted, images) =
            admitted.map_err(|error| too_large(self.core, self.bytes, error))?;
        if self.ranges {
            // A full device is met now, as long as nothing is written.
            shared.log.wait_durable()?;
        }
        // Before the log's room: whoever has that waits for no run.
        let mut runs = self.lock_runs(images);
        // A full device under the disk index is met now, too.
        let mut removals = self.begin_removals()?;
        let _room = log.map(|log| log.admit(record)).transpose()?;
        let _gate = versions.gate();
        // It may have waited long. Before it leaves anything in a tree that was dropped.
        self.live()?;
        // I11: no snapshot begins from here on.
        let now = versions.watch();
        if watch == 0 && now != 0 {
            return Ok(None);
        }
        let _spared = self.condition.map(Condition::spare).transpose()?;
        if now > watch {
            let admit = |bytes| shared.room.admit_load(bytes).is_some();
            self.keep_ranges(now, admit, RunLock::Held);
        }
        self.keep(now, &mut olds, images)?;
        // That may take long, too: images go to disk, or a condition looks for some there. Those
        // that it has left of live trees are right all the same.
        self.live()?;
        let commit = || self.apply_all(&mut runs, &mut removals);
        let (end, applied) = shared.log.commit_batch(encoder.record(), commit)?;
        applied?;
        Ok(Some(end))
    }

    /// Whether the batch goes on where resident trees fill the budget: it makes none of them
    /// larger, or they could not be made smaller. It takes `bytes` for a while: long keys are
    /// copied (I7).
    fn may_shrink(&self, bytes: usize) -> Result<bool> {
        let frees = |op: &Op| match &op.change {
            Change::Remove(key) => self.trees[op.tree].joined.removal_shrinks_x(key),
            Change::RemoveRange(..) => true,
            Change::Put(..) | Change::Merge(..) => false,
        };
        Ok(self.ops.iter().all(frees) && self.core.shared.room.await_room_to_shrink(bytes)?)
    }

    /// Waits until images may be left: all trees wait for one spiller.
    fn await_image_room(&self) {
        if let Some(tree) = self.trees.first() {
            tree.joined.await_image_room();
        }
    }

    fn live(&self) -> Result<()> {
        self.trees.iter().try_for_each(|tree| tree.live())
    }

    /// What the keys of the first operations are now, and what the images of all will take. The
    /// stripes are held, so that it stays right: nothing but images is left to the time with the
    /// gate.
    fn olds(&self) -> (Olds, usize) {
        let mut olds = Olds::new();
        let mut bytes = 0;
        for op in self.ops {
            let joined = &self.trees[op.tree].joined;
            let at_hand = bytes < AT_HAND_BYTES;
            let old = match &op.change {
                Change::Put(key, _) | Change::Remove(key) => {
                    let old = at_hand.then(|| joined.old(key)).flatten();
                    let value = match &old {
                        Some(old) => old.bytes(),
                        None => joined.len_in_memory(key),
                    };
                    bytes += key.len() + value + OP_OVERHEAD_BYTES;
                    old
                }
                // As they are read.
                Change::RemoveRange(..) | Change::Merge(..) => None,
            };
            if at_hand {
                olds.push_back(old.filter(|old| old.bytes() < AT_HAND_BYTES));
            }
        }
        (olds, bytes)
    }

    /// Leaves the images of what the batch writes (I10), if its condition holds.
    fn keep(&self, watch: Epoch, olds: &mut Olds, images: Images) -> Result<()> {
        if let Some(condition) = self.condition {
            for op in self.ops {
                if let Change::Put(key, _) | Change::Remove(key) = &op.change {
                    condition.check_written(&self.trees[op.tree], key)?;
                }
            }
        }
        if watch != 0 {
            let mut left = 0;
            for op in self.ops {
                let joined = &self.trees[op.tree].joined;
                let old = olds.pop_front().flatten();
                if let Change::Put(key, _) | Change::Remove(key) = &op.change
                    && let Some(image) = old.or_else(|| joined.old(key)).or_else(|| joined.mark())
                {
                    left += key.len() + image.bytes();
                    joined.keep(key, watch, &image);
                    if matches!(images, Images::ToDisk { chunk } if left > chunk) {
                        images::to_disk(self.core, self.trees, self.condition.is_some())?;
                        left = 0;
                    }
                }
            }
            if images != Images::InMemory {
                images::to_disk(self.core, self.trees, self.condition.is_some())?;
            }
        }
        match self.condition {
            Some(condition) => {
                // Of two commits that read what the other one writes, one sees the other's images.
                fence(Ordering::SeqCst);
                condition.check_read()
            }
            None => Ok(()),
        }
    }

    /// Keeps what is in the ranges to be removed, where `admit` says that there is room.
    fn keep_ranges(&self, watch: Epoch, admit: impl Fn(usize) -> bool + Copy, run_lock: RunLock) {
        if watch == 0 || !self.ranges {
            return;
        }
        for op in self.ops {
            if let Change::RemoveRange(from, to) = &op.change {
                let joined = &self.trees[op.tree].joined;
                joined.keep_range(from, to.as_deref(), watch, admit, run_lock);
            }
        }
    }

    /// The stripes of all keys; where ranges are removed, all there are.
    fn lock_stripes(&self, hashes: &[u64]) -> Vec<MutexGuard<'_, ()>> {
        let stripes = &self.core.stripes;
        if !self.ranges {
            return stripes.lock_all(hashes);
        }
        // A run in flight may take long: as little of it as can be is waited for with all stripes.
        drop(self.lock_runs(Images::InMemory));
        stripes.lock_every()
    }

    /// The run locks of the trees of which ranges are removed, or whose images go to disk, by their
    /// indexes in the batch. Taken in the order of the trees' numbers: two batches cannot deadlock,
    /// though the stripes see to that already where ranges are removed.
    fn lock_runs(&self, images: Images) -> RunLocks<'_> {
        let mut locks: RunLocks<'_> = self.trees.iter().map(|_| None).collect();
        let to_disk = images != Images::InMemory;
        if self.ranges || to_disk {
            let mut order: Vec<usize> = (0..self.trees.len()).collect();
            order.sort_unstable_by_key(|&i| self.trees[i].entry.id);
            let removes = |i: usize| {
                let of = |op: &Op| op.tree == i && matches!(op.change, Change::RemoveRange(..));
                self.ops.iter().any(of)
            };
            for i in order.into_iter().filter(|&i| to_disk || removes(i)) {
                locks[i] = Some(self.trees[i].joined.writer.lock());
            }
        }
        locks
    }

    /// For each tree, the removal of its ranges from the disk index, made ready. The caller holds
    /// the run locks.
    fn begin_removals(&self) -> Result<Removals<'_>> {
        let mut removals: Removals<'_> = self.trees.iter().map(|_| None).collect();
        for (i, tree) in self.trees.iter().enumerate() {
            let of = |op: &Op| match &op.change {
                Change::RemoveRange(from, to) if op.tree == i => Some((from.clone(), to.clone())),
                _ => None,
            };
            let ranges = united(self.ops.iter().filter_map(of).collect());
            if ranges.is_empty() || tree.joined.discarded() {
                continue;
            }
            let ranges: Vec<KeyRange<'_>> = ranges
                .iter()
                .map(|(from, to)| (&from[..], to.as_deref()))
                .collect();
            removals[i] = Some(tree.joined.writer.begin_removal(&ranges)?);
        }
        Ok(removals)
    }

    /// The ranges that go from tree number `tree`.
    fn removed(&self, tree: usize) -> impl Iterator<Item = KeyRange<'_>> {
        self.ops.iter().filter_map(move |op| match &op.change {
            Change::RemoveRange(from, to) if op.tree == tree => Some((&from[..], to.as_deref())),
            _ => None,
        })
    }

    /// Waits until the record is durable. It cannot be taken back: a full device, and want of
    /// descriptors, are waited for.
    fn wait_durable(&self) -> Result<()> {
        let passes =
            |error: &Error| matches!(error, Error::OutOfSpace { .. }) || error.is_transient();
        let log = &self.core.shared.log;
        let deadline = Instant::now() + FULL_DEVICE;
        loop {
            match log.wait_durable() {
                Err(error) if passes(&error) && Instant::now() < deadline => {
                    std::thread::sleep(FULL_DEVICE_PAUSE);
                }
                waited => return waited,
            }
        }
    }

    /// Applies what the log has, in order. An error comes after the record was logged: it poisons.
    fn apply_all(&self, runs: &mut RunLocks<'_>, removals: &mut Removals<'_>) -> Result<()> {
        let shared = &self.core.shared;
        let poison = |error: Error| {
            let error = shared.poison.set(&error);
            shared.room.announce_freed();
            error
        };
        if self.ranges {
            // I5: Y shows the removal when it is applied.
            self.wait_durable().map_err(poison)?;
        }
        let mut paused = Vec::new();
        for op in self.ops {
            let tree = &self.trees[op.tree].joined;
            match &op.change {
                Change::Put(key, value) => tree.apply(key, Some(value)),
                Change::Remove(key) => tree.apply(key, None),
                // They were resolved.
                Change::Merge(..) => {}
                Change::RemoveRange(from, to) => {
                    if let Some(runs) = &mut runs[op.tree] {
                        // All ranges of the tree at once. Those that come later in the batch go
                        // from Y early: nothing that it has of them is wanted any more.
                        if let Some(removal) = removals[op.tree].take() {
                            paused.push(tree.load_pause.begin());
                            for (from, to) in self.removed(op.tree) {
                                tree.before_removal(from, to);
                            }
                            tree.writer.publish_removal(removal).map_err(poison)?;
                        }
                        tree.remove_range_from_x(runs, from, to.as_deref());
                    }
                }
            }
        }
        Ok(())
    }
}

/// What the keys of the first operations of a batch were before it, in their order, where that is
/// known.
type Olds = VecDeque<Option<Image>>;

/// What is read before the images of a batch have room takes so much; the rest is read when it has.
const AT_HAND_BYTES: usize = 64 << 10;

/// How long a batch that removes ranges waits for a device that became full under it, or for a
/// descriptor, with all stripes, before it gives the handle up.
const FULL_DEVICE: Duration = Duration::from_secs(10);
const FULL_DEVICE_PAUSE: Duration = Duration::from_millis(50);

/// For each tree of a batch, its run lock if it is needed.
type RunLocks<'a> = Vec<Option<MutexGuard<'a, Runs>>>;

/// For each tree of a batch, what is ready to go from its disk index.
type Removals<'a> = Vec<Option<Box<dyn RangeRemoval + 'a>>>;

/// A batch takes this part of the budget at most.
const BATCH_DIVISOR: usize = 4;
/// So much of what could be had at once is left to slabs that X keeps in reserve.
const RESERVE_DIVISOR: usize = 16;

/// The largest batch that `core` takes now, as [`Batch::bytes`](super::Batch::bytes) counts: a part
/// of the budget, and what the disk index leaves of it.
pub(super) fn batch_limit(core: &Core) -> usize {
    let most = core.shared.room.most_at_once();
    let most = most.saturating_sub(most / RESERVE_DIVISOR + OP_OVERHEAD_BYTES);
    // The log copies a large batch as a whole.
    let most = match core.shared.log.get() {
        Some(_) => most / 2,
        None => most,
    };
    let part = core.budget.limit() / BATCH_DIVISOR;
    part.min(MAX_BATCH_BYTES).min(most)
}

/// What admission said of a batch of `bytes`: where it does not fit the budget, a smaller one does.
fn too_large(core: &Core, bytes: usize, error: Error) -> Error {
    let limit = batch_limit(core);
    match error {
        Error::BudgetTooSmall { .. } if limit < bytes => Error::BatchTooLarge { bytes, limit },
        error => error,
    }
}
