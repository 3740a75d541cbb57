//! The threads of one phase and the clock around them.
//!
//! Workers count into a cache line of their own and look at one read-mostly stop flag every few operations; the calling
//! thread sleeps from tick to tick, samples, and stops them at the time cap or an interrupt.
//! The clock starts when all sessions are open and stops when all have finished, so that a
//! commit at the end is part of the time.

use super::job::{Broken, Clock, Emitter, Event, JobError, Phase};
use super::{Interrupt, Job};
use crate::contender::{Contender, Session};
use crate::measure::{Cpu, Io, Latencies, Memory, PhaseResult, Tick, reset_peak_memory};
use crate::workload::{Rng, rng};
use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Barrier,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    thread::{self, Thread},
    time::{Duration, Instant},
};

/// Operations between two looks at the stop flag.
const CHUNK: u64 = 16;
/// Chunks between two timed operations of [`Clock::Sampled`].
const SAMPLED_CHUNKS: u64 = 4;

/// Kinds of operations whose latencies are kept apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Kind {
    Get,
    Insert,
    Update,
    Scan,
    ReadModifyWrite,
    Delete,
    MultiGet,
}
const KINDS: [(Kind, &str); 7] = [
    (Kind::Get, "get"),
    (Kind::Insert, "insert"),
    (Kind::Update, "update"),
    (Kind::Scan, "scan"),
    (Kind::ReadModifyWrite, "read_modify_write"),
    (Kind::Delete, "delete"),
    (Kind::MultiGet, "multi_get"),
];

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
struct Tally {
    done: u64,
    found: u64,
    payload: u64,
    latencies: [Option<Box<Latencies>>; KINDS.len()],
}

impl Tally {
    #[inline]
    fn add(&mut self, done: Done) {
        self.done += done.ops;
        self.found += done.found;
        self.payload += done.payload;
    }

    #[inline]
    fn time(&mut self, kind: Kind, ns: u64) {
        self.latencies[kind as usize]
            .get_or_insert_default()
            .record(ns);
    }

    fn join(&mut self, other: Tally) {
        self.done += other.done;
        self.found += other.found;
        self.payload += other.payload;
        for (mine, theirs) in self.latencies.iter_mut().zip(other.latencies) {
            if let Some(theirs) = theirs {
                mine.get_or_insert_default().add(&theirs);
            }
        }
    }
}

/// A counter that shares its cache lines (the hardware fetches two) with no other.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Lane {
    done: AtomicU64,
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

impl Worker<'_> {
    /// Calls `op` until `ops` operations are done or the phase is stopped.
    #[inline]
    pub(super) fn drive(
        &mut self,
        ops: u64,
        op: impl FnMut(&mut Rng) -> Result<Done, Broken>,
    ) -> Result<(), Broken> {
        match self.clock {
            Clock::Every => self.drive_every(ops, op),
            Clock::Sampled => self.drive_sampled(ops, op),
            Clock::OpenLoop(rate) => self.drive_open(ops, rate, op),
        }
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
                self.tally.time(done.kind, nanoseconds(now - last));
                last = now;
                self.tally.add(done);
                if self.tally.done >= ops {
                    break;
                }
            }
            self.lane.done.store(self.tally.done, Relaxed);
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
                self.tally.time(done.kind, nanoseconds(begun.elapsed()));
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
            self.lane.done.store(self.tally.done, Relaxed);
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
            self.tally.time(
                done.kind,
                nanoseconds(self.begun.elapsed().saturating_sub(due)),
            );
            self.tally.add(done);
            calls += 1;
            self.lane.done.store(self.tally.done, Relaxed);
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

/// What stays the same over all phases of a job.
#[derive(Debug)]
pub(super) struct Around<'a> {
    pub job: &'a Job,
    pub base: Memory,
    pub interrupt: &'a Interrupt,
}

