//! Runs jobs: one contender, some phases, in a process of its own and, on request, in a memory
//! cgroup of its own.
//!
//! Parent (`launch.rs`): makes the cgroup, starts this same program as a child, reads events from
//! its standard output, says how it ended. Child (`child.rs`, `run.rs`): opens the contender and
//! runs the phases; the loops are in `points.rs` (micro benchmarks), `ycsb.rs` and `tables.rs`
//! (transactions), the clock around them in `crew.rs`. Not here: which jobs there are (`suite/`),
//! what their results mean (`report/`).

mod aside;
mod cgroup;
mod child;
mod crew;
mod ending;
mod interrupt;
mod job;
mod launch;
mod ledger;
mod points;
mod recent;
mod run;
mod space;
mod tables;
mod versions;
mod worker;
mod ycsb;

pub use cgroup::{CgroupError, MemoryGroup};
pub use child::{CHILD_ARGUMENT, child_main};
pub use interrupt::Interrupt;
pub use job::{Clock, Emitter, Event, Job, JobError, Phase, TableStep, Turnover, UNBOUNDED, Work};
pub(crate) use launch::empty_result;
pub use launch::{LaunchError, Launcher, View};
pub use run::run_job;
pub use space::{SpaceError, check_space, directory_bytes, needed_bytes};
pub use tables::run_tables_job;
