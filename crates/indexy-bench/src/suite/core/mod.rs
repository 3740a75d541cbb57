//! The core's table: speed and memory against named peers, with goals.
//!
//! Four sections: in memory, durability, larger than memory, replay. `jobs.rs` says what is run,
//! `rows/` what is compared and which ratio is asked for.

mod jobs;
mod rows;

pub use jobs::{CoreOptions, Section, core_plan};
pub use rows::{Row, Verdict, core_rows};
