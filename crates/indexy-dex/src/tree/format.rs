//! A new tree in a pool.

use super::{Tree, alloc::Allocator, superblock};
use crate::{error::Result, node::TreeKey, partition::Table, remote::RemoteMemory};

impl<M: RemoteMemory> Tree<M> {
    /// Makes an empty tree in a pool that has none. Owner 0 gets all keys.
    ///
    /// The tree grows on memory server 0; [`BulkLoad`](super::BulkLoad) spreads a tree over all.
    pub fn format(memory: &M) -> Result<()> {
        format::<u64>(memory)
    }
}

/// Makes an empty tree of any kind of keys.
pub(super) fn format<K: TreeKey>(memory: &impl RemoteMemory) -> Result<()> {
    let nodes = Allocator::new(memory.servers());
    let root = nodes.take(memory, 0)?;
    let leaf = K::new_leaf(root.at(), K::MIN, K::MAX);
    memory.write(root.at(), &leaf.0)?;
    superblock::publish(memory, root.at(), &Table::whole())?;
    root.keep();
    nodes.settle(memory)
}
