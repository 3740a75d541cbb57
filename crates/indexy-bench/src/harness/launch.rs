//! The parent's side: one child per job.

use super::cgroup::{CgroupError, MemoryGroup};
use super::child::{CHILD_ARGUMENT, MARK};
use super::interrupt::Interrupt;
use super::job::{Confinement, Event, Job, Work};
use super::run::ABANDONED;
use crate::contender::{About, PageCache};
use crate::measure::{Outcome, PhaseResult, RunResult};
use std::{
    collections::VecDeque,
    fs,
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::process::ExitStatusExt as _,
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

/// Sees what happens while a job runs.
pub trait View {
    /// One event of `job`.
    fn event(&mut self, job: &Job, event: &Event);
}

/// Starts children.
#[derive(Debug)]
pub struct Launcher {
    /// Where contenders keep their data; one directory each is made in it and removed.
    pub directory: PathBuf,
    /// Memory above the budget that the cgroup grants, in bytes; none: no cgroup.
    pub slack: Option<u64>,
    /// Whether the cgroup limits a job only after its load.
    pub free_load: bool,
    /// The user's wish to end.
    pub interrupt: Interrupt,
    /// Keep the data afterwards.
    pub keep: bool,
}

/// How long a phase may go on after its time cap before its process is killed.
const GRACE: Duration = Duration::from_secs(180);
/// The limit of a free load in bytes: more than any machine has.
const FREE: u64 = 1 << 46;
/// How often the parent looks for an interrupt.
const LOOK: Duration = Duration::from_millis(100);
/// A step of the parent's loop that took longer was interrupted by a stop of the process or of the
/// machine.
const LONGEST_STEP: Duration = Duration::from_secs(5);
/// Lines of standard error that a report quotes.
const QUOTED_LINES: usize = 8;

impl Launcher {
    /// Runs `job` in a child; how it ends is part of the result. Errors only if the cgroup or the
    /// child cannot be made.
    pub fn run(
        &self,
        job: &Job,
        about: &About,
        view: &mut dyn View,
    ) -> Result<RunResult, LaunchError> {
        let mut job = job.clone();
        let scenario = job.reuse_directory_of.as_ref().unwrap_or(&job.scenario);
        job.setup.path = self.directory.join(format!("{scenario}-{}", job.contender));
        if job.reuse_directory_of.is_none() {
            self.clear(&job)?;
        }
        fs::create_dir_all(&job.setup.path).map_err(|e| LaunchError::io(&job.setup.path, e))?;
        let group = self.group(&job)?;
        job.group = group.as_ref().map(|group| Confinement {
            procs: group.procs(),
            after_load: self.free_load.then(|| group.later_limit()),
        });
        let mut result = empty_result(&job, about, group.as_ref());
        result.outcome = self.watch(&job, group.as_ref(), &mut result.phases, view)?;
        if let (Some(peak), Some(last)) = (
            group.as_ref().and_then(MemoryGroup::peak),
            result.phases.last_mut(),
        ) {
            last.counters
                .insert("cgroup_peak_bytes".to_owned(), peak as f64);
        }
        drop(group);
        if !job.keep_directory && !self.keep {
            self.clear(&job)?;
        }
        Ok(result)
    }

    fn clear(&self, job: &Job) -> Result<(), LaunchError> {
        match fs::remove_dir_all(&job.setup.path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                Err(LaunchError::io(&job.setup.path, e))
            }
            _ => Ok(()),
        }
    }

    fn group(&self, job: &Job) -> Result<Option<MemoryGroup>, LaunchError> {
        match self.slack {
            Some(slack) if job.confined => {
                let limit = job.setup.budget.saturating_add(slack);
                let until_loaded = self.free_load.then_some(FREE);
                Ok(Some(MemoryGroup::create(limit, until_loaded)?))
            }
            _ => Ok(None),
        }
    }

    fn watch(
        &self,
        job: &Job,
        group: Option<&MemoryGroup>,
        phases: &mut Vec<PhaseResult>,
        view: &mut dyn View,
    ) -> Result<Outcome, LaunchError> {
        let mut child = spawn(job)?;
        let events = read_events(&mut child);
        let errors = read_errors(&mut child);
        let mut told = None;
        let mut deadline: Option<Instant> = None;
        let mut signals_sent = 0;
        let mut awake = Instant::now();
        loop {
            // A parent that was itself stopped for a while was not the only one: the child gets the
            // time back.
            let asleep = awake.elapsed();
            if asleep > LONGEST_STEP {
                deadline = deadline.map(|d| d + asleep);
            }
            awake = Instant::now();
            match events.recv_timeout(LOOK) {
                Ok(event) => {
                    match &event {
                        Event::Began { phase, .. } => deadline = deadline_of(job, phase),
                        Event::Phase { result } => {
                            phases.push((**result).clone());
                            deadline = None;
                        }
                        Event::Ended { outcome } => told = Some(outcome.clone()),
                        Event::Going { .. } => {}
                    }
                    view.event(job, &event);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            signals_sent = self.pass_on_interrupt(&mut child, signals_sent);
            if deadline.is_some_and(|d| Instant::now() > d) {
                told = Some(Outcome::Died(format!(
                    "did not end within {} s of its time cap; killed",
                    GRACE.as_secs()
                )));
                let _ = child.kill();
                deadline = None;
            }
        }
        let status = child
            .wait()
            .map_err(|e| LaunchError::io(&job.setup.path, e))?;
        let quoted = errors.join().unwrap_or_default();
        Ok(told.unwrap_or_else(|| self.explain(status, group, &quoted)))
    }

    /// First interrupt: the child ends its phase; second: it is killed.
    fn pass_on_interrupt(&self, child: &mut Child, sent: usize) -> usize {
        let wished = self.interrupt.count().min(2);
        if wished > sent {
            if wished == 1 {
                let pid = rustix::process::Pid::from_child(child);
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
            } else {
                let _ = child.kill();
            }
        }
        wished.max(sent)
    }

    fn explain(&self, status: ExitStatus, group: Option<&MemoryGroup>, quoted: &str) -> Outcome {
        if status.code() == Some(ABANDONED) {
            return Outcome::Finished;
        }
        if self.interrupt.is_raised() {
            return Outcome::Interrupted;
        }
        if let Some(group) = group.filter(|g| g.out_of_memory_kills() > 0) {
            return Outcome::OutOfMemory(format!(
                "out of memory under the limit of {} MiB",
                group.limit() >> 20
            ));
        }
        let how = match (status.signal(), status.code()) {
            (Some(signal), _) => format!("killed by signal {signal}"),
            (None, Some(code)) => format!("exited with code {code}"),
            (None, None) => "ended".to_owned(),
        };
        let quoted = if quoted.is_empty() {
            String::new()
        } else {
            format!(": {quoted}")
        };
        Outcome::Died(format!("{how}{quoted}"))
    }
}

/// The result of a job before it ran.
pub(crate) fn empty_result(job: &Job, about: &About, group: Option<&MemoryGroup>) -> RunResult {
    let page_cache = match (about.page_cache, group) {
        (PageCache::Unused, _) => "unused",
        (PageCache::Bypassed, _) => "bypassed",
        (PageCache::Used, Some(_)) => "limited by cgroup",
        (PageCache::Used, None) => "not limited",
    };
    RunResult {
        scenario: job.scenario.clone(),
        contender: job.contender.clone(),
        repeat: job.repeat,
        budget: job.setup.budget,
        memory_limit: group.map(MemoryGroup::limit),
        durability: job.setup.durability.name().to_owned(),
        page_cache: page_cache.to_owned(),
        seed: job.seed,
        outcome: Outcome::Finished,
        phases: Vec::new(),
        parameters: job.parameters.clone(),
    }
}

/// Why a job could not even begin.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// No cgroup.
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// What it was about.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

impl LaunchError {
    fn io(path: &std::path::Path, source: io::Error) -> Self {
        Self::Io {
            path: path.to_path_buf(),
            source,
        }
    }
}

fn deadline_of(job: &Job, phase: &str) -> Option<Instant> {
    let phase = job.phases.iter().find(|p| p.name == phase)?;
    // What has no cap of its own (a settle, a reopen) may take as long as it takes.
    if matches!(phase.work, Work::Settle | Work::Reopen) {
        return None;
    }
    let cap = Duration::try_from_secs_f64(phase.most_seconds()).ok()?;
    if cap.is_zero() {
        return None;
    }
    Instant::now().checked_add(cap.saturating_add(GRACE))
}

fn spawn(job: &Job) -> Result<Child, LaunchError> {
    let program = std::env::current_exe()
        .map_err(|e| LaunchError::io(std::path::Path::new("/proc/self/exe"), e))?;
    let mut child = Command::new(&program)
        .arg(CHILD_ARGUMENT)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| LaunchError::io(&program, e))?;
    let text = serde_json::to_string(job).map_err(|e| LaunchError::io(&program, e.into()))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A child that is dead already is explained when it is waited for.
        let _ = stdin.write_all(text.as_bytes());
    }
    Ok(child)
}

fn read_events(child: &mut Child) -> mpsc::Receiver<Event> {
    let (sender, receiver) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let event = line
                    .strip_prefix(MARK)
                    .and_then(|json| serde_json::from_str(json).ok());
                if let Some(event) = event
                    && sender.send(event).is_err()
                {
                    return;
                }
            }
        });
    }
    receiver
}

fn read_errors(child: &mut Child) -> thread::JoinHandle<String> {
    let stderr = child.stderr.take();
    thread::spawn(move || {
        let mut last = VecDeque::new();
        let reader: Box<dyn Read> = match stderr {
            Some(stderr) => Box::new(stderr),
            None => Box::new(io::empty()),
        };
        for line in BufReader::new(reader).lines().map_while(Result::ok) {
            if last.len() == QUOTED_LINES {
                last.pop_front();
            }
            last.push_back(line);
        }
        Vec::from(last).join(" | ")
    })
}
