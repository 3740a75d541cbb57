//! Dropping what Y has: cuts, evictions, and the clearing of mounts.
//!
//! A cut goes leaf by leaf: under the latches of the leaf and its parent what stays is copied into a smaller
//! leaf, or the leaf becomes an empty mounted range, joined with those beside it; nodes with nothing else
//! below them become one, too.
//!
//! Keeps: I3 (every range that loses something gets a fresh stamp), I4 (what is dirty or in flight stays).
//! Threads: any number; latches are not waited for, and held for one leaf.

#![forbid(unsafe_code)]

use super::{
    Art,
    leaf::{LeafLatched, LeafSeen, split::leaf_bytes, stable::StableLeaf},
    reshape::leaf_arena_bytes,
    search::Spot,
    walk::Step,
};
use crate::x::{
    Cut, RunId,
    bounds::{Probe, first},
    counts::Delta,
    form::DIRTY,
};
use std::ops::Range;

/// Which entries of a leaf a cut takes.
struct Verdict {
    /// One bit per entry that goes.
    drop: u64,
    unclean: usize,
    spared: u64,
}

/// What became of a leaf.
#[derive(Clone, Copy)]
enum After {
    Same,
    Smaller,
    /// Its range is empty now.
    Gone,
}

fn judge(leaf: StableLeaf<'_>, within: Range<usize>, acked: RunId, spare: bool) -> Verdict {
    let mut verdict = Verdict {
        drop: 0,
        unclean: 0,
        spared: 0,
    };
    // I4: what a run may still carry is not acknowledged, though it is marked clean.
    let in_flight = leaf.meta().run > acked;
    for i in within {
        let bit = 1u64 << i;
        if in_flight || leaf.slot(i).is(DIRTY) {
            verdict.unclean += 1;
        } else if spare && leaf.refs() & bit != 0 {
            verdict.spared |= bit;
        } else {
            verdict.drop |= bit;
        }
    }
    verdict
}

impl Art {
    /// See [`IndexX::cut`](crate::x::IndexX::cut).
    pub(super) fn cut_range(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        acked: RunId,
        spare: bool,
        enough_bytes: usize,
    ) -> Cut {
        let mut cut = Cut::default();
        let mut at = first(from, to);
        // Where leaves vanished that have the last parent. One look at it is enough, when the walk has left it.
        let mut vanished: Option<Vec<u8>> = None;
        let mut last_parent = None;
        while let Some(key) = at {
            if cut.freed_bytes >= enough_bytes {
                break;
            }
            let (bounds, (after, parent)) = self.step(&key, |step| {
                let after = match step.place.spot {
                    Spot::Leaf(leaf) => self.cut_leaf(step, leaf, to, acked, spare, &mut cut)?,
                    _ => After::Same,
                };
                Some((after, step.place.parent.address()))
            });
            if last_parent != Some(parent) {
                last_parent = Some(parent);
                cut.freed_bytes += self.merge_at(vanished.take());
            }
            at = bounds.next(to);
            match after {
                After::Same => {}
                After::Smaller => cut.freed_bytes += self.merge_at(Some(key)),
                After::Gone => vanished = Some(key),
            }
        }
        cut.freed_bytes += self.merge_at(vanished);
        cut
    }

    fn merge_at(&self, key: Option<Vec<u8>>) -> usize {
        key.map_or(0, |key| self.merge(&self.memory.enter(), Probe::at(&key)))
    }

    /// Cuts one leaf; `None` when it changed.
    fn cut_leaf(
        &self,
        step: &Step<'_, '_>,
        leaf: LeafSeen<'_>,
        to: Option<&[u8]>,
        acked: RunId,
        spare: bool,
        cut: &mut Cut,
    ) -> Option<After> {
        let leaf = leaf.try_latch()?;
        let within = step.entries(leaf.stable(), to);
        let verdict = judge(leaf.stable(), within, acked, spare);
        if verdict.drop == 0 && leaf.stable().len() > 0 {
            leaf.clear_references(verdict.spared);
            cut.unclean += verdict.unclean;
            cut.spared += verdict.spared.count_ones() as usize;
            return Some(After::Same);
        }
        let parent = step.place.parent.try_latch()?;
        leaf.clear_references(verdict.spared);
        cut.unclean += verdict.unclean;
        cut.spared += verdict.spared.count_ones() as usize;
        cut.dropped += verdict.drop.count_ones() as usize;
        let before = leaf_arena_bytes(&leaf);
        let mut large = 0;
        let mut delta = Delta::default();
        for i in (0..leaf.stable().len()).rev() {
            if verdict.drop >> i & 1 != 0 {
                large += self.drop_entry(&leaf, i, &mut delta);
            }
        }
        self.counts.add(delta);
        let meta = leaf.leaf().meta();
        if verdict.drop != 0 {
            // I3: the range lost something; what was read from Y before may be stale by now.
            self.mount_leaf(&leaf);
        }
        if meta.n == 0 {
            self.vanish(&parent, &step.place, leaf);
            cut.freed_bytes += before as usize + large;
            return Some(After::Gone);
        }
        leaf.recount_flags();
        let used = leaf_bytes(meta.n, leaf.leaf().size() - meta.top - meta.dead);
        let small = self.resize(step.guard, &parent, step.place.symbol, leaf, used);
        // Less than nothing where only a larger block was free.
        let freed = before - leaf_arena_bytes(&small);
        cut.freed_bytes = cut.freed_bytes.saturating_add_signed(freed) + large;
        Some(After::Smaller)
    }

