//! Going through ranges in key order: one descent per range, from the end of the one before.
//!
//! Between two steps nothing is kept but a key, so that no guard and no latch spans a callback.
//! A range never changes as long as its leaf lives: so the next one starts where this one ended.

#![forbid(unsafe_code)]

use crate::{
    mem::Guard,
    x::{
        backoff::Backoff,
        bounds::{Bounds, Probe, entries_within},
        leaf::{LeafLatched, StableLeaf, mask},
        tree::{Descend, Place, Spot, Structure, Tree},
    },
};
use std::ops::Range;

/// One range on a way through ranges.
pub(crate) struct Step<'g, 'k, S: Structure> {
    pub guard: &'g Guard<'g>,
    pub place: S::Place<'g>,
    pub bounds: Bounds,
    /// The key that led here: what is below it was dealt with before.
    pub key: &'k [u8],
}

impl<'g, S: Structure> Step<'g, '_, S> {
    /// What is here; `None`: something changed.
    pub(crate) fn spot(&self) -> Option<Spot<'g>> {
        self.place.spot()
    }

    /// The indices of the entries of `leaf`, which is here, from the step's key up to `to`.
    pub(crate) fn entries(&self, leaf: StableLeaf<'_>, to: Option<&[u8]>) -> Range<usize> {
        let depth = leaf.raw().depth();
        entries_of(leaf, &self.bounds, depth, self.key, to)
    }

    /// As [`Step::entries`], of a latched leaf, as a mask.
    pub(crate) fn entry_mask(&self, leaf: &LeafLatched<'_>, to: Option<&[u8]>) -> u64 {
        mask(self.entries(leaf.stable(), to))
    }
}

/// The indices of the entries of `leaf` in `from..to`. Its suffixes start at `depth`, its range
/// has these bounds.
pub(crate) fn entries_of(
    leaf: StableLeaf<'_>,
    bounds: &Bounds,
    depth: usize,
    from: &[u8],
    to: Option<&[u8]>,
) -> Range<usize> {
    let find = |suffix: &[u8]| leaf.find(suffix).unwrap_or_else(|i| i);
    entries_within(bounds, depth, leaf.len(), from, to, find)
}

impl<S: Descend> Tree<S> {
    /// Goes down to `probe`; starts again as often as something changes on the way.
    pub(crate) fn descend<'g>(&'g self, guard: &'g Guard<'_>, probe: Probe<'_>) -> S::Place<'g> {
        let mut backoff = Backoff::default();
        loop {
            if let Some(place) = S::try_descend(&self.root, guard, probe) {
                return place;
            }
            backoff.wait();
        }
    }

    /// Goes down to `key` and lets `act` look at what is there or change it, again until it
    /// answers. Returns the bounds of the range, as they were, with the answer.
    pub(crate) fn step<R>(
        &self,
        key: &[u8],
        mut act: impl FnMut(&Step<'_, '_, S>) -> Option<R>,
    ) -> (Bounds, R) {
        let guard = self.memory.enter();
        let probe = Probe::at(key);
        let mut backoff = Backoff::default();
        loop {
            let place = self.descend(&guard, probe);
            if let Some(bounds) = place.bounds(probe) {
                let step = Step {
                    guard: &guard,
                    place,
                    bounds,
                    key,
                };
                if let Some(answer) = act(&step) {
                    return (step.bounds, answer);
                }
            }
            backoff.wait();
        }
    }
}
