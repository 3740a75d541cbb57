//! The threads of one phase and the clock around them.
//!
//! The workers run (`worker.rs`); the calling thread sleeps from tick to tick, samples, and stops
//! them at the time cap (`ending.rs`) or an interrupt. The clock starts when all sessions are open
//! and stops when all have finished, so that a commit at the end is part of the time.

use super::ending::Ending;
use super::interrupt::Interrupt;
use super::job::{Broken, Emitter, Event, Job, JobError, Phase};
use super::recent::Seen;
use super::space::directory_bytes;
use super::worker::{Lane, TRANSACTIONS, Tally, Worker};
use crate::contender::{Contender, Outcome, Session};
use crate::measure::{Cpu, Io, Memory, PhaseResult, Tick, reset_peak_memory};
use crate::workload::rng;
use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Barrier,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    thread::{self, Thread},
    time::{Duration, Instant},
};

/// What stays the same over all phases of a job.
#[derive(Debug)]
pub(super) struct Around<'a> {
    pub job: &'a Job,
    pub base: Memory,
    pub interrupt: &'a Interrupt,
}

impl Around<'_> {
    /// After a free load, limits memory before a phase that is measured.
    pub(super) fn limit(&self, phase: &Phase) -> Result<(), JobError> {
        let group = self.job.group.as_ref().filter(|_| !phase.is_load());
        match group.and_then(|group| group.after_load.as_ref()) {
            Some(limit) => limit
                .set()
                .map_err(|e| JobError::Invalid(format!("cannot limit memory after the load: {e}"))),
            None => Ok(()),
        }
    }
}

/// What the threads of a phase share.
pub(super) trait Engine: Sync {
    /// What one thread works through.
    type Seat<'a>
    where
        Self: 'a;

    /// The calling thread's.
    fn seat(&self) -> Outcome<Self::Seat<'_>>;

    /// Called at the end of a phase.
    fn finish(seat: &mut Self::Seat<'_>) -> Outcome<()>;

    /// Bytes that the engine itself says it holds, if it does.
    fn used(&self) -> Option<u64>;

    /// Counters of the engine by name.
    fn counts(&self) -> BTreeMap<String, f64>;
}

impl<C: Contender> Engine for C {
    type Seat<'a> = C::Session<'a>;

    fn seat(&self) -> Outcome<C::Session<'_>> {
        self.session()
    }

    fn finish(seat: &mut C::Session<'_>) -> Outcome<()> {
        seat.finish()
    }

    fn used(&self) -> Option<u64> {
        self.memory_used()
    }

    fn counts(&self) -> BTreeMap<String, f64> {
        self.counters()
    }
}

/// What [`timed`] is given: the opened engine, its memory, its counters.
type Opened<E> = (E, Option<u64>, BTreeMap<String, f64>);

/// Opens an engine and reports the time as a phase of its own, called `name`.
pub(super) fn timed<E>(
    around: &Around<'_>,
    name: &str,
    emitter: &mut Emitter<'_>,
    open: impl FnOnce() -> Outcome<Opened<E>>,
) -> Result<E, JobError> {
    reset_peak_memory();
    let (io, cpu, begun) = (Io::now(), Cpu::now(), Instant::now());
    let (engine, accounted, counters) = open().map_err(JobError::engine("open"))?;
    let seconds = begun.elapsed().as_secs_f64();
    let result = PhaseResult {
        name: name.to_owned(),
        threads: 1,
        asked: 1,
        done: 1,
        seconds,
        memory: Memory::now(),
        base: around.base,
        accounted,
        io: Io::now() - io,
        cpu: Cpu::now() - cpu,
        disk: directory_bytes(&around.job.setup.path),
        counters,
        ..PhaseResult::default()
    };
    emitter.emit(&Event::Phase {
        result: Box::new(result),
    });
    Ok(engine)
}

