//! Zipf-distributed ranks in constant time, for any number of items, which may change from draw to
//! draw.
//!
//! P(rank) is proportional to `1 / (rank + 1)^exponent`. Method: rejection-inversion (Hörmann and
//! Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions",
//! 1996). YCSB's own generator approximates the same distribution but needs the sum over all items
//! first.

use super::rng::Rng;
use rand::Rng as _;

/// The distribution over `items` ranks.
#[derive(Debug, Clone, Copy)]
pub struct Zipf {
    items: u64,
    exponent: f64,
    /// Integral of the density up to 1.5, less the mass of rank 1.
    low: f64,
    /// Integral of the density up to `items + 0.5`.
    high: f64,
    /// Draws this close above their rank need no test.
    squeeze: f64,
}

impl Zipf {
    /// `items` >= 1 ranks with `exponent` >= 0 (0 is uniform). Cost: constant.
    pub fn new(items: u64, exponent: f64) -> Self {
        assert!(items >= 1, "a distribution over nothing");
        assert!(
            exponent >= 0.0 && exponent.is_finite(),
            "zipf exponent {exponent}"
        );
        let mut zipf = Self {
            items,
            exponent,
            low: 0.0,
            high: 0.0,
            squeeze: 0.0,
        };
        zipf.low = zipf.integral(1.5) - 1.0;
        zipf.high = zipf.integral(items as f64 + 0.5);
        zipf.squeeze = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    /// Number of ranks.
    pub fn items(&self) -> u64 {
        self.items
    }

    /// The same distribution over another number of ranks. Cost: one power.
    pub fn set_items(&mut self, items: u64) {
        if items != self.items {
            self.items = items.max(1);
            self.high = self.integral(self.items as f64 + 0.5);
        }
    }

    /// Draws a rank of `0..items`, 0 being the most frequent. Cost: about 1.1 rounds of two powers.
    #[inline]
    pub fn sample(&self, rng: &mut Rng) -> u64 {
        loop {
            let u = self.high + rng.random::<f64>() * (self.low - self.high);
            let x = self.inverse(u);
            let rank = (x + 0.5).floor().clamp(1.0, self.items as f64);
            if rank - x <= self.squeeze || u >= self.integral(rank + 0.5) - self.density(rank) {
                return rank as u64 - 1;
            }
        }
    }

    #[inline]
    fn density(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    /// An antiderivative of the density, written so that exponents near 1 lose no digits.
    #[inline]
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        expm1_over(log * (1.0 - self.exponent)) * log
    }

    #[inline]
    fn inverse(&self, y: f64) -> f64 {
        let t = (y * (1.0 - self.exponent)).max(-1.0);
        (log1p_over(t) * y).exp()
    }
}

/// `(e^x - 1) / x`, also near 0.
#[inline]
fn expm1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        x.exp_m1() / x
    } else {
        1.0 + x / 2.0
    }
}

/// `ln(1 + x) / x`, also near 0.
#[inline]
fn log1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        x.ln_1p() / x
    } else {
        1.0 - x / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::rng;

    /// Largest difference of the two cumulative distributions (Kolmogorov-Smirnov).
    fn distance(items: u64, exponent: f64, draws: u64) -> f64 {
        let zipf = Zipf::new(items, exponent);
        let mut counts = vec![0u64; items as usize];
        let mut rng = rng(42, 0, 0);
        for _ in 0..draws {
            counts[zipf.sample(&mut rng) as usize] += 1;
        }
        let mass: Vec<f64> = (1..=items).map(|i| (i as f64).powf(-exponent)).collect();
        let total: f64 = mass.iter().sum();
        let (mut exact, mut seen, mut worst) = (0.0, 0.0, 0.0f64);
        for (m, c) in mass.iter().zip(&counts) {
            exact += m / total;
            seen += *c as f64 / draws as f64;
            worst = worst.max((exact - seen).abs());
        }
        worst
    }

    #[test]
    fn draws_follow_the_exact_distribution() {
        const DRAWS: u64 = 400_000;
        // The 99.9 % quantile of the statistic is 1.95 / sqrt(draws).
        let bound = 1.95 / (DRAWS as f64).sqrt();
        for items in [1, 2, 3, 10, 1000, 50_000] {
            for exponent in [0.0, 0.5, 0.7, 0.99, 1.0, 1.3, 2.0] {
                let d = distance(items, exponent, DRAWS);
                assert!(
                    d < bound,
                    "items {items} exponent {exponent}: {d} over {bound}"
                );
            }
        }
    }

    #[test]
    fn changing_the_number_of_items_equals_starting_with_it() {
        let mut grown = Zipf::new(10, 0.99);
        grown.set_items(1000);
        let fresh = Zipf::new(1000, 0.99);
        let (mut a, mut b) = (rng(1, 0, 0), rng(1, 0, 0));
        for _ in 0..1000 {
            assert_eq!(grown.sample(&mut a), fresh.sample(&mut b));
        }
    }

    #[test]
    fn huge_numbers_of_items_stay_in_range() {
        let zipf = Zipf::new(10_000_000_000, 0.99);
        let mut rng = rng(3, 0, 0);
        assert!((0..100_000).all(|_| zipf.sample(&mut rng) < 10_000_000_000));
    }
}
