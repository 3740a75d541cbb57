//! Whoever keeps the hot set of an open database: a thread that warms and then saves from time to
//! time, and the end of the database, which saves once more.
//!
//! What it must not do: replace a good file by the keys of a memory that is still cold, or of one
//! that has hardly been used, where nobody knows which are hot. So nothing is saved before warming
//! has come to its end, and a database that is closed before that leaves the file as it was. The
//! first save of an open waits for a tenth as many reads and writes as the file has keys; for as
//! many as memory has, where that was full before half of them were warmed (a replay fills it).
//! Where reads of Y fail one after the other, or the file is damaged, warming has come to its end.
//! Where the process wants for descriptors or memory to read the file, it has not, and this open
//! saves nothing.
//!
//! Keeps: I7. What a save or warming needs is taken from the budget when the database opens:
//! later, writers may have all of it.
//!
//! Threads: one, `indexy-hot`, from the end of recovery until
//! [`Background::stop`](crate::framework::worker::Background::stop). It waits for a read of Y, or
//! for its signal, which the stop gives. Between two reads and two blocks it looks whether it is to
//! stop, or the database is poisoned. Whoever ends the database calls [`Keeper::save_at_end`] after
//! the thread has ended, so there is one writer at a time. The thread's failures end in events.

#![forbid(unsafe_code)]

use super::{
    file::{self, Reader},
    save::{self, Place},
    warm::{self, Ended, Warmer},
};
use crate::{
    error::{Error, Result},
    events,
    framework::{counters::read, host::Host, policies::HotSet, shared::Shared, signal::Stop},
    mem::budget::Holder,
    storage::Storage,
    x::IndexX,
};
use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{
            AtomicU8, AtomicU64,
            Ordering::{AcqRel, Acquire, Relaxed, Release},
        },
    },
    time::{Duration, Instant},
};

/// The longest wait at once: clocks have an end.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// The file is being read, or is about to be.
const WARMING: u8 = 0;
/// Memory has what the file had, as far as it goes.
const WARM: u8 = 1;
/// Warming was cut short: the file has more than memory.
const CUT_SHORT: u8 = 2;

/// See the module header.
pub(crate) struct Keeper {
    storage: Arc<dyn Storage>,
    dir: PathBuf,
    database_id: u128,
    shared: Arc<Shared>,
    every: Duration,
    read_only: bool,
    /// Taken from the budget as long as it lives.
    reserved: usize,
    state: AtomicU8,
    /// How many reads and writes there have to be before the first save. Written before `state`
    /// says `WARM`.
    first_after: AtomicU64,
    figures: Figures,
}

/// Says when dropped that warming was cut short, unless it has ended: by a panic, too, so that
/// whoever waits for its end goes on.
struct CutShort<'a>(&'a AtomicU8);

impl Drop for CutShort<'_> {
    fn drop(&mut self) {
        let _ = (self.0).compare_exchange(WARMING, CUT_SHORT, AcqRel, Relaxed);
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.shared.budget.give(Holder::Transfer, self.reserved);
    }
}

/// What a keeper has done.
#[derive(Debug, Default)]
struct Figures {
    saved_keys: AtomicU64,
    warmed_keys: AtomicU64,
}

impl Keeper {
    /// `None` where nothing is to be kept.
    pub(crate) fn new(
        choice: HotSet,
        read_only: bool,
        (storage, dir): (Arc<dyn Storage>, PathBuf),
        database_id: u128,
        shared: Arc<Shared>,
    ) -> Option<Self> {
        let HotSet::Keep { every } = choice else {
            return None;
        };
        let warming = warm::bytes(shared.budget.limit());
        let reserved = match read_only {
            true => warming,
            false => warming.max(save::BYTES),
        };
        shared.budget.take(Holder::Transfer, reserved);
        Some(Self {
            reserved,
            storage,
            dir,
            database_id,
            shared,
            every,
            read_only,
            state: AtomicU8::new(WARMING),
            first_after: AtomicU64::new(0),
            figures: Figures::default(),
        })
    }

    /// Keys in the file that this process saved last.
    pub(crate) fn saved_keys(&self) -> u64 {
        self.figures.saved_keys.load(Relaxed)
    }

    /// Keys that were brought into memory.
    pub(crate) fn warmed_keys(&self) -> u64 {
        self.figures.warmed_keys.load(Relaxed)
    }

