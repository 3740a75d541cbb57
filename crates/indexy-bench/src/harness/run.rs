//! One job, from open to close, in this process.

use super::crew::{Around, panic_text, run_crew, timed};
use super::interrupt::Interrupt;
use super::job::{Broken, Clock, Emitter, Event, Job, JobError, Phase, UNBOUNDED, Work};
use super::ledger::Ledger;
use super::points::{self, Points};
use super::versions::Versions;
use super::ycsb;
use crate::contender::Contender;
use crate::measure::{Memory, PhaseResult};
use crate::workload::{Keys, Operation, Pick, Properties, Shared, Values, Workload};
use std::{sync::atomic::AtomicU64, time::Duration};

/// Exit code of a job that was told to end without closing anything.
pub(super) const ABANDONED: i32 = 77;

/// Runs `job` with contender `C`; every phase's result goes to `emitter` as soon as it is there.
///
/// An interrupt of the process ends the phase under way early and skips the rest.
pub fn run_job<C: Contender>(job: &Job, emitter: &mut Emitter<'_>) -> Result<(), JobError> {
    run_until::<C>(job, &Interrupt::of_process(), emitter)
}

/// The same with any interrupt.
fn run_until<C: Contender>(
    job: &Job,
    interrupt: &Interrupt,
    emitter: &mut Emitter<'_>,
) -> Result<(), JobError> {
    warm_harness(job);
    let base = Memory::now();
    let around = Around {
        job,
        base,
        interrupt,
    };
    let contender = timed_open(&around, "open", emitter)?;
    let mut run = Run::<C> {
        around,
        contender: Some(contender),
        points: Points {
            keys: Keys { order: job.order },
            values: Values::new(job.setup.value_bytes),
        },
        loaded: job.preloaded,
        next_new: AtomicU64::new(0),
        record_limit: job.preloaded,
        ledger: Ledger::default(),
        versions: Some(Versions::default()),
        rewritten: false,
    };
    for (index, phase) in job.phases.iter().enumerate() {
        if interrupt.is_raised() {
            break;
        }
        run.phase(phase, index as u64, emitter)?;
    }
    match run.contender.take() {
        Some(contender) => contender.close().map_err(JobError::engine("close")),
        None => Ok(()),
    }
}

/// Takes what the harness itself needs before memory is first measured.
fn warm_harness(job: &Job) {
    let mut value = vec![0; job.setup.value_bytes.max(64)];
    Values::fill(1, 0, &mut value);
    std::hint::black_box(&value);
}

/// Opens the contender and reports the time as a phase of its own.
fn timed_open<C: Contender>(
    around: &Around<'_>,
    name: &str,
    emitter: &mut Emitter<'_>,
) -> Result<C, JobError> {
    timed(around, name, emitter, || {
        let contender = C::open(&around.job.setup)?;
        let (memory, counters) = (contender.memory_used(), contender.counters());
        Ok((contender, memory, counters))
    })
}

/// A job under way.
struct Run<'a, C> {
    around: Around<'a>,
    contender: Option<C>,
    points: Points,
    /// All numbers below are loaded: a load that was cut short leaves fewer to read.
    loaded: u64,
    /// New numbers that mixed phases have inserted.
    next_new: AtomicU64,
    /// All YCSB records below are inserted.
    record_limit: u64,
    ledger: Ledger,
    /// None once a phase has written records without a version.
    versions: Option<Versions>,
    /// A phase may have written records again that an earlier one deleted.
    rewritten: bool,
}

