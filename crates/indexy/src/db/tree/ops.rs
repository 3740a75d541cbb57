//! The operations of a batch.

#![forbid(unsafe_code)]

use crate::{
    db::handle::TreeCore,
    key::{Key, Value},
    wal::RecordRef,
};
use std::{collections::HashMap, sync::Arc};

/// Bytes counted per operation beside key and value.
pub(super) const OP_OVERHEAD_BYTES: usize = 64;

/// One operation.
pub(in crate::db) struct Op {
    /// Index in the batch's trees.
    pub(super) tree: usize,
    /// Of tree and key, see `stripes.rs`.
    pub(super) hash: u64,
    pub(super) change: Change,
}

pub(in crate::db) enum Change {
    Put(Key, Value),
    Remove(Key),
    /// An operand as it waits.
    Merge(Key, Vec<u8>),
    /// From the first, up to the second; `None`: to the end.
    RemoveRange(Key, Option<Key>),
}

impl Op {
    /// As a batch counts them.
    pub(super) fn bytes(&self) -> usize {
        let bytes = match &self.change {
            Change::Put(key, value) => key.len() + value.len(),
            Change::Merge(key, operand) => key.len() + operand.len(),
            Change::Remove(key) => key.len(),
            Change::RemoveRange(from, to) => from.len() + to.as_ref().map_or(0, |to| to.len()),
        };
        OP_OVERHEAD_BYTES + bytes
    }
}

/// Keeps the last operation on each key, in the order of the first. For batches that remove no
/// ranges, and no longer merge.
#[cold]
pub(super) fn last_write_wins(ops: Vec<Op>) -> Vec<Op> {
    let mut at: HashMap<(usize, Key), usize> = HashMap::with_capacity(ops.len());
    let mut kept: Vec<Op> = Vec::with_capacity(ops.len());
    for op in ops {
        let (Change::Put(key, _)
        | Change::Remove(key)
        | Change::Merge(key, _)
        | Change::RemoveRange(key, _)) = &op.change;
        match at.entry((op.tree, key.clone())) {
            std::collections::hash_map::Entry::Occupied(slot) => kept[*slot.get()] = op,
            std::collections::hash_map::Entry::Vacant(slot) => {
                slot.insert(kept.len());
                kept.push(op);
            }
        }
    }
    kept
}

pub(super) fn record<'a>(trees: &[Arc<TreeCore>], op: &'a Op) -> RecordRef<'a> {
    let tree = trees[op.tree].entry.id;
    match &op.change {
        Change::Put(key, value) => RecordRef::Put { tree, key, value },
        Change::Remove(key) => RecordRef::Remove { tree, key },
        // Such a batch was resolved before; the log refuses this one.
        Change::Merge(key, operand) => RecordRef::Merge { tree, key, operand },
        Change::RemoveRange(from, to) => RecordRef::RemoveRange {
            tree,
            from,
            to: to.as_deref(),
        },
    }
}
