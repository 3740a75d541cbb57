//! Throughput by whole seconds, and how much it fluctuates.

use super::result::{PhaseResult, Tick};

/// Throughput of whole seconds, in operations per second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Steadiness {
    /// One second of twenty was slower.
    pub p5: f64,
    /// The middle.
    pub p50: f64,
    /// One second of twenty was faster.
    pub p95: f64,
}

impl PhaseResult {
    /// For each whole second of the phase, its middle and what `count` grew by in it, interpolated
    /// between ticks.
    pub fn seconds_of(&self, count: impl Fn(&Tick) -> u64) -> Vec<(f64, f64)> {
        let Some(end) = self.series.last().map(|t| t.at) else {
            return Vec::new();
        };
        let mut later = 0;
        let mut at = |second: f64| {
            while later + 1 < self.series.len() && self.series[later].at < second {
                later += 1;
            }
            let (b, a) = (&self.series[later], &self.series[later.saturating_sub(1)]);
            let (from, to) = (count(a) as f64, count(b) as f64);
            if b.at > a.at {
                from + (to - from) * ((second - a.at) / (b.at - a.at)).clamp(0.0, 1.0)
            } else {
                to
            }
        };
        let mut last = at(0.0);
        let mut seconds = Vec::new();
        for second in 1..=end as u64 {
            let now = at(second as f64);
            seconds.push((second as f64 - 0.5, now - last));
            last = now;
        }
        seconds
    }

    /// The fluctuation of what `count` counts; none of a phase shorter than a second.
    pub fn steadiness(&self, count: impl Fn(&Tick) -> u64) -> Option<Steadiness> {
        let mut rates: Vec<f64> = self.seconds_of(count).into_iter().map(|s| s.1).collect();
        rates.sort_by(f64::total_cmp);
        let last = rates.len().checked_sub(1)?;
        let at = |q: f64| rates[(q * last as f64).round() as usize];
        Some(Steadiness {
            p5: at(0.05),
            p50: at(0.5),
            p95: at(0.95),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(ticks: &[(f64, u64)]) -> PhaseResult {
        let tick = |&(at, ops): &(f64, u64)| Tick {
            at,
            ops,
            ..Tick::default()
        };
        PhaseResult {
            series: ticks.iter().map(tick).collect(),
            ..PhaseResult::default()
        }
    }

    #[test]
    fn seconds_are_cut_between_ticks() {
        let phase = phase(&[(0.0, 0), (0.5, 50), (1.5, 250), (2.0, 250), (2.9, 700)]);
        assert_eq!(
            phase.seconds_of(|t| t.ops),
            vec![(0.5, 150.0), (1.5, 100.0)]
        );
    }

    #[test]
    fn fluctuation_is_that_of_seconds() {
        let ticks: Vec<(f64, u64)> = (0..=100u64).map(|s| (s as f64, s * s)).collect();
        let steady = phase(&ticks).steadiness(|t| t.ops).unwrap();
        assert_eq!((steady.p5, steady.p50, steady.p95), (11.0, 101.0, 189.0));
        assert!(phase(&[(0.0, 0), (0.7, 9)]).steadiness(|t| t.ops).is_none());
        assert!(PhaseResult::default().steadiness(|t| t.ops).is_none());
    }
}
