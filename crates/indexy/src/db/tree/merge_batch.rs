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
    error::{Error, Result},
    key::{Key, Value},
};
use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

/// Operations that are looked at for keys to be read together.
const LOOKED_AT: usize = 4096;

/// What the operations so far have made of a key.
struct Made {
    value: Option<Value>,
    /// The operation that did.
    op: usize,
    /// Bytes that a merge has made of it.
    merged_bytes: usize,
}

/// The operations so far.
struct Resolved<'a> {
    trees: &'a [Arc<TreeCore>],
    ops: Vec<Op>,
    /// By tree and key.
    made: HashMap<(usize, Key), Made>,
    /// Of all of them.
    merged_bytes: usize,
    /// Ranges that were removed: tree, from, to.
    removed: Vec<(usize, &'a Key, Option<&'a Key>)>,
    /// Values from before the batch, of keys to be merged into soon.
    read: HashMap<(usize, Key), Option<Value>>,
}

/// `ops` with values in place of merges. The caller holds the stripes. `limit`: bytes that the
/// batch may have then. Errors: those of reads, `MergeRefused`, and `BatchTooLarge`.
///
/// I7: beside what is to be written, a few values are held at a time. Of many merges into one key
/// the last value is.
pub(super) fn resolved(trees: &[Arc<TreeCore>], ops: &[Op], limit: usize) -> Result<Vec<Op>> {
    let mut resolved = Resolved {
        trees,
        ops: Vec::with_capacity(ops.len()),
        made: HashMap::new(),
        merged_bytes: 0,
        removed: Vec::new(),
        read: HashMap::new(),
    };
    for (number, op) in ops.iter().enumerate() {
        match &op.change {
            Change::Put(key, value) => {
                let change = Change::Put(key.clone(), value.clone());
                resolved.push(op, key, Some(value.clone()), 0, change);
            }
            Change::Remove(key) => {
                resolved.push(op, key, None, 0, Change::Remove(key.clone()));
            }
            Change::RemoveRange(from, to) => resolved.remove_range(op, from, to.as_ref()),
            Change::Merge(key, waiting) => {
                let base = resolved.value(op.tree, key, &ops[number..])?;
                let joined = &trees[op.tree].joined;
                if let Some(value) = made(joined.merge_into(key, base.as_deref(), waiting)?)? {
                    resolved.merge(op, key, Value::from(value));
                }
            }
        }
        if resolved.merged_bytes > limit {
            let bytes = resolved.merged_bytes;
            return Err(Error::BatchTooLarge { bytes, limit });
        }
    }
    Ok(resolved.ops)
}

impl<'a> Resolved<'a> {
    fn push(&mut self, of: &Op, key: &Key, value: Option<Value>, bytes: usize, change: Change) {
        let made = Made {
            value,
            op: self.ops.len(),
            merged_bytes: bytes,
        };
        self.ops.push(Op { change, ..*of });
        self.merged_bytes += bytes;
        if let Some(before) = self.made.insert((of.tree, key.clone()), made) {
            self.merged_bytes -= before.merged_bytes;
        }
    }

    /// A merge has made `value` of `key`. An operation of the batch that wrote the key before
    /// writes this instead.
    fn merge(&mut self, of: &Op, key: &Key, value: Value) {
        let bytes = key.len() + value.len();
        let change = Change::Put(key.clone(), value.clone());
        let Some(made) = self.made.get_mut(&(of.tree, key.clone())) else {
            return self.push(of, key, Some(value), bytes, change);
        };
        self.merged_bytes = self.merged_bytes - made.merged_bytes + bytes;
        made.merged_bytes = bytes;
        made.value = Some(value);
        if let Some(op) = self.ops.get_mut(made.op) {
            op.change = change;
        }
    }

    fn remove_range(&mut self, of: &Op, from: &'a Key, to: Option<&'a Key>) {
        let inside = |key: &Key| from <= key && to.is_none_or(|to| key < to);
        let bytes = &mut self.merged_bytes;
        self.made.retain(|(tree, key), made| {
            let stays = *tree != of.tree || !inside(key);
            *bytes -= if stays { 0 } else { made.merged_bytes };
            stays
        });
        self.removed.push((of.tree, from, to));
        let change = Change::RemoveRange(from.clone(), to.cloned());
        self.ops.push(Op { change, ..*of });
    }

    /// The value that a key has by now. `rest`: the operations from here on.
    fn value(&mut self, tree: usize, key: &Key, rest: &[Op]) -> Result<Option<Value>> {
        let at = (tree, key.clone());
        if let Some(made) = self.made.get(&at) {
            return Ok(made.value.clone());
        }
        let inside = |(of, from, to): &(usize, &Key, Option<&Key>)| {
            *of == tree && *from <= key && to.is_none_or(|to| key < to)
        };
        if self.removed.iter().any(inside) {
            return Ok(None);
        }
        if !self.read.contains_key(&at) {
            self.read_ahead(tree, rest)?;
        }
        Ok(self.read.remove(&at).flatten())
    }

    /// Reads the values of the first of `rest` that merges into `tree`, and of some after it; the
    /// reads overlap. With the stripes held they stay what they are.
    fn read_ahead(&mut self, tree: usize, rest: &[Op]) -> Result<()> {
        let joined = &self.trees[tree].joined;
        self.read.clear();
        let mut keys: Vec<&[u8]> = Vec::new();
        for op in rest.iter().take(LOOKED_AT).filter(|op| op.tree == tree) {
            if let Change::Merge(key, _) = &op.change
                && let Entry::Vacant(slot) = self.read.entry((tree, key.clone()))
            {
                slot.insert(None);
                keys.push(key);
            }
            if keys.len() >= joined.reads_at_once() {
                break;
            }
        }
        keys.sort_unstable();
        let values = joined.multi_get(&keys)?;
        let largest = values.iter().flatten().map(|value| value.len()).max();
        joined.have_read(keys.len(), largest.unwrap_or(0));
        for (key, value) in keys.into_iter().zip(values) {
            self.read.insert((tree, Key::new(key)), value);
        }
        Ok(())
    }
}
