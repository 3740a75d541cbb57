//! The core's table: speed and memory against named peers, with goals.
//!
//! Five sections: in memory, durability, larger than memory, replay, a queue. `jobs.rs` says what
//! is run,
//! `rows/` what is compared and which ratio is asked for.

mod jobs;
mod queue;
mod rows;

pub use jobs::{CoreOptions, Section, core_plan};
pub use rows::{Row, Verdict, core_rows};
