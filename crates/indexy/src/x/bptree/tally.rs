//! Sums over all blocks of the tree, checks of inner nodes, and the walk over leaf sizes.

#![forbid(unsafe_code)]

use super::{
    BPlus, Balanced,
    inner::{Child, InnerLatched},
    parent::ParentSeen,
    place::common_prefix,
};
use crate::x::{
    LeafInfo, StopWalk, XStats,
    bounds::{Bounds, first},
    leaf::{Bit, Measured, StableLeaf},
    tree::{Spot, Survey},
};
use std::ops::ControlFlow;

impl Survey for Balanced {
    fn visit_leaves(
        tree: &BPlus,
        from: &[u8],
        to: Option<&[u8]>,
        visit: &mut dyn FnMut(LeafInfo<'_>) -> ControlFlow<StopWalk>,
    ) -> ControlFlow<StopWalk> {
        let mut at = first(from, to);
        while let Some(key) = at {
            let (bounds, seen) = tree.step(&key, |step| match step.spot()? {
                Spot::Leaf(leaf) => leaf.measure(),
                Spot::Empty(_) => Some(Measured::default()),
            });
            if seen.bytes > 0 {
                visit(LeafInfo {
                    start: &bounds.start,
                    keys: seen.keys,
                    dirty: seen.dirty,
                    bytes: seen.bytes,
                })?;
            }
            at = bounds.next(to);
        }
        ControlFlow::Continue(())
    }

    fn tally(tree: &BPlus) -> Result<XStats, String> {
        let guard = tree.memory.enter();
        let mut sums = XStats::default();
        let root = ParentSeen::Root(tree.root.see(&guard)).child(0);
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
    let (large, operands) = leaf.large_bytes();
    sums.bytes += bytes + large;
    sums.large_bytes += large;
    sums.large_operand_bytes += operands;
    sums.dirty += leaf.bits(Bit::Dirty).count_ones() as usize;
    sums.tombstones += leaf.bits(Bit::Tombstone).count_ones() as usize;
    sums.operands += leaf.operands().count_ones() as usize;
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
