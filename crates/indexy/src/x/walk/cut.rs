//! Dropping what Y has: cuts, evictions, and the clearing of mounts.
//!
//! A cut goes leaf by leaf. Under the latches of the leaf and its parent what stays is copied
//! into a smaller leaf, or the leaf becomes an empty mounted range, joined with those beside it.
//! Nodes with nothing else below them become one, too.
//!
//! Keeps: I3 (every range that loses something gets a fresh stamp), I4 (what is dirty or in
//! flight stays).
//! Threads: any number; latches are not waited for, and held for one leaf.

#![forbid(unsafe_code)]

use super::step::Step;
use crate::x::{
    Cut, RunId,
    bounds::{Probe, first},
    counters::Delta,
    leaf::{Bit, LeafLatched, LeafSeen, StableLeaf, mask, ones},
    tree::{Kind, Place, Spot, Tree},
};

/// What a cut was asked for.
#[derive(Clone, Copy)]
struct Order<'a> {
    to: Option<&'a [u8]>,
    acked: RunId,
    spare_referenced: bool,
}

/// What a cut does with the entries of a leaf, a bit each.
struct Verdict {
    drop: u64,
    unclean: u64,
    spared: u64,
}

/// What became of a leaf.
#[derive(Clone, Copy)]
enum After {
    Same,
    Smaller,
    /// Its range is empty.
    Gone,
}

