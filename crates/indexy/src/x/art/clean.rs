//! Copying dirty entries to Y's runs, and what follows from how a run ended.
//!
//! Keeps: I2 (marks change under the leaf's latch at the moment of copying, never at the acknowledgement),
//! I3 (a purged tombstone moves the stamp), I4 (the leaf remembers the run, so that it is not cut meanwhile).
//!
//! Threads: one at a time per tree (the framework's transfer lock); readers and writers go on. No latch and no
//! guard is held while the sink runs.

#![forbid(unsafe_code)]

use super::{
    Art,
    leaf::{
        LeafSeen,
        stable::{LeafBuffer, StableLeaf},
    },
    search::Spot,
    walk::Step,
};
use crate::x::{
    RunId, StopWalk,
    batch::{BATCH_BYTES, Batch},
    bounds::{Probe, first},
    counts::Delta,
    form::{DIRTY, IN_Y, TOMBSTONE},
};
use std::ops::ControlFlow;

impl Art {
    /// See [`IndexX::clean`](crate::x::IndexX::clean).
    pub(super) fn copy_dirty(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        run: RunId,
        sink: &mut crate::x::CleanSink<'_>,
    ) -> ControlFlow<StopWalk> {
        let mut batch = Batch::default();
        let mut buffer = LeafBuffer::new();
        let mut at = first(from, to);
        while let Some(key) = at {
            batch.clear();
            let (bounds, rest) = self.step(&key, |step| match step.place.spot {
                Spot::Leaf(leaf) => self.copy_leaf(step, leaf, to, run, &mut buffer, &mut batch),
                _ => Some(None),
            });
            batch.drain(sink)?;
            at = rest.or_else(|| bounds.next(to));
        }
        ControlFlow::Continue(())
    }

    /// Copies dirty entries of `leaf` to `batch`. `Some(Some(key))`: the batch is full, go on at `key`;
    /// `None`: the leaf changed.
    fn copy_leaf(
        &self,
        step: &Step<'_, '_>,
        leaf: LeafSeen<'_>,
        to: Option<&[u8]>,
        run: RunId,
        buffer: &mut LeafBuffer,
        batch: &mut Batch,
    ) -> Option<Option<Vec<u8>>> {
        if !leaf.leaf().state().dirty {
            return leaf.unchanged().then_some(None);
        }
        let latched = leaf.try_latch()?;
        let copy = latched.stable().copy(buffer);
        let within = step.entries(copy, to);
        let (mut count, mut bytes, mut end) = (0, 0, within.end);
        for i in within.clone() {
            let entry = copy.entry(i);
            if !entry.slot.is(DIRTY) {
                continue;
            }
            if bytes >= BATCH_BYTES {
                end = i;
                break;
            }
            // I2: the entry is clean from the moment of the copy; a later write makes it dirty again.
            latched.set_flags(i, entry.slot.flags() & !DIRTY | IN_Y);
            count += 1;
            bytes += entry.suffix_len + entry.value_len;
        }
        if count > 0 {
            latched.set_run(run);
            latched.recount_flags();
        }
        drop(latched);
        self.counts.add(Delta {
            dirty: -count,
            ..Delta::default()
        });
        let path = &step.key[..step.place.depth];
        for i in (within.start..end).filter(|&i| copy.slot(i).is(DIRTY)) {
            push(batch, path, copy, i);
        }
        Some((end < within.end).then(|| {
            let mut next = path.to_vec();
            copy.push_suffix(&copy.entry(end), 0, &mut next);
            next
        }))
    }

    /// See [`IndexX::redirty`](crate::x::IndexX::redirty).
    pub(super) fn mark_dirty(&self, from: &[u8], to: Option<&[u8]>, run: RunId) {
        let mut at = first(from, to);
        while let Some(key) = at {
            let (bounds, ()) = self.step(&key, |step| {
                let Spot::Leaf(leaf) = step.place.spot else {
                    return Some(());
                };
                if leaf.leaf().meta().run != run {
                    return leaf.unchanged().then_some(());
                }
                let leaf = leaf.try_latch()?;
                let mut dirty = 0;
                for i in step.entries(leaf.stable(), to) {
                    let flags = leaf.stable().slot(i).flags();
                    if flags & DIRTY == 0 {
                        leaf.set_flags(i, flags | DIRTY);
                        dirty += 1;
                    }
                }
                self.counts.add(Delta {
                    dirty,
                    ..Delta::default()
                });
                Some(())
            });
            at = bounds.next(to);
        }
    }

    /// See [`IndexX::settle`](crate::x::IndexX::settle).
    pub(super) fn purge_tombstones(&self, from: &[u8], to: Option<&[u8]>, acked: RunId) {
        let mut at = first(from, to);
        while let Some(key) = at {
            let (bounds, shrunk) = self.step(&key, |step| match step.place.spot {
                Spot::Leaf(leaf) => self.purge_leaf(step, leaf, to, acked),
                _ => Some(false),
            });
            if shrunk {
                self.merge(&self.memory.enter(), Probe::at(&key));
            }
            at = bounds.next(to);
        }
    }

    /// Whether the leaf shrunk; `None` when it changed.
    fn purge_leaf(
        &self,
        step: &Step<'_, '_>,
        leaf: LeafSeen<'_>,
        to: Option<&[u8]>,
        acked: RunId,
    ) -> Option<bool> {
        if !leaf.leaf().state().tombstones || leaf.leaf().meta().run > acked {
            return leaf.unchanged().then_some(false);
        }
        let leaf = leaf.try_latch()?;
        let within = step.entries(leaf.stable(), to);
        let mut delta = Delta::default();
        for i in within.rev() {
            if leaf.stable().slot(i).flags() & (TOMBSTONE | DIRTY) == TOMBSTONE {
                self.drop_entry(&leaf, i, &mut delta);
            }
        }
        if delta == Delta::default() {
            return Some(false);
        }
        self.counts.add(delta);
        leaf.recount_flags();
        // I3: whoever read the key's old value from Y before the delete got there must not install it.
        if leaf.mount().is_some() {
            leaf.set_mount(Some(self.tick()));
        }
        Some(self.tidy(step.guard, &step.place, leaf))
    }
}

fn push(batch: &mut Batch, path: &[u8], leaf: StableLeaf<'_>, i: usize) {
    let entry = leaf.entry(i);
    let value =
        (!entry.slot.is(TOMBSTONE)).then_some(|out: &mut Vec<u8>| leaf.push_value(&entry, out));
    let key = |out: &mut Vec<u8>| {
        out.extend_from_slice(path);
        leaf.push_suffix(&entry, 0, out);
    };
    batch.push(key, value);
}
