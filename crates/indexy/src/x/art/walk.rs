//! Going through ranges in key order: one way down per range, from the end of the one before.
//!
//! Nothing is kept between two steps but a key, so that no guard and no latch spans a callback. Because
//! a range never changes as long as its leaf lives, the next one starts where this one ended.

#![forbid(unsafe_code)]

use super::{
    Art,
    leaf::stable::StableLeaf,
    parent::ParentSeen,
    pointer::{END, LAST},
    search::{Patience, Place, Probe, Spot},
};
use crate::{key::prefix_end, mem::Guard};
use std::ops::Range;

/// `from`, unless nothing is below `to` from there on.
pub(super) fn first(from: &[u8], to: Option<&[u8]>) -> Option<Vec<u8>> {
    to.is_none_or(|to| from < to).then(|| from.to_vec())
}

/// The keys that a range covers: `start..end`, `None` = to the end of the key space.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Bounds {
    pub start: Vec<u8>,
    pub end: Option<Vec<u8>>,
}

impl Bounds {
    /// Where to go on to reach `to`; `None` when it is reached.
    pub(super) fn next(self, to: Option<&[u8]>) -> Option<Vec<u8>> {
        self.end.filter(|end| to.is_none_or(|to| &end[..] < to))
    }

    /// The whole range is within `from..to`.
    pub(super) fn within(&self, from: &[u8], to: Option<&[u8]>) -> bool {
        let ends = match (&self.end, to) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(end), Some(to)) => &end[..] <= to,
        };
        from <= &self.start[..] && ends
    }
}

impl Place<'_> {
    /// The bounds of the range that `probe` led to; `None` when the parent changed since.
    pub(super) fn bounds(&self, probe: Probe<'_>) -> Option<Bounds> {
        let mut start = Vec::new();
        if let Spot::Gap { node, matched, .. } = self.spot {
            let depth = self.node_start();
            probe.fill(depth, &mut start);
            let after_all = prefix_end(&start);
            let mut node_path = start.clone();
            node.node().push_prefix(&mut node_path);
            let mut given = Vec::new();
            probe.fill_if_there(depth + matched + 1, &mut given);
            return Some(
                if given.get(depth + matched) > node_path.get(depth + matched) {
                    let start = prefix_end(&node_path).unwrap_or_default();
                    Bounds {
                        start,
                        end: after_all,
                    }
                } else {
                    Bounds {
                        start,
                        end: Some(node_path),
                    }
                },
            );
        }
        let ParentSeen::Inner(parent) = self.parent else {
            return Some(Bounds { start, end: None });
        };
        let (first, last) = parent.range(self.symbol)?;
        probe.fill(self.depth, &mut start);
        let end = if last == LAST {
            prefix_end(&start)
        } else {
            let mut end = start.clone();
            end.push(last as u8);
            Some(end)
        };
        if first != END {
            start.push((first - 1) as u8);
        }
        Some(Bounds { start, end })
    }

    /// The key path of the gap's whole surroundings: what comes to its node.
    pub(super) fn gap_surroundings(&self, probe: Probe<'_>) -> Bounds {
        let mut start = Vec::new();
        probe.fill(self.node_start(), &mut start);
        let end = prefix_end(&start);
        Bounds { start, end }
    }
}

/// Which of the entries of a leaf at `depth`, whose range has these bounds, are in `from..to`. `find` gives the
/// first slot that is not below a suffix.
pub(super) fn entries_within(
    bounds: &Bounds,
    depth: usize,
    n: usize,
    from: &[u8],
    to: Option<&[u8]>,
    find: impl Fn(&[u8]) -> usize,
) -> Range<usize> {
    let first = if from > &bounds.start[..] {
        find(&from[depth..])
    } else {
        0
    };
    let end = match to {
        Some(to) if bounds.end.as_ref().is_none_or(|end| to < &end[..]) => {
            if to > &bounds.start[..] {
                find(&to[depth..])
            } else {
                0
            }
        }
        _ => n,
    };
    first.min(end)..end
}

impl Art {
    /// Goes down to `key` and lets `act` look at or change what is there, again until it answers.
    /// Returns the bounds of the range, as they were, with the answer.
    pub(super) fn step<R>(
        &self,
        key: &[u8],
        mut act: impl FnMut(&Step<'_, '_>) -> Option<R>,
    ) -> (Bounds, R) {
        let guard = self.memory.enter();
        let probe = Probe::at(key);
        let mut patience = Patience::default();
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
            patience.wait();
        }
    }
}

/// One range on a way through ranges.
pub(super) struct Step<'g, 'k> {
    pub guard: &'g Guard<'g>,
    pub place: Place<'g>,
    pub bounds: Bounds,
    /// The key that led here: what is below it was dealt with before.
    pub key: &'k [u8],
}

impl<'g> Step<'g, '_> {
    /// The indices of the entries of `leaf`, which is here, from the step's key up to `to`.
    pub(super) fn entries(&self, leaf: StableLeaf<'_>, to: Option<&[u8]>) -> Range<usize> {
        let find = |suffix: &[u8]| leaf.find(suffix).unwrap_or_else(|i| i);
        entries_within(
            &self.bounds,
            self.place.depth,
            leaf.len(),
            self.key,
            to,
            find,
        )
    }
}

/// A probe for the keys just below `to`, and the bytes that it borrows.
pub(super) struct Below {
    bytes: Vec<u8>,
    padded: bool,
}

impl Below {
    /// `to` is not empty; `None` stands for the end of the key space.
    pub(super) fn new(to: Option<&[u8]>) -> Self {
        let mut bytes = to.unwrap_or_default().to_vec();
        let padded = match bytes.last_mut() {
            // The key just below `k ++ 0` is `k`.
            Some(0) => {
                bytes.pop();
                false
            }
            // Just below `k ++ b` is `k ++ (b - 1)` with endless 0xFF.
            Some(byte) => {
                *byte -= 1;
                true
            }
            None => true,
        };
        Self { bytes, padded }
    }

    pub(super) fn probe(&self) -> Probe<'_> {
        Probe {
            bytes: &self.bytes,
            padded: self.padded,
        }
    }
}
