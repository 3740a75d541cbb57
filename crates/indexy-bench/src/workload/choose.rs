//! Which key number comes next, for the micro benchmarks.

use super::{keys::stride_permutation, rng::Rng, zipf::Zipf};
use rand::Rng as _;
use serde::{Deserialize, Serialize};

/// A set of key numbers and how often each is drawn, as a run's description carries it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "pick")]
pub enum Pick {
    /// Each of `0..keys` evenly.
    Uniform {
        /// Number of keys.
        keys: u64,
    },
    /// `set` of the `keys` numbers, evenly spread over them, each evenly.
    WorkingSet {
        /// Number of keys.
        keys: u64,
        /// Size of the set.
        set: u64,
    },
    /// Zipf over all of `0..keys`.
    Zipf {
        /// Number of keys.
        keys: u64,
        /// The exponent.
        exponent: f64,
        /// True: popular numbers are spread over `0..keys`; false: number 0 is the most popular.
        scattered: bool,
        /// Numbers are rotated by this much (the paper's shifting working set).
        rotate: u64,
    },
    /// Numbers that no phase inserts.
    Absent,
}

/// Numbers from here on are never inserted.
pub const ABSENT_FROM: u64 = 1 << 48;

impl Pick {
    /// How many distinct numbers may be drawn.
    pub fn distinct(&self) -> u64 {
        match *self {
            Pick::Uniform { keys } | Pick::Zipf { keys, .. } => keys,
            Pick::WorkingSet { keys, set } => set.min(keys),
            Pick::Absent => u64::MAX - ABSENT_FROM,
        }
    }

    /// The `index`-th number of the set, for phases that touch each once.
    pub fn nth(&self, index: u64) -> u64 {
        match *self {
            Pick::Uniform { .. } | Pick::Zipf { .. } => index,
            Pick::WorkingSet { keys, set } => spread(index, keys, set),
            Pick::Absent => ABSENT_FROM + index,
        }
    }

    /// The generator of one thread.
    pub fn chooser(&self) -> Chooser {
        match *self {
            Pick::Uniform { keys } => Chooser::Uniform { keys: keys.max(1) },
            Pick::WorkingSet { keys, set } => Chooser::WorkingSet {
                keys,
                set: set.clamp(1, keys.max(1)),
            },
            Pick::Zipf {
                keys,
                exponent,
                scattered,
                rotate,
            } => Chooser::Zipf {
                zipf: Zipf::new(keys.max(1), exponent),
                scattered,
                rotate: rotate % keys.max(1),
            },
            Pick::Absent => Chooser::Absent,
        }
    }
}

/// Draws key numbers. Cost of a draw: a few nanoseconds, Zipf some tens.
#[derive(Debug, Clone)]
pub enum Chooser {
    /// See [`Pick::Uniform`].
    Uniform {
        /// Number of keys.
        keys: u64,
    },
    /// See [`Pick::WorkingSet`].
    WorkingSet {
        /// Number of keys.
        keys: u64,
        /// Size of the set.
        set: u64,
    },
    /// See [`Pick::Zipf`].
    Zipf {
        /// Ranks.
        zipf: Zipf,
        /// Whether ranks are spread over the numbers.
        scattered: bool,
        /// Added to each number, modulo the number of keys.
        rotate: u64,
    },
    /// See [`Pick::Absent`].
    Absent,
}

impl Chooser {
    /// The next key number.
    #[inline]
    pub fn next(&self, rng: &mut Rng) -> u64 {
        match self {
            Chooser::Uniform { keys } => rng.random_range(0..*keys),
            Chooser::WorkingSet { keys, set } => spread(rng.random_range(0..*set), *keys, *set),
            Chooser::Zipf {
                zipf,
                scattered,
                rotate,
            } => {
                let keys = zipf.items();
                let rank = zipf.sample(rng);
                let number = if *scattered {
                    stride_permutation(rank, keys)
                } else {
                    rank
                };
                let turned = number + rotate;
                if turned >= keys {
                    turned - keys
                } else {
                    turned
                }
            }
            Chooser::Absent => rng.random_range(ABSENT_FROM..u64::MAX),
        }
    }
}

/// The `index`-th of `set` numbers spread evenly over `0..keys`.
#[inline]
fn spread(index: u64, keys: u64, set: u64) -> u64 {
    (u128::from(index) * u128::from(keys) / u128::from(set.max(1))) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::rng;
    use std::collections::HashSet;

    #[test]
    fn a_working_set_is_drawn_from_what_touching_it_touches() {
        let pick = Pick::WorkingSet {
            keys: 1_000,
            set: 64,
        };
        let touched: HashSet<u64> = (0..pick.distinct()).map(|i| pick.nth(i)).collect();
        assert_eq!(touched.len(), 64);
        let chooser = pick.chooser();
        let mut rng = rng(1, 0, 0);
        let drawn: HashSet<u64> = (0..10_000).map(|_| chooser.next(&mut rng)).collect();
        assert_eq!(touched, drawn);
    }

    #[test]
    fn rotation_moves_the_popular_keys() {
        let pick = |rotate| Pick::Zipf {
            keys: 100,
            exponent: 2.0,
            scattered: false,
            rotate,
        };
        let mut rng = rng(1, 0, 0);
        let mut top = |rotate| {
            let chooser = pick(rotate).chooser();
            let mut counts = [0; 100];
            for _ in 0..2_000 {
                counts[chooser.next(&mut rng) as usize] += 1;
            }
            (0..100).max_by_key(|&i| counts[i]).unwrap()
        };
        assert_eq!(top(0), 0);
        assert_eq!(top(25), 25);
        assert_eq!(top(125), 25);
    }

    #[test]
    fn absent_numbers_are_never_inserted_ones() {
        let chooser = Pick::Absent.chooser();
        let mut rng = rng(1, 0, 0);
        assert!((0..1000).all(|_| chooser.next(&mut rng) >= ABSENT_FROM));
    }
}
