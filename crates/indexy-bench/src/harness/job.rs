//! What a child is told, and what it tells.

use crate::{
    applications,
    contender::{Fault, Focus, Setup},
    measure::{Outcome, PhaseResult},
    workload::{Mismatch, Order, Pick},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fs, io, path::PathBuf};

/// Which operations are timed one by one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// All of them, one clock reading each (about 25 ns).
    Every,
    /// One of 64, where a reading each would weigh against the operation.
    Sampled,
    /// All, counted from when they should have begun at this many operations per second over all
    /// threads: a stall counts for every operation that it delays.
    OpenLoop(f64),
}

/// As many operations as the time cap permits.
pub const UNBOUNDED: u64 = 1 << 40;

/// What a phase does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "work")]
pub enum Work {
    /// Inserts the keys of numbers `from..from + count`.
    Load {
        /// First number.
        from: u64,
        /// How many.
        count: u64,
    },
    /// Reads each key of a set once.
    Touch {
        /// The set.
        pick: Pick,
    },
    /// Reads keys one by one, `unit` neighbours by number at a time.
    Read {
        /// How numbers are drawn.
        pick: Pick,
        /// Keys to read.
        ops: u64,
        /// Neighbours read with each draw.
        unit: u64,
    },
    /// Reads keys in batches.
    MultiRead {
        /// How numbers are drawn.
        pick: Pick,
        /// Keys to read.
        ops: u64,
        /// Keys of a batch.
        batch: usize,
    },
    /// Reads old keys and inserts new ones, by chance.
    Mixed {
        /// How numbers to read are drawn.
        pick: Pick,
        /// Operations.
        ops: u64,
        /// Share of inserts, of 0..=1.
        insert_share: f64,
    },
    /// Takes records from both ends, in turns. One thread.
    Pop {
        /// Records to take.
        ops: u64,
    },
    /// Inserts the records of a YCSB workload.
    YcsbLoad {
        /// Its properties.
        properties: Vec<(String, String)>,
    },
    /// Runs the operations of a YCSB workload on what was loaded.
    YcsbRun {
        /// Its properties.
        properties: Vec<(String, String)>,
    },
    /// A step of a workload of transactions over several tables.
    Tables {
        /// Which.
        step: TableStep,
        /// The same in all steps of a job.
        on: applications::Config,
    },
    /// Writes out what is buffered and waits for background work.
    Settle,
    /// Closes the engine properly and opens it again; the time is that of the opening.
    Reopen,
    /// Ends the process without closing anything, as a crash of the process would.
    Abandon,
}

/// A step of a workload over several tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TableStep {
    /// Fills the tables.
    Load,
    /// Runs the mix.
    Run,
    /// Checks the consistency conditions.
    Check,
}

/// How long a phase goes on so that what was in memory when it began has been replaced.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Turnover {
    /// Releases of memory, by the counter of that name.
    pub releases: u64,
    /// Seconds after which the phase ends at the latest; that of an engine without the counter
    /// ends then.
    pub most_seconds: f64,
}

/// One step of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Unique in its job.
    pub name: String,
    /// Threads.
    pub threads: usize,
    /// What they do.
    pub work: Work,
    /// What it mostly does.
    pub focus: Focus,
    /// Seconds after which it ends early; 0 for none.
    pub max_seconds: f64,
    /// What it has to see before that cap holds.
    #[serde(default)]
    pub turnover: Option<Turnover>,
    /// What is timed.
    pub clock: Clock,
    /// A modelled device takes no time meanwhile: it is no part of what is measured.
    #[serde(default)]
    pub hurried: bool,
    /// The value of what a figure varies from phase to phase, if it does.
    pub x: Option<f64>,
}

impl Phase {
    /// A phase without a time cap that times all operations.
    pub fn new(name: &str, threads: usize, focus: Focus, work: Work) -> Self {
        Self {
            name: name.to_owned(),
            threads,
            work,
            focus,
            max_seconds: 0.0,
            turnover: None,
            clock: Clock::Every,
            hurried: false,
            x: None,
        }
    }

    /// The same with a time cap in seconds.
    pub fn capped(mut self, seconds: f64) -> Self {
        self.max_seconds = seconds;
        self
    }

    /// The same, going on beyond its time cap until there was such a turnover.
    pub fn turned_over(mut self, turnover: Option<Turnover>) -> Self {
        self.turnover = turnover;
        self
    }

    /// Whether it only brings in the records, or waits for that.
    pub fn is_load(&self) -> bool {
        match &self.work {
            Work::Load { .. } | Work::YcsbLoad { .. } | Work::Settle => true,
            Work::Tables { step, .. } => *step == TableStep::Load,
            _ => false,
        }
    }

    /// Seconds that it may take; 0 for any number.
    pub fn most_seconds(&self) -> f64 {
        match self.turnover {
            Some(turnover) if self.max_seconds > 0.0 => self.max_seconds.max(turnover.most_seconds),
            _ => self.max_seconds,
        }
    }

    /// The same as a point of a figure.
    pub fn at(mut self, x: f64) -> Self {
        self.x = Some(x);
        self
    }

    /// The same on a modelled device that takes no time.
    pub fn hurried(mut self) -> Self {
        self.hurried = true;
        self
    }

    /// The same with another clock.
    pub fn timed(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }
}

/// The memory cgroup of a child.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// The file to enter it by.
    pub procs: PathBuf,
    /// What limits it after a free load.
    pub after_load: Option<LaterLimit>,
}

/// A limit that holds from some moment on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaterLimit {
    /// The file that takes it.
    pub memory: PathBuf,
    /// The file that takes it for memory and swap together, which may be absent.
    pub with_swap: Option<PathBuf>,
    /// The limit in bytes.
    pub bytes: u64,
}