    /// Drops entry `i` of `leaf`; returns the bytes of its large block. The counts are the caller's to change by `delta`.
    pub(super) fn drop_entry(&self, leaf: &LeafLatched<'_>, i: usize, delta: &mut Delta) -> usize {
        let entry = leaf.stable().entry(i);
        let large = leaf.stable().large(&entry);
        delta.drop_entry(entry.slot.flags());
        leaf.remove(i);
        let bytes = large.map_or(0, |large| {
            let bytes = large.arena_bytes();
            large.retire(&self.memory);
            bytes
        });
        delta.bytes -= bytes as isize;
        bytes
    }

    /// Makes the range of `leaf` mounted with a fresh stamp.
    fn mount_leaf(&self, leaf: &LeafLatched<'_>) {
        let mounts = isize::from(leaf.mount().is_none());
        leaf.set_mount(Some(self.tick()));
        self.counts.add(Delta {
            mounts,
            ..Delta::default()
        });
    }

    /// See [`IndexX::evict`](crate::x::IndexX::evict).
    pub(super) fn evict_key(&self, key: &[u8]) {
        let (_, shrunk) = self.step(key, |step| match step.place.spot {
            Spot::Leaf(leaf) => {
                let leaf = leaf.try_latch()?;
                if let Ok(i) = leaf.stable().find(&key[step.place.depth..]) {
                    let mut delta = Delta::default();
                    self.drop_entry(&leaf, i, &mut delta);
                    self.counts.add(delta);
                    leaf.recount_flags();
                }
                self.mount_leaf(&leaf);
                Some(self.tidy(step.guard, &step.place, leaf))
            }
            Spot::Empty(_) => {
                let parent = step.place.parent.try_latch()?;
                let mounts = parent.remount(step.place.symbol, Some(self.tick()));
                self.counts.add(Delta {
                    mounts,
                    ..Delta::default()
                });
                Some(false)
            }
            Spot::Gap { node, .. } => {
                let mounts = node.try_latch()?.set_gap(Some(self.tick()));
                self.counts.add(Delta {
                    mounts,
                    ..Delta::default()
                });
                Some(false)
            }
        });
        if shrunk {
            self.merge(&self.memory.enter(), Probe::at(key));
        }
    }

    /// See [`IndexX::clear_mounts`](crate::x::IndexX::clear_mounts).
    pub(super) fn complete(&self, from: &[u8], to: Option<&[u8]>) {
        let mut at = first(from, to);
        while let Some(key) = at {
            let (bounds, ()) = self.step(&key, |step| self.complete_range(step, from, to));
            at = bounds.next(to);
        }
    }

    fn complete_range(&self, step: &Step<'_, '_>, from: &[u8], to: Option<&[u8]>) -> Option<()> {
        let inside = step.bounds.within(from, to);
        let mounts = match step.place.spot {
            Spot::Leaf(leaf) if inside && leaf.leaf().state().mount.is_some() => {
                leaf.try_latch()?.set_mount(None);
                -1
            }
            Spot::Empty(Some(_)) if inside => {
                let parent = step.place.parent.try_latch()?;
                parent.remount(step.place.symbol, None)
            }
            Spot::Gap {
                node,
                mount: Some(_),
                ..
            } => {
                // The gap has one mark for what is below and above the node's keys.
                if !step
                    .place
                    .gap_surroundings(Probe::at(step.key))
                    .within(from, to)
                {
                    return Some(());
                }
                node.try_latch()?.set_gap(None)
            }
            _ => 0,
        };
        self.counts.add(Delta {
            mounts,
            ..Delta::default()
        });
        Some(())
    }
}
