//! A tree from sorted entries, written bottom up. Subtrees go to the memory servers in turn.

use super::{alloc::Allocator, superblock};
use crate::{
    address::Address,
    error::{Error, Result},
    node::{CAPACITY, Edit, apply, low, new_inner, new_leaf, set_fences},
    partition::Table,
    remote::RemoteMemory,
};

/// Levels of a subtree that one memory server holds: 0 to 3. Source: DEX section 3.
pub(super) const SUBTREE_LEVELS: u8 = 4;

/// Fills a pool that has no tree.
#[derive(Debug, Clone)]
pub struct BulkLoad {
    fill: usize,
    table: Table,
}

impl Default for BulkLoad {
    /// 41 entries a node (70 %), all keys to owner 0.
    fn default() -> Self {
        Self {
            fill: CAPACITY * 7 / 10 + 1,
            table: Table::whole(),
        }
    }
}

impl BulkLoad {
    /// Entries of a leaf and children of an inner node, from 2 to 58.
    pub fn fill(mut self, entries: usize) -> Self {
        self.fill = entries;
        self
    }

    /// The first owners. Their lowest keys are moved to where leaves start.
    pub fn table(mut self, table: Table) -> Self {
        self.table = table;
        self
    }

    /// Writes the tree of `entries`, whose keys ascend; returns the table of owners with its keys
    /// at leaves.
    ///
    /// Cost: one write a node. Memory: 16 bytes a leaf.
    pub fn load(
        &self,
        memory: &impl RemoteMemory,
        entries: impl IntoIterator<Item = (u64, u64)>,
    ) -> Result<Table> {
        if !(2..=CAPACITY).contains(&self.fill) {
            let what = format!("nodes of {} entries", self.fill);
            return Err(Error::Options(what));
        }
        let nodes = Allocator::new(memory.servers());
        let mut level: Vec<(u64, Address)> = Vec::new();
        self.write_leaves(memory, &nodes, entries, &mut level)?;
        let table = self.at_leaves(&level)?;
        for height in 1_u8.. {
            if level.len() == 1 && (height > 1 || table.segments().count() == 1) {
                break;
            }
            level = self.write_inner(memory, &nodes, height, &level)?;
        }
        superblock::publish(memory, level[0].1, &table)?;
        nodes.settle(memory)?;
        Ok(table)
    }

    /// The server of node `i` of a level.
    fn server(&self, memory: &impl RemoteMemory, level: u8, i: usize) -> u16 {
        let above = u32::from((SUBTREE_LEVELS - 1).saturating_sub(level));
        (i / self.fill.pow(above) % memory.servers()) as u16
    }

    fn write_leaves(
        &self,
        memory: &impl RemoteMemory,
        nodes: &Allocator,
        entries: impl IntoIterator<Item = (u64, u64)>,
        level: &mut Vec<(u64, Address)>,
    ) -> Result<()> {
        let mut entries = entries.into_iter().peekable();
        let mut low = 0;
        let mut last = None;
        loop {
            let server = self.server(memory, 0, level.len());
            let node = nodes.take(memory, server)?;
            let mut leaf = new_leaf(node.at(), low, u64::MAX);
            for (key, value) in entries.by_ref().take(self.fill) {
                if last.is_some_and(|last| key <= last) {
                    return Err(Error::Options("the keys do not ascend".into()));
                }
                last = Some(key);
                apply(&mut leaf, key, Edit::Put(value));
            }
            let next = entries.peek().map(|entry| entry.0);
            if next.is_some() && next <= last {
                return Err(Error::Options("the keys do not ascend".into()));
            }
            set_fences(&mut leaf, low, next.map_or(u64::MAX, |next| next - 1));
            memory.write(node.at(), &leaf.0)?;
            level.push((low, node.at()));
            node.keep();
            match next {
                Some(next) => low = next,
                None => return Ok(()),
            }
        }
    }

    fn write_inner(
        &self,
        memory: &impl RemoteMemory,
        nodes: &Allocator,
        height: u8,
        below: &[(u64, Address)],
    ) -> Result<Vec<(u64, Address)>> {
        let mut level = Vec::new();
        for (i, group) in below.chunks(self.fill).enumerate() {
            let server = self.server(memory, height, i);
            let node = nodes.take(memory, server)?;
            let next = below.get((i + 1) * self.fill);
            let high = next.map_or(u64::MAX, |next| next.0 - 1);
            let children: Vec<(u64, u64)> =
                group.iter().map(|(low, at)| (*low, at.word())).collect();
            let inner = new_inner(node.at(), height, &children, high);
            memory.write(node.at(), &inner.0)?;
            level.push((low(&inner), node.at()));
            node.keep();
        }
        Ok(level)
    }

    /// The table with each owner's lowest key moved down to the start of its leaf.
    fn at_leaves(&self, leaves: &[(u64, Address)]) -> Result<Table> {
        let mut segments: Vec<(u64, u16)> = Vec::new();
        for (low, _, owner) in self.table.segments() {
            let after = leaves.partition_point(|leaf| leaf.0 <= low);
            // The first leaf starts at 0.
            segments.push((leaves[after - 1].0, owner));
        }
        Table::new(segments)
    }
}