impl Order<'_> {
    /// What to do with those entries of `leaf` that are in the mask `within`.
    fn judge(&self, leaf: StableLeaf<'_>, within: u64) -> Verdict {
        // I4: what a run may still carry is not acknowledged, though it is marked clean.
        let unclean = if leaf.run() > self.acked {
            within
        } else {
            within & leaf.bits(Bit::Dirty)
        };
        let clean = within & !unclean;
        let spared = if self.spare_referenced {
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
}

impl<S: Kind> Tree<S> {
    /// See [`IndexX::cut`](crate::x::IndexX::cut).
    pub(super) fn cut_range(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        acked: RunId,
        spare_referenced: bool,
        enough_bytes: usize,
    ) -> Cut {
        let order = Order {
            to,
            acked,
            spare_referenced,
        };
        let mut cut = Cut::default();
        let mut at = first(from, to);
        // Where leaves of the last parent vanished. One look at it is enough, when the walk has
        // left it.
        let mut vanished: Option<Vec<u8>> = None;
        let mut last_parent = None;
        while let Some(key) = at {
            if cut.freed_bytes >= enough_bytes {
                break;
            }
            let (bounds, (after, parent)) = self.step(&key, |step| {
                let after = match step.spot()? {
                    Spot::Leaf(leaf) => self.cut_leaf(step, leaf, order, &mut cut)?,
                    Spot::Empty(_) => After::Same,
                };
                Some((after, step.place.parent_address()))
            });
            if last_parent != Some(parent) {
                last_parent = Some(parent);
                cut.free(self.merge_at(vanished.take()));
            }
            at = bounds.next(to);
            match after {
                After::Same => {}
                After::Gone if S::MERGES_PARENTS => vanished = Some(key),
                After::Gone | After::Smaller => cut.free(self.merge_at(Some(key))),
            }
        }
        cut.free(self.merge_at(vanished));
        cut
    }

    fn merge_at(&self, key: Option<Vec<u8>>) -> isize {
        key.map_or(0, |key| {
            S::merge(self, &self.memory.enter(), Probe::at(&key))
        })
    }

    /// Cuts one leaf; `None` when it changed.
    fn cut_leaf<'g>(
        &self,
        step: &Step<'g, '_, S>,
        leaf: LeafSeen<'g>,
        order: Order<'_>,
        cut: &mut Cut,
    ) -> Option<After> {
        let leaf = leaf.try_latch()?;
        let old = leaf.stable();
        let verdict = order.judge(old, step.entry_mask(&leaf, order.to));
        let nothing = verdict.drop == 0 && old.len() > 0;
        // Latched before anything is done: without it all of this is done again.
        let parent = match nothing {
            true => None,
            false => Some(step.place.try_latch_parent()?),
        };
        leaf.clear_references(verdict.spared);
        cut.unclean += verdict.unclean.count_ones() as usize;
        cut.spared += verdict.spared.count_ones() as usize;
        cut.dropped += verdict.drop.count_ones() as usize;
        let Some(parent) = parent else {
            return Some(After::Same);
        };
        let large = self.forget(old, verdict.drop);
        if verdict.drop != 0 {
            // I3: the range lost something; what was read from Y before may be stale.
            self.mount_leaf(&leaf);
        }
        let keep = mask(0..old.len()) & !verdict.drop;
        if keep == 0 {
            cut.freed_bytes += S::vanish(self, &parent, &step.place, leaf) + large;
            return Some(After::Gone);
        }
        let freed = S::keep(self, step.guard, &parent, &step.place, leaf, keep);
        cut.free(freed);
        cut.freed_bytes += large;
        Some(After::Smaller)
    }

    /// Counts the entries of `mask` as gone and retires their large blocks; returns the bytes of
    /// these. The leaf is latched until its entries are gone, too, so that no reader that comes
    /// after this follows them.
    fn forget(&self, leaf: StableLeaf<'_>, mask: u64) -> usize {
        let (mut delta, mut bytes) = (Delta::default(), 0);
        for i in ones(mask) {
            delta.drop_entry(leaf.flags(i));
            if let Some(large) = leaf.large(&leaf.entry(i)) {
                delta.drop_large(leaf.flags(i), large.arena_bytes());
                bytes += large.arena_bytes();
                large.retire(&self.memory);
            }
        }
        self.counters.add(delta);
        bytes
    }

    /// Drops the entries of `mask`.
    pub(super) fn drop_entries(&self, leaf: &LeafLatched<'_>, mask: u64) {
        self.forget(leaf.stable(), mask);
        for i in ones(mask).rev() {
            leaf.remove(i);
        }
    }

    /// Makes the range of `leaf` mounted with a fresh stamp.
    pub(super) fn mount_leaf(&self, leaf: &LeafLatched<'_>) {
        let mounts = isize::from(leaf.leaf().mount().is_none());
        leaf.set_mount(Some(self.tick()));
        self.counters.add(Delta {
            mounts,
            ..Delta::default()
        });
    }

    /// See [`IndexX::evict`](crate::x::IndexX::evict).
    pub(super) fn evict_key(&self, key: &[u8]) {
        let (_, shrunk) = self.step(key, |step| match step.spot()? {
            Spot::Leaf(leaf) => {
                let leaf = leaf.try_latch()?;
                let depth = leaf.leaf().depth();
                if let Ok(i) = leaf.stable().find(&key[depth..]) {
                    self.drop_entries(&leaf, 1 << i);
                }
                self.mount_leaf(&leaf);
                Some(S::tidy(self, step.guard, &step.place, leaf))
            }
            Spot::Empty(_) => S::mark_empty(self, &step.place, true).map(|()| false),
        });
        if shrunk {
            S::merge(self, &self.memory.enter(), Probe::at(key));
        }
    }

    /// See [`IndexX::mount`](crate::x::IndexX::mount).
    pub(super) fn mount_all(&self, from: &[u8], to: Option<&[u8]>) {
        let mut at = first(from, to);
        while let Some(key) = at {
            let (bounds, ()) = self.step(&key, |step| {
                match step.spot()? {
                    Spot::Leaf(leaf) => self.mount_leaf(&leaf.try_latch()?),
                    Spot::Empty(_) => S::mark_empty(self, &step.place, true)?,
                }
                Some(())
            });
            at = bounds.next(to);
        }
    }

    /// See [`IndexX::restamp`](crate::x::IndexX::restamp).
    pub(super) fn stamp_mounts(&self, from: &[u8], to: Option<&[u8]>) {
        if self.was_never_mounted() {
            return;
        }
        let mut at = first(from, to);
        while let Some(key) = at {
            let (bounds, ()) = self.step(&key, |step| {
                match step.spot()? {
                    Spot::Leaf(leaf) if leaf.leaf().mount().is_some() => {
                        self.mount_leaf(&leaf.try_latch()?);
                    }
                    Spot::Empty(Some(_)) => S::mark_empty(self, &step.place, true)?,
                    _ => {}
                }
                Some(())
            });
            at = bounds.next(to);
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

    fn complete_range(&self, step: &Step<'_, '_, S>, from: &[u8], to: Option<&[u8]>) -> Option<()> {
        match step.spot()? {
            Spot::Leaf(leaf) if leaf.leaf().mount().is_some() && step.bounds.within(from, to) => {
                let leaf = leaf.try_latch()?;
                if leaf.stable().operands() != 0 {
                    // What they are operands of is looked for in Y, though that has nothing now.
                    return Some(());
                }
                leaf.set_mount(None);
                self.counters.add(Delta {
                    mounts: -1,
                    ..Delta::default()
                });
            }
            Spot::Empty(Some(_)) => {
                let probe = Probe::at(step.key);
                if step.place.mark_is_within(probe, &step.bounds, from, to) {
                    S::mark_empty(self, &step.place, false)?;
                }
            }
            _ => {}
        }
        Some(())
    }
}
