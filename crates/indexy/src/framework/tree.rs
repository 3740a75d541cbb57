//! One tree: an Index X and an Index Y joined (the paper's IndeXY).
//!
//! Source: IndeXY II-A, II-D. Here: point reads with migration, and point writes.
//! Keeps: I1 (an entry of X wins, a mount asks Y), I3 (the stamp travels from the search to the
//! load), I8 (the LSN is taken in `put`'s commit, under the leaf's latch).
//!
//! Threads: any number of readers. A writer holds the key's stripe (`db/`). Locks are taken in the
//! order stripe, run lock (`disk_writer.rs`), survey, leaf latch. Nothing is latched or pinned
//! while Y is read. Not here: scans (`scan.rs`), cleaning (`clean/`), release (`release/`).

#![forbid(unsafe_code)]

use super::{
    counters,
    dead_stretches::DeadStretches,
    disk_writer::{DiskWriter, Runs},
    ends::Ends,
    expiry::EXPIRY_BYTES,
    journal::Registration,
    merging::{Meeting, Merging},
    misses::{Misses, Purpose},
    operators::Operator,
    regions::{
        Regions, Table, boundaries, sample,
        survey::{Precision, RegionStats, Survey},
    },
    shared::Shared,
    signal::Stop,
    sweep_schedule::Expiry,
};
use crate::{
    error::{Error, Result},
    key::Value,
    limits::MAX_VALUE_BYTES,
    versions::{Epoch, Gate, store::Store, time::Millis},
    wal::{Log, Lsn, RecordRef},
    x::{AnyX, IndexX, Load, Lookup, Order, Put, RunId, Stamp},
    y::{Capabilities, IndexY, Maintained, RunEntry, RunSource},
};
use std::{
    ops::ControlFlow,
    sync::Arc,
    time::{Duration, Instant},
};

/// X holds nothing that takes more than this part of the budget.
const LARGEST_ENTRY_DIVISOR: usize = 8;

/// How long a value past X waits for a Y that does not get on.
const MOST_CONGESTED: Duration = Duration::from_secs(10);

/// A thread looks at the cleaner's timer once in so many of its writes.
const WRITES_PER_TICK: u64 = 1024;

/// Bytes of a log record beside key and value.
const RECORD_OVERHEAD_BYTES: usize = 32;

/// Which way a write takes. Chosen once a write, because the budget may change meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    /// The caller has room in X and in the log.
    ThroughX,
    /// The value is too large for X and goes to Y. Its record takes its room in the log when Y has
    /// the value: whoever has room in the log waits for no run.
    PastX,
}

/// What a write of one key came to.
pub(crate) enum Written {
    /// It is applied; up to where the log says so.
    Done(Option<Lsn>),
    /// Nothing was done: a snapshot has begun and needs an image.
    SnapshotBegan,
    /// Nothing was done: X has something else than an operand was to be written over.
    Changed,
}

