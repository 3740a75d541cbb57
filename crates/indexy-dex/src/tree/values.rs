//! Values of any length, out of line: the leaf has the address of a block, whose number is the
//! key. `blocks.rs` has the invariants.

use super::{
    Tree,
    blocks::{self, ATTEMPTS, BATCH, Retired, address},
};
use crate::{
    address::Address,
    error::{Error, Result},
    remote::{Counts, RemoteMemory},
};

/// A tree whose values are byte strings of 0 to 32 KiB.
///
/// The pool's tree has to be filled through this type alone: the values that [`Tree`] sees are
/// addresses.
pub struct Values<M> {
    tree: Tree<M>,
    retired: Retired,
}

impl<M: RemoteMemory> Values<M> {
    /// Values of `tree`.
    pub fn new(tree: Tree<M>) -> Self {
        Self {
            tree,
            retired: Retired::default(),
        }
    }

    /// The tree of addresses: for hand-overs, counts and the load.
    pub fn tree(&self) -> &Tree<M> {
        &self.tree
    }

    /// Verbs and bytes so far.
    pub fn counts(&self) -> Counts {
        self.tree.counts()
    }

    /// The value of `key`.
    ///
    /// Cost: that of [`Tree::get`], 1 read of the head, and one trip for values above 992 bytes.
    pub fn get(&self, key: u64) -> Result<Option<Vec<u8>>> {
        let mut at = Address::new(0, 0);
        for _ in 0..ATTEMPTS {
            let Some(word) = self.tree.get(key)? else {
                return Ok(None);
            };
            at = address(word)?;
            // V3: otherwise somebody replaced it, and the block's memory was used again.
            if let Some(value) = blocks::read(&self.tree.memory, at, key)? {
                return Ok(Some(value));
            }
        }
        Err(Error::corrupt(at, "a value is not what its leaf says"))
    }

    /// Sets the value of `key`; whether it had one.
    ///
    /// Cost: that of [`Tree::put`], and 1 write for each started KiB. [`Error::Options`]: the value
    /// is longer than [`MAX_VALUE_BYTES`](super::MAX_VALUE_BYTES).
    pub fn put(&self, key: u64, value: &[u8]) -> Result<bool> {
        self.tree.ownership().check(key)?;
        let write = || blocks::write(&self.tree.memory, &self.tree.nodes, (key, key), value);
        let at = self.retired.with_room(&self.tree, write)?;
        let put = || self.tree.put(key, at.word());
        let old = self.retired.with_room(&self.tree, put)?;
        self.retire(old)?;
        Ok(old.is_some())
    }

    /// Removes `key`; whether it had a value.
    pub fn remove(&self, key: u64) -> Result<bool> {
        let old = self.tree.remove(key)?;
        self.retire(old)?;
        Ok(old.is_some())
    }

    fn retire(&self, word: Option<u64>) -> Result<()> {
        match word {
            Some(word) => self.retired.add(&self.tree, address(word)?),
            None => Ok(()),
        }
    }

    /// Writes every dirty page to the pool; memory of values that were replaced before is used
    /// again.
    ///
    /// Cost: one write a dirty page, one read a value that was replaced.
    pub fn flush(&self) -> Result<()> {
        self.retired.flush(&self.tree)
    }

    /// Appends up to `most` entries from `from` to `to` (included), in order; returns the key to
    /// go on from, as [`Tree::scan`] does.
    ///
    /// Cost: that of [`Tree::scan`], and one read a value, 16 in a trip.
    pub fn scan(
        &self,
        from: u64,
        to: u64,
        most: usize,
        found: &mut Vec<(u64, Vec<u8>)>,
    ) -> Result<Option<u64>> {
        let mut words = Vec::new();
        let next = self.tree.scan(from, to, most, &mut words)?;
        for batch in words.chunks(BATCH) {
            let blocks = batch.iter().map(|(key, word)| Ok((address(*word)?, *key)));
            let blocks: Vec<_> = blocks.collect::<Result<_>>()?;
            let values = blocks::read_many(&self.tree.memory, &blocks)?;
            for ((key, _), value) in batch.iter().zip(values) {
                let value = match value {
                    Some(value) => Some(value),
                    None => self.get(*key)?,
                };
                found.extend(value.map(|value| (*key, value)));
            }
        }
        Ok(next)
    }
}

impl<M> std::fmt::Debug for Values<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Values").field(&self.tree).finish()
    }
}
