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
    BPlus,
    leaf::{
        LeafLatched, LeafSeen,
        build::{Builder, Plan, Shift, Spare, mask},
        layout::Bit,
        stable::StableLeaf,
    },
    path::{Spot, Step},
};
use crate::x::{
    Cut, RunId,
    bounds::{Probe, first},
    counts::Delta,
};
use std::ops::Range;

/// What a cut does with the entries of a leaf, a bit each.
struct Verdict {
    drop: u64,
    unclean: u64,
    spared: u64,
}

fn judge(leaf: StableLeaf<'_>, within: Range<usize>, acked: RunId, spare: bool) -> Verdict {
    let within = mask(within);
    // I4: what a run may still carry is not acknowledged, though it is marked clean.
    let unclean = if leaf.run() > acked {
        within
    } else {
        within & leaf.bits(Bit::Dirty)
    };
    let clean = within & !unclean;
    let spared = if spare {
        clean & leaf.bits(Bit::Referenced)
    } else {
        0
    };
    Verdict {
        drop: clean & !spared,
        unclean,
        spared,
    }
}

impl BPlus {
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
        while let Some(key) = at {
            if cut.freed_bytes >= enough_bytes {
                break;
            }
            let (bounds, shrunk) = self.step(&key, |step| match step.place.spot {
                Spot::Leaf(leaf) => self.cut_leaf(step, leaf, to, acked, spare, &mut cut),
                _ => Some(false),
            });
            if shrunk {
                let merged = self.merge(&self.memory.enter(), Probe::at(&key));
                cut.freed_bytes += merged.unsigned_abs();
            }
            at = bounds.next(to);
        }
        cut
    }

    /// Cuts one leaf; whether it became smaller, `None` when it changed.
    fn cut_leaf(
        &self,
        step: &Step<'_, '_>,
        leaf: LeafSeen<'_>,
        to: Option<&[u8]>,
        acked: RunId,
        spare: bool,
        cut: &mut Cut,
    ) -> Option<bool> {
        let leaf = leaf.try_latch()?;
        let old = leaf.stable();
        let verdict = judge(old, step.entries(old, to), acked, spare);
        let nothing = verdict.drop == 0 && old.len() > 0;
        let parent = match nothing {
            true => None,
            false => Some(step.place.hop.parent.try_latch()?),
        };
        leaf.clear_references(verdict.spared);
        cut.unclean += verdict.unclean.count_ones() as usize;
        cut.spared += verdict.spared.count_ones() as usize;
        cut.dropped += verdict.drop.count_ones() as usize;
        let Some(parent) = parent else {
            return Some(false);
        };
        let at = step.place.hop.at;
        let keep = mask(0..old.len()) & !verdict.drop;
        // Before anything is retired that the old leaf has.
        let new = (keep != 0).then(|| {
            let mut plan = Plan::default();
            plan.add_from(old, keep, Shift::Strip(0));
            let depth = old.meta().depth;
            let mut new = Builder::new(&self.memory, step.guard, &plan, Spare::None, depth);
            new.push_from(old, keep, Shift::Strip(0));
            new
        });
        let large = self.forget(old, verdict.drop);
        if verdict.drop != 0 {
            // I3: the range lost something; what was read from Y before may be stale by now.
            self.mount_leaf(&leaf);
        }
        let Some(new) = new else {
            let freed = self.vanish(&parent, at, leaf);
            cut.freed_bytes += freed.unsigned_abs() + large;
            return Some(true);
        };
        let new = new.finish(leaf.mount(), old.run());
        parent.set(at, new.leaf().word());
        let freed = leaf.arena_bytes() - new.arena_bytes();
        self.counts.add(Delta {
            bytes: -freed,
            ..Delta::default()
        });
        leaf.retire(&self.memory);
        cut.freed_bytes = cut.freed_bytes.saturating_add_signed(freed) + large;
        Some(true)
    }

    /// Counts the entries of `mask` as gone and retires their large blocks; returns the bytes of these.
    fn forget(&self, leaf: StableLeaf<'_>, mask: u64) -> usize {
        let (mut delta, mut bytes) = (Delta::default(), 0);
        for i in (0..leaf.len()).filter(|i| mask >> i & 1 != 0) {
            delta.drop_entry(leaf.flags(i));
            if let Some(large) = leaf.large(&leaf.entry(i)) {
                bytes += large.arena_bytes();
                large.retire(&self.memory);
            }
        }
        delta.bytes = -(bytes as isize);
        self.counts.add(delta);
        bytes
    }

    /// Drops entry `i` of `leaf`.
    pub(super) fn drop_entry(&self, leaf: &LeafLatched<'_>, i: usize) {
        self.forget(leaf.stable(), 1 << i);
        leaf.remove(i);
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
                let stable = leaf.stable();
                if let Ok(i) = stable.find(&key[stable.meta().depth..]) {
                    self.drop_entry(&leaf, i);
                }
                self.mount_leaf(&leaf);
                Some(self.tidy(step.guard, &step.place, leaf))
            }
            Spot::Empty(mount) => {
                let parent = step.place.hop.parent.try_latch()?;
                let marks = isize::from(mount.is_some());
                self.empty(&parent, step.place.hop.at, true, marks);
                Some(false)
            }
            Spot::Inner(_) => None,
        });
        if shrunk {
            self.merge(&self.memory.enter(), Probe::at(key));
        }
    }

    /// See [`IndexX::clear_mounts`](crate::x::IndexX::clear_mounts).
    pub(super) fn complete(&self, from: &[u8], to: Option<&[u8]>) {
        let mut at = first(from, to);
        while let Some(key) = at {
            let (bounds, ()) = self.step(&key, |step| {
                if !step.bounds.within(from, to) {
                    return Some(());
                }
                self.complete_range(step)
            });
            at = bounds.next(to);
        }
    }

    fn complete_range(&self, step: &Step<'_, '_>) -> Option<()> {
        match step.place.spot {
            Spot::Leaf(leaf) if leaf.leaf().mount().is_some() => {
                leaf.try_latch()?.set_mount(None);
                self.counts.add(Delta {
                    mounts: -1,
                    ..Delta::default()
                });
            }
            Spot::Empty(Some(_)) => {
                let parent = step.place.hop.parent.try_latch()?;
                self.empty(&parent, step.place.hop.at, false, 1);
            }
            _ => {}
        }
        Some(())
    }
}
