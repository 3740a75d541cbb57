//! YCSB's scrambled zipfian: popular items spread over the whole range.
//!
//! As YCSB does, a rank is drawn over ten billion items, hashed by 64-bit FNV and reduced to the
//! range, so that the popular items stay the same when the range grows.

use super::{rng::Rng, zipf::Zipf};

const SCRAMBLED_ITEMS: u64 = 10_000_000_000;

/// YCSB's hash of a number: FNV-1 over its eight bytes from the lowest, as a positive signed
/// number.
#[inline]
pub fn fnv64(number: u64) -> u64 {
    const OFFSET_BASIS: u64 = 0xCBF2_9CE4_8422_2325;
    const PRIME: u64 = 1_099_511_628_211;
    let mut hash = OFFSET_BASIS;
    for byte in number.to_le_bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(PRIME);
    }
    (hash as i64).unsigned_abs()
}

/// The distribution over `0..items`.
#[derive(Debug, Clone, Copy)]
pub struct Scrambled {
    zipf: Zipf,
    items: u64,
}

impl Scrambled {
    /// Over `items` >= 1 numbers; `exponent` is 0.99 in YCSB.
    pub fn new(items: u64, exponent: f64) -> Self {
        Self {
            zipf: Zipf::new(SCRAMBLED_ITEMS, exponent),
            items: items.max(1),
        }
    }

    /// Draws a number of `0..items`.
    #[inline]
    pub fn sample(&self, rng: &mut Rng) -> u64 {
        fnv64(self.zipf.sample(rng)) % self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::rng;

    #[test]
    fn the_hash_is_ycsbs() {
        // FNV with xor before multiply, over the bytes from the lowest; the sign is dropped.
        let by_hand = |n: u64| {
            let mut h: u64 = 0xCBF29CE484222325;
            let mut v = n;
            for _ in 0..8 {
                h ^= v & 0xff;
                v >>= 8;
                h = h.wrapping_mul(1099511628211);
            }
            (h as i64).unsigned_abs()
        };
        for n in [0, 1, 255, 256, 123_456_789, u64::MAX] {
            assert_eq!(fnv64(n), by_hand(n));
        }
    }

    /// At any skew from 0.5 to 1.5 the share of the most popular item is what its rank says, and
    /// what hashes to it besides.
    #[test]
    fn the_skew_is_the_exponents() {
        const DRAWS: u32 = 200_000;
        let items = 1000;
        for exponent in [0.5, 0.7, 0.99, 1.0, 1.2, 1.5] {
            let scrambled = Scrambled::new(items, exponent);
            let mut rng = rng(9, 0, 0);
            let top = fnv64(0) % items;
            let seen = (0..DRAWS)
                .filter(|_| scrambled.sample(&mut rng) == top)
                .count();
            // The sum of all masses, as an integral from where it is close to one.
            let near: f64 = (1..10_000).map(|i| f64::from(i).powf(-exponent)).sum();
            let to = |x: f64| {
                if exponent == 1.0 {
                    x.ln()
                } else {
                    x.powf(1.0 - exponent) / (1.0 - exponent)
                }
            };
            let sum = near + to(SCRAMBLED_ITEMS as f64) - to(9999.5);
            let own = 1.0 / sum;
            let expected = own + (1.0 - own) / items as f64;
            let share = seen as f64 / f64::from(DRAWS);
            // Which other popular ranks hash to it is chance.
            assert!(
                (share - expected).abs() < 0.1 * expected + 0.0005,
                "{exponent}: {share}"
            );
        }
    }

    #[test]
    fn the_popular_items_are_the_hashes_of_the_first_ranks() {
        let items = 1000;
        let scrambled = Scrambled::new(items, 0.99);
        let mut counts = vec![0u32; items as usize];
        let mut rng = rng(9, 0, 0);
        for _ in 0..200_000 {
            counts[scrambled.sample(&mut rng) as usize] += 1;
        }
        let top = (0..items as usize).max_by_key(|&i| counts[i]).unwrap();
        assert_eq!(top as u64, fnv64(0) % items);
    }
}
