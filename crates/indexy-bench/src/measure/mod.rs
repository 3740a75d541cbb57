//! What is measured, and where the numbers come from: latencies, memory, I/O and CPU of this
//! process.
//!
//! Linux only: memory, I/O and CPU are read from `/proc/self`.
//! Not here: when to measure (`harness/crew.rs`), what to conclude (`report/`).

mod latency;
mod parts;
mod process;
mod result;
mod steadiness;

pub use latency::{Latencies, LatencySummary};
pub use parts::Parts;
pub use process::{Cpu, Io, Memory, reset_peak_memory};
pub use result::{Outcome, PhaseResult, RunResult, Tick, TickLatency, median};
pub use steadiness::Steadiness;
