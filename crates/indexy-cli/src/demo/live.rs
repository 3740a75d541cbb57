//! What the demo shows while it runs, and the samples that its report plots.
//!
//! A thread looks at the database a few times per second. On a terminal it redraws a few lines;
//! elsewhere it prints one line now and then. The thread is joined when [`Live`] is dropped.

use super::{
    sample::{PhaseResult, Sample, Seen},
    screen::{SPARK_CELLS, Screen, View},
};
use indexy::Db;
use indexy_report::size;
use std::{
    fs,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// Shortest time between two samples.
const MIN_SAMPLE_INTERVAL: Duration = Duration::from_millis(100);
/// About this many samples are taken in the planned time.
const SAMPLES_PLANNED: u32 = 600;
const LINE_INTERVAL: Duration = Duration::from_secs(2);

struct Current {
    name: &'static str,
    began: f64,
    operations: u64,
    hits: u64,
    misses: u64,
    peak_memory: u64,
    peak_resident: Option<u64>,
}

#[derive(Default)]
struct State {
    db: Option<Db>,
    current: Option<Current>,
    samples: Vec<Sample>,
    finished: Vec<PhaseResult>,
    peak_resident: u64,
    ended: bool,
}

struct Shared {
    started: Instant,
    planned: Duration,
    resident_before: u64,
    budget: u64,
    phases: usize,
    operations: AtomicU64,
    data: AtomicU64,
    /// Memory that the killed process counts, plus one; 0 while there is none.
    victim_memory: AtomicU64,
    state: Mutex<State>,
    wake: Condvar,
}

/// The live view.
pub struct Live {
    shared: Arc<Shared>,
    screen: Arc<Screen>,
    sampler: Option<JoinHandle<()>>,
}

impl Live {
    /// Starts to look. `phases`: how many there will be.
    pub fn start(budget: u64, planned: Duration, phases: usize) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            started: Instant::now(),
            planned,
            resident_before: resident_bytes().unwrap_or(0),
            budget,
            phases,
            operations: AtomicU64::new(0),
            data: AtomicU64::new(0),
            victim_memory: AtomicU64::new(0),
            state: Mutex::default(),
            wake: Condvar::new(),
        });
        let screen = Arc::new(Screen::new());
        let sampler = thread::Builder::new().name("live".into()).spawn({
            let (shared, screen) = (shared.clone(), screen.clone());
            move || sample_until_ended(&shared, &screen)
        })?;
        Ok(Self {
            shared,
            screen,
            sampler: Some(sampler),
        })
    }

    /// The database that is open from now on, or none.
    pub fn watch(&self, db: Option<Db>) {
        self.shared.lock().db = db;
    }

    /// Counts operations.
    pub fn add_operations(&self, n: u64) {
        self.shared.operations.fetch_add(n, Relaxed);
    }

    /// Counts bytes of keys and values that were added.
    pub fn add_data(&self, bytes: u64) {
        self.shared.data.fetch_add(bytes, Relaxed);
    }

    /// Bytes of keys and values in the database.
    pub fn data(&self) -> u64 {
        self.shared.data.load(Relaxed)
    }

    /// What the process that will be killed says about its memory.
    pub fn set_victim_memory(&self, bytes: Option<u64>) {
        self.shared
            .victim_memory
            .store(bytes.map_or(0, |b| b + 1), Relaxed);
    }

    /// A phase begins.
    pub fn begin(&self, name: &'static str) {
        let mut state = self.shared.lock();
        let (hits, misses) = state.db.as_ref().map_or((0, 0), hits_and_misses);
        state.current = Some(Current {
            name,
            began: self.shared.seconds(),
            operations: self.shared.operations.load(Relaxed),
            hits,
            misses,
            peak_memory: 0,
            peak_resident: None,
        });
    }

    /// The phase that began last is over. Counters of a database opened meanwhile start at zero.
    pub fn end(&self, latency: Option<[u64; 3]>, outcome: String) {
        let mut state = self.shared.lock();
        let Some(current) = state.current.take() else {
            return;
        };
        let (hits, misses) = state.db.as_ref().map_or((0, 0), hits_and_misses);
        let result = PhaseResult {
            name: current.name,
            began: current.began,
            ended: self.shared.seconds(),
            operations: self.shared.operations.load(Relaxed) - current.operations,
            hits: hits.saturating_sub(current.hits),
            misses: misses.saturating_sub(current.misses),
            peak_memory: current.peak_memory,
            peak_resident: current.peak_resident,
            latency,
            outcome,
        };
        let head = format!(
            "{}/{} {}",
            state.finished.len() + 1,
            self.shared.phases,
            result.name
        );
        let took = size::duration(result.elapsed());
        let text = match &*self.screen {
            // Two lines, so that each fits.
            Screen::Terminal(_) => format!("{head}, {took}\n    {}", result.outcome),
            Screen::Plain => format!("{head} ({took}): {}", result.outcome),
        };
        state.finished.push(result);
        drop(state);
        self.screen.say(&text);
    }

    /// Says something that stays.
    pub fn say(&self, text: &str) {
        self.screen.say(text);
    }

    /// Ends the view and gives what was seen.
    pub fn finish(mut self) -> Seen {
        self.stop();
        let mut state = self.shared.lock();
        Seen {
            samples: std::mem::take(&mut state.samples),
            phases: std::mem::take(&mut state.finished),
            peak_resident: state.peak_resident,
            resident_before: self.shared.resident_before,
        }
    }

    fn stop(&mut self) {
        {
            let mut state = self.shared.lock();
            state.ended = true;
            state.db = None;
        }
        self.shared.wake.notify_all();
        if let Some(sampler) = self.sampler.take() {
            // A sampler that panicked has said so itself.
            let _ = sampler.join();
        }
        self.screen.clear();
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}

