//! Latencies between two ticks: a histogram that its thread counts into and the watcher reads.
//!
//! One writer, so counting is a load and a store on a line that no other thread writes. Buckets are
//! a sixteenth of their power of two wide: a percentile is up to 6 % too high, which is enough for
//! a course over time; totals come from the exact histograms (`measure/latency.rs`).

use crate::measure::TickLatency;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Buckets of a power of two, as a power of two.
const SPLIT: u32 = 4;
/// Up to 2^40 ns, 18 minutes.
const BUCKETS: usize = 38 << SPLIT;

/// What one thread counted since it began.
#[derive(Debug)]
pub(super) struct Recent {
    counts: Box<[AtomicU32]>,
}

impl Default for Recent {
    fn default() -> Self {
        Self {
            counts: (0..BUCKETS).map(|_| AtomicU32::new(0)).collect(),
        }
    }
}

impl Recent {
    /// Counts one operation of `ns` nanoseconds. One thread only.
    #[inline]
    pub(super) fn record(&self, ns: u64) {
        let count = &self.counts[bucket(ns)];
        count.store(count.load(Relaxed).wrapping_add(1), Relaxed);
    }
}

/// The bucket of `ns`: exact below 16, then 16 for each power of two.
#[inline]
fn bucket(ns: u64) -> usize {
    let ns = ns.max(1);
    let power = ns.ilog2();
    if power < SPLIT {
        return ns as usize;
    }
    let within = (ns >> (power - SPLIT)) as usize & ((1 << SPLIT) - 1);
    let index = ((power - SPLIT + 1) as usize) << SPLIT | within;
    index.min(BUCKETS - 1)
}

/// The largest number of a bucket, in nanoseconds.
fn top(index: usize) -> u64 {
    if index < 1 << SPLIT {
        return index as u64;
    }
    let shift = (index >> SPLIT) as u32 - 1;
    let within = (index & ((1 << SPLIT) - 1)) as u64;
    (((1 << SPLIT) + within + 1) << shift) - 1
}

/// What the watcher has seen of all threads.
#[derive(Debug)]
pub(super) struct Seen {
    before: Vec<u32>,
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            before: vec![0; BUCKETS],
        }
    }
}

impl Seen {
    /// Latencies since the last call; none if nothing was timed.
    pub(super) fn since<'a>(
        &mut self,
        threads: impl Iterator<Item = &'a Recent>,
    ) -> Option<TickLatency> {
        let mut now = vec![0u32; BUCKETS];
        for recent in threads {
            for (sum, count) in now.iter_mut().zip(&recent.counts) {
                *sum = sum.wrapping_add(count.load(Relaxed));
            }
        }
        let grown: Vec<u64> = now
            .iter()
            .zip(&self.before)
            .map(|(now, before)| u64::from(now.wrapping_sub(*before)))
            .collect();
        self.before = now;
        let all: u64 = grown.iter().sum();
        let at = |share: f64| {
            let rank = ((all as f64 * share).ceil() as u64).clamp(1, all);
            let mut passed = 0;
            let found = grown.iter().position(|count| {
                passed += count;
                passed >= rank
            });
            top(found.unwrap_or(BUCKETS - 1)) as f64 / 1e3
        };
        (all > 0).then(|| TickLatency {
            p50_us: at(0.5),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: at(1.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_and_hold_what_belongs_to_them() {
        let mut last = 0;
        for ns in 1..100_000u64 {
            let index = bucket(ns);
            assert!(index == last || index == last + 1, "{ns}");
            assert!(
                top(index) >= ns && top(index) as f64 <= ns as f64 * 1.07,
                "{ns}"
            );
            last = index;
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        assert_eq!((bucket(0), top(bucket(1))), (1, 1));
    }

    #[test]
    fn only_what_came_since_the_last_look_counts() {
        let (one, other, mut seen) = (Recent::default(), Recent::default(), Seen::default());
        for _ in 0..98 {
            one.record(10_000);
        }
        other.record(1_000_000);
        other.record(5_000_000);
        let near = |a: f64, b: f64| (a / b - 1.0).abs() < 0.07;
        let first = seen.since([&one, &other].into_iter()).unwrap();
        assert!(
            near(first.p50_us, 10.0) && near(first.p99_us, 1000.0) && near(first.max_us, 5000.0)
        );
        assert!(seen.since([&one, &other].into_iter()).is_none());
        one.record(50);
        assert!(near(
            seen.since([&one, &other].into_iter()).unwrap().max_us,
            0.05
        ));
    }
}
