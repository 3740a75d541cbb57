//! Which jobs make up a table or a figure.
//!
//! A suite turns sizes and contenders into a [`Plan`] of jobs and skips, and says nothing about how
//! they are run. `core/` is the core's table of goals, `figures/` reruns the paper's figures,
//! `ycsb.rs` and `tables.rs` run the workloads of one command.

pub mod core;
pub mod figures;
mod plan;
mod tables;
mod ycsb;

pub use plan::{Draft, Plan, Step};
pub use tables::{RUN, TablesRun, ZIPF, tables_plan};
pub use ycsb::{YcsbRun, ycsb_plan};
