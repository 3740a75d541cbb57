//! One thread's loop: operations, their count, and the clock of each.
//!
//! The count goes to a cache line of its own every few operations, together with a look at one
//! read-mostly stop flag.

use super::job::{Broken, Clock};
use super::recent::Recent;
use crate::applications;
use crate::measure::{Latencies, LatencySummary};
use crate::tpcc;
use crate::workload::Rng;
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

/// Operations between two looks at the stop flag.
const CHUNK: u64 = 16;
/// Chunks between two timed operations of [`Clock::Sampled`].
const SAMPLED_CHUNKS: u64 = 4;

/// Kinds of operations whose latencies are kept apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Get,
    Insert,
    Update,
    Scan,
    ReadModifyWrite,
    Delete,
    MultiGet,
    Pop,
    Check,
    /// A transaction over several tables.
    Transaction(applications::Kind),
}

/// The kinds that are no transactions, by number.
const OPERATIONS: [&str; 9] = [
    "get",
    "insert",
    "update",
    "scan",
    "read_modify_write",
    "delete",
    "multi_get",
    "pop",
    "check",
];
const KINDS: usize = OPERATIONS.len() + applications::Kind::COUNT;
/// How many kinds of transactions TPC-C has, which are counted over time.
pub(super) const TRANSACTIONS: usize = tpcc::Transaction::ALL.len();

impl Kind {
    /// Its number among all kinds.
    #[inline]
    fn number(self) -> usize {
        match self {
            Self::Get => 0,
            Self::Insert => 1,
            Self::Update => 2,
            Self::Scan => 3,
            Self::ReadModifyWrite => 4,
            Self::Delete => 5,
            Self::MultiGet => 6,
            Self::Pop => 7,
            Self::Check => 8,
            Self::Transaction(kind) => OPERATIONS.len() + kind.number(),
        }
    }

    /// Names of all kinds, by number.
    fn names() -> impl Iterator<Item = &'static str> {
        let transactions = applications::Kind::all().map(applications::Kind::name);
        OPERATIONS.into_iter().chain(transactions)
    }
}

/// What one call did.
#[derive(Debug, Clone, Copy)]
pub(super) struct Done {
    pub kind: Kind,
    /// Operations that it counts as.
    pub ops: u64,
    /// Keys that it found.
    pub found: u64,
    /// Bytes of keys and values that it wrote.
    pub payload: u64,
}

impl Done {
    pub(super) fn one(kind: Kind, found: bool) -> Self {
        Self {
            kind,
            ops: 1,
            found: u64::from(found),
            payload: 0,
        }
    }

    pub(super) fn wrote(kind: Kind, payload: usize) -> Self {
        Self {
            kind,
            ops: 1,
            found: 0,
            payload: payload as u64,
        }
    }
}

/// One worker's sums.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub done: u64,
    pub found: u64,
    pub payload: u64,
    /// It was told to stop before all was done.
    pub cut: bool,
    transactions: [u64; TRANSACTIONS],
    latencies: [Option<Box<Latencies>>; KINDS],
}

impl Tally {
    #[inline]
    fn add(&mut self, done: Done) {
        self.done += done.ops;
        self.found += done.found;
        self.payload += done.payload;
        if let Kind::Transaction(applications::Kind::Tpcc(transaction)) = done.kind {
            self.transactions[transaction as usize] += done.ops;
        }
    }

    #[inline]
    fn time(&mut self, kind: Kind, ns: u64) {
        self.latencies[kind.number()]
            .get_or_insert_default()
            .record(ns);
    }

    pub(super) fn join(&mut self, other: Tally) {
        self.done += other.done;
        self.found += other.found;
        self.payload += other.payload;
        self.cut |= other.cut;
        for (mine, theirs) in self.transactions.iter_mut().zip(other.transactions) {
            *mine += theirs;
        }
        for (mine, theirs) in self.latencies.iter_mut().zip(other.latencies) {
            if let Some(theirs) = theirs {
                mine.get_or_insert_default().add(&theirs);
            }
        }
    }

    /// Latencies by the name of the kind.
    pub(super) fn summaries(&self) -> BTreeMap<String, LatencySummary> {
        let named = Kind::names().zip(&self.latencies);
        named
            .filter_map(|(name, l)| Some((name.to_owned(), l.as_ref()?.summary())))
            .collect()
    }
}

/// A counter that shares its cache lines (the hardware fetches two) with no other.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Lane {
    done: AtomicU64,
    transactions: [AtomicU64; TRANSACTIONS],
    /// Of operations that were timed.
    pub recent: Recent,
}

impl Lane {
    /// Operations done so far.
    pub(super) fn done(&self) -> u64 {
        self.done.load(Relaxed)
    }

    /// Of these, the transactions, by their numbers.
    pub(super) fn transactions(&self) -> [u64; TRANSACTIONS] {
        self.transactions.each_ref().map(|n| n.load(Relaxed))
    }

    fn publish(&self, tally: &Tally) {
        self.done.store(tally.done, Relaxed);
        for (lane, count) in self.transactions.iter().zip(tally.transactions) {
            if count > 0 {
                lane.store(count, Relaxed);
            }
        }
    }
}

