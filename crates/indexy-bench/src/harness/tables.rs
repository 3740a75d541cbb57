//! A job of transactions over several tables, from open to close, in this process.
//!
//! A load that was cut short leaves nothing to run on: later steps then say that they did nothing.
//! The check after a run has no time cap; it ends early only on an interrupt, and is then marked as
//! partial.

use super::crew::{Around, Engine, run_crew, timed};
use super::interrupt::Interrupt;
use super::job::{Broken, Emitter, Event, Job, JobError, Phase, TableStep, UNBOUNDED, Work};
use super::worker::{Done, Kind, Worker};
use crate::application::{Application, Client as _, Trouble};
use crate::applications::{self, Config};
use crate::contender::{Outcome, Placed, TableSetup, Tables};
use crate::measure::{Memory, PhaseResult};
use crate::{counters::Counters, tatp::Tatp, tpcc::Tpcc, voter::Voter};
use std::collections::BTreeMap;

/// Runs `job` on the tables of `T`, placed as the job wants them; every phase's result goes to
/// `emitter` as soon as it is there.
pub fn run_tables_job<T: Tables>(job: &Job, emitter: &mut Emitter<'_>) -> Result<(), JobError> {
    run_tables_until::<T>(job, &Interrupt::of_process(), emitter)
}

/// The same with any interrupt.
fn run_tables_until<T: Tables>(
    job: &Job,
    interrupt: &Interrupt,
    emitter: &mut Emitter<'_>,
) -> Result<(), JobError> {
    let around = Around {
        job,
        base: Memory::now(),
        interrupt,
    };
    let config = job.application().ok_or_else(|| {
        JobError::Invalid("a job on tables that does not say how large they are".to_owned())
    })?;
    match config {
        Config::Tpcc(tpcc) => {
            let tpcc = Tpcc::new(tpcc.clone(), job.seed);
            run_on::<T, _>(around, config, tpcc, emitter)
        }
        Config::Tatp(tatp) => run_on::<T, _>(around, config, Tatp::new(*tatp, job.seed), emitter),
        Config::Voter(voter) => run_on::<T, _>(around, config, Voter::new(*voter), emitter),
        Config::Counters(of) => run_on::<T, _>(around, config, Counters::new(*of), emitter),
    }
}

fn run_on<T: Tables, A: Application>(
    around: Around<'_>,
    config: &Config,
    application: A,
    emitter: &mut Emitter<'_>,
) -> Result<(), JobError>
where
    applications::Kind: From<A::Kind>,
{
    let (job, interrupt) = (around.job, around.interrupt);
    let mut run = Run::<T, A> {
        tables: Some(Seats(open(&around, &application, "open", emitter)?)),
        around,
        application,
        entries: config.entries(),
        loaded: false,
    };
    for (index, phase) in job.phases.iter().enumerate() {
        if interrupt.is_raised() {
            break;
        }
        run.phase(phase, index as u64, emitter)?;
    }
    match run.tables.take() {
        Some(tables) => tables.0.close().map_err(JobError::engine("close")),
        None => Ok(()),
    }
}

fn open<T: Tables>(
    around: &Around<'_>,
    application: &impl Application,
    name: &str,
    emitter: &mut Emitter<'_>,
) -> Result<Placed<T>, JobError> {
    let setup = TableSetup {
        setup: &around.job.setup,
        names: &application.names(),
    };
    let placement = application.placement();
    timed(around, name, emitter, || {
        let tables = Placed::<T>::place(&setup, &placement)?;
        let (memory, counters) = (tables.memory_used(), tables.counters());
        Ok((tables, memory, counters))
    })
}

/// The threads of a phase share the tables and need nothing of their own.
struct Seats<T>(T);

impl<T: Tables> Engine for Seats<T> {
    type Seat<'a> = &'a T;

    fn seat(&self) -> Outcome<&T> {
        Ok(&self.0)
    }

    fn finish(_: &mut &T) -> Outcome<()> {
        Ok(())
    }

    fn used(&self) -> Option<u64> {
        self.0.memory_used()
    }

    fn counts(&self) -> BTreeMap<String, f64> {
        self.0.counters()
    }
}

impl From<Trouble> for Broken {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Engine(fault) => Self::Engine(fault),
            Trouble::Wrong(what) => Self::Wrong(what),
        }
    }
}

/// A job under way.
struct Run<'a, T, A> {
    around: Around<'a>,
    tables: Option<Seats<Placed<T>>>,
    application: A,
    /// Rows of the loaded database, about.
    entries: u64,
    /// All of the initial population is there.
    loaded: bool,
}

