//! Measures IndeXY and, from the crate `indexy-bench-peers`, other engines: workloads, harness,
//! report.
//!
//! - [`dex`]: a tree in the memory of other machines, counted verb by verb; the feature `dex`.
//! - [`policies`]: traces through policies of eviction, without a clock.
//! - [`application`]: what workloads of transactions have in common; [`applications`]: which there
//!   are; [`tpcc`]: TPC-C, rows to transactions to consistency conditions; [`tatp`], [`voter`]
//!   and [`counters`]: smaller ones.
//! - [`workload`]: keys, values, distributions, YCSB; pure functions of a seed.
//! - [`contender`]: the seam to an engine.
//! - [`registry`]: the engines by name.
//! - [`harness`]: one job in one process, in a memory cgroup; the measured loops.
//! - [`measure`]: latencies, memory, I/O, CPU.
//! - [`suite`]: which jobs make up a table or a figure, and what is asked of the numbers.
//! - [`report`]: tables, CSV, JSON, HTML with plots, comparisons.
//!
//! `docs/benchmarks.md` says how to run it and what each row means.

#![forbid(unsafe_code)]

pub mod application;
pub mod applications;
mod cli;
pub mod contender;
pub mod counters;
pub mod dex;
mod format;
pub mod harness;
pub mod measure;
pub mod policies;
pub mod registry;
pub mod report;
mod stderr;
pub mod suite;
pub mod tatp;
pub mod tpcc;
pub mod voter;
pub mod workload;

pub use cli::main_with;
