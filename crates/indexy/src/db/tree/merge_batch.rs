//! The merges of a batch: they become writes of values before the batch is logged.
//!
//! A batch is one record, and its record has no operands: what X knows of a key may change between
//! the record and its application, by a load or a cut, and a merge counts once
//! (`framework/merge/mod.rs`). With the stripes held the values stay what they are.
//!
//! Threads: the committer, with the stripes of all keys; it reads Y.

#![forbid(unsafe_code)]

use super::{
    merge::made,
    ops::{Change, Op},
};
use crate::{
    db::handle::TreeCore,
    error::Result,
    key::{Key, Value},
};
use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

/// What the operations so far have made of keys.
struct Known<'a> {
    trees: &'a [Arc<TreeCore>],
    values: HashMap<(usize, Key), Option<Value>>,
    /// Ranges that were removed: tree, from, to.
    removed: Vec<(usize, &'a Key, Option<&'a Key>)>,
}

impl<'a> Known<'a> {
    /// The value that a key has by now. `read`: what the tree has.
    fn value(&mut self, tree: usize, key: &Key, read: &Read) -> Option<Value> {
        if let Some(value) = self.values.get(&(tree, key.clone())) {
            return value.clone();
        }
        let inside = |(of, from, to): &(usize, &Key, Option<&Key>)| {
            *of == tree && *from <= key && to.is_none_or(|to| key < to)
        };
        match self.removed.iter().any(inside) {
            true => None,
            false => read.get(&(tree, key.clone())).cloned().flatten(),
        }
    }

    fn remove_range(&mut self, tree: usize, from: &'a Key, to: Option<&'a Key>) {
        let inside = |key: &Key| from <= key && to.is_none_or(|to| key < to);
        self.values
            .retain(|(of, key), _| *of != tree || !inside(key));
        self.removed.push((tree, from, to));
    }
}

/// Values of keys before the batch.
type Read = HashMap<(usize, Key), Option<Value>>;

/// `ops` with values in place of merges. The caller holds the stripes. Errors: those of reads, and
/// `MergeRefused`.
pub(super) fn resolved(trees: &[Arc<TreeCore>], ops: &[Op]) -> Result<Vec<Op>> {
    let read = read(trees, ops)?;
    let mut known = Known {
        trees,
        values: HashMap::new(),
        removed: Vec::new(),
    };
    let mut resolved = Vec::with_capacity(ops.len());
    for op in ops {
        let at = |key: &Key| (op.tree, key.clone());
        let change = match &op.change {
            Change::Put(key, value) => {
                known.values.insert(at(key), Some(value.clone()));
                Change::Put(key.clone(), value.clone())
            }
            Change::Remove(key) => {
                known.values.insert(at(key), None);
                Change::Remove(key.clone())
            }
            Change::RemoveRange(from, to) => {
                known.remove_range(op.tree, from, to.as_ref());
                Change::RemoveRange(from.clone(), to.clone())
            }
            Change::Merge(key, waiting) => {
                let base = known.value(op.tree, key, &read);
                let joined = &known.trees[op.tree].joined;
                let Some(value) = made(joined.merge_into(key, base.as_deref(), waiting)?)? else {
                    continue;
                };
                let value = Value::from(value);
                known.values.insert(at(key), Some(value.clone()));
                Change::Put(key.clone(), value)
            }
        };
        resolved.push(Op { change, ..*op });
    }
    Ok(resolved)
}

/// The values of all keys that are merged into; reads of one tree overlap.
fn read(trees: &[Arc<TreeCore>], ops: &[Op]) -> Result<Read> {
    let mut read = Read::new();
    for (tree, core) in trees.iter().enumerate() {
        let mut keys: Vec<&[u8]> = Vec::new();
        for op in ops.iter().filter(|op| op.tree == tree) {
            if let Change::Merge(key, _) = &op.change
                && let Entry::Vacant(slot) = read.entry((tree, key.clone()))
            {
                slot.insert(None);
                keys.push(key);
            }
        }
        keys.sort_unstable();
        for (key, value) in keys.iter().zip(core.joined.multi_get(&keys)?) {
            read.insert((tree, Key::new(key)), value);
        }
    }
    Ok(read)
}
