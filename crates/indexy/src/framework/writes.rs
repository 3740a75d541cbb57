//! Writes of single keys: through X, or past it where X does not hold so large a value.
//!
//! Keeps: I5 (a value past X is logged before Y has it), I8 (the LSN is taken in `put`'s commit,
//! under the leaf's latch). Threads: `tree.rs`. Not here: operands (`merge/`).

#![forbid(unsafe_code)]

use super::{
    counters,
    journal::Registration,
    load_pause::Paused,
    regions::sample,
    signal::Stop,
    tree::{Joined, Route, Written},
};
use crate::{
    error::Result,
    key::{Value, successor},
    versions::{Epoch, Gate},
    wal::{Log, Lsn, RecordRef},
    x::{Before, IndexX, Lookup, Put},
    y::{RunEntry, RunSource},
};
use std::time::{Duration, Instant};

/// X holds nothing that takes more than this part of the budget.
const LARGEST_ENTRY_DIVISOR: usize = 8;

/// How long a value past X waits for a Y that does not get on.
const MOST_CONGESTED: Duration = Duration::from_secs(10);

/// A thread looks at the cleaner's timer once in so many of its writes.
const WRITES_PER_TICK: u64 = 1024;

/// Bytes of a log record beside key and value.
const RECORD_OVERHEAD_BYTES: usize = 32;

impl Joined {
    /// The way of a key and value of `bytes`.
    #[inline]
    pub(crate) fn route(&self, bytes: usize) -> Route {
        match self.too_large_for_x(bytes) {
            true => Route::PastX,
            false => Route::ThroughX,
        }
    }

    #[inline]
    pub(crate) fn too_large_for_x(&self, bytes: usize) -> bool {
        bytes > self.shared.budget.limit() / LARGEST_ENTRY_DIVISOR
    }

    /// Writes `value` (`None`: removes, through X). The caller holds the stripe of `key`, has been
    /// admitted for `route`, and has left an image for the snapshots open at the watch `seen`.
    pub(crate) fn put(
        &self,
        key: &[u8],
        value: Option<&[u8]>,
        route: Route,
        seen: Epoch,
    ) -> Result<Written> {
        if route == Route::PastX {
            if matches!(self.x.get(key, |_| ()), Lookup::Operand) {
                // Y is about to show another value, and the operand is none of that.
                self.resolve_key(key)?;
            }
            return self.put_past_x(key, value, true).map(Written::Done);
        }
        self.put_after(key, value, seen, |_| true)
    }

    /// As [`Joined::put`] through X, and leaves the image by the same search, where that is short:
    /// the write finds what the key was. The caller was admitted with
    /// [`SHORT_IMAGE_BYTES`](super::snapshots::SHORT_IMAGE_BYTES) more.
    pub(crate) fn put_and_keep(
        &self,
        key: &[u8],
        value: Option<&[u8]>,
        seen: Epoch,
    ) -> Result<Written> {
        let written = self.put_after(key, value, seen, |before| {
            // Nobody needs the image if all snapshots have ended.
            self.shared.versions.watch() == 0 || self.keep_short(key, seen, before)
        });
        self.kept_short();
        written
    }

    /// Removes what X has of `key` and returns it, by one search. `None`: X has no value of it, or
    /// a snapshot is open; nothing was done. The caller holds the stripe of `key`, and has been
    /// admitted.
    pub(crate) fn take_from_x(&self, key: &[u8]) -> Result<Option<(Value, Option<Lsn>)>> {
        let mut taken = None;
        let written = self.put_after(key, None, 0, |before| {
            before.look(&mut |value| taken = Some(Value::new(value)));
            taken.is_some()
        })?;
        Ok(match (taken, written) {
            (Some(value), Written::Done(end)) => {
                self.shared.counters.hit();
                Some((value, end))
            }
            _ => None,
        })
    }

    /// Writes through X. `keep` leaves an image of what the key was, with the leaf's latch held, or
    /// says that it cannot.
    #[inline]
    fn put_after(
        &self,
        key: &[u8],
        value: Option<&[u8]>,
        seen: Epoch,
        keep: impl FnOnce(&dyn Before) -> bool,
    ) -> Result<Written> {
        let log = self.shared.log.get();
        let mut end = None;
        let put = self.x.put_over(key, value, |before| {
            // I10: a snapshot that begins from here on waits for the latch, and sees the write.
            if self.shared.versions.has_risen(seen) || !keep(before) {
                return Err(None);
            }
            if value.is_some() {
                self.before_visible(key);
            }
            if let Some(log) = log {
                end = Some(log.append(record(self.id, key, value)).map_err(Some)?);
            }
            Ok(())
        });
        match put {
            Ok(Put::Applied) => self.wrote(key),
            // I8: what made the key absent may not be durable yet, and this removal says that it is
            // absent.
            Ok(Put::Nothing) => end = log.map(Log::end),
            Err(None) => return Ok(Written::NeedsImage),
            Err(Some(error)) => return Err(error),
        }
        Ok(Written::Done(end))
    }