impl<T: Tables, A: Application> Run<'_, T, A>
where
    applications::Kind: From<A::Kind>,
{
    fn phase(
        &mut self,
        phase: &Phase,
        index: u64,
        emitter: &mut Emitter<'_>,
    ) -> Result<(), JobError> {
        if phase.work == Work::Reopen {
            return self.reopen(phase, emitter);
        }
        self.around.limit(phase)?;
        let tables = &self.tables()?.0;
        tables
            .focus(phase.focus)
            .map_err(JobError::engine(format!("before phase {}", phase.name)))?;
        tables.hurry(phase.hurried);
        let asked = match &phase.work {
            Work::Tables {
                step: TableStep::Load,
                ..
            } => self.entries,
            _ => 0,
        };
        emitter.emit(&Event::Began {
            phase: phase.name.clone(),
            asked,
        });
        let result = match &phase.work {
            Work::Tables { step, .. } => match step {
                TableStep::Load => self.load(phase, index, emitter)?,
                TableStep::Run | TableStep::Check if !self.loaded => nothing_done(phase),
                TableStep::Run => self.run(phase, index, emitter)?,
                TableStep::Check => self.check(phase, index, emitter)?,
            },
            Work::Settle => self.settle(phase, index, emitter)?,
            other => {
                let text = format!("{other:?} is not for tables");
                return Err(JobError::Invalid(text));
            }
        };
        emitter.emit(&Event::Phase {
            result: Box::new(result),
        });
        Ok(())
    }

    fn tables(&self) -> Result<&Seats<Placed<T>>, JobError> {
        self.tables
            .as_ref()
            .ok_or_else(|| JobError::Invalid("the tables are closed".to_owned()))
    }

    fn load(
        &mut self,
        phase: &Phase,
        index: u64,
        emitter: &mut Emitter<'_>,
    ) -> Result<PhaseResult, JobError> {
        let application = &self.application;
        let load = |tables: &mut &Placed<T>, worker: &mut Worker<'_>| {
            let (thread, threads) = (worker.thread as usize, worker.threads as usize);
            let units = (0..application.units()).skip(thread).step_by(threads);
            worker.each(units, |unit| {
                let (rows, payload) = application.load(*tables, unit)?;
                Ok(Done {
                    ops: rows,
                    ..Done::wrote(Kind::Insert, payload as usize)
                })
            })
        };
        let (mut result, whole) =
            run_crew(self.tables()?, &self.around, phase, index, 0, emitter, load)?;
        self.loaded = whole.into_iter().all(|all| all);
        if !self.loaded {
            result.partial = true;
            result.asked = self.entries;
        }
        Ok(result)
    }

    fn run(
        &mut self,
        phase: &Phase,
        index: u64,
        emitter: &mut Emitter<'_>,
    ) -> Result<PhaseResult, JobError> {
        let application = &self.application;
        let run = |tables: &mut &Placed<T>, worker: &mut Worker<'_>| {
            let mut client = application.client(*tables, worker.thread);
            worker.drive(UNBOUNDED, |rng| {
                let ended = client.next(rng)?;
                Ok(Done {
                    found: u64::from(ended.succeeded),
                    ..Done::wrote(Kind::Transaction(ended.kind.into()), ended.payload as usize)
                })
            })?;
            Ok(client.finish())
        };
        let (mut result, counters) =
            run_crew(self.tables()?, &self.around, phase, index, 0, emitter, run)?;
        for (name, count) in counters.into_iter().flatten() {
            *result.counters.entry(name).or_default() += count;
        }
        let rolled_back = result.done - result.found;
        result
            .counters
            .insert("rolled_back".to_owned(), rolled_back as f64);
        Ok(result)
    }

    fn check(
        &self,
        phase: &Phase,
        index: u64,
        emitter: &mut Emitter<'_>,
    ) -> Result<PhaseResult, JobError> {
        let application = &self.application;
        let check = |tables: &mut &Placed<T>, worker: &mut Worker<'_>| {
            let (thread, threads) = (worker.thread as usize, worker.threads as usize);
            let parts = (0..application.parts()).skip(thread).step_by(threads);
            worker.each(parts, |part| {
                let rows = application.check(*tables, part)?;
                Ok(Done {
                    ops: rows,
                    ..Done::one(Kind::Check, true)
                })
            })
        };
        let (mut result, whole) = run_crew(
            self.tables()?,
            &self.around,
            phase,
            index,
            0,
            emitter,
            check,
        )?;
        result.partial = !whole.into_iter().all(|all| all);
        Ok(result)
    }

    fn settle(
        &self,
        phase: &Phase,
        index: u64,
        emitter: &mut Emitter<'_>,
    ) -> Result<PhaseResult, JobError> {
        let settle = |tables: &mut &Placed<T>, _: &mut Worker<'_>| Ok(tables.settle()?);
        let crew = run_crew(
            self.tables()?,
            &self.around,
            phase,
            index,
            0,
            emitter,
            settle,
        );
        Ok(crew?.0)
    }

    fn reopen(&mut self, phase: &Phase, emitter: &mut Emitter<'_>) -> Result<(), JobError> {
        emitter.emit(&Event::Began {
            phase: phase.name.clone(),
            asked: 1,
        });
        if let Some(tables) = self.tables.take() {
            tables.0.close().map_err(JobError::engine("close"))?;
        }
        let tables = open(&self.around, &self.application, &phase.name, emitter)?;
        self.tables = Some(Seats(tables));
        Ok(())
    }
}

/// The result of a step that had nothing to work on.
fn nothing_done(phase: &Phase) -> PhaseResult {
    PhaseResult {
        name: phase.name.clone(),
        x: phase.x,
        threads: phase.threads,
        partial: true,
        ..PhaseResult::default()
    }
}

#[cfg(test)]
#[path = "tables_tests.rs"]
mod tests;
