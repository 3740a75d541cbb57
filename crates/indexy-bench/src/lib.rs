//! Measures IndeXY and, from the crate `indexy-bench-peers`, other engines: workloads, harness, report.

#![forbid(unsafe_code)]

pub mod workload;