fn hits_and_misses(db: &Db) -> (u64, u64) {
    let stats = db.stats();
    (stats.hits, stats.misses)
}

/// Counters at the sample before.
#[derive(Default)]
struct Before {
    at: f64,
    operations: u64,
    hits: u64,
    misses: u64,
}

fn sample_until_ended(shared: &Shared, screen: &Screen) {
    let interval = (shared.planned / SAMPLES_PLANNED).max(MIN_SAMPLE_INTERVAL);
    let mut before = Before::default();
    let mut state = shared.lock();
    let mut last_line = Instant::now();
    loop {
        state = shared
            .wake
            .wait_timeout(state, interval)
            .map_or_else(|e| e.into_inner().0, |(state, _)| state);
        if state.ended {
            return;
        }
        let sample = take_sample(shared, &mut state, &mut before);
        let shown = View {
            sample,
            phase: state
                .current
                .as_ref()
                .map(|current| (state.finished.len() + 1, current.name)),
            rates: state
                .samples
                .iter()
                .rev()
                .take(SPARK_CELLS)
                .map(|s| s.operations_per_second)
                .collect(),
            phases: shared.phases,
            budget: shared.budget,
            planned: shared.planned,
        };
        match screen {
            Screen::Terminal(terminal) => terminal.draw(&shown),
            Screen::Plain if shown.phase.is_some() && last_line.elapsed() >= LINE_INTERVAL => {
                last_line = Instant::now();
                screen.say(&shown.line());
            }
            Screen::Plain => {}
        }
    }
}

fn take_sample(shared: &Shared, state: &mut State, before: &mut Before) -> Sample {
    let now = Before {
        at: shared.seconds(),
        operations: shared.operations.load(Relaxed),
        ..Before::default()
    };
    let stats = state.db.as_ref().map(Db::stats);
    let now = Before {
        hits: stats.as_ref().map_or(0, |s| s.hits),
        misses: stats.as_ref().map_or(0, |s| s.misses),
        ..now
    };
    let hits = now.hits.saturating_sub(before.hits);
    let reads = hits + now.misses.saturating_sub(before.misses);
    let victim_memory = shared.victim_memory.load(Relaxed).checked_sub(1);
    let memory = stats
        .as_ref()
        .map(|s| s.memory_used_bytes)
        .or(victim_memory);
    let resident = stats
        .is_some()
        .then(|| resident_bytes().map(|bytes| bytes.saturating_sub(shared.resident_before)))
        .flatten();
    let sample = Sample {
        at: now.at,
        operations_per_second: (now.operations - before.operations) as f64
            / (now.at - before.at).max(1e-3),
        memory,
        resident,
        hit_ratio: (reads > 0).then(|| hits as f64 / reads as f64),
        data: shared.data.load(Relaxed),
        disk: stats.map(|s| s.y_bytes_on_disk + s.log_bytes),
    };
    *before = now;
    state.peak_resident = state.peak_resident.max(resident.unwrap_or(0));
    if let Some(current) = &mut state.current {
        current.peak_memory = current.peak_memory.max(memory.unwrap_or(0));
        current.peak_resident = current.peak_resident.max(resident);
    }
    state.samples.push(sample);
    sample
}

/// Resident memory of this process.
fn resident_bytes() -> Option<u64> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
