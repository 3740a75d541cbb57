//! One tree: an Index X and an Index Y joined (the paper's IndeXY).
//!
//! Source: IndeXY II-A, II-D. Here: point reads with migration.
//! Keeps: I1 (an entry of X wins, a mount asks Y), I3 (the stamp travels from the search to the
//! load).
//!
//! Threads: any number of readers. A writer holds the key's stripe (`db/`). Locks are taken in the
//! order stripe, run lock (`disk_writer.rs`), survey, leaf latch. Nothing is latched or pinned
//! while Y is read. Not here: writes (`writes.rs`), what happens to ranges (`ranges.rs`), scans
//! (`scan.rs`), cleaning (`clean/`), release (`release/`).

#![forbid(unsafe_code)]

use super::{
    at_once::AtOnce,
    counters,
    dead_stretches::DeadStretches,
    disk_writer::DiskWriter,
    ends::Ends,
    expiry::EXPIRY_BYTES,
    load_pause::LoadPause,
    merging::{Meeting, Merging},
    misses::{Misses, Purpose},
    operators::Operator,
    policies::RadixEntries,
    regions::{
        Regions, Table, boundaries, sample,
        survey::{Precision, RegionStats, Survey},
    },
    shared::Shared,
    sweep_schedule::Expiry,
};
use crate::{
    error::{Error, Result},
    key::Value,
    limits::MAX_VALUE_BYTES,
    versions::{store::Store, time::Millis},
    wal::Lsn,
    x::{AnyX, IndexX, Load, Lookup, RunId, Stamp},
    y::{Capabilities, IndexY},
};
use std::sync::Arc;

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
    /// Nothing was done: an image has to be left first, for a snapshot that has begun, or because
    /// it takes more than the search of the write.
    NeedsImage,
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

/// Where Y has keys, in a second X beside a tree's own; see `radix/`.
pub(crate) struct RadixCache {
    /// Its X has locators.
    pub cache: Arc<Joined>,
    pub entries: RadixEntries,
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
    /// X has locators: nothing of it is ever dirty, and it is no tree of the user's.
    pub has_locators: bool,
    /// Where Y has what X does not know.
    pub radix: Option<RadixCache>,
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
    /// While Y changes behind X's back.
    pub(crate) load_pause: LoadPause,
    /// Where scans need not look.
    pub(super) dead: DeadStretches,
    /// What Y has where entries are taken one after the other.
    pub(super) ends: Ends,
    survey: Survey,
    /// Where keys may have operands.
    pub(super) merging: Merging,
    /// Values that a fetcher reads at once.
    pub(super) fetching: AtOnce,
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
            has_locators: false,
            radix: None,
            misses: Misses::default(),
            expiry: None,
            regions: Regions::new(floor),
            ends: Ends::new(Arc::clone(&shared)),
            shared,
            load_pause: LoadPause::default(),
            dead: DeadStretches::default(),
            survey: Survey::default(),
            merging: Merging::default(),
            fetching: AtOnce::default(),
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

    /// The same as a cache of locators.
    pub(super) fn of_locators(self) -> Self {
        Self {
            has_locators: true,
            ..self
        }
    }

    /// The same with a cache of where Y has keys.
    pub(crate) fn with_radix(self, radix: Option<RadixCache>) -> Self {
        Self { radix, ..self }
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

    /// X has a value of `key`: emptying it takes no memory.
    pub(crate) fn has_in_x(&self, key: &[u8]) -> bool {
        matches!(self.x.get(key, |_| ()), Lookup::Found(()))
    }

    /// Whether the removal of `key` makes X no larger: it has the key, or knows that it is absent.
    pub(crate) fn removal_shrinks_x(&self, key: &[u8]) -> bool {
        match self.x.get(key, |_| ()) {
            Lookup::Found(()) | Lookup::Deleted | Lookup::Absent => true,
            Lookup::AskY(_) | Lookup::Operand => false,
        }
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
                        match &self.radix {
                            None => self.y.get(key)?,
                            Some(radix) => radix.get(&*self.y, key)?,
                        }
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
    pub(super) fn load(&self, purpose: Purpose, key: &[u8], value: &[u8], stamp: Stamp) {
        let counters = &self.shared.counters;
        let bytes = key.len() + value.len();
        let fits = !self.buffer_only && !self.too_large_for_x(bytes);
        if fits && !self.misses.admit(self.id, key, purpose) {
            counters::add(&counters.not_admitted, 1);
            return;
        }
        let admit = || self.shared.room.admit_load(bytes);
        let load = || {
            let loading = self.load_pause.pass(&self.shared.loads);
            loading.is_some_and(|_loading| self.x.load(key, value, stamp) == Load::Loaded)
        };
        let loaded = fits && admit().is_some_and(|_admitted| load());
        if !loaded {
            counters::add(&counters.loads_refused, 1);
        }
    }
}