/// What a worker's loop works with.
pub(super) struct Worker<'a> {
    /// Index of the thread.
    pub thread: u64,
    /// Threads of the phase.
    pub threads: u64,
    /// Draws of this thread in this phase.
    pub rng: Rng,
    tally: Tally,
    lane: &'a Lane,
    stop: &'a AtomicBool,
    clock: Clock,
    begun: Instant,
}

impl<'a> Worker<'a> {
    /// A worker whose clock starts now.
    pub(super) fn begin(
        (thread, threads): (usize, usize),
        rng: Rng,
        lane: &'a Lane,
        stop: &'a AtomicBool,
        clock: Clock,
    ) -> Self {
        let (thread, threads) = (thread as u64, threads as u64);
        let (tally, begun) = (Tally::default(), Instant::now());
        Self {
            thread,
            threads,
            rng,
            tally,
            lane,
            stop,
            clock,
            begun,
        }
    }

    #[inline]
    fn time(&mut self, kind: Kind, ns: u64) {
        self.tally.time(kind, ns);
        self.lane.recent.record(ns);
    }

    /// What it did.
    pub(super) fn into_tally(self) -> Tally {
        self.tally
    }

    /// Calls `op` until `ops` operations are done or the phase is stopped.
    #[inline]
    pub(super) fn drive(
        &mut self,
        ops: u64,
        op: impl FnMut(&mut Rng) -> Result<Done, Broken>,
    ) -> Result<(), Broken> {
        match self.clock {
            Clock::Every => self.drive_every(ops, op)?,
            Clock::Sampled => self.drive_sampled(ops, op)?,
            Clock::OpenLoop(rate) => self.drive_open(ops, rate, op)?,
        }
        self.tally.cut |= self.tally.done < ops;
        Ok(())
    }

    /// Calls `op` for each of `items` until the phase is stopped; true if all had their turn.
    pub(super) fn each<I>(
        &mut self,
        items: impl Iterator<Item = I>,
        mut op: impl FnMut(I) -> Result<Done, Broken>,
    ) -> Result<bool, Broken> {
        for item in items {
            if self.stop.load(Relaxed) {
                self.tally.cut = true;
                return Ok(false);
            }
            let begun = Instant::now();
            let done = op(item)?;
            self.time(done.kind, nanoseconds(begun.elapsed()));
            self.tally.add(done);
            self.lane.publish(&self.tally);
        }
        Ok(true)
    }

    #[inline]
    fn drive_every(
        &mut self,
        ops: u64,
        mut op: impl FnMut(&mut Rng) -> Result<Done, Broken>,
    ) -> Result<(), Broken> {
        let mut last = Instant::now();
        while self.tally.done < ops && !self.stop.load(Relaxed) {
            for _ in 0..CHUNK {
                let done = op(&mut self.rng)?;
                let now = Instant::now();
                self.time(done.kind, nanoseconds(now - last));
                last = now;
                self.tally.add(done);
                if self.tally.done >= ops {
                    break;
                }
            }
            self.lane.publish(&self.tally);
        }
        Ok(())
    }

    #[inline]
    fn drive_sampled(
        &mut self,
        ops: u64,
        mut op: impl FnMut(&mut Rng) -> Result<Done, Broken>,
    ) -> Result<(), Broken> {
        let mut chunks = 0u64;
        while self.tally.done < ops && !self.stop.load(Relaxed) {
            if chunks.is_multiple_of(SAMPLED_CHUNKS) {
                let begun = Instant::now();
                let done = op(&mut self.rng)?;
                self.time(done.kind, nanoseconds(begun.elapsed()));
                self.tally.add(done);
            }
            for _ in 0..CHUNK {
                if self.tally.done >= ops {
                    break;
                }
                let done = op(&mut self.rng)?;
                self.tally.add(done);
            }
            chunks += 1;
            self.lane.publish(&self.tally);
        }
        Ok(())
    }

    fn drive_open(
        &mut self,
        ops: u64,
        rate: f64,
        mut op: impl FnMut(&mut Rng) -> Result<Done, Broken>,
    ) -> Result<(), Broken> {
        let interval = self.threads as f64 / rate.max(1e-3);
        // Threads take turns within an interval, so that the whole is even.
        let offset = interval * self.thread as f64 / self.threads as f64;
        let mut calls = 0u64;
        while self.tally.done < ops && !self.stop.load(Relaxed) {
            let due = Duration::from_secs_f64(offset + interval * calls as f64);
            if !self.wait_until(due) {
                break;
            }
            let done = op(&mut self.rng)?;
            self.time(
                done.kind,
                nanoseconds(self.begun.elapsed().saturating_sub(due)),
            );
            self.tally.add(done);
            calls += 1;
            self.lane.publish(&self.tally);
        }
        Ok(())
    }

    /// False if the phase was stopped meanwhile.
    fn wait_until(&self, due: Duration) -> bool {
        const LONGEST_SLEEP: Duration = Duration::from_millis(100);
        // The kernel wakes sleepers late by about this much; the rest is spun.
        const SPUN: Duration = Duration::from_micros(80);
        loop {
            let now = self.begun.elapsed();
            if now >= due {
                return true;
            }
            if self.stop.load(Relaxed) {
                return false;
            }
            let left = due - now;
            if left > SPUN {
                thread::sleep((left - SPUN).min(LONGEST_SLEEP));
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

#[inline]
fn nanoseconds(d: Duration) -> u64 {
    d.as_nanos() as u64
}