/// Runs `body` in `phase.threads` threads, each with a session of `contender`.
/// `asked` is for display; `index` numbers the phase for its draws.
/// Returns the result and what each thread's body returned.
pub(super) fn run_crew<C: Contender, T: Send>(
    contender: &C,
    around: &Around<'_>,
    phase: &Phase,
    index: u64,
    asked: u64,
    emitter: &mut Emitter<'_>,
    body: impl Fn(&mut C::Session<'_>, &mut Worker<'_>) -> Result<T, Broken> + Sync,
) -> Result<(PhaseResult, Vec<T>), JobError> {
    let threads = phase.threads.max(1);
    let lanes: Vec<Lane> = (0..threads).map(|_| Lane::default()).collect();
    let (stop, running) = (AtomicBool::new(false), AtomicUsize::new(threads));
    let barrier = Barrier::new(threads + 1);
    let watcher = thread::current();
    let work = |thread: usize| -> Result<(Tally, T), Broken> {
        let _leave = Leave {
            running: &running,
            stop: &stop,
            watcher: &watcher,
        };
        // Whatever an engine does, the barrier is passed: the others wait there.
        let session = catch_unwind(AssertUnwindSafe(|| contender.session()))
            .unwrap_or_else(|panic| Err(panic_text(&*panic).into()));
        barrier.wait();
        let mut session = session?;
        let mut worker = Worker {
            thread: thread as u64,
            threads: threads as u64,
            rng: rng(around.job.seed, index, thread as u64),
            tally: Tally::default(),
            lane: &lanes[thread],
            stop: &stop,
            clock: phase.clock,
            begun: Instant::now(),
        };
        let returned =
            body(&mut session, &mut worker).inspect_err(|_| stop.store(true, Relaxed))?;
        session.finish()?;
        Ok((worker.tally, returned))
    };
    reset_peak_memory();
    let (io, cpu) = (Io::now(), Cpu::now());
    let mut accounted_peak = contender.memory_used();
    let (joined, series, begun) = thread::scope(|scope| {
        let work = &work;
        let handles: Vec<_> = (0..threads).map(|t| scope.spawn(move || work(t))).collect();
        barrier.wait();
        let begun = Instant::now();
        let watch = Watch {
            around,
            phase,
            lanes: &lanes,
            stop: &stop,
            running: &running,
            begun,
            io,
        };
        let series = watch.until_done(contender, emitter, &mut accounted_peak);
        let joined: Vec<_> = handles.into_iter().map(|h| h.join()).collect();
        (joined, series, begun)
    });
    let seconds = begun.elapsed().as_secs_f64();
    let mut tally = Tally::default();
    let mut returned = Vec::new();
    for result in joined {
        let result = result.map_err(|panic| {
            JobError::Invalid(format!("phase {}: {}", phase.name, panic_text(&*panic)))
        })?;
        let (one, value) = result.map_err(|broken| broken.in_phase(&phase.name))?;
        tally.join(one);
        returned.push(value);
    }
    let accounted = contender.memory_used();
    let result = PhaseResult {
        name: phase.name.clone(),
        x: phase.x,
        threads,
        asked,
        done: tally.done,
        found: tally.found,
        seconds,
        partial: asked > 0 && tally.done < asked,
        latency: summaries(&tally),
        memory: Memory::now(),
        base: around.base,
        accounted,
        accounted_peak: accounted_peak.max(accounted),
        io: Io::now() - io,
        cpu: Cpu::now() - cpu,
        payload_written: tally.payload,
        disk: super::directory_bytes(&around.job.setup.path),
        counters: contender.counters(),
        series,
    };
    Ok((result, returned))
}

fn summaries(tally: &Tally) -> BTreeMap<String, crate::measure::LatencySummary> {
    KINDS
        .iter()
        .zip(&tally.latencies)
        .filter_map(|((_, name), latencies)| {
            Some(((*name).to_owned(), latencies.as_ref()?.summary()))
        })
        .collect()
}

/// Tells the watcher that a worker is gone, however it went; a panic stops the others.
struct Leave<'a> {
    running: &'a AtomicUsize,
    stop: &'a AtomicBool,
    watcher: &'a Thread,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.stop.store(true, Relaxed);
        }
        self.running.fetch_sub(1, Relaxed);
        self.watcher.unpark();
    }
}

/// The text of a panic's payload.
pub(super) fn panic_text(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied());
    format!("panicked: {}", text.unwrap_or("(no message)"))
}

/// The calling thread's part of a phase.
struct Watch<'a> {
    around: &'a Around<'a>,
    phase: &'a Phase,
    lanes: &'a [Lane],
    stop: &'a AtomicBool,
    running: &'a AtomicUsize,
    begun: Instant,
    io: Io,
}

impl Watch<'_> {
    fn until_done<C: Contender>(
        &self,
        contender: &C,
        emitter: &mut Emitter<'_>,
        accounted_peak: &mut Option<u64>,
    ) -> Vec<Tick> {
        let tick = Duration::from_millis(self.around.job.tick_ms.max(10));
        let cap = Some(self.phase.max_seconds)
            .filter(|&s| s > 0.0)
            .map(Duration::from_secs_f64);
        let mut series = vec![Tick::default()];
        let mut next = tick;
        while self.running.load(Relaxed) > 0 {
            let wake = cap
                .filter(|_| !self.stop.load(Relaxed))
                .map_or(next, |cap| cap.min(next));
            thread::park_timeout(wake.saturating_sub(self.begun.elapsed()));
            let now = self.begun.elapsed();
            if self.around.interrupt.is_raised() || cap.is_some_and(|cap| now >= cap) {
                self.stop.store(true, Relaxed);
            }
            if now >= next {
                series.push(self.sample(contender, emitter, accounted_peak));
                while next <= self.begun.elapsed() {
                    next += tick;
                }
            }
        }
        series.push(self.sample(contender, emitter, accounted_peak));
        series
    }

    fn sample<C: Contender>(
        &self,
        contender: &C,
        emitter: &mut Emitter<'_>,
        accounted_peak: &mut Option<u64>,
    ) -> Tick {
        let accounted = contender.memory_used();
        *accounted_peak = (*accounted_peak).max(accounted);
        let io = Io::now() - self.io;
        let tick = Tick {
            at: self.begun.elapsed().as_secs_f64(),
            ops: self.lanes.iter().map(|l| l.done.load(Relaxed)).sum(),
            resident: Memory::now()
                .resident
                .saturating_sub(self.around.base.resident),
            accounted: accounted.unwrap_or(0),
            written: io.device_written,
            read: io.device_read,
        };
        emitter.emit(&Event::Going {
            at: tick.at,
            ops: tick.ops,
            resident: tick.resident,
            accounted: tick.accounted,
        });
        tick
    }
}
