//! Checking a tree: every range in key order, every leaf and node inside, and all counts.
//!
//! The walk over ranges runs beside readers and writers, because each leaf is checked on a validated copy.
//! Nodes, contiguity and counts are checked only when nobody else is there.

#![forbid(unsafe_code)]

use super::{
    BPlus,
    child::Child,
    inner::InnerLatched,
    leaf::{
        layout::Bit,
        stable::{LeafBuffer, StableLeaf},
    },
    parent::ParentSeen,
    path::{Spot, common_prefix},
};
use crate::x::{XStats, bounds::Bounds};

impl BPlus {
    /// See [`IndexX::verify`](crate::x::IndexX::verify).
    pub(super) fn check(&self, quiescent: bool) -> Result<(), String> {
        let mut buffer = LeafBuffer::new();
        let mut at = Some(Vec::new());
        while let Some(key) = at {
            let (bounds, checked) = self.step(&key, |step| match step.place.spot {
                Spot::Leaf(leaf) => {
                    let copy = leaf.copy(&mut buffer)?;
                    Some(check_leaf(copy, step.key, &step.bounds))
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

    /// Sums over all blocks, and checks of inner nodes; nobody else writes meanwhile.
    fn tally(&self) -> Result<XStats, String> {
        let guard = self.memory.enter();
        let mut sums = XStats::default();
        let root = ParentSeen::Root(self.root.see(&guard)).child(0);
        let whole = Bounds::default();
        let mut stack = vec![(root.ok_or("the root changed")?, whole, usize::MAX)];
        while let Some((child, bounds, above)) = stack.pop() {
            let depth = common_prefix(&bounds.start, bounds.end.as_deref());
            match child {
                Child::Empty(mount) => sums.mounts += usize::from(mount.is_some()),
                Child::Leaf(leaf) => {
                    let leaf = leaf.latch().ok_or("an obsolete leaf is in the tree")?;
                    if leaf.leaf().depth() > depth {
                        return Err("a leaf is deeper than its range".into());
                    }
                    add_leaf(&mut sums, leaf.stable(), leaf.arena_bytes() as usize);
                }
                Child::Inner(node) => {
                    let node = node.latch().ok_or("an obsolete node is in the tree")?;
                    let meta = node.meta();
                    if meta.level >= above || meta.level == 0 || meta.depth > depth {
                        return Err(format!("{meta:?} below level {above}, depth {depth}"));
                    }
                    sums.bytes += node.arena_bytes() as usize;
                    for (i, bounds) in parts(&node, &bounds)?.into_iter().enumerate() {
                        stack.push((node.child(i), bounds, meta.level));
                    }
                }
            }
        }
        Ok(sums)
    }
}

fn add_leaf(sums: &mut XStats, leaf: StableLeaf<'_>, bytes: usize) {
    sums.mounts += usize::from(leaf.mount().is_some());
    sums.keys += leaf.len();
    sums.bytes += bytes + leaf.large_bytes();
    sums.dirty += leaf.bits(Bit::Dirty).count_ones() as usize;
    sums.tombstones += leaf.bits(Bit::Tombstone).count_ones() as usize;
}

/// The bounds of the children of a node with these bounds.
fn parts(node: &InnerLatched<'_>, bounds: &Bounds) -> Result<Vec<Bounds>, String> {
    let meta = node.meta();
    let mut all: Vec<Bounds> = Vec::with_capacity(meta.n);
    let mut start = bounds.start.clone();
    node.check()?;
    for i in 0..meta.n {
        let end = if i + 1 == meta.n {
            bounds.end.clone()
        } else {
            // The prefix of the range is the start of its end, too; without an end there is none.
            let mut end = bounds.end.as_ref().unwrap_or(&start)[..meta.depth].to_vec();
            node.push_separator(i, &mut end);
            Some(end)
        };
        if end.as_ref().is_some_and(|end| *end <= start) {
            return Err(format!("separator {i} is not in order"));
        }
        let next = end.clone().unwrap_or_default();
        all.push(Bounds { start, end });
        start = next;
    }
    Ok(all)
}

/// What is wrong with a leaf that `key` led to.
fn check_leaf(leaf: StableLeaf<'_>, key: &[u8], bounds: &Bounds) -> Result<(), String> {
    leaf.check()?;
    for i in [0, leaf.len().wrapping_sub(1)] {
        if i >= leaf.len() {
            continue;
        }
        let mut key = key[..leaf.meta().depth].to_vec();
        key.extend_from_slice(&leaf.suffix(i));
        if key < bounds.start || bounds.end.as_ref().is_some_and(|end| key >= *end) {
            return Err(format!(
                "the key {} is outside the range",
                key.escape_ascii()
            ));
        }
    }
    Ok(())
}
