//! What the demo saw: samples over time, and one result per phase.

use std::time::Duration;

/// What was seen at one moment. Rates and ratios are those since the sample before.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// Seconds since the start.
    pub at: f64,
    pub operations_per_second: f64,
    /// Memory that the database counts, in bytes; `None` while no process of ours has it open.
    pub memory: Option<u64>,
    /// Resident memory of this process above what it had before the open.
    pub resident: Option<u64>,
    /// Hits per read; `None` without reads.
    pub hit_ratio: Option<f64>,
    /// Bytes of keys and values in the database.
    pub data: u64,
    /// Bytes that the database has on disk.
    pub disk: Option<u64>,
}

/// What one phase did.
#[derive(Debug, Clone)]
pub struct PhaseResult {
    pub name: &'static str,
    pub began: f64,
    pub ended: f64,
    pub operations: u64,
    pub hits: u64,
    pub misses: u64,
    /// The most that the database counted at a sample.
    pub peak_memory: u64,
    /// The most that was resident at a sample, less what was before the open; `None` while another
    /// process had the database open.
    pub peak_resident: Option<u64>,
    /// Latencies of reads in nanoseconds: median, 99 %, 99.9 %.
    pub latency: Option<[u64; 3]>,
    /// What came out, in a sentence.
    pub outcome: String,
}

impl PhaseResult {
    /// How long it took.
    pub fn elapsed(&self) -> Duration {
        Duration::from_secs_f64((self.ended - self.began).max(0.0))
    }
}

/// All that was seen.
#[derive(Debug)]
pub struct Seen {
    pub samples: Vec<Sample>,
    pub phases: Vec<PhaseResult>,
    /// The most that was resident in this process, less what was before the open.
    pub peak_resident: u64,
    /// What was resident before the open.
    pub resident_before: u64,
}
