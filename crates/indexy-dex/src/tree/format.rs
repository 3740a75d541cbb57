//! A new tree in a pool.

use super::{Tree, alloc::Allocator, superblock};
use crate::{error::Result, node::new_leaf, partition::Table, remote::RemoteMemory};

impl<M: RemoteMemory> Tree<M> {
    /// Makes an empty tree in a pool that has none. Owner 0 gets all keys.
    ///
    /// The tree grows on memory server 0; [`BulkLoad`](super::BulkLoad) spreads a tree over all.
    pub fn format(memory: &M) -> Result<()> {
        let nodes = Allocator::new(memory.servers());
        let root = nodes.take(memory, 0)?;
        let leaf = new_leaf(root.at(), 0, u64::MAX);
        memory.write(root.at(), &leaf.0)?;
        superblock::publish(memory, root.at(), &Table::whole())?;
        root.keep();
        nodes.settle(memory)
    }
}
