//! A job of transactions over several tables, from open to close, in this process.
//!
//! A load that was cut short leaves nothing to run on: later steps then say that they did nothing.
//! The check after a run has no time cap; it ends early only on an interrupt, and is then marked as
//! partial.

use super::crew::{Around, Engine, run_crew, timed};
use super::interrupt::Interrupt;
use super::job::{Broken, Emitter, Event, Job, JobError, Phase, TpccStep, UNBOUNDED, Work};
use super::worker::{Done, Kind, Worker};
use crate::contender::{Outcome, Placed, Placement, TableSetup, Tables};
use crate::measure::{Memory, PhaseResult};
use crate::tpcc::{
    Config, DISTRICTS, Loader, State, Table, Transaction, Transactions, Trouble, check_district,
    check_warehouse, names,
};
use std::{
    collections::BTreeMap,
    time::{SystemTime, UNIX_EPOCH},
};

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
    let config = job.tpcc().ok_or_else(|| {
        JobError::Invalid("a job on tables that does not say how large they are".to_owned())
    })?;
    let mut run = Run::<T> {
        state: State::fresh(config.scale),
        tables: Some(Seats(open(&around, config, "open", emitter)?)),
        around,
        config,
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
    config: &Config,
    name: &str,
    emitter: &mut Emitter<'_>,
) -> Result<Placed<T>, JobError> {
    let setup = TableSetup {
        setup: &around.job.setup,
        names: &names(),
    };
    let placement = Placement {
        subject: Table::OrderLine as usize,
        others: &config.others,
    };
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
struct Run<'a, T> {
    around: Around<'a>,
    tables: Option<Seats<Placed<T>>>,
    state: State,
    config: &'a Config,
    /// All of the initial population is there.
    loaded: bool,
}

impl<T: Tables> Run<'_, T> {
    fn phase(
        &mut self,
        phase: &Phase,
        index: u64,
        emitter: &mut Emitter<'_>,
    ) -> Result<(), JobError> {
        if phase.work == Work::Reopen {
            return self.reopen(phase, emitter);
        }
        self.tables()?
            .0
            .focus(phase.focus)
            .map_err(JobError::engine(format!("before phase {}", phase.name)))?;
        let asked = match &phase.work {
            Work::Tpcc {
                step: TpccStep::Load,
                ..
            } => self.config.scale.entries(),
            _ => 0,
        };
        emitter.emit(&Event::Began {
            phase: phase.name.clone(),
            asked,
        });
        let result = match &phase.work {
            Work::Tpcc { step, .. } => match step {
                TpccStep::Load => self.load(phase, index, emitter)?,
                TpccStep::Run | TpccStep::Check if !self.loaded => nothing_done(phase),
                TpccStep::Run => self.run(phase, index, emitter)?,
                TpccStep::Check => self.check(phase, index, emitter)?,
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
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |d| d.as_millis() as u64);
        let loader = Loader::new(self.config.scale, self.around.job.seed, now);
        let load = |tables: &mut &Placed<T>, worker: &mut Worker<'_>| {
            let (thread, threads) = (worker.thread as usize, worker.threads as usize);
            let units = (0..loader.units()).skip(thread).step_by(threads);
            worker.each(units, |unit| {
                let (rows, payload) = loader.load(*tables, unit)?;
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
            result.asked = self.config.scale.entries();
        }
        Ok(result)
    }

    fn run(
        &mut self,
        phase: &Phase,
        index: u64,
        emitter: &mut Emitter<'_>,
    ) -> Result<PhaseResult, JobError> {
        let (config, state, seed) = (self.config, &self.state, self.around.job.seed);
        let warehouses = config.scale.warehouses;
        let run = |tables: &mut &Placed<T>, worker: &mut Worker<'_>| {
            let mut transactions = Transactions::new(*tables, state, config, seed);
            let (first, mut turns) = (worker.thread == 0 && tables.isolates(), 0u64);
            worker.drive(UNBOUNDED, |rng| {
                turns += 1;
                if first && turns.is_multiple_of(LIVE_CHECK) {
                    check_live(*tables, state, warehouses, turns / LIVE_CHECK)?;
                }
                let ended = transactions.next(rng)?;
                Ok(Done {
                    found: u64::from(ended.committed),
                    ..Done::wrote(Kind::of(ended.transaction), ended.payload as usize)
                })
            })?;
            Ok(transactions.conflicts())
        };
        let (mut result, conflicts) =
            run_crew(self.tables()?, &self.around, phase, index, 0, emitter, run)?;
        let conflicts: u64 = conflicts.into_iter().sum();
        result
            .counters
            .insert("conflicts".to_owned(), conflicts as f64);
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
        let (state, warehouses) = (&self.state, self.config.scale.warehouses);
        let check = |tables: &mut &Placed<T>, worker: &mut Worker<'_>| {
            let (thread, threads) = (worker.thread as usize, worker.threads as usize);
            let districts = (1..=warehouses).flat_map(|w| (1..=DISTRICTS).map(move |d| (w, d)));
            worker.each(districts.skip(thread).step_by(threads), |(w, d)| {
                if d == 1 {
                    check_warehouse(*tables, state, w)?;
                }
                let rows = check_district(*tables, state, w, d)?;
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
        let tables = open(&self.around, self.config, &phase.name, emitter)?;
        self.tables = Some(Seats(tables));
        Ok(())
    }
}

/// Transactions of the first thread between two looks at a district, where the engine isolates.
const LIVE_CHECK: u64 = 4096;

/// Holds the conditions against one district and its warehouse, beside transactions.
fn check_live<T: Tables>(
    tables: &T,
    state: &State,
    warehouses: u16,
    turn: u64,
) -> Result<(), Broken> {
    let districts = u64::from(DISTRICTS);
    let w = 1 + (turn / districts % u64::from(warehouses)) as u16;
    let checked = check_warehouse(tables, state, w)
        .and_then(|()| check_district(tables, state, w, 1 + (turn % districts) as u8));
    match checked {
        // It was given up, and is looked at again another time.
        Err(Trouble::Engine(fault)) if tables.is_conflict(&fault) => Ok(()),
        checked => Ok(checked.map(|_| ())?),
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

impl Kind {
    fn of(transaction: Transaction) -> Self {
        match transaction {
            Transaction::NewOrder => Self::NewOrder,
            Transaction::Payment => Self::Payment,
            Transaction::OrderStatus => Self::OrderStatus,
            Transaction::Delivery => Self::Delivery,
            Transaction::StockLevel => Self::StockLevel,
        }
    }
}

#[cfg(test)]
#[path = "tables_tests.rs"]
mod tests;
