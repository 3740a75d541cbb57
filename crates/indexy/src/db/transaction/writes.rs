//! What a transaction writes: the last write to each key, and how to go back to a savepoint.

#![forbid(unsafe_code)]

use crate::{
    db::handle::TreeCore,
    key::{Key, Value},
};
use std::{collections::BTreeMap, sync::Arc};

/// Bytes counted per write beside key and value, as a batch does.
pub(super) const WRITE_OVERHEAD_BYTES: usize = 64;

/// The writes to one tree; `None`: the key is removed.
pub(super) type TreeWrites = BTreeMap<Key, Option<Value>>;

/// See the module header.
#[derive(Default)]
pub(super) struct Writes {
    pub(super) trees: Vec<(Arc<TreeCore>, TreeWrites)>,
    bytes: usize,
    /// What writes since the first savepoint replaced: tree, key, and the write before.
    undo: Vec<(usize, Key, Option<Option<Value>>)>,
    /// Bytes of that.
    undo_bytes: usize,
    /// The savepoints to which it may go back, ascending: number, and length of `undo`.
    savepoints: Vec<(u64, usize)>,
    /// Number of the last one.
    last_savepoint: u64,
}

/// Bytes that `write` to a key of `key` bytes counts; `None`: there is none.
fn bytes_of(key: usize, write: Option<&Option<Value>>) -> usize {
    write.map_or(0, |value| {
        WRITE_OVERHEAD_BYTES + key + value.as_ref().map_or(0, |value| value.len())
    })
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

    /// The same with what it remembers for savepoints.
    pub(super) fn bytes_held(&self) -> usize {
        self.bytes + self.undo_bytes
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
        let remembered = (!self.savepoints.is_empty()).then(|| key.clone());
        let before = self.replace(at, key, Some(value));
        if let Some(key) = remembered {
            self.undo_bytes += WRITE_OVERHEAD_BYTES + bytes_of(key.len(), before.as_ref());
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
        let len = key.len();
        let added = bytes_of(len, write.as_ref());
        let writes = &mut self.trees[at].1;
        let before = match write {
            Some(value) => writes.insert(key, value),
            None => writes.remove(&key),
        };
        self.bytes = self.bytes + added - bytes_of(len, before.as_ref());
        before
    }

    /// A point to go back to.
    pub(super) fn savepoint(&mut self) -> u64 {
        let at = self.undo.len();
        match self.savepoints.last() {
            Some(&(number, last)) if last == at => number,
            _ => {
                self.last_savepoint += 1;
                self.savepoints.push((self.last_savepoint, at));
                self.last_savepoint
            }
        }
    }

    /// Goes back; false if that point was passed already, going back further.
    pub(super) fn rollback_to(&mut self, savepoint: u64) -> bool {
        let found = self
            .savepoints
            .binary_search_by_key(&savepoint, |point| point.0);
        let Ok(found) = found else {
            return false;
        };
        self.savepoints.truncate(found + 1);
        for (at, key, before) in self
            .undo
            .split_off(self.savepoints[found].1)
            .into_iter()
            .rev()
        {
            self.undo_bytes -= WRITE_OVERHEAD_BYTES + bytes_of(key.len(), before.as_ref());
            self.replace(at, key, before);
        }
        true
    }
}
