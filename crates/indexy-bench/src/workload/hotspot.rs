//! YCSB's hotspot: a share of the draws falls on a share of the items, both evenly.

use super::rng::Rng;
use rand::Rng as _;

/// The distribution over `0..items`, the hot set first.
#[derive(Debug, Clone, Copy)]
pub struct Hotspot {
    items: u64,
    hot_items: u64,
    hot_draws: f64,
}

impl Hotspot {
    /// `hot_items` and `hot_draws` are fractions of 0..=1 (YCSB's `hotspotdatafraction` and
    /// `hotspotopnfraction`).
    pub fn new(items: u64, hot_items: f64, hot_draws: f64) -> Self {
        let items = items.max(1);
        Self {
            items,
            hot_items: (items as f64 * hot_items.clamp(0.0, 1.0)) as u64,
            hot_draws: hot_draws.clamp(0.0, 1.0),
        }
    }

    /// Draws a number of `0..items`.
    #[inline]
    pub fn sample(&self, rng: &mut Rng) -> u64 {
        let cold_items = self.items - self.hot_items;
        let hot = self.hot_items > 0 && (cold_items == 0 || rng.random::<f64>() < self.hot_draws);
        if hot {
            rng.random_range(0..self.hot_items)
        } else {
            self.hot_items + rng.random_range(0..cold_items)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::rng;

    #[test]
    fn the_hot_set_gets_its_share() {
        let hotspot = Hotspot::new(1000, 0.2, 0.8);
        let mut rng = rng(5, 0, 0);
        let hot = (0..100_000)
            .filter(|_| hotspot.sample(&mut rng) < 200)
            .count();
        assert!((78_500..81_500).contains(&hot), "{hot} of 100000");
    }

    #[test]
    fn extreme_fractions_stay_in_range() {
        let mut rng = rng(5, 0, 0);
        for (data, draws) in [(0.0, 1.0), (1.0, 0.0), (1.0, 1.0), (0.0, 0.0)] {
            let hotspot = Hotspot::new(7, data, draws);
            assert!((0..1000).all(|_| hotspot.sample(&mut rng) < 7));
        }
    }
}