    /// Whether it is still at that.
    pub(crate) fn is_warming(&self) -> bool {
        self.state.load(Acquire) == WARMING
    }

    /// The life of the thread.
    pub(crate) fn run(&self, host: &dyn Host, stop: &Stop) {
        // What was replayed counts as written.
        let replayed = self.activity();
        let unwound = CutShort(&self.state);
        let ended = self.warm_up(host, replayed, &|| stop.is_set());
        let cut_short = matches!(ended, Ended::Stopped | Ended::NotRead);
        if !cut_short {
            // Pairs with the loads in `is_warming` and `save_at_end`.
            self.state.store(WARM, Release);
        }
        drop(unwound);
        if self.read_only || cut_short {
            return;
        }
        let (mut saved, mut seen) = (Instant::now(), 0);
        while !stop.is_set() {
            let left = self.every.saturating_sub(saved.elapsed());
            self.shared.wake_keeper.wait(left.min(LONGEST_WAIT));
            if stop.is_set() || saved.elapsed() < self.every {
                continue;
            }
            saved = Instant::now();
            let active = self.activity();
            if active != seen && self.knows_enough() {
                seen = active;
                self.save(host, &|| stop.is_set());
            }
        }
    }

    /// Saves when the threads have ended. Nothing that fails here is an error of the end: the next
    /// open finds the file as it was.
    pub(crate) fn save_at_end(&self, host: &dyn Host) {
        if !self.read_only && self.state.load(Acquire) == WARM && self.knows_enough() {
            self.save(host, &|| self.shared.poison.check().is_err());
        }
    }

    /// Enough was read and written to replace the file; or it was replaced before.
    fn knows_enough(&self) -> bool {
        self.activity() >= self.first_after.load(Relaxed)
    }

    /// Reads and writes so far.
    fn activity(&self) -> u64 {
        let counters = &self.shared.counters;
        counters.hits() + counters.writes() + read(&counters.misses)
    }

    fn warm_up(&self, host: &dyn Host, replayed: u64, stopped: &dyn Fn() -> bool) -> Ended {
        let started = Instant::now();
        match self.try_warm_up(host, replayed, stopped) {
            Ok(None) => Ended::All,
            Ok(Some(ended)) => {
                let stopped = ended == Ended::Stopped;
                events::warmed(self.warmed_keys(), started.elapsed(), stopped);
                ended
            }
            Err(error) => {
                events::hot_set_ignored(&file::path(&self.dir), &error);
                match error.is_transient() {
                    true => Ended::NotRead,
                    false => Ended::Failed,
                }
            }
        }
    }

    /// `None`: there is no file.
    fn try_warm_up(
        &self,
        host: &dyn Host,
        replayed: u64,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Option<Ended>> {
        let (storage, warmed) = (&*self.storage, &self.figures.warmed_keys);
        let warm_up = || -> Result<Option<Ended>> {
            let opened = Reader::open(storage, &self.dir, self.database_id, stopped)?;
            let Some((mut file, totals)) = opened else {
                return Ok(None);
            };
            let wait_for = |more: u64| self.first_after.store(replayed + more, Relaxed);
            wait_for(totals.keys.div_ceil(10));
            let mut warmer = Warmer::new(&self.shared, host, warmed, stopped);
            let ended = warmer.run(&mut file)?;
            if ended == Ended::Full && self.warmed_keys() < totals.keys / 2 {
                let trees = host.trees();
                let in_memory: usize = trees.iter().map(|tree| tree.x.stats().keys).sum();
                wait_for(totals.keys.min(in_memory as u64));
            }
            Ok(Some(ended))
        };
        match warm_up() {
            Err(Error::Closed) => Ok(Some(Ended::Stopped)),
            ended => ended,
        }
    }

    fn save(&self, host: &dyn Host, stopped: &dyn Fn() -> bool) {
        let started = Instant::now();
        let place = Place {
            storage: &*self.storage,
            dir: &self.dir,
            database_id: self.database_id,
        };
        match save::save(place, &self.shared, host, stopped) {
            Ok(Some(totals)) => {
                self.figures.saved_keys.store(totals.keys, Relaxed);
                self.first_after.store(0, Relaxed);
                events::hot_set_saved(totals.keys, started.elapsed());
            }
            Ok(None) => {}
            Err(error) => events::hot_set_not_saved(&error),
        }
    }
}
