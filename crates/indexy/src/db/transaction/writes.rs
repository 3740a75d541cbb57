//! What a transaction writes: the last write to each key, and how to go back to a savepoint.

#![forbid(unsafe_code)]

use crate::{
    db::handle::TreeCore,
    key::{Key, Value},
};
use std::{collections::BTreeMap, sync::Arc};

/// Bytes counted per write beside key and value, as a batch does.
const WRITE_OVERHEAD_BYTES: usize = 64;

/// The writes to one tree; `None`: the key is removed.
pub(super) type TreeWrites = BTreeMap<Key, Option<Value>>;

/// See the module header.
#[derive(Default)]
pub(super) struct Writes {
    pub(super) trees: Vec<(Arc<TreeCore>, TreeWrites)>,
    bytes: usize,
    /// What writes since the first savepoint replaced: tree, key, and the write before.
    undo: Vec<(usize, Key, Option<Option<Value>>)>,
    /// A savepoint was taken.
    remembers: bool,
}

impl Writes {
    pub(super) fn of(&self, tree: &TreeCore) -> Option<&TreeWrites> {
        let known = self.trees.iter().find(|(t, _)| std::ptr::eq(&**t, tree));
        known.map(|(_, writes)| writes)
    }

    /// What the transaction wrote under `key`; `Some(None)`: it removes it.
    pub(super) fn get(&self, tree: &TreeCore, key: &[u8]) -> Option<&Option<Value>> {
        self.of(tree)?.get(key)
    }

    /// Bytes as a batch counts them.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.trees.iter().map(|(_, writes)| writes.len()).sum()
    }

    pub(super) fn put(&mut self, tree: &Arc<TreeCore>, key: Key, value: Option<Value>) {
        let known = self.trees.iter().position(|(t, _)| Arc::ptr_eq(t, tree));
        let at = known.unwrap_or_else(|| {
            self.trees.push((tree.clone(), TreeWrites::new()));
            self.trees.len() - 1
        });
        let before = self.replace(at, key.clone(), Some(value));
        if self.remembers {
            self.undo.push((at, key, before));
        }
    }

    /// Makes `write` the write to `key`; `None`: there is none. Returns the one before.
    fn replace(
        &mut self,
        at: usize,
        key: Key,
        write: Option<Option<Value>>,
    ) -> Option<Option<Value>> {
        let size = |write: &Option<Option<Value>>| match write {
            Some(value) => {
                WRITE_OVERHEAD_BYTES + key.len() + value.as_ref().map_or(0, |value| value.len())
            }
            None => 0,
        };
        let added = size(&write);
        let writes = &mut self.trees[at].1;
        let before = match &write {
            Some(value) => writes.insert(key.clone(), value.clone()),
            None => writes.remove(&key),
        };
        self.bytes = self.bytes + added - size(&before);
        before
    }

    /// A point to go back to.
    pub(super) fn savepoint(&mut self) -> usize {
        self.remembers = true;
        self.undo.len()
    }

    /// Goes back; false if that point was passed already, going back further.
    pub(super) fn rollback_to(&mut self, savepoint: usize) -> bool {
        if savepoint > self.undo.len() {
            return false;
        }
        for (at, key, before) in self.undo.split_off(savepoint).into_iter().rev() {
            self.replace(at, key, before);
        }
        true
    }
}
