//! What a `Tree` does with all keys of a range, and with its ends.

#![forbid(unsafe_code)]

use super::{batch::Batch, reads::Tree};
use crate::{
    error::Result,
    framework::misses::Purpose,
    key::{Key, Value, prefix_end},
    x::Order,
};
use std::ops::{Bound, RangeBounds};

/// So often a pop looks again because a value was written before the key that it has found.
const MOST_OVERTAKEN: usize = 16;

impl Tree {
    /// Removes every key of a range, at once.
    ///
    /// Atomic over disk indexes that can remove ranges (all of this crate but RocksDB): a batch of
    /// one operation, see [`Batch::remove_range`]. Over others keys go one by one, each as by
    /// [`Tree::remove`], and a key that is written meanwhile may stay.
    ///
    /// Cost: one log record, which is durable when the call returns (without a log: the next
    /// [`Db::flush`](crate::Db::flush) makes it so); what is in memory of the range is walked; the
    /// LSM tree reads a few pages at its ends, the paged tree its leaves. Writers of all trees wait
    /// meanwhile, also for a run to the disk index that is under way. While a snapshot or a
    /// transaction is open, the whole range is read first, too, and kept for it in memory or on
    /// disk. One by one: a scan of the range and a write per key in it.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// for day in 1..=9u8 {
    ///     tree.insert([day], "measured")?;
    /// }
    /// tree.remove_range(..[8])?;
    /// assert_eq!(tree.len()?, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remove_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<()> {
        if self.at.joined().y.removes_ranges() {
            let mut batch = Batch::new(self.at.handle.clone());
            batch.remove_range(self, range);
            return batch.commit();
        }
        // A scan holds a bounded chunk, which the budget counts (I7), and nothing that a removal
        // waits for.
        self.range(range)
            .try_for_each(|entry| self.remove(entry?.0))
    }

    /// Removes every key that starts with `prefix`; see [`Tree::remove_range`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("sessions")?;
    /// tree.insert("ann/1", "")?;
    /// tree.insert("bob/1", "")?;
    /// tree.remove_prefix("ann/")?;
    /// assert_eq!(tree.len()?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remove_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<()> {
        let prefix = prefix.as_ref();
        let end = match prefix_end(prefix) {
            Some(end) => Bound::Excluded(end),
            None => Bound::Unbounded,
        };
        self.remove_range((Bound::Included(prefix.to_vec()), end))
    }

    /// Removes every key of the tree; see [`Tree::remove_range`]. What is in memory is not walked
    /// while others wait: the caller frees 1 MiB of it when they go on, and a thread in the
    /// background the rest. [`Stats::memory_used_bytes`](crate::Stats::memory_used_bytes) falls as
    /// they do. Locators of the radix kinds ([`IndexXKind`](crate::IndexXKind)) are walked.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// tree.insert("key", "value")?;
    /// tree.clear()?;
    /// assert!(tree.is_empty()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn clear(&self) -> Result<()> {
        self.remove_range::<&[u8]>(..)
    }

    /// Removes the entry with the smallest key and returns it. Two threads never get the same
    /// entry. Cost: [`Tree::first`] and [`Tree::take`]. An entry in memory is taken by one search,
    /// where no snapshot is open and nothing expires; up to sixteen keys of those that come next
    /// are found by one scan, and those on disk are read some hundreds at once. A value that is
    /// written among those keys makes the next pops look again.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let queue = db.tree("queue")?;
    /// queue.insert(1u64.to_be_bytes(), "first job")?;
    /// queue.insert(2u64.to_be_bytes(), "second job")?;
    /// assert_eq!(queue.pop_first()?.unwrap().1, b"first job");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pop_first(&self) -> Result<Option<(Key, Value)>> {
        self.pop(Order::Ascending)
    }

    /// Removes the entry with the largest key and returns it; see [`Tree::pop_first`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let stack = db.tree("stack")?;
    /// stack.insert([1], "below")?;
    /// stack.insert([2], "above")?;
    /// assert_eq!(stack.pop_last()?.unwrap().1, b"above");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pop_last(&self) -> Result<Option<(Key, Value)>> {
        self.pop(Order::Descending)
    }

    fn pop(&self, order: Order) -> Result<Option<(Key, Value)>> {
        let mut overtaken = 0;
        // Each turn that ends without an entry is one in which another thread took it.
        loop {
            self.at.live()?;
            let joined = self.at.joined();
            // What expires is looked at by its value.
            let first = match self.at.expiry() {
                Some(_) => None,
                None => joined.first(order),
            };
            let key = match &first {
                Some(first) => Key::from(&first.key[..]),
                None => {
                    // A scan looks at one leaf after the other. What is written meanwhile where it
                    // has been comes before what is written later, and is to be popped before it.
                    // Who writes there all the time is not waited for.
                    let watched = joined.watch_ends(order);
                    let found = self.end(order)?.map(|(key, _)| key);
                    let overtaken_now = watched.is_some_and(|w| w.was_overtaken(found.as_deref()));
                    if overtaken < MOST_OVERTAKEN && overtaken_now {
                        overtaken += 1;
                        continue;
                    }
                    match found {
                        Some(key) => key,
                        None => return Ok(None),
                    }
                }
            };
            let value = self.take_for(Purpose::RemovalOfFirst(order), &key)?;
            if let Some(first) = &first {
                joined.pass_first(first);
            }
            if let Some(value) = value {
                return Ok(Some((key, value)));
            }
        }
    }

    /// Removes every entry for which `keep` says no. Not atomic: entry by entry, in order; each is
    /// removed only if it still has the value that `keep` saw. Cost: a scan, and for each entry
    /// that goes [`Tree::compare_and_swap`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// for n in 0..10u8 {
    ///     tree.insert([n], [n % 3])?;
    /// }
    /// tree.retain(|_, value| value == [0])?;
    /// assert_eq!(tree.len()?, 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn retain(&self, mut keep: impl FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        self.iter().try_for_each(|entry| {
            let (key, value) = entry?;
            if !keep(&key, &value) {
                self.compare_and_swap(&key, Some(&value), None::<&[u8]>)?;
            }
            Ok(())
        })
    }
}
