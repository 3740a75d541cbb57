//! Copying dirty entries to Y's runs, and what follows when a run has ended.
//!
//! Keeps: I2 (marks change under the leaf's latch at the moment of copying, never at the
//! acknowledgement), I3 (a purged tombstone moves the stamp), I4 (the leaf remembers the run, so
//! that it is not cut meanwhile).
//!
//! Threads: one at a time per tree (the framework's transfer lock); readers and writers go on. No
//! latch and no guard is held while the sink runs.

#![forbid(unsafe_code)]

use super::step::Step;
use crate::x::{
    CleanSink, RunId, StopWalk,
    bounds::{Probe, first},
    copied::{COPIED_BYTES, Copied},
    counters::Delta,
    leaf::{Bit, LeafBuffer, LeafSeen, StableLeaf, mask, ones},
    tree::{Kind, Spot, Tree},
};
use std::ops::ControlFlow;

/// Where copied entries go.
#[derive(Default)]
struct Target {
    run: RunId,
    copied: Copied,
}

impl<S: Kind> Tree<S> {
    /// See [`IndexX::clean`](crate::x::IndexX::clean).
    pub(super) fn copy_dirty(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        run: RunId,
        sink: &mut CleanSink<'_>,
    ) -> ControlFlow<StopWalk> {
        let copied = Copied::default();
        let mut target = Target { run, copied };
        let mut buffer = LeafBuffer::new();
        let mut at = first(from, to);
        while let Some(key) = at {
            target.copied.clear();
            let (bounds, rest) = self.step(&key, |step| match step.spot()? {
                Spot::Leaf(leaf) => self.copy_leaf(step, leaf, to, &mut buffer, &mut target),
                Spot::Empty(_) => Some(None),
            });
            target.copied.drain(sink)?;
            at = rest.or_else(|| bounds.next(to));
        }
        ControlFlow::Continue(())
    }

    /// Copies dirty entries of `leaf` to `target`. `Some(Some(key))`: that is full, go on at
    /// `key`; `None`: the leaf changed.
    fn copy_leaf(
        &self,
        step: &Step<'_, '_, S>,
        leaf: LeafSeen<'_>,
        to: Option<&[u8]>,
        buffer: &mut LeafBuffer,
        target: &mut Target,
    ) -> Option<Option<Vec<u8>>> {
        if leaf.leaf().bits(Bit::Dirty) == 0 {
            return leaf.unchanged().then_some(None);
        }
        let latched = leaf.try_latch()?;
        let copy = latched.stable().copy(buffer);
        let within = step.entries(copy, to);
        // Y takes no operand: it is resolved first.
        let dirty = copy.bits(Bit::Dirty) & !copy.operands() & mask(within.clone());
        let (mut taken, mut bytes, mut end) = (0, 0, within.end);
        for i in ones(dirty) {
            if bytes >= COPIED_BYTES {
                end = i;
                break;
            }
            let entry = copy.entry(i);
            taken |= 1u64 << i;
            bytes += entry.suffix_len + entry.value_len;
        }
        if taken != 0 {
            // I2: the entries are clean from the moment of the copy; a later write makes one
            // dirty again.
            latched.mark_copied(taken, target.run);
        }
        drop(latched);
        self.counters.add(Delta {
            dirty: -(taken.count_ones() as isize),
            ..Delta::default()
        });
        let path = &step.key[..copy.raw().depth()];
        for i in ones(taken) {
            push(&mut target.copied, path, copy, i);
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
                let Spot::Leaf(leaf) = step.spot()? else {
                    return Some(());
                };
                if leaf.leaf().run() != run {
                    return leaf.unchanged().then_some(());
                }
                let leaf = leaf.try_latch()?;
                let clean = step.entry_mask(&leaf, to) & !leaf.stable().bits(Bit::Dirty);
                leaf.mark_dirty(clean);
                self.counters.add(Delta {
                    dirty: clean.count_ones() as isize,
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
            let (bounds, shrunk) = self.step(&key, |step| match step.spot()? {
                Spot::Leaf(leaf) => self.purge_leaf(step, leaf, to, acked),
                Spot::Empty(_) => Some(false),
            });
            if shrunk {
                S::merge(self, &self.memory.enter(), Probe::at(&key));
            }
            at = bounds.next(to);
        }
    }

    /// Whether the leaf shrunk; `None` when it changed.
    fn purge_leaf<'g>(
        &self,
        step: &Step<'g, '_, S>,
        leaf: LeafSeen<'g>,
        to: Option<&[u8]>,
        acked: RunId,
    ) -> Option<bool> {
        if leaf.leaf().bits(Bit::Tombstone) == 0 || leaf.leaf().run() > acked {
            return leaf.unchanged().then_some(false);
        }
        let leaf = leaf.try_latch()?;
        let stable = leaf.stable();
        let clean = step.entry_mask(&leaf, to) & !stable.bits(Bit::Dirty);
        let purge = clean & stable.bits(Bit::Tombstone);
        if purge == 0 {
            return Some(false);
        }
        self.drop_entries(&leaf, purge);
        // I3: whoever read the key's old value from Y before the delete got there must not
        // install it.
        if stable.mount().is_some() {
            leaf.set_mount(Some(self.tick()));
        }
        Some(S::tidy(self, step.guard, &step.place, leaf))
    }
}

/// Adds entry `i` of `leaf`, which is a copy from before it was marked.
fn push(copied: &mut Copied, path: &[u8], leaf: StableLeaf<'_>, i: usize) {
    let entry = leaf.entry(i);
    let tombstone = leaf.has(i, Bit::Tombstone);
    let value = (!tombstone).then_some(|out: &mut Vec<u8>| leaf.push_value(&entry, out));
    let key = |out: &mut Vec<u8>| {
        out.extend_from_slice(path);
        leaf.push_suffix(&entry, out);
    };
    copied.push(key, value, leaf.has(i, Bit::InY));
}