    /// Applies a part of a batch, which the log has already. Cannot fail: a batch is small enough
    /// for X.
    pub(crate) fn apply(&self, key: &[u8], value: Option<&[u8]>) {
        let Ok(put) = self.x.put(key, value, || {
            if value.is_some() {
                self.before_visible(key);
            }
            Ok::<(), std::convert::Infallible>(())
        });
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

    /// With the leaf's latch held: I9, a scan must not pass a key that lives.
    #[inline]
    pub(super) fn before_visible(&self, key: &[u8]) {
        self.dead.revive(key);
    }

    pub(super) fn wrote(&self, key: &[u8]) {
        if self.regions.monitored() {
            self.regions.note_write(key);
            if sample::due() {
                self.regions.note_accesses(key, 1);
            }
        }
        let writes = self.shared.counters.write();
        if writes.is_multiple_of(WRITES_PER_TICK) {
            self.shared.wake_cleaner.notify();
        }
    }

    /// Writes a value that X does not hold straight to Y.
    ///
    /// I2/I4: under the run lock no older copy of the key is in flight, so none can land on top;
    /// the entry in X, if any, answers until Y has the new one. The record is logged when all of
    /// the value is with Y but not to be seen: what Y has no room for leaves no record that the
    /// next open would replay.
    fn put_past_x(&self, key: &[u8], value: Option<&[u8]>, logged: bool) -> Result<Option<Lsn>> {
        self.wait_for_y()?;
        let _run = self.writer.lock();
        self.check_kept()?;
        // I9: Y shows the key at a moment that no latch tells.
        let _held_off = self.dead.hold_off(key);
        let mut source = OneEntry {
            joined: self,
            entry: (key, value),
            to_log: self.shared.log.get().filter(|_| logged),
            logged: None,
            registered: None,
            gate: None,
            paused: None,
        };
        if let Err(error) = self.writer.write_run(&mut source) {
            if source.logged.is_some() {
                // I2: the log has it, and whether Y shows it nobody knows.
                self.shared.poison.set(&error);
                self.shared.room.announce_freed();
            }
            return Err(error);
        }
        self.x.evict(key);
        let bytes = (key.len() + value.map_or(0, <[u8]>::len)) as u64;
        if let Some(expiry) = &self.expiry {
            expiry.wrote(bytes);
        }
        let of = &self.shared.counters;
        of.write();
        counters::add(&of.cleaned_keys, 1);
        counters::add(&of.cleaned_bytes, bytes);
        counters::add(&of.runs, 1);
        self.shared.wake_compactor.notify();
        Ok(source.logged)
    }

    /// Waits while Y has too many runs, each of which may be one value. Ends when Y was maintained,
    /// the tree is dropped, the handle gives up, or after a while all the same.
    fn wait_for_y(&self) -> Result<()> {
        let deadline = Instant::now() + MOST_CONGESTED;
        loop {
            let seen = self.shared.maintained.seen();
            if self.discarded() || !self.y.congested() || Instant::now() >= deadline {
                return Ok(());
            }
            self.shared.poison.check()?;
            self.shared.wake_compactor.notify();
            self.shared.maintained.wait_past(seen, Stop::LOOK);
        }
    }
}

fn record<'a>(tree: u32, key: &'a [u8], value: Option<&'a [u8]>) -> RecordRef<'a> {
    match value {
        Some(value) => RecordRef::Put { tree, key, value },
        None => RecordRef::Remove { tree, key },
    }
}

/// A run of one entry, which logs it on the way.
struct OneEntry<'a> {
    joined: &'a Joined,
    entry: RunEntry<'a>,
    /// Where the entry is still to be logged.
    to_log: Option<&'a Log>,
    /// End of its record. I6: floors rise under the run lock alone, which is held until the run is
    /// acknowledged.
    logged: Option<Lsn>,
    /// Whoever follows the log hears of it when it can be read.
    registered: Option<Registration<'a>>,
    /// I11: no snapshot begins between the image and the moment in which all readers see the value.
    gate: Option<Gate<'a>>,
    /// I3: nothing is loaded from before Y shows the value until X has evicted the old one.
    paused: Option<Paused<'a>>,
}

impl RunSource for OneEntry<'_> {
    fn drain(&mut self, sink: &mut dyn FnMut(RunEntry<'_>) -> Result<()>) -> Result<()> {
        sink(self.entry)
    }

    fn before_publish(&mut self) -> Result<()> {
        let (key, value) = self.entry;
        let joined = self.joined;
        if let Some(log) = self.to_log.take() {
            // Whoever holds room in the log waits for no run lock.
            let bytes = key.len() + value.map_or(0, <[u8]>::len);
            let _room = log.admit(bytes + RECORD_OVERHEAD_BYTES)?;
            self.registered = joined.shared.log.register();
            self.logged = Some(log.append(record(joined.id, key, value))?);
        }
        // I5: log before Y.
        joined.shared.log.wait_durable()?;
        self.gate = Some(joined.keep_before_publish(key));
        self.paused = Some(joined.load_pause.begin());
        joined.x.restamp(key, Some(&successor(key)));
        Ok(())
    }
}
