//! YCSB's exponential: distances back from the newest item.

use super::rng::Rng;
use rand::Rng as _;

/// The distribution of distances 0, 1, ...
#[derive(Debug, Clone, Copy)]
pub struct Exponential {
    gamma: f64,
}

impl Exponential {
    /// `percentile` percent of the draws are below `range` (YCSB: 95 and 0.857 of the records).
    pub fn new(percentile: f64, range: f64) -> Self {
        Self {
            gamma: -(1.0 - percentile / 100.0).ln() / range.max(1.0),
        }
    }

    /// Draws a distance.
    #[inline]
    pub fn sample(&self, rng: &mut Rng) -> u64 {
        // 1 - random is in (0, 1], so the logarithm is finite.
        (-(1.0 - rng.random::<f64>()).ln() / self.gamma) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::rng;

    #[test]
    fn the_percentile_is_where_it_was_asked_for() {
        let exponential = Exponential::new(95.0, 1000.0);
        let mut rng = rng(6, 0, 0);
        let below = (0..100_000)
            .filter(|_| exponential.sample(&mut rng) < 1000)
            .count();
        assert!((94_500..95_500).contains(&below), "{below} of 100000");
    }
}
