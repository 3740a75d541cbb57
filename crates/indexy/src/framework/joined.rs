//! One tree: an Index X and an Index Y joined (the paper's IndeXY).
//!
//! Source: IndeXY II-A, II-D. Here: point reads with migration, and point writes.
//! Keeps: I1 (an entry of X wins, a mount asks Y), I3 (the stamp travels from the search to the load), I8 (the
//! LSN is taken in `put`'s commit, under the leaf's latch).
//!
//! Threads: any number of readers. A writer holds the key's stripe (`db/stripes.rs`). The transfer lock
//! admits one run, one re-choice of regions or one direct write at a time; locks are taken in the order
//! stripe, transfer lock, survey, leaf latch. The lock under which Y is made durable, by a flush or before the log is cut, comes after the transfer lock. Nothing is latched or pinned while Y is read.

#![forbid(unsafe_code)]

use super::{counters, regions::Regions, sample, shared::Shared, survey::Survey};
use crate::{
    error::{Error, Result},
    key::Value,
    wal::{Log, Lsn, RecordRef},
    x::{AnyX, IndexX, Load, Lookup, Put, RunId},
    y::{Capabilities, IndexY, RunEntry, RunSource},
};
use parking_lot::Mutex;
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

/// A tree's X, Y and what joins them.
pub(crate) struct Joined {
    pub id: u32,
    pub x: AnyX,
    pub y: Arc<dyn IndexY>,
    /// What Y can take.
    pub limits: Capabilities,
    /// Never released.
    pub resident: bool,
    /// X is a write buffer: what is read from Y does not go there.
    pub buffer_only: bool,
    pub regions: Regions,
    pub shared: Arc<Shared>,
    pub(super) transfer: Mutex<Transfer>,
    /// Held while Y is made durable.
    pub(super) making_durable: Mutex<()>,
    pub(super) survey: Mutex<Survey>,
    /// Every run up to this one is settled: acknowledged, or failed and dirty again.
    pub(super) acked: AtomicU32,
    /// The tree was dropped: its Y may be gone. Set under the transfer lock.
    pub(super) discarded: AtomicBool,
}

/// State under the transfer lock.
#[derive(Debug, Default)]
pub(super) struct Transfer {
    pub last_run: RunId,
    /// Where the next check-back pass starts.
    pub cursor: usize,
}

