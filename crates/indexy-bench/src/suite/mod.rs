//! Which jobs make up a table or a figure.
//!
//! A suite turns sizes and contenders into a [`Plan`] of jobs and skips, and says nothing about how
//! they are run. `core/` is the core's table of goals, `figures/` reruns the paper's figures,
//! `ycsb.rs` and `tpcc.rs` are one workload.

pub mod core;
pub mod figures;
mod plan;
mod tpcc;
mod ycsb;

pub use plan::{Draft, Plan, Step};
pub use tpcc::{RUN, TpccRun, tpcc_plan};
pub use ycsb::{YcsbRun, ycsb_plan};