impl<C: Contender> Run<'_, C> {
    fn contender(&self) -> Result<&C, JobError> {
        self.contender
            .as_ref()
            .ok_or_else(|| JobError::Invalid("the contender is closed".to_owned()))
    }

    fn phase(
        &mut self,
        phase: &Phase,
        index: u64,
        emitter: &mut Emitter<'_>,
    ) -> Result<(), JobError> {
        if matches!(phase.work, Work::Abandon) {
            return abandon();
        }
        if matches!(phase.work, Work::Reopen) {
            return self.reopen(phase, emitter);
        }
        self.around.limit(phase)?;
        let contender = self.contender()?;
        contender
            .focus(phase.focus)
            .map_err(JobError::engine(format!("before phase {}", phase.name)))?;
        contender.hurry(phase.hurried);
        let asked = self.asked(&phase.work);
        emitter.emit(&Event::Began {
            phase: phase.name.clone(),
            asked,
        });
        let result = match &phase.work {
            Work::YcsbLoad { properties } => {
                self.ycsb_load(phase, index, &workload(properties)?, emitter)?
            }
            Work::YcsbRun { properties } => {
                self.ycsb_run(phase, index, workload(properties)?, emitter)?
            }
            Work::Tables { .. } => {
                let text = "the contender has one table";
                return Err(JobError::Invalid(text.to_owned()));
            }
            _ => self.points(phase, index, asked, emitter)?,
        };
        emitter.emit(&Event::Phase {
            result: Box::new(result),
        });
        Ok(())
    }

    /// Operations of a micro phase, as far as what is loaded permits.
    fn asked(&self, work: &Work) -> u64 {
        match work {
            Work::Load { count, .. } => *count,
            Work::Touch { pick } => self.clamp(pick).distinct(),
            Work::Pop { ops } => *ops,
            Work::Read { ops, .. } | Work::MultiRead { ops, .. } | Work::Mixed { ops, .. } => {
                Some(*ops).filter(|ops| *ops < UNBOUNDED).unwrap_or(0)
            }
            Work::YcsbLoad { .. }
            | Work::YcsbRun { .. }
            | Work::Tables { .. }
            | Work::Settle
            | Work::Reopen
            | Work::Abandon => 0,
        }
    }

    /// The same choice among what is really loaded.
    fn clamp(&self, pick: &Pick) -> Pick {
        let mut pick = pick.clone();
        match &mut pick {
            Pick::Uniform { keys } | Pick::WorkingSet { keys, .. } | Pick::Zipf { keys, .. } => {
                *keys = (*keys).min(self.loaded).max(1);
            }
            Pick::Absent => {}
        }
        pick
    }

    fn points(
        &mut self,
        phase: &Phase,
        index: u64,
        asked: u64,
        emitter: &mut Emitter<'_>,
    ) -> Result<PhaseResult, JobError> {
        let (micro, next_new) = (self.points, &self.next_new);
        let pick = match &phase.work {
            Work::Touch { pick }
            | Work::Read { pick, .. }
            | Work::MultiRead { pick, .. }
            | Work::Mixed { pick, .. } => {
                if self.loaded == 0 && *pick != Pick::Absent {
                    return Ok(PhaseResult {
                        name: phase.name.clone(),
                        asked,
                        partial: true,
                        ..PhaseResult::default()
                    });
                }
                self.clamp(pick)
            }
            _ => Pick::Absent,
        };
        let contender = self.contender()?;
        let (result, reached) = run_crew(
            contender,
            &self.around,
            phase,
            index,
            asked,
            emitter,
            |session, worker| {
                match &phase.work {
                    Work::Load { from, count } => {
                        return micro.load(session, worker, *from, *count).map(Some);
                    }
                    Work::Touch { .. } => micro.touch(session, worker, &pick)?,
                    Work::Read { ops, unit, .. } => {
                        micro.reads(session, worker, &pick, *ops, *unit)?
                    }
                    Work::MultiRead { ops, batch, .. } => {
                        micro.multi_reads(session, worker, &pick, *ops, *batch)?
                    }
                    Work::Mixed {
                        ops, insert_share, ..
                    } => {
                        micro.mixed(session, worker, &pick, *ops, *insert_share, next_new)?;
                    }
                    Work::Pop { ops } => points::pop(session, worker, *ops)?,
                    _ => contender.settle().map_err(Broken::from)?,
                }
                Ok(None)
            },
        )?;
        if let Work::Load { from, count } = phase.work
            && from <= self.loaded
        {
            let gapless = reached
                .into_iter()
                .flatten()
                .min()
                .unwrap_or(from)
                .min(from + count);
            self.loaded = self.loaded.max(gapless);
        }
        Ok(result)
    }

    fn ycsb_load(
        &mut self,
        phase: &Phase,
        index: u64,
        workload: &Workload,
        emitter: &mut Emitter<'_>,
    ) -> Result<PhaseResult, JobError> {
        let asked = workload.insert_count;
        let (result, reached) = run_crew(
            self.contender()?,
            &self.around,
            phase,
            index,
            asked,
            emitter,
            |session, worker| ycsb::load(session, worker, workload),
        )?;
        let end = workload.insert_start + workload.insert_count;
        self.record_limit = reached
            .into_iter()
            .min()
            .unwrap_or(workload.insert_start)
            .min(end);
        Ok(result)
    }

    fn ycsb_run(
        &mut self,
        phase: &Phase,
        index: u64,
        mut workload: Workload,
        emitter: &mut Emitter<'_>,
    ) -> Result<PhaseResult, JobError> {
        let mut phase = phase.clone();
        if workload.target > 0.0 {
            phase.clock = Clock::OpenLoop(workload.target);
        }
        let there = self.record_limit.saturating_sub(workload.insert_start);
        if there == 0 {
            return Ok(PhaseResult {
                name: phase.name,
                asked: workload.operations,
                partial: true,
                ..PhaseResult::default()
            });
        }
        workload.insert_count = workload.insert_count.min(there);
        self.watch(&workload);
        let (shared, unwatched) = (Shared::new(self.record_limit), Versions::default());
        let past = ycsb::Past {
            shared: &shared,
            ledger: &self.ledger,
            versions: self.versions.as_ref().unwrap_or(&unwatched),
            deletes_are_final: !self.rewritten,
        };
        let asked = workload.operations;
        let aside = match (phase.hurried, self.around.job.setup.cold) {
            (false, Some(cold)) => cold.aside,
            _ => 0,
        };
        let (result, _) = run_crew(
            self.contender()?,
            &self.around,
            &phase,
            index,
            asked,
            emitter,
            |session, worker| ycsb::run(session, worker, &workload, &past, aside),
        )?;
        self.record_limit = self.record_limit.max(shared.inserted.limit());
        Ok(result)
    }

    /// Prepares what later reads are held against, before `workload` runs.
    fn watch(&mut self, workload: &Workload) {
        let updates = workload.share(Operation::Update);
        let rewrites = updates + workload.share(Operation::ReadModifyWrite) > 0.0;
        self.rewritten |= rewrites;
        if workload.share(Operation::Delete) > 0.0 {
            self.ledger
                .cover(self.record_limit.saturating_add(workload.most_inserts()));
        }
        if !rewrites {
            return;
        }
        if !workload.writes_whole_records() || !workload.records.has_versions() {
            self.versions = None;
        } else if let Some(versions) = self.versions.as_mut().filter(|v| v.is_empty()) {
            *versions = Versions::new(self.record_limit);
        }
    }

    fn reopen(&mut self, phase: &Phase, emitter: &mut Emitter<'_>) -> Result<(), JobError> {
        emitter.emit(&Event::Began {
            phase: phase.name.clone(),
            asked: 1,
        });
        if let Some(contender) = self.contender.take() {
            contender.close().map_err(JobError::engine("close"))?;
        }
        self.contender = Some(timed_open(&self.around, &phase.name, emitter)?);
        Ok(())
    }
}

/// Ends the process as a crash would, once a log that is written behind the caller's back has had
/// its time.
fn abandon() -> Result<(), JobError> {
    const LOG_INTERVALS: Duration = Duration::from_millis(500);
    std::thread::sleep(LOG_INTERVALS);
    std::process::exit(ABANDONED)
}

fn workload(properties: &[(String, String)]) -> Result<Workload, JobError> {
    let mut p = Properties::default();
    for (name, value) in properties {
        p.set(name, value)
            .map_err(|e| JobError::Invalid(e.to_string()))?;
    }
    Workload::from_properties(&p).map_err(|e| JobError::Invalid(e.to_string()))
}

/// Runs `body`, turning a panic into a job's error.
pub(super) fn guarded(body: impl FnOnce() -> Result<(), JobError>) -> Result<(), JobError> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(body))
        .unwrap_or_else(|panic| Err(JobError::Invalid(panic_text(&*panic))))
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
