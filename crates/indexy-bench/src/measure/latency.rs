//! Latency histograms: three significant digits, 1 ns to 10 minutes.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

const LOWEST_NS: u64 = 1;
const HIGHEST_NS: u64 = 600 * 1_000_000_000;
const DIGITS: u8 = 3;

/// Latencies of one kind of operation.
#[derive(Debug, Clone)]
pub struct Latencies {
    histogram: Histogram<u64>,
}

impl Default for Latencies {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(LOWEST_NS, HIGHEST_NS, DIGITS)
            .expect("the bounds are valid");
        Self { histogram }
    }
}

impl Latencies {
    /// Counts one operation of `ns` nanoseconds.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.histogram.saturating_record(ns.max(LOWEST_NS));
    }

    /// Adds another thread's.
    pub fn add(&mut self, other: &Latencies) {
        self.histogram
            .add(&other.histogram)
            .expect("all have the same bounds");
    }

    /// Number of operations counted.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// What a report prints.
    pub fn summary(&self) -> LatencySummary {
        let at = |q| self.histogram.value_at_quantile(q) as f64 / 1e3;
        LatencySummary {
            count: self.histogram.len(),
            mean_us: self.histogram.mean() / 1e3,
            p50_us: at(0.5),
            p95_us: at(0.95),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: self.histogram.max() as f64 / 1e3,
        }
    }
}

/// Microseconds at the usual places.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Operations counted.
    pub count: u64,
    /// Mean.
    pub mean_us: f64,
    /// Median.
    pub p50_us: f64,
    /// 95 % are below.
    pub p95_us: f64,
    /// 99 % are below.
    pub p99_us: f64,
    /// 99.9 % are below.
    pub p999_us: f64,
    /// The slowest.
    pub max_us: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_where_they_belong() {
        let mut latencies = Latencies::default();
        for us in 1..=1000u64 {
            latencies.record(us * 1000);
        }
        let s = latencies.summary();
        assert!(
            (s.p50_us - 500.0).abs() < 2.0
                && (s.p99_us - 990.0).abs() < 2.0
                && (s.max_us - 1000.0).abs() < 2.0
        );
    }
}
