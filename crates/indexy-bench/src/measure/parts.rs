//! A run of transactions before and after its memory was full.

use super::result::{PhaseResult, RunResult};

/// The share of the budget from which on the memory counts as full.
const FULL: f64 = 0.85;
/// Without a log nothing is written before memory is needed: this part of the budget, written, says
/// that it is full.
const WRITTEN_DIVISOR: u64 = 32;

/// What [`RunResult::durability`] says of a run without a log.
const NO_LOG: &str = "none";

/// The parts of a run, before and after the memory was full.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Parts {
    /// Seconds into the phase when the memory was full; none if it never was.
    pub full_at: Option<f64>,
    /// Transactions per second before; none if it was full from the beginning.
    pub before: Option<f64>,
    /// Transactions per second after; none if it never was full.
    pub after: Option<f64>,
    /// Bytes written to the device per second after.
    pub written_after: Option<f64>,
    /// Bytes read from the device per second after.
    pub read_after: Option<f64>,
}

impl Parts {
    /// Of a phase of `run`.
    pub fn of(phase: &PhaseResult, run: &RunResult) -> Self {
        let limit = run.budget as f64 * FULL;
        let unlogged = run.durability == NO_LOG;
        let series = &phase.series;
        let full = series.iter().position(|t| {
            let evicts = unlogged && t.written > run.budget / WRITTEN_DIVISOR;
            evicts || t.resident as f64 >= limit
        });
        let Some((first, last)) = series.first().zip(series.last()) else {
            return Self::default();
        };
        // Less than this is no rate.
        const LEAST_SECONDS: f64 = 0.2;
        let slope = |from: (f64, u64), to: (f64, u64)| {
            let seconds = to.0 - from.0;
            (seconds >= LEAST_SECONDS).then(|| to.1.saturating_sub(from.1) as f64 / seconds)
        };
        let Some(middle) = full.map(|index| &series[index]) else {
            return Self {
                before: slope((first.at, first.ops), (last.at, last.ops)),
                ..Self::default()
            };
        };
        Self {
            full_at: Some(middle.at),
            before: slope((first.at, first.ops), (middle.at, middle.ops)),
            after: slope((middle.at, middle.ops), (last.at, last.ops)),
            written_after: slope((middle.at, middle.written), (last.at, last.written)),
            read_after: slope((middle.at, middle.read), (last.at, last.read)),
        }
    }
}
