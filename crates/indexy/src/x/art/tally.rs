//! Sums over all blocks of the tree.

#![forbid(unsafe_code)]

use super::{
    Art, Radix,
    inner::{Child, InnerRef},
    parent::ParentSeen,
    symbol::{END, LAST},
};
use crate::{
    mem::Memory,
    x::{
        LeafInfo, StopWalk, XStats,
        leaf::{Bit, LeafRef},
        tree::Survey,
    },
};
use std::ops::ControlFlow;

impl Survey for Radix {
    fn visit_leaves(
        art: &Art,
        from: &[u8],
        to: Option<&[u8]>,
        visit: &mut dyn FnMut(LeafInfo<'_>) -> ControlFlow<StopWalk>,
    ) -> ControlFlow<StopWalk> {
        art.measure_leaves(from, to, visit)
    }

    fn tally(art: &Art) -> Result<XStats, String> {
        let guard = art.memory.enter();
        let mut sums = XStats::default();
        let root = ParentSeen::Root(art.root.see(&guard)).child(END);
        let mut below = vec![root.ok_or("the root changed")?];
        while let Some(child) = below.pop() {
            match child {
                Child::Empty(mount) => sums.mounts += usize::from(mount.is_some()),
                Child::Leaf(leaf) => add_leaf(&mut sums, leaf)?,
                Child::Inner(node) => add_node(&mut sums, node, &mut below)?,
            }
        }
        Ok(sums)
    }
}

fn add_leaf(sums: &mut XStats, leaf: LeafRef<'_>) -> Result<(), String> {
    let leaf = leaf.latch().ok_or("an obsolete leaf is in the tree")?;
    let stable = leaf.stable();
    sums.mounts += usize::from(stable.mount().is_some());
    sums.keys += stable.len();
    let (large, operands) = stable.large_bytes();
    sums.bytes += leaf.arena_bytes() as usize + large;
    sums.large_bytes += large;
    sums.large_operand_bytes += operands;
    sums.dirty += stable.bits(Bit::Dirty).count_ones() as usize;
    sums.tombstones += stable.bits(Bit::Tombstone).count_ones() as usize;
    sums.operands += stable.operands().count_ones() as usize;
    Ok(())
}

/// Its children are appended to `below`.
fn add_node<'g>(
    sums: &mut XStats,
    node: InnerRef<'g>,
    below: &mut Vec<Child<'g>>,
) -> Result<(), String> {
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
        below.push(node.resolve(first));
    });
    if next != LAST + 1 {
        return Err("the children of a node do not cover its symbols".into());
    }
    Ok(())
}
