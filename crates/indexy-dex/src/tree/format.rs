//! A new tree in a pool.

use super::Tree;
use crate::{
    address::Address,
    error::{Error, Result},
    node::{NODE_BYTES, new_leaf},
    partition::Table,
    remote::{NODES_OFFSET, ROOT_OFFSET, RemoteMemory},
    tree::alloc::Allocator,
};

fn root_word() -> Address {
    Address::new(0, ROOT_OFFSET)
}

/// Where the pool's tree starts.
pub(super) fn root(memory: &impl RemoteMemory) -> Result<Address> {
    let mut word = [0];
    memory.read(root_word(), &mut word)?;
    let damaged = Error::corrupt(root_word(), "the pool has no tree");
    let at = Address::from_word(word[0]).ok_or(damaged)?;
    let is_node = at.offset() >= NODES_OFFSET && at.offset().is_multiple_of(NODE_BYTES);
    let damaged = Error::corrupt(root_word(), "the pool has no tree");
    is_node.then_some(at).ok_or(damaged)
}

/// Makes `root` the root of the pool's tree, and `table` its first owners.
pub(super) fn publish(memory: &impl RemoteMemory, root: Address, table: &Table) -> Result<()> {
    if memory.cas(root_word(), 0, root.word())? != 0 {
        return Err(Error::Options("the pool has a tree already".into()));
    }
    if !table.store(memory)? {
        return Err(Error::Options("the pool has owners already".into()));
    }
    Ok(())
}

impl<M: RemoteMemory> Tree<M> {
    /// Makes an empty tree in a pool that has none. Owner 0 gets all keys.
    ///
    /// The tree grows on memory server 0; [`BulkLoad`](super::BulkLoad) spreads a tree over all.
    pub fn format(memory: &M) -> Result<()> {
        let nodes = Allocator::new(memory.servers());
        let root = nodes.take(memory, 0)?;
        let leaf = new_leaf(root.at(), 0, u64::MAX);
        memory.write(root.at(), &leaf.0)?;
        publish(memory, root.at(), &Table::whole())?;
        root.keep();
        nodes.settle(memory)
    }
}