/// Runs `body` in `phase.threads` threads, each with a seat at `engine`.
/// `asked` is for display; `index` numbers the phase for its draws.
/// Returns the result and what each thread's body returned.
pub(super) fn run_crew<E: Engine, T: Send>(
    engine: &E,
    around: &Around<'_>,
    phase: &Phase,
    index: u64,
    asked: u64,
    emitter: &mut Emitter<'_>,
    body: impl Fn(&mut E::Seat<'_>, &mut Worker<'_>) -> Result<T, Broken> + Sync,
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
        let session = catch_unwind(AssertUnwindSafe(|| engine.seat()))
            .unwrap_or_else(|panic| Err(panic_text(&*panic).into()));
        barrier.wait();
        let mut session = session?;
        let draws = rng(around.job.seed, index, thread as u64);
        let mut worker =
            Worker::begin((thread, threads), draws, &lanes[thread], &stop, phase.clock);
        let returned =
            body(&mut session, &mut worker).inspect_err(|_| stop.store(true, Relaxed))?;
        E::finish(&mut session)?;
        Ok((worker.into_tally(), returned))
    };
    reset_peak_memory();
    let before = Before {
        io: Io::now(),
        cpu: Cpu::now(),
    };
    let (joined, watched) = thread::scope(|scope| {
        let work = &work;
        let handles: Vec<_> = (0..threads).map(|t| scope.spawn(move || work(t))).collect();
        barrier.wait();
        let mut watch = Watch {
            around,
            phase,
            lanes: &lanes,
            stop: &stop,
            running: &running,
            begun: Instant::now(),
            io: before.io,
            cpu: before.cpu,
            seen: Seen::default(),
        };
        let watched = watch.until_done(engine, emitter);
        let joined: Vec<_> = handles.into_iter().map(|h| h.join()).collect();
        (joined, watched)
    });
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
    let interrupted = watched.interrupted;
    let mut result = before.result(engine, around, watched);
    result.name.clone_from(&phase.name);
    result.x = phase.x;
    result.threads = threads;
    result.asked = asked;
    result.done = tally.done;
    result.found = tally.found;
    result.interrupted = interrupted && tally.cut;
    result.partial = result.interrupted || (asked > 0 && tally.done < asked);
    result.latency = tally.summaries();
    result.payload_written = tally.payload;
    Ok((result, returned))
}

/// Counters of the process when a phase began.
struct Before {
    io: Io,
    cpu: Cpu,
}

impl Before {
    /// What the phase did to the process and to the contender.
    fn result<E: Engine>(&self, engine: &E, around: &Around<'_>, watched: Watched) -> PhaseResult {
        let accounted = engine.used();
        PhaseResult {
            seconds: watched.seconds,
            memory: Memory::now(),
            base: around.base,
            accounted,
            accounted_peak: watched.accounted_peak.max(accounted),
            io: Io::now() - self.io,
            cpu: Cpu::now() - self.cpu,
            disk: directory_bytes(&around.job.setup.path),
            counters: engine.counts(),
            series: watched.series,
            ..PhaseResult::default()
        }
    }
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

fn releases<E: Engine>(engine: &E) -> Option<f64> {
    engine.counts().get("releases").copied()
}

/// What the calling thread saw.
struct Watched {
    seconds: f64,
    series: Vec<Tick>,
    accounted_peak: Option<u64>,
    /// It was an interrupt that told the workers to stop.
    interrupted: bool,
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
    cpu: Cpu,
    /// Latencies up to the last tick.
    seen: Seen,
}

impl Watch<'_> {
    fn until_done<E: Engine>(&mut self, engine: &E, emitter: &mut Emitter<'_>) -> Watched {
        let (mut accounted_peak, mut interrupted) = (None, false);
        let tick = Duration::from_millis(self.around.job.tick_ms.max(10));
        let ending = Ending::of(self.phase, || releases(engine));
        let mut series = vec![Tick::default()];
        let mut next = tick;
        while self.running.load(Relaxed) > 0 {
            let stopped = self.stop.load(Relaxed);
            let wake = match stopped {
                true => next,
                false => ending.wake(self.begun.elapsed(), next),
            };
            thread::park_timeout(wake.saturating_sub(self.begun.elapsed()));
            let over = !stopped && ending.is_over(self.begun.elapsed(), || releases(engine));
            if over || self.around.interrupt.is_raised() && !stopped {
                interrupted = !over;
                self.stop.store(true, Relaxed);
            }
            if self.begun.elapsed() >= next {
                series.push(self.sample(engine, emitter, &mut accounted_peak));
                while next <= self.begun.elapsed() {
                    next += tick;
                }
            }
        }
        let seconds = self.begun.elapsed().as_secs_f64();
        series.push(self.sample(engine, emitter, &mut accounted_peak));
        Watched {
            seconds,
            series,
            accounted_peak,
            interrupted,
        }
    }

    /// Transactions of each kind so far, if there were any.
    fn transactions(&self) -> Option<[u64; TRANSACTIONS]> {
        let mut sum = [0; TRANSACTIONS];
        for lane in self.lanes {
            for (sum, one) in sum.iter_mut().zip(lane.transactions()) {
                *sum += one;
            }
        }
        sum.iter().any(|n| *n > 0).then_some(sum)
    }

    fn sample<E: Engine>(
        &mut self,
        engine: &E,
        emitter: &mut Emitter<'_>,
        accounted_peak: &mut Option<u64>,
    ) -> Tick {
        let accounted = engine.used();
        *accounted_peak = (*accounted_peak).max(accounted);
        let (io, cpu) = (Io::now() - self.io, Cpu::now() - self.cpu);
        let tick = Tick {
            at: self.begun.elapsed().as_secs_f64(),
            ops: self.lanes.iter().map(Lane::done).sum(),
            transactions: self.transactions(),
            latency: self.seen.since(self.lanes.iter().map(|l| &l.recent)),
            cpu: cpu.user + cpu.system,
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
