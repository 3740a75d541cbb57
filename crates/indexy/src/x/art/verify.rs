//! Checking a tree: every range in key order, every leaf inside, and all counts.
//!
//! The walk over ranges runs beside readers and writers, because each leaf is checked on a validated copy.
//! Contiguity and counts are compared only when nobody else is there.

#![forbid(unsafe_code)]

use super::{
    Art,
    leaf::stable::{LeafBuffer, StableLeaf},
    parent::ParentSeen,
    pointer::{Child, END, LAST},
    search::Spot,
};
use crate::{
    mem::Memory,
    x::{
        XStats,
        bounds::Bounds,
        form::{DIRTY, TOMBSTONE},
    },
};

impl Art {
    /// See [`IndexX::verify`](crate::x::IndexX::verify).
    pub(super) fn check(&self, quiescent: bool) -> Result<(), String> {
        let mut buffer = LeafBuffer::new();
        let mut at = Some(Vec::new());
        while let Some(key) = at {
            let (bounds, checked) = self.step(&key, |step| match step.place.spot {
                Spot::Leaf(leaf) => {
                    let copy = leaf.copy(&mut buffer)?;
                    let path = &step.key[..step.place.depth];
                    Some(check_leaf(copy, path, &step.bounds))
                }
                _ => Some(Ok(())),
            });
            checked.map_err(|what| format!("range at {}: {what}", key.escape_ascii()))?;
            if quiescent && bounds.start != key {
                return Err(format!(
                    "the range at {} starts at {}",
                    key.escape_ascii(),
                    bounds.start.escape_ascii()
                ));
            }
            if bounds.end.as_ref().is_some_and(|end| *end <= key) {
                return Err(format!("the range at {} has no keys", key.escape_ascii()));
            }
            at = bounds.end;
        }
        if quiescent {
            let (counted, walked) = (self.counts.sum(), self.tally()?);
            if counted != walked {
                return Err(format!("counted {counted:?}, found {walked:?}"));
            }
        }
        Ok(())
    }

    /// Sums over all blocks; nobody else writes meanwhile.
    fn tally(&self) -> Result<XStats, String> {
        let guard = self.memory.enter();
        let mut sums = XStats::default();
        let root = ParentSeen::Root(self.root.see(&guard)).child(END);
        let mut stack = vec![root.ok_or("the root changed")?];
        while let Some(child) = stack.pop() {
            match child {
                Child::Empty(mount) => sums.mounts += usize::from(mount.is_some()),
                Child::Leaf(leaf) => {
                    let leaf = leaf.latch().ok_or("an obsolete leaf is in the tree")?;
                    let stable = leaf.stable();
                    sums.mounts += usize::from(stable.state().mount.is_some());
                    sums.keys += stable.len();
                    sums.bytes += Memory::size_of(leaf.leaf().block()) + stable.large_bytes();
                    for i in 0..stable.len() {
                        sums.dirty += usize::from(stable.slot(i).is(DIRTY));
                        sums.tombstones += usize::from(stable.slot(i).is(TOMBSTONE));
                    }
                }
                Child::Inner(node) => {
                    let node = node.latch().ok_or("an obsolete node is in the tree")?;
                    sums.bytes += Memory::size_of(node.node().block());
                    sums.mounts += usize::from(node.gap().is_some());
                    let mut next = END;
                    node.node().for_each_child(|first, last, word| {
                        let alone = first == last && first != END;
                        if first != next || word.is_inner() && !alone {
                            next = LAST + 2;
                            return;
                        }
                        next = last + 1;
                        stack.push(node.resolve(first));
                    });
                    if next != LAST + 1 {
                        return Err("the children of a node do not cover its symbols".into());
                    }
                }
            }
        }
        Ok(sums)
    }
}

/// What is wrong with a leaf whose keys start with `path`.
fn check_leaf(leaf: StableLeaf<'_>, path: &[u8], bounds: &Bounds) -> Result<(), String> {
    leaf.check()?;
    for i in [0, leaf.len().wrapping_sub(1)] {
        if i >= leaf.len() {
            continue;
        }
        let mut key = path.to_vec();
        leaf.push_suffix(&leaf.entry(i), 0, &mut key);
        if key < bounds.start || bounds.end.as_ref().is_some_and(|end| key >= *end) {
            return Err(format!(
                "the key {} is outside the range",
                key.escape_ascii()
            ));
        }
    }
    Ok(())
}