impl Joined {
    /// `floor`: nothing that is replayed later or written from now on has a lower LSN.
    pub(crate) fn new(
        id: u32,
        x: AnyX,
        y: Arc<dyn IndexY>,
        resident: bool,
        floor: Lsn,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            id,
            x,
            limits: y.capabilities(),
            y,
            resident,
            buffer_only: false,
            regions: Regions::new(floor),
            shared,
            transfer: Mutex::default(),
            making_durable: Mutex::default(),
            survey: Mutex::default(),
            acked: AtomicU32::new(0),
            discarded: AtomicBool::new(false),
        }
    }

    /// The same with an X that is a write buffer and nothing else.
    pub(crate) fn buffer_only(self, buffer_only: bool) -> Self {
        Self {
            buffer_only,
            ..self
        }
    }

    /// Settled runs; pairs with the release store in `transfer.rs`.
    pub(super) fn acked(&self) -> RunId {
        self.acked.load(Ordering::Acquire)
    }

    /// The tree was dropped: failures of its Y mean nothing any more.
    pub(super) fn discarded(&self) -> bool {
        self.discarded.load(Ordering::Acquire)
    }

    /// After a read of Y. I1: once the tree is discarded, X has dropped what was newer than Y. The status of the
    /// tree's handle says why; this error does not reach the user.
    pub(super) fn check_kept(&self) -> Result<()> {
        if self.discarded() {
            return Err(Error::Closed);
        }
        Ok(())
    }

    /// X has a value of `key`: removing it, or emptying its value, takes no memory.
    pub(crate) fn has_in_x(&self, key: &[u8]) -> bool {
        matches!(self.x.get(key, |_| ()), Lookup::Found(()))
    }

    /// The newest value of `key`, handed to `found`. A miss reads Y once and caches the value in X, unless that is a mere buffer.
    pub(crate) fn get<R>(&self, key: &[u8], found: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        if sample::due() {
            self.regions.note_access(key);
        }
        let counters = &self.shared.counters;
        let mut found = Some(found);
        match self.x.get(key, |v| found.take().map(|f| f(v))) {
            Lookup::Found(r) => {
                counters.hit();
                Ok(r)
            }
            Lookup::Deleted | Lookup::Absent => {
                counters.absent();
                Ok(None)
            }
            Lookup::AskY(stamp) => {
                counters::add(&counters.misses, 1);
                counters::add(&counters.y_reads, 1);
                // Whatever Y says is a correct answer: it was the newest at some moment of this call.
                let value = self.y.get(key)?;
                self.check_kept()?;
                if let Some(value) = &value {
                    self.load(key, value, stamp);
                }
                Ok(value.and_then(|v| found.take().map(|f| f(&v))))
            }
        }
    }

    /// The newest values of `keys` in the order asked; the reads of Y overlap.
    pub(crate) fn multi_get(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        let counters = &self.shared.counters;
        let mut values = Vec::with_capacity(keys.len());
        let mut asked = Vec::new();
        for (i, key) in keys.iter().enumerate() {
            if sample::due() {
                self.regions.note_access(key);
            }
            values.push(match self.x.get(key, Value::new) {
                Lookup::Found(v) => {
                    counters.hit();
                    Some(v)
                }
                Lookup::Deleted | Lookup::Absent => {
                    counters.absent();
                    None
                }
                Lookup::AskY(stamp) => {
                    asked.push((i, stamp));
                    None
                }
            });
        }
        if !asked.is_empty() {
            counters::add(&counters.misses, asked.len() as u64);
            counters::add(&counters.y_reads, asked.len() as u64);
            let cold: Vec<&[u8]> = asked.iter().map(|&(i, _)| keys[i]).collect();
            let found = self.y.multi_get(&cold)?;
            self.check_kept()?;
            for (&(i, stamp), value) in asked.iter().zip(found) {
                if let Some(value) = &value {
                    self.load(keys[i], value, stamp);
                }
                values[i] = value;
            }
        }
        Ok(values)
    }

    /// I3: installs what Y said, unless something may have changed since `stamp` was read.
    fn load(&self, key: &[u8], value: &[u8], stamp: crate::x::Stamp) {
        let bytes = key.len() + value.len();
        let loaded = !self.buffer_only
            && !self.too_large_for_x(bytes)
            && self
                .shared
                .admit_load(bytes)
                .is_some_and(|_admitted| self.x.load(key, value, stamp) == Load::Loaded);
        if !loaded {
            counters::add(&self.shared.counters.loads_refused, 1);
        }
    }

    /// X holds nothing that takes more than an eighth of the budget (design 2.4).
    fn too_large_for_x(&self, bytes: usize) -> bool {
        bytes > self.shared.budget.limit() / 8
    }

    /// Writes `value` (`None`: removes). The caller holds the stripe of `key` and has been admitted.
    /// Returns up to where the log says that it happened.
    pub(crate) fn put(&self, key: &[u8], value: Option<&[u8]>) -> Result<Option<Lsn>> {
        let log = self.shared.log.get();
        let mut end = None;
        if value.is_some_and(|v| self.too_large_for_x(key.len() + v.len())) {
            return self.put_past_x(key, value, true);
        }
        let put = self.x.put(key, value, || -> Result<()> {
            if let Some(log) = log {
                end = Some(log.append(record(self.id, key, value))?);
            }
            Ok(())
        })?;
        match put {
            Put::Applied => self.wrote(key),
            // I8: what made the key absent may not be durable yet, and this removal says that it is absent.
            Put::Nothing => end = log.map(Log::end),
        }
        Ok(end)
    }

    /// Applies a part of a batch, which the log has already. Cannot fail: a batch is small enough for X.
    pub(crate) fn apply(&self, key: &[u8], value: Option<&[u8]>) {
        let Ok(put) = self
            .x
            .put(key, value, || Ok::<(), std::convert::Infallible>(()));
        if put == Put::Applied {
            self.wrote(key);
        }
    }

    /// Applies a write that is replayed from the log.
    pub(crate) fn replay(&self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        if value.is_some_and(|v| self.too_large_for_x(key.len() + v.len())) {
            return self.put_past_x(key, value, false).map(|_| ());
        }
        self.apply(key, value);
        Ok(())
    }

    fn wrote(&self, key: &[u8]) {
        self.regions.note_write(key);
        let writes = self.shared.counters.write();
        if writes.is_multiple_of(WRITES_PER_TICK) {
            self.shared.wake_cleaner.notify();
        }
    }

    /// Writes a value that X does not hold straight to Y.
    ///
    /// I2/I4: under the transfer lock no older copy of the key is in flight, so none can land on top;
    /// the entry in X, if any, answers until Y has the new one.
    /// The record is logged when all of the value is with Y but not to be seen: what Y has no room for leaves no record
    /// that the next open would replay.
    fn put_past_x(&self, key: &[u8], value: Option<&[u8]>, logged: bool) -> Result<Option<Lsn>> {
        let _transfer = self.transfer.lock();
        if self.discarded() {
            return Ok(None);
        }
        let mut source = OneEntry {
            tree: self.id,
            entry: (key, value),
            shared: &self.shared,
            to_log: self.shared.log.get().filter(|_| logged),
            logged: None,
        };
        self.shared.guarded(self.hand_to_y(&mut source))?;
        self.x.evict(key);
        self.shared.wake_compactor.notify();
        Ok(source.logged)
    }
}

/// A thread looks at the cleaner's timer once in so many of its writes.
const WRITES_PER_TICK: u64 = 1024;

fn record<'a>(tree: u32, key: &'a [u8], value: Option<&'a [u8]>) -> RecordRef<'a> {
    match value {
        Some(value) => RecordRef::Put { tree, key, value },
        None => RecordRef::Remove { tree, key },
    }
}

/// A run of one entry, which logs it on the way.
struct OneEntry<'a> {
    tree: u32,
    entry: RunEntry<'a>,
    shared: &'a Shared,
    /// Where the entry is still to be logged.
    to_log: Option<&'a Log>,
    /// End of its record. I6: floors rise under the transfer lock alone, which is held until the run is acknowledged.
    logged: Option<Lsn>,
}

impl RunSource for OneEntry<'_> {
    fn drain(&mut self, sink: &mut dyn FnMut(RunEntry<'_>) -> Result<()>) -> Result<()> {
        sink(self.entry)
    }

    fn before_publish(&mut self) -> Result<()> {
        if let Some(log) = self.to_log.take() {
            let (key, value) = self.entry;
            self.logged = Some(log.append(record(self.tree, key, value))?);
        }
        // I5: log before Y.
        self.shared.wait_for_log()
    }
}
