//! Writers between their log append and their apply that hold no leaf latch: batches, and values that go past X.
//!
//! Keeps I6: a sweep that begins at log end L may only claim "nothing dirty below L" down to the oldest
//! batch still being applied. A batch registers the log's end *before* it appends, so that its LSN is at
//! or above what it registered; a sweep reads the log's end *before* it looks here, so that a
//! batch it does not see yet appends above that end.
//!
//! Threads: any; whoever commits holds the stripes of all its keys (I8, `db/batch.rs`).

#![forbid(unsafe_code)]

use super::{joined::Joined, shared::Shared};
use crate::{
    error::Result,
    wal::{Lsn, RecordRef},
};
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// The batches that are being applied.
#[derive(Debug, Default)]
pub(crate) struct Batches(Mutex<Registry>);

#[derive(Debug, Default)]
struct Registry {
    next: u64,
    lower_bounds: BTreeMap<u64, Lsn>,
}

/// A registered batch; dropping it says that it is applied.
#[must_use]
pub(crate) struct Registration<'a> {
    batches: &'a Batches,
    id: u64,
}

impl Batches {
    /// Registers a batch that will append at or above `end`, which is read under the registry's lock.
    pub(crate) fn register(&self, end: impl FnOnce() -> Lsn) -> Registration<'_> {
        let mut registry = self.0.lock();
        let id = registry.next;
        registry.next += 1;
        registry.lower_bounds.insert(id, end());
        Registration { batches: self, id }
    }

    /// The lowest LSN that a batch in flight may have, if there is any.
    pub(crate) fn oldest(&self) -> Option<Lsn> {
        self.0.lock().lower_bounds.values().min().copied()
    }
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        self.batches.0.lock().lower_bounds.remove(&self.id);
    }
}

/// One write of a batch: the tree, the key, the value (`None`: a removal).
pub(crate) type Write<'a> = (&'a Joined, &'a [u8], Option<&'a [u8]>);

impl Shared {
    /// Logs `record` and applies `writes`, which it holds. Returns up to where the log says that it happened.
    ///
    /// The caller holds the stripes of all keys and has been admitted, to memory and to the log. Cost: no waiting.
    /// Errors: those of the log; nothing was applied then.
    pub(crate) fn commit_batch<'a>(
        &self,
        record: RecordRef<'_>,
        writes: impl Iterator<Item = Write<'a>>,
    ) -> Result<Option<Lsn>> {
        let log = self.log.get();
        // I6: registered from before it has an LSN until the last write is applied.
        let _registered = log.map(|log| self.batches.register(|| log.end()));
        let end = log.map(|log| log.append(record)).transpose()?;
        for (tree, key, value) in writes {
            tree.apply(key, value);
        }
        Ok(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i6_the_oldest_batch_in_flight_bounds_a_sweep() {
        let batches = Batches::default();
        assert_eq!(batches.oldest(), None);
        let a = batches.register(|| Lsn(10));
        let b = batches.register(|| Lsn(20));
        assert_eq!(batches.oldest(), Some(Lsn(10)));
        drop(a);
        assert_eq!(batches.oldest(), Some(Lsn(20)));
        drop(b);
        assert_eq!(batches.oldest(), None);
    }
}