impl LaterLimit {
    /// Makes the limit hold. The kernel first takes page cache back.
    pub(super) fn set(&self) -> io::Result<()> {
        fs::write(&self.memory, self.bytes.to_string())?;
        if let Some(file) = &self.with_swap {
            let _ = fs::write(file, self.bytes.to_string());
        }
        Ok(())
    }
}

/// Everything that a child needs to know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Which experiment.
    pub scenario: String,
    /// Which contender.
    pub contender: String,
    /// Which repetition, from 0.
    pub repeat: usize,
    /// Seed of keys and draws.
    pub seed: u64,
    /// How to open the contender.
    pub setup: Setup,
    /// How numbers lie in the key space.
    pub order: Order,
    /// The steps.
    pub phases: Vec<Phase>,
    /// Milliseconds between two points of the time series.
    pub tick_ms: u64,
    /// Numbers that an earlier job left loaded in the directory.
    pub preloaded: u64,
    /// The scenario whose directory is used as it was left, instead of an empty one.
    pub reuse_directory_of: Option<String>,
    /// True if the directory is left for the next job.
    pub keep_directory: bool,
    /// Whether the job runs in a memory cgroup.
    pub confined: bool,
    /// The cgroup that it runs in; the launcher fills it in.
    pub group: Option<Confinement>,
    /// What tells this run apart, for tables and plots.
    pub parameters: BTreeMap<String, f64>,
}

impl Job {
    /// True if it is for a contender with several tables.
    pub fn needs_tables(&self) -> bool {
        self.application().is_some()
    }

    /// What its steps over several tables have in common, if it has any.
    pub fn application(&self) -> Option<&applications::Config> {
        self.phases.iter().find_map(|phase| match &phase.work {
            Work::Tables { on, .. } => Some(on),
            _ => None,
        })
    }
}

/// What a child reports, one line of JSON each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum Event {
    /// A phase begins.
    Began {
        /// Its name.
        phase: String,
        /// Operations asked for; 0 if only time was given.
        asked: u64,
    },
    /// A phase goes on.
    Going {
        /// Seconds since it began.
        at: f64,
        /// Operations so far.
        ops: u64,
        /// Resident bytes, less the base.
        resident: u64,
        /// Bytes that the contender says it holds.
        accounted: u64,
    },
    /// A phase ended.
    Phase {
        /// What it measured.
        result: Box<PhaseResult>,
    },
    /// The job ended.
    Ended {
        /// How.
        #[serde(flatten)]
        outcome: Outcome,
    },
}

/// Why a job ended early.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The engine returned an error.
    #[error("{doing}: {source}")]
    Engine {
        /// What was being done.
        doing: String,
        /// The engine's answer.
        source: Fault,
    },
    /// The engine answered with something that was never written.
    #[error("phase {phase}: {what}")]
    WrongValue {
        /// In which phase.
        phase: String,
        /// The key, what was expected and what was found.
        what: String,
    },
    /// The job cannot be run as described.
    #[error("{0}")]
    Invalid(String),
}

impl JobError {
    /// Wraps an engine's error with what was being done.
    pub fn engine(doing: impl Into<String>) -> impl FnOnce(Fault) -> Self {
        let doing = doing.into();
        move |source| Self::Engine { doing, source }
    }
}

/// Why an operation, and with it its phase, ended.
#[derive(Debug)]
pub(super) enum Broken {
    /// The engine returned an error.
    Engine(Fault),
    /// It answered with something that was never written.
    Wrong(String),
}

impl From<Fault> for Broken {
    fn from(fault: Fault) -> Self {
        Self::Engine(fault)
    }
}

impl Broken {
    /// A value that does not belong to `key`.
    #[cold]
    pub(super) fn value(key: &[u8], mismatch: &Mismatch) -> Self {
        Self::Wrong(format!("key {}: {mismatch}", show(key)))
    }

    /// A version older than one that was acknowledged before the read began, or never written.
    #[cold]
    pub(super) fn stale(key: &[u8], floor: u32, version: u32) -> Self {
        let key = show(key);
        Self::Wrong(format!(
            "key {key}: version {version} read, {floor} was acknowledged before"
        ))
    }

    /// A key that must be there and is not.
    #[cold]
    pub(super) fn missing(key: &[u8]) -> Self {
        Self::Wrong(format!("key {}: inserted, and not found", show(key)))
    }

    /// A key that must not be there and is.
    #[cold]
    pub(super) fn ghost(key: &[u8], why: &str) -> Self {
        Self::Wrong(format!("key {}: {why}, and found", show(key)))
    }

    pub(super) fn in_phase(self, phase: &str) -> JobError {
        match self {
            Self::Engine(source) => JobError::Engine {
                doing: format!("phase {phase}"),
                source,
            },
            Self::Wrong(what) => JobError::WrongValue {
                phase: phase.to_owned(),
                what,
            },
        }
    }
}

/// A key as text if it is text, else in hexadecimal.
fn show(key: &[u8]) -> String {
    match std::str::from_utf8(key) {
        Ok(text) if text.chars().all(|c| c.is_ascii_graphic()) && !text.is_empty() => {
            text.to_owned()
        }
        _ => key.iter().map(|b| format!("{b:02x}")).collect(),
    }
}

/// Takes the events of a job.
pub struct Emitter<'a> {
    sink: Box<dyn FnMut(&Event) + 'a>,
}

impl<'a> Emitter<'a> {
    /// Gives every event to `sink`.
    pub fn new(sink: impl FnMut(&Event) + 'a) -> Self {
        Self {
            sink: Box::new(sink),
        }
    }

    /// Reports one event.
    pub fn emit(&mut self, event: &Event) {
        (self.sink)(event);
    }
}

impl std::fmt::Debug for Emitter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Emitter")
    }
}
