//! Copying dirty entries to Y's runs, and what follows from how a run ended.
//!
//! Keeps: I2 (marks change under the leaf's latch at the moment of copying, never at the acknowledgement),
//! I3 (a purged tombstone moves the stamp), I4 (the leaf remembers the run, so that it is not cut meanwhile).
//!
//! Threads: one at a time per tree (the framework's transfer lock); readers and writers go on. No latch and no
//! guard is held while the sink runs.

#![forbid(unsafe_code)]

use super::{
    BPlus,
    leaf::{
        LeafSeen,
        build::mask,
        layout::Bit,
        stable::{LeafBuffer, StableLeaf},
    },
    path::{Spot, Step},
};
use crate::x::{
    RunId, StopWalk,
    batch::{BATCH_BYTES, Batch},
    bounds::{Probe, first},
    counts::Delta,
};
use std::ops::ControlFlow;

impl BPlus {
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
        if leaf.leaf().bits(Bit::Dirty) == 0 {
            return leaf.unchanged().then_some(None);
        }
        let latched = leaf.try_latch()?;
        let copy = latched.stable().copy(buffer);
        let within = step.entries(copy, to);
        let dirty = copy.bits(Bit::Dirty) & mask(within.clone());
        let (mut taken, mut bytes, mut end) = (0, 0, within.end);
        for i in within.clone().filter(|i| dirty >> i & 1 != 0) {
            if bytes >= BATCH_BYTES {
                end = i;
                break;
            }
            let entry = copy.entry(i);
            taken |= 1u64 << i;
            bytes += entry.suffix_len + entry.value_len;
        }
        if taken != 0 {
            // I2: the entries are clean from the moment of the copy; a later write makes one dirty again.
            latched.mark_copied(taken, run);
        }
        drop(latched);
        self.counts.add(Delta {
            dirty: -(taken.count_ones() as isize),
            ..Delta::default()
        });
        let path = &step.key[..copy.meta().depth];
        for i in within.clone().filter(|i| taken >> i & 1 != 0) {
            push(batch, path, copy, i);
        }
        Some((end < within.end).then(|| {
            let mut next = path.to_vec();
            copy.push_suffix(&copy.entry(end), &mut next);
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
                if leaf.leaf().run() != run {
                    return leaf.unchanged().then_some(());
                }
                let leaf = leaf.try_latch()?;
                let within = mask(step.entries(leaf.stable(), to));
                let clean = within & !leaf.stable().bits(Bit::Dirty);
                leaf.mark_dirty(clean);
                let dirty = clean.count_ones() as isize;
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
        let seen = leaf.leaf();
        if seen.bits(Bit::Tombstone) == 0 || seen.run() > acked {
            return leaf.unchanged().then_some(false);
        }
        let leaf = leaf.try_latch()?;
        let stable = leaf.stable();
        let within = mask(step.entries(stable, to));
        let purge = within & stable.bits(Bit::Tombstone) & !stable.bits(Bit::Dirty);
        if purge == 0 {
            return Some(false);
        }
        for i in (0..stable.len()).rev().filter(|i| purge >> i & 1 != 0) {
            self.drop_entry(&leaf, i);
        }
        // I3: whoever read the key's old value from Y before the delete got there must not install it.
        if leaf.mount().is_some() {
            leaf.set_mount(Some(self.tick()));
        }
        Some(self.tidy(step.guard, &step.place, leaf))
    }
}

fn push(batch: &mut Batch, path: &[u8], leaf: StableLeaf<'_>, i: usize) {
    let entry = leaf.entry(i);
    let tombstone = leaf.has(i, Bit::Tombstone);
    let value = (!tombstone).then_some(|out: &mut Vec<u8>| leaf.push_value(&entry, out));
    let key = |out: &mut Vec<u8>| {
        out.extend_from_slice(path);
        leaf.push_suffix(&entry, out);
    };
    batch.push(key, value);
}
