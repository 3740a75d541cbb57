//! Removals of ranges, a leaf at a time in ascending order.
//!
//! Each leaf is changed as by one edit: a reader sees all of its keys in the range, or none. A key
//! that a reader missed does not come back.

use super::{
    Tree,
    attempt::{Attempt, Job},
    missing::Claim,
};
use crate::{
    error::Result,
    lock_word,
    node::{TreeKey, VERSION},
    remote::RemoteMemory,
};

/// What a leaf had, where the next one starts, and whether a merge should be tried.
type Cleared<K> = (Vec<<K as TreeKey>::Value>, Option<K>, bool);

impl<M: RemoteMemory, K: TreeKey> Tree<M, K> {
    /// Removes the keys from `from` to `to` (included), and appends their values to `old`. Returns
    /// the key to go on from: another owner has it. `None`: the range is empty.
    ///
    /// After an error some of the keys are gone, in ascending order, and their values in `old`.
    ///
    /// Cost: none for a cached leaf; a read and a write for another one. A leaf that becomes sparse
    /// is merged with a neighbour, as by [`Tree::remove`].
    pub fn remove_range(&self, from: K, to: K, old: &mut Vec<K::Value>) -> Result<Option<K>> {
        if to < from {
            return Ok(None);
        }
        let own = self.gate_read();
        own.check(from.prefix())?;
        let range = own.range_of(from.prefix());
        let end = range.map_or(from, |range| K::highest(range.1).min(to));
        let mut next = Some(from);
        while let Some(key) = next.filter(|key| *key <= end) {
            let mut job = Job::Clear {
                to: end,
                old: &mut *old,
                next: &mut next,
            };
            if self.run(&own, key, &mut job)?.is_sparse {
                self.tidy(&own, key);
            }
        }
        Ok(end.after().filter(|after| *after <= to))
    }

    /// A leaf that is read for it; lazy admission.
    pub(super) fn clear_missing(&self, claim: Claim<'_, K>, to: K) -> Attempt<Cleared<K>> {
        let lazy = self.options.leaf_admission;
        let probability = self.options.write_admission.unwrap_or(lazy);
        let taken = match self.cache.random().chance(probability) {
            true => self.cache.take(&self.memory)?,
            false => None,
        };
        let (mut leaf, is_trimmed) = self.fetch(&claim)?;
        let gone = K::remove_between(&mut leaf, claim.key, to);
        let next = K::high(&leaf).after();
        let changed = !gone.is_empty();
        let is_sparse = changed && K::is_sparse(&leaf);
        match taken {
            Some(taken) => self.place(claim, taken, &leaf, changed || is_trimmed)?,
            None if changed => {
                leaf.0[VERSION] = lock_word::next(leaf.0[VERSION]);
                self.memory.write(claim.at, &leaf.0)?;
            }
            None => {}
        }
        Ok((gone, next, is_sparse))
    }
}