/// What X says about a key.
pub(crate) enum Known {
    Value(Option<Value>),
    /// A load needs the stamp.
    AskY(Stamp),
    /// Y is needed, too.
    Operand,
}

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
    /// What of the rest goes there.
    pub misses: Misses,
    /// Entries may expire: values have their expiry before them (`expiry.rs`).
    pub expiry: Option<Expiry>,
    pub regions: Regions,
    pub shared: Arc<Shared>,
    /// The way to write to Y.
    pub writer: DiskWriter,
    /// Images of what was written while a snapshot was open.
    pub versions: Arc<Store>,
    /// Where scans need not look.
    pub(super) dead: DeadStretches,
    /// What Y has where entries are taken one after the other.
    pub(super) ends: Ends,
    survey: Survey,
    /// Where keys may have operands.
    pub(super) merging: Merging,
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
            writer: DiskWriter::new(Arc::clone(&y), Arc::clone(&shared)),
            y,
            versions: shared.versions.new_store(),
            resident,
            buffer_only: false,
            misses: Misses::default(),
            expiry: None,
            regions: Regions::new(floor),
            ends: Ends::new(Arc::clone(&shared)),
            shared,
            dead: DeadStretches::default(),
            survey: Survey::default(),
            merging: Merging::default(),
        }
    }

    /// From now on keys of the tree may have operands. The first one that is set counts.
    pub(crate) fn set_operator(&self, operator: Operator) {
        let _ = self.merging.operator.set(operator);
    }

    /// The same with an X that is a write buffer and nothing else.
    pub(crate) fn buffer_only(self, buffer_only: bool) -> Self {
        Self {
            buffer_only,
            ..self
        }
    }

    /// The same with entries that may expire.
    pub(crate) fn expiring(mut self, expiry: Expiry) -> Self {
        self.limits.max_value_bytes =
            self.limits.max_value_bytes.min(MAX_VALUE_BYTES) - EXPIRY_BYTES;
        Self {
            expiry: Some(expiry),
            ..self
        }
    }

    /// What has expired by then is dead (`expiry.rs`); `None`: nothing expires. Cost: where entries
    /// expire, the clock and a short lock.
    pub(super) fn dead_at(&self) -> Option<Millis> {
        let horizon = |_| self.shared.versions.horizon();
        self.expiry.as_ref().map(horizon)
    }

    /// Runs up to this one are settled: what they carried may be cut (I4).
    pub(crate) fn settled(&self) -> RunId {
        self.writer.settled()
    }

    /// The tree was dropped.
    pub(crate) fn discarded(&self) -> bool {
        self.writer.is_discarded()
    }

    /// After a read of Y. I1: once the tree is discarded, X has dropped what was newer than Y. The
    /// status of the tree's handle says why; this error does not reach the user.
    pub(super) fn check_kept(&self) -> Result<()> {
        match self.discarded() {
            true => Err(Error::Closed),
            false => Ok(()),
        }
    }

    // --- regions ------------------------------------------------------------------

    /// Sizes of the regions and the table that they belong to. Cost: see `regions/survey.rs`.
    pub(crate) fn survey(&self, precision: Precision) -> (Arc<Table>, Vec<RegionStats>) {
        let counters = &self.shared.counters;
        // Keys written or loaded so far, in all trees.
        let changes = counters.writes() + counters::read(&counters.misses);
        self.survey
            .measure(&self.x, &self.regions, changes, precision)
    }

    /// Chooses regions of the planned size anew. The caller holds the run lock.
    pub(crate) fn rechoose_regions(&self) {
        let limit = self.shared.budget.limit();
        self.choose_regions_of(boundaries::region_bytes(limit) as u64);
    }

    /// The same, unless a run is in flight.
    pub(crate) fn try_rechoose_regions(&self) {
        if let Some(_runs) = self.writer.try_lock() {
            self.rechoose_regions();
        }
    }

    /// Chooses regions of about `target` bytes. The caller holds the run lock.
    pub(super) fn choose_regions_of(&self, target: u64) {
        let too_large = boundaries::oversize_bytes(self.shared.budget.limit()) as u64;
        let starts = boundaries::choose(&self.x, target, too_large);
        self.regions.rebound(starts);
        self.x.track_references(true);
    }

    // --- reads ----------------------------------------------------------------------

    /// X has a value of `key`: removing it, or emptying its value, takes no memory.
    pub(crate) fn has_in_x(&self, key: &[u8]) -> bool {
        matches!(self.x.get(key, |_| ()), Lookup::Found(()))
    }

    /// The newest value of `key`, handed to `found`. A miss reads Y once and caches the value in X,
    /// unless that is a mere buffer, or [`Misses`] says no.
    pub(crate) fn get<R>(&self, key: &[u8], found: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        self.get_for(Purpose::Read, key, found)
    }

    /// As `get`, for `purpose`.
    pub(crate) fn get_for<R>(
        &self,
        purpose: Purpose,
        key: &[u8],
        found: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        if sample::due() {
            self.note_sample(key);
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
            Lookup::AskY(_) if self.denies(key) => Ok(None),
            Lookup::AskY(stamp) => {
                counters::add(&counters.misses, 1);
                // Whatever Y says is a correct answer: it was the newest at some moment of this
                // call.
                let ahead = match purpose {
                    Purpose::RemovalOfFirst(order) => {
                        self.ends.value(self.writer.shown(), key, order)
                    }
                    _ => None,
                };
                let value = match ahead {
                    Some(value) => Some(value),
                    None => {
                        counters::add(&counters.y_reads, 1);
                        self.y.get(key)?
                    }
                };
                self.check_kept()?;
                if let Some(value) = value.as_ref().filter(|_| !purpose.is_removal()) {
                    self.load(purpose, key, value, stamp);
                }
                Ok(value.and_then(|v| found.take().map(|f| f(&v))))
            }
            Lookup::Operand => {
                counters::add(&counters.misses, 1);
                match found.take() {
                    Some(found) => self.get_merged(purpose, key, found),
                    None => Ok(None),
                }
            }
        }
    }

    /// A sampled read of `key`.
    fn note_sample(&self, key: &[u8]) {
        self.regions.note_accesses(key, 1);
        if let Some(heat) = &self.shared.heat {
            heat.note(self.id, key);
        }
    }

    /// The newest values of `keys` in the order asked; the reads of Y overlap.
    pub(crate) fn multi_get(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        self.find_all(keys, |key| self.known(key))
    }

    /// What X says about `key`. Counts a hit or a miss.
    pub(crate) fn known(&self, key: &[u8]) -> Known {
        if sample::due() {
            self.note_sample(key);
        }
        let counters = &self.shared.counters;
        match self.x.get(key, Value::new) {
            Lookup::Found(value) => {
                counters.hit();
                Known::Value(Some(value))
            }
            Lookup::Deleted | Lookup::Absent => {
                counters.absent();
                Known::Value(None)
            }
            Lookup::AskY(_) if self.denies(key) => Known::Value(None),
            Lookup::AskY(stamp) => {
                counters::add(&counters.misses, 1);
                Known::AskY(stamp)
            }
            Lookup::Operand => {
                counters::add(&counters.misses, 1);
                Known::Operand
            }
        }
    }

    /// I1: X does not know `key`, and Y did not have it when X was asked. Counted.
    fn denies(&self, key: &[u8]) -> bool {
        // Once the tree is discarded, X has dropped what was newer than Y.
        let denied = self.writer.evicted().denies(key) && !self.discarded();
        if denied {
            self.shared.counters.denied();
        }
        denied
    }

    /// The newest values of `keys`, which were missed and counted some time ago.
    pub(crate) fn fetch(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        // Somebody may have written or loaded it meanwhile.
        self.find_all(keys, |key| match self.x.get(key, Value::new) {
            Lookup::Found(value) => Known::Value(Some(value)),
            Lookup::Deleted | Lookup::Absent => Known::Value(None),
            Lookup::AskY(stamp) => Known::AskY(stamp),
            Lookup::Operand => Known::Operand,
        })
    }

    /// The values of `keys`, by what X `knows` of each.
    fn find_all(
        &self,
        keys: &[&[u8]],
        knows: impl Fn(&[u8]) -> Known,
    ) -> Result<Vec<Option<Value>>> {
        let mut values = Vec::with_capacity(keys.len());
        let (mut asked, mut waiting) = (Vec::new(), Vec::new());
        for (i, key) in keys.iter().enumerate() {
            values.push(match knows(key) {
                Known::Value(value) => value,
                Known::AskY(stamp) => {
                    asked.push((i, stamp));
                    None
                }
                Known::Operand => {
                    waiting.push(i);
                    None
                }
            });
        }
        self.ask_y_for(&asked, keys, &mut values)?;
        if !waiting.is_empty() {
            let of: Vec<&[u8]> = waiting.iter().map(|&i| keys[i]).collect();
            let merged = self.read_merged_all(&of, Meeting::Resolve)?;
            for (i, value) in waiting.into_iter().zip(merged) {
                values[i] = value;
            }
        }
        Ok(values)
    }

    /// Reads what X asks Y for, given by numbers in `keys`, into `values`, and loads it.
    fn ask_y_for(
        &self,
        asked: &[(usize, Stamp)],
        keys: &[&[u8]],
        values: &mut [Option<Value>],
    ) -> Result<()> {
        if asked.is_empty() {
            return Ok(());
        }
        counters::add(&self.shared.counters.y_reads, asked.len() as u64);
        let cold: Vec<&[u8]> = asked.iter().map(|&(i, _)| keys[i]).collect();
        let found = self.y.multi_get(&cold)?;
        self.check_kept()?;
        for (&(i, stamp), value) in asked.iter().zip(found) {
            if let Some(value) = &value {
                self.load(Purpose::Read, keys[i], value, stamp);
            }
            values[i] = value;
        }
        Ok(())
    }

    /// I3: installs what Y said, unless something may have changed since `stamp` was read.
    fn load(&self, purpose: Purpose, key: &[u8], value: &[u8], stamp: Stamp) {
        let counters = &self.shared.counters;
        let bytes = key.len() + value.len();
        let fits = !self.buffer_only && !self.too_large_for_x(bytes);
        if fits && !self.misses.admit(self.id, key, purpose) {
            counters::add(&counters.not_admitted, 1);
            return;
        }
        let admit = || self.shared.room.admit_load(bytes);
        let loaded =
            fits && admit().is_some_and(|_admitted| self.x.load(key, value, stamp) == Load::Loaded);
        if !loaded {
            counters::add(&counters.loads_refused, 1);
        }
    }

    /// The way of a key and value of `bytes`.
    pub(crate) fn route(&self, bytes: usize) -> Route {
        match self.too_large_for_x(bytes) {
            true => Route::PastX,
            false => Route::ThroughX,
        }
    }

    pub(super) fn too_large_for_x(&self, bytes: usize) -> bool {
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
        let log = self.shared.log.get();
        let mut end = None;
        let put = self.x.put(key, value, || {
            // I10: a snapshot that begins from here on waits for the latch, and sees the write.
            if self.shared.versions.has_risen(seen) {
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
            Err(None) => return Ok(Written::SnapshotBegan),
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
        if self.discarded() {
            return Ok(None);
        }
        // I9: Y shows the key at a moment that no latch tells.
        let _held_off = self.dead.hold_off(key);
        let mut source = OneEntry {
            joined: self,
            entry: (key, value),
            to_log: self.shared.log.get().filter(|_| logged),
            logged: None,
            registered: None,
            gate: None,
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
        if let Some(expiry) = &self.expiry {
            expiry.wrote((key.len() + value.map_or(0, <[u8]>::len)) as u64);
        }
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

    /// Drops every entry, dirty ones too, and writes nothing to Y any more: the tree was dropped.
    /// Whoever waits for this Y hears of it.
    pub(crate) fn discard(&self) {
        let mut runs = self.writer.lock();
        self.writer.discard();
        self.drop_from_x(&mut runs, &[], None);
        // Whoever reads the tree is told that it is gone.
        self.versions.clear();
        self.shared.maintained.advance();
    }

    /// Drops the entries of `[from, to)`, dirty ones too; the range is mounted then. The caller
    /// holds the run lock.
    pub(super) fn drop_from_x(&self, runs: &mut Runs, from: &[u8], to: Option<&[u8]>) {
        self.bury_operands(from, to);
        let run = runs.begin();
        // Only what is clean is cut.
        let _ = self
            .x
            .clean(from, to, run, &mut |_, _, _| ControlFlow::Continue(()));
        self.writer.settle(run);
        self.x.cut(from, to, run, false, usize::MAX);
    }

    /// Removes every key of `[from, to)` from Y and X. The caller holds the stripes of all keys and
    /// the run lock, and the log is durable up to here (I5).
    ///
    /// Operands are buried before: they would be merged into nothing. Y comes first: a reader that
    /// finds nothing in X must not be told of an older version (I1). Then every mounted range gets
    /// a fresh stamp, so that nothing read from Y before is loaded any more (I3), and what was
    /// loaded goes with the rest. After an error nobody knows what Y shows: the caller poisons.
    pub(crate) fn remove_range(
        &self,
        runs: &mut Runs,
        from: &[u8],
        to: Option<&[u8]>,
    ) -> Result<()> {
        if self.discarded() {
            return Ok(());
        }
        self.bury_operands(from, to);
        self.writer.remove_range(from, to)?;
        self.remove_range_from_x(runs, from, to);
        Ok(())
    }

    /// The same in X, when Y has nothing of the range any more.
    pub(crate) fn remove_range_from_x(&self, runs: &mut Runs, from: &[u8], to: Option<&[u8]>) {
        if self.discarded() {
            return;
        }
        if from.is_empty() && to.is_none() {
            self.x.clear();
            self.removed_range(from);
            return;
        }
        // I3: before the first entry goes. A range that a cut has passed takes no load of what was
        // read from Y earlier, and what is loaded before this goes with the cut.
        self.x.restamp(from, to);
        self.drop_from_x(runs, from, to);
        self.x.clear_mounts(from, to);
        self.removed_range(from);
    }

    fn removed_range(&self, from: &[u8]) {
        self.regions.note_write(from);
        self.shared.room.announce_freed();
        self.shared.wake_compactor.notify();
    }

    /// Replays the removal of a range from the log.
    pub(crate) fn replay_range(&self, from: &[u8], to: Option<&[u8]>) -> Result<()> {
        let mut runs = self.writer.lock();
        self.remove_range(&mut runs, from, to)
    }

    /// The same where Y must not be changed: each key that Y has is hidden by a tombstone. Calls
    /// `admit` with the bytes of each before.
    pub(crate) fn hide_range(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        admit: impl Fn(usize) -> Result<()>,
    ) -> Result<()> {
        self.drop_from_x(&mut self.writer.lock(), from, to);
        for entry in self.y.range(from, to, Order::Ascending)? {
            let (key, _) = entry?;
            admit(key.len())?;
            self.apply(&key, None);
        }
        Ok(())
    }

    /// One step of Y towards less space; see [`IndexY::compact`].
    pub(crate) fn compact(&self, from: &[u8], to: Option<&[u8]>) -> Result<Maintained> {
        match self.discarded() {
            true => Ok(Maintained::Idle),
            false => match self.y.compact(from, to) {
                // Found, and left as it was.
                Err(found @ Error::Corrupt { .. }) => Err(found),
                step => self.shared.guarded(step),
            },
        }
    }

    /// Clears the mounts of a tree whose Y is empty, but where they have operands, and while merges
    /// are replayed. Waits for a run in flight.
    pub(crate) fn clear_mounts_if_y_is_empty(&self) -> Result<()> {
        if self.merging.operator.get().is_some() && !self.shared.log.may_resolve() {
            return Ok(());
        }
        let _run = self.writer.lock();
        if !self.discarded() && self.x.stats().mounts > 0 && self.y.is_empty()? {
            self.x.clear_mounts(&[], None);
        }
        Ok(())
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
        Ok(())
    }
}
