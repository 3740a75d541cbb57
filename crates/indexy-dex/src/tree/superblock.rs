//! The pool's word of the root, and its first table of owners.

use crate::{
    address::Address,
    error::{Error, Result},
    node::NODE_BYTES,
    partition::Table,
    remote::{NODES_OFFSET, ROOT_OFFSET, RemoteMemory},
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
