//! Random choices, one stream a thread; a seed repeats the choices of a single thread.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use thread_local::ThreadLocal;

/// Weyl sequence with the finalizer of SplitMix64.
pub(crate) struct Random {
    seed: AtomicU64,
    states: ThreadLocal<AtomicU64>,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed: AtomicU64::new(seed),
            states: ThreadLocal::new(),
        }
    }

    pub(crate) fn word(&self) -> u64 {
        let state = self.states.get_or(|| {
            // Streams start far from each other.
            let start = self.seed.fetch_add(0x5851_F42D_4C95_7F2D, Relaxed);
            AtomicU64::new(start)
        });
        let next = state.load(Relaxed).wrapping_add(0x9E37_79B9_7F4A_7C15);
        state.store(next, Relaxed);
        let mixed = (next ^ (next >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Below `end`, which is not 0.
    pub(crate) fn below(&self, end: usize) -> usize {
        ((u128::from(self.word()) * end as u128) >> 64) as usize
    }

    /// True with this probability.
    pub(crate) fn chance(&self, probability: f64) -> bool {
        (self.word() >> 11) as f64 / ((1_u64 << 53) as f64) < probability
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_spread_and_repeat_with_their_seed() {
        let (one, two) = (Random::new(7), Random::new(7));
        let mut seen = [0; 10];
        for _ in 0..10_000 {
            let choice = one.below(10);
            assert_eq!(choice, two.below(10));
            seen[choice] += 1;
        }
        assert!(
            seen.iter().all(|&times| (900..1_100).contains(&times)),
            "{seen:?}"
        );
        let often = (0..10_000).filter(|_| one.chance(0.1)).count();
        assert!((900..1_100).contains(&often), "{often}");
        assert!(!one.chance(0.0) && one.chance(1.0));
    }
}
