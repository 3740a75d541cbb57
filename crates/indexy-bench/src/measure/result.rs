//! What a run leaves: the shapes of the JSON.

use super::{
    latency::LatencySummary,
    process::{Cpu, Io, Memory},
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Latencies between two moments of a phase, in microseconds, up to 6 % too high.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct TickLatency {
    /// Median.
    pub p50_us: f64,
    /// 99 % are below.
    pub p99_us: f64,
    /// 99.9 % are below.
    pub p999_us: f64,
    /// The slowest.
    pub max_us: f64,
}

/// One moment of a phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Tick {
    /// Seconds since the phase began.
    pub at: f64,
    /// Operations so far.
    pub ops: u64,
    /// Transactions so far by kind, in the order New-Order, Payment, Order-Status, Delivery,
    /// Stock-Level; none where there are no transactions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions: Option<[u64; 5]>,
    /// Latencies since the last moment; none if no operation was timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<TickLatency>,
    /// Seconds of CPU so far in this phase, of all threads.
    #[serde(default)]
    pub cpu: f64,
    /// Resident bytes, less what was resident before the contender was opened.
    pub resident: u64,
    /// Bytes that the contender says it holds; 0 if it does not say.
    pub accounted: u64,
    /// Bytes written to the device so far in this phase.
    pub written: u64,
    /// Bytes read from the device so far in this phase.
    pub read: u64,
}

/// What one phase measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseResult {
    /// Name of the phase, unique in its job.
    pub name: String,
    /// The value of what the figure varies, if it is a point of one.
    pub x: Option<f64>,
    /// Threads that ran it.
    pub threads: usize,
    /// Operations asked for; 0 if only time was given.
    pub asked: u64,
    /// Operations done.
    pub done: u64,
    /// Operations that found their key.
    pub found: u64,
    /// Seconds.
    pub seconds: f64,
    /// True if it ended before all operations asked for were done, or by an interrupt.
    pub partial: bool,
    /// True if it was an interrupt that ended it early, and not its time cap.
    #[serde(default)]
    pub interrupted: bool,
    /// Latencies by kind of operation.
    pub latency: BTreeMap<String, LatencySummary>,
    /// Memory at the end of the phase.
    pub memory: Memory,
    /// Memory before the contender was opened, to be subtracted.
    pub base: Memory,
    /// Bytes that the contender says it holds, at the end; none if it does not say.
    pub accounted: Option<u64>,
    /// Most that it said during the phase.
    pub accounted_peak: Option<u64>,
    /// I/O of the phase.
    pub io: Io,
    /// CPU of the phase.
    pub cpu: Cpu,
    /// Bytes of keys and values that the phase gave to the contender.
    pub payload_written: u64,
    /// Bytes in the contender's directory at the end.
    pub disk: u64,
    /// The contender's own counters at the end.
    pub counters: BTreeMap<String, f64>,
    /// The phase over time.
    pub series: Vec<Tick>,
}

impl PhaseResult {
    /// Operations per second.
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 {
            self.done as f64 / self.seconds
        } else {
            0.0
        }
    }

    /// Most that was resident in the phase, less the base.
    pub fn peak_resident(&self) -> u64 {
        self.memory.peak.saturating_sub(self.base.resident)
    }

    /// Resident at the end, less the base.
    pub fn resident(&self) -> u64 {
        self.memory.resident.saturating_sub(self.base.resident)
    }

    /// `bytes` per operation done.
    pub fn per_op(&self, bytes: u64) -> f64 {
        if self.done > 0 {
            bytes as f64 / self.done as f64
        } else {
            0.0
        }
    }

    /// Device bytes written for a byte of payload.
    pub fn write_amplification(&self) -> Option<f64> {
        (self.payload_written > 0)
            .then(|| self.io.device_written as f64 / self.payload_written as f64)
    }

    /// Operations per second between neighbouring ticks, with the middle of each interval.
    pub fn throughput(&self) -> Vec<(f64, f64)> {
        self.series
            .windows(2)
            .filter(|w| w[1].at > w[0].at)
            .map(|w| {
                let rate = w[1].ops.saturating_sub(w[0].ops) as f64 / (w[1].at - w[0].at);
                (w[0].at.midpoint(w[1].at), rate)
            })
            .collect()
    }
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome", content = "why")]
pub enum Outcome {
    /// All phases ran.
    Finished,
    /// An interrupt or the overall time ended it; the phases so far are kept.
    Interrupted,
    /// The contender answered with a value that was never written. The run fails.
    WrongValue(String),
    /// The contender returned an error.
    Failed(String),
    /// The memory limit ended the process. That is a result, and no failure of the run.
    OutOfMemory(String),
    /// The process ended by itself or by a signal, or hung and was killed. The run fails. Results
    /// of earlier versions say so of the memory limit too.
    Died(String),
    /// The contender cannot do this; nothing was run.
    Skipped(String),
}

