//! The log as the framework sees it: how far it goes, how far it is durable, and below which LSN
//! everything is applied.
//!
//! Keeps I5 ([`Journal::wait_durable`]) and I6 ([`Journal::floor`]): a run that begins at log end L
//! claims "nothing dirty below L" for what it cleans, and meets every record below L applied. A
//! single write takes its LSN under the leaf's latch, which the run takes too. A *batch* holds no
//! latch between its append and its apply, so it registers the log's end *before* it appends: its
//! LSN is at or above that. A run reads the log's end *before* it looks at the registered ones, so
//! that a batch which it does not see yet appends above that end.
//!
//! I8: the resolution of an operand holds no stripe, and logs what its key had (`merge/`). It may
//! not come between the append of a batch and its apply: its record would lie behind the batch's,
//! and replay would let it win. So batches share a lock from before the append until they are
//! applied, and a resolution holds it alone. Whoever holds it waits for nothing but the device, and
//! takes leaf latches inside; it comes after all other locks.
//!
//! Threads: any; a committer holds the stripes of all its keys (I8, `db/`).

#![forbid(unsafe_code)]

use crate::{
    error::Result,
    wal::{Log, Lsn, RecordRef},
};
use parking_lot::{Mutex, RwLock, RwLockWriteGuard};
use std::{
    collections::BTreeMap,
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

/// See the module header.
#[derive(Default)]
pub(crate) struct Journal {
    /// Set once recovery is over; never with `Durability::None`.
    log: OnceLock<Log>,
    /// While the log is replayed: the LSN of the record being applied.
    replay_position: AtomicU64,
    batches: Batches,
    /// Shared by batches that are logged and not yet applied; held alone by a resolution.
    resolving: RwLock<()>,
    /// The database is open for writes, and its log is replayed.
    in_service: AtomicBool,
    /// Replay had operands: the end of what it replayed. Else 0.
    merged_up_to: AtomicU64,
}

impl Journal {
    #[inline]
    pub(crate) fn get(&self) -> Option<&Log> {
        self.log.get()
    }

    /// Recovery is over. To be called once at most.
    pub(crate) fn set(&self, log: Log) {
        let first = self.log.set(log).is_ok();
        debug_assert!(first, "the log is set once");
    }

    /// The log was replayed, and what is written from now on is the user's.
    pub(crate) fn begin_service(&self) {
        self.in_service.store(true, Ordering::Release);
    }

    /// Operands may be resolved (`merge/mod.rs`): not while the log is replayed.
    pub(crate) fn may_resolve(&self) -> bool {
        self.in_service.load(Ordering::Acquire)
    }

    /// Replay has met an operand.
    pub(crate) fn replays_operands(&self) {
        self.merged_up_to.store(u64::MAX, Ordering::Release);
    }

    /// Replay has come to its end.
    pub(crate) fn replayed(&self, end: Lsn) {
        self.merged_up_to.fetch_min(end.0, Ordering::AcqRel);
    }

    /// The log is cut here or beyond, or not at all (`merge/mod.rs`).
    pub(crate) fn first_cut(&self) -> Lsn {
        Lsn(self.merged_up_to.load(Ordering::Acquire))
    }

    /// No batch is logged and not yet applied while the guard lives. For one resolution; the caller
    /// holds no latch. Waits for batches that are being applied.
    pub(crate) fn between_batches(&self) -> BetweenBatches<'_> {
        BetweenBatches(self.get().map(|_| self.resolving.write()))
    }

    /// The same, if it waits for nothing.
    pub(crate) fn try_between_batches(&self) -> Option<BetweenBatches<'_>> {
        match self.get() {
            None => Some(BetweenBatches(None)),
            Some(_) => self
                .resolving
                .try_write()
                .map(|it| BetweenBatches(Some(it))),
        }
    }

    /// The record at `lsn` is about to be replayed: everything below is applied (I6).
    pub(crate) fn replaying(&self, lsn: Lsn) {
        self.replay_position.store(lsn.0, Ordering::Release);
    }

    /// I6: a run that starts now meets every record below the answer applied.
    pub(crate) fn floor(&self) -> Lsn {
        // The end first, the batches second; see the module header.
        let end = match self.get() {
            Some(log) => log.end(),
            None => Lsn(self.replay_position.load(Ordering::Acquire)),
        };
        self.batches.oldest().map_or(end, |oldest| oldest.min(end))
    }

    /// A record that the caller is about to append is not applied while the guard lives: `floor`
    /// stays below it. For what is logged and then shown, as by a run.
    pub(crate) fn register(&self) -> Option<Registration<'_>> {
        let log = self.get()?;
        Some(self.batches.register(|| log.end()))
    }

    /// I5: waits until everything logged so far is durable.
    pub(crate) fn wait_durable(&self) -> Result<()> {
        self.get().map_or(Ok(()), |log| log.wait_durable(log.end()))
    }

    /// Logs the `record` of a batch and has `apply` apply it. Returns up to where the log says that
    /// it happened, and what `apply` says.
    ///
    /// The caller holds the stripes of all keys and has been admitted, to memory and to the log.
    /// Cost: no waiting but that of `apply`, and for a resolution. Errors: those of the log;
    /// nothing was applied then.
    pub(crate) fn commit_batch<R>(
        &self,
        record: RecordRef<'_>,
        apply: impl FnOnce() -> R,
    ) -> Result<(Option<Lsn>, R)> {
        let log = self.get();
        // I8: see the module header.
        let _unresolved = log.map(|_| self.resolving.read());
        // I6: registered from before it has an LSN until the last write is applied.
        let _registered = self.register();
        let end = log.map(|log| log.append(record)).transpose()?;
        Ok((end, apply()))
    }
}

/// See [`Journal::between_batches`]. Without a log there is nothing to keep apart.
#[must_use]
pub(crate) struct BetweenBatches<'a>(
    #[expect(dead_code, reason = "a lock that is held")] Option<RwLockWriteGuard<'a, ()>>,
);

/// The batches that are being applied.
#[derive(Debug, Default)]
struct Batches(Mutex<Registry>);

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
    /// Registers a batch that will append at or above `end`, which is read under the registry's
    /// lock.
    fn register(&self, end: impl FnOnce() -> Lsn) -> Registration<'_> {
        let mut registry = self.0.lock();
        let id = registry.next;
        registry.next += 1;
        registry.lower_bounds.insert(id, end());
        Registration { batches: self, id }
    }

    /// The lowest LSN that a batch in flight may have, if there is any.
    fn oldest(&self) -> Option<Lsn> {
        self.0.lock().lower_bounds.values().min().copied()
    }
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        self.batches.0.lock().lower_bounds.remove(&self.id);
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
