//! How long each phase of the demo takes, and how much it may write.

use crate::args::Demo;
use std::{thread, time::Duration};

/// Shares of the planned time. The rest is for opening, closing, recovery and the check of
/// everything.
pub const PATHS_SHARE: f64 = 0.08;
pub const FILL_SHARE: f64 = 0.27;
pub const WORKING_SET_SHARE: f64 = 0.13;
pub const ZIPF_SHARE: f64 = 0.17;
pub const SCAN_SHARE: f64 = 0.06;
pub const KILL_SHARE: f64 = 0.06;
/// Phases of the demo.
pub const PHASES: usize = 7;
/// The data shall be at least, and at most, this many times the budget.
const TIMES_BUDGET_AT_LEAST: u64 = 8;
const TIMES_BUDGET_AT_MOST: u64 = 32;
/// No machine writes more than this per second through an ordered index; bounds the space asked
/// for.
const MOST_BYTES_PER_SECOND: f64 = 100e6;
/// Threads that write and read.
const MOST_THREADS: usize = 4;

/// The plan for this machine.
pub struct Plan {
    pub total: Duration,
    /// The data shall have so many bytes at least, and at most.
    pub least_bytes: u64,
    pub most_bytes: u64,
    /// Threads that write and read.
    pub threads: u64,
}

impl Plan {
    pub fn new(args: &Demo) -> Self {
        let total = Duration::from_secs(args.seconds);
        let most_in_time = (total.as_secs_f64() * FILL_SHARE * MOST_BYTES_PER_SECOND) as u64;
        let threads = thread::available_parallelism().map_or(1, |n| n.get().min(MOST_THREADS));
        Self {
            total,
            least_bytes: args.budget.saturating_mul(TIMES_BUDGET_AT_LEAST),
            most_bytes: args
                .budget
                .saturating_mul(TIMES_BUDGET_AT_MOST)
                .min(most_in_time.max(args.budget)),
            threads: threads as u64,
        }
    }

    /// A share of the planned time.
    pub fn share(&self, share: f64) -> Duration {
        self.total.mul_f64(share)
    }
}