impl Outcome {
    /// True if it makes the whole run a failure.
    pub fn is_failure(&self) -> bool {
        matches!(
            self,
            Outcome::WrongValue(_) | Outcome::Failed(_) | Outcome::Died(_)
        )
    }
}

/// One contender's run of one job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Which experiment.
    pub scenario: String,
    /// Which contender.
    pub contender: String,
    /// Which repetition, from 0.
    pub repeat: usize,
    /// Budget in bytes.
    pub budget: u64,
    /// Limit of the memory cgroup in bytes; none without a cgroup.
    pub memory_limit: Option<u64>,
    /// Durability, as its option is spelled.
    pub durability: String,
    /// What holds the page cache at bay.
    pub page_cache: String,
    /// Seed of keys and draws.
    pub seed: u64,
    /// How it ended.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// What its phases measured.
    pub phases: Vec<PhaseResult>,
    /// Parameters of the scenario that tell runs apart, for tables and plots.
    pub parameters: BTreeMap<String, f64>,
}

impl RunResult {
    /// The phase named `name`, if it ran.
    pub fn phase(&self, name: &str) -> Option<&PhaseResult> {
        self.phases.iter().find(|p| p.name == name)
    }

    /// By how much `counter` grew in `phase`, which is one of these and not the first.
    pub fn grown(&self, phase: &PhaseResult, counter: &str) -> Option<f64> {
        let index = self.phases.iter().position(|p| p.name == phase.name)?;
        let before = self.phases.get(index.checked_sub(1)?)?;
        Some(phase.counters.get(counter)? - before.counters.get(counter)?)
    }

    /// Device bytes written for a byte loaded, the work that the load left to the background
    /// included.
    pub fn settled_write_amplification(&self) -> Option<f64> {
        let (load, settle) = (self.phase("load")?, self.phase("settle")?);
        let written = load.io.device_written + settle.io.device_written;
        (load.payload_written > 0).then(|| written as f64 / load.payload_written as f64)
    }

    /// Bytes on disk for a byte loaded, after background work.
    pub fn settled_space_amplification(&self) -> Option<f64> {
        let (load, settle) = (self.phase("load")?, self.phase("settle")?);
        (load.payload_written > 0).then(|| settle.disk as f64 / load.payload_written as f64)
    }
}

/// The middle value (mean of the two middle ones); none of nothing.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.retain(|v| v.is_finite());
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[half]),
        _ => Some(values[half - 1].midpoint(values[half])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_odd_even_and_nothing() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0]), Some(2.5));
        assert_eq!(median(vec![f64::NAN]), None);
    }

    #[test]
    fn outcomes_read_as_they_were_written_those_of_earlier_versions_too() {
        let died = r#"{"outcome":"died","why":"out of memory under the limit of 16 MiB"}"#;
        let died: Outcome = serde_json::from_str(died).unwrap();
        assert!(matches!(died, Outcome::Died(_)));
        let outcome = Outcome::OutOfMemory("x".to_owned());
        let text = serde_json::to_string(&outcome).unwrap();
        assert_eq!(text, r#"{"outcome":"out_of_memory","why":"x"}"#);
        assert_eq!(serde_json::from_str::<Outcome>(&text).unwrap(), outcome);
        let mut phase = serde_json::to_value(PhaseResult::default()).unwrap();
        phase.as_object_mut().unwrap().remove("interrupted");
        let phase: PhaseResult = serde_json::from_value(phase).unwrap();
        assert_eq!(phase, PhaseResult::default());
    }

    #[test]
    fn the_memory_limit_is_a_result_and_other_deaths_are_failures() {
        let why = || "why".to_owned();
        assert!(Outcome::Died(why()).is_failure() && Outcome::Failed(why()).is_failure());
        assert!(Outcome::WrongValue(why()).is_failure());
        assert!(!Outcome::OutOfMemory(why()).is_failure() && !Outcome::Finished.is_failure());
        assert!(!Outcome::Skipped(why()).is_failure() && !Outcome::Interrupted.is_failure());
    }

    #[test]
    fn throughput_is_the_slope_between_ticks() {
        let tick = |at, ops| Tick {
            at,
            ops,
            ..Tick::default()
        };
        let phase = PhaseResult {
            series: vec![tick(0.0, 0), tick(2.0, 100), tick(2.0, 100), tick(3.0, 400)],
            ..Default::default()
        };
        assert_eq!(phase.throughput(), vec![(1.0, 50.0), (2.5, 300.0)]);
    }
}
