//! Keys of 8 bytes that a number determines.
//!
//! Key number `i` becomes `mix(i)`, a bijection of the 64-bit numbers, in big-endian bytes: the
//! keys of `0..n` are distinct and uniform over the key space, no table of them is needed, and a
//! number that was never inserted is a key that is surely absent.

use serde::{Deserialize, Serialize};

/// The bytes of one key.
pub type SmallKey = [u8; 8];

/// A bijection of the 64-bit numbers that leaves no visible order (the finalizer of SplitMix64).
#[inline]
pub fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The number that [`mix`] turns into `mixed`.
#[inline]
pub fn unmix(mixed: u64) -> u64 {
    // A shift by at least half the width undoes itself in two steps; an odd factor has an inverse
    // modulo 2^64.
    let unshift = |z: u64, by: u32| z ^ (z >> by) ^ (z >> (2 * by));
    let z = unshift(mixed, 31).wrapping_mul(0x3196_42b2_d24d_8ec3);
    let z = unshift(z, 27).wrapping_mul(0x96de_1b17_3f11_9089);
    unshift(z, 30).wrapping_sub(0x9e37_79b9_7f4a_7c15)
}

/// How key numbers lie in the key space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Number `i` is `mix(i)`: neighbours by number are far apart by key.
    Random,
    /// Number `i` is `i`: neighbours by number are neighbours by key.
    Sequential,
}

/// The mapping from numbers to keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keys {
    /// How numbers lie in the key space.
    pub order: Order,
}

impl Keys {
    /// The key of `number`. Cost: a few nanoseconds.
    #[inline]
    pub fn key(&self, number: u64) -> SmallKey {
        match self.order {
            Order::Random => mix(number).to_be_bytes(),
            Order::Sequential => number.to_be_bytes(),
        }
    }
}

/// The `position`-th of `0..count` in a fixed scattered order: a bijection of `0..count`.
///
/// Used so that popularity (rank) and age (number) have nothing to do with each other.
#[inline]
pub fn stride_permutation(position: u64, count: u64) -> u64 {
    debug_assert!(position < count);
    // A prime above the count is coprime to it, so the walk visits each number once. The narrow
    // case avoids a 128-bit division in the middle of a measured loop.
    const NARROW: u64 = 0xFFFF_FFFB;
    const WIDE: u128 = 0xFFFF_FFFF_FFFF_FFC5;
    if count < NARROW {
        position * NARROW % count
    } else {
        ((u128::from(position) * WIDE) % u128::from(count)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn mix_is_a_bijection_where_we_look() {
        let seen: HashSet<u64> = (0..200_000).map(mix).collect();
        assert_eq!(seen.len(), 200_000);
        assert!(
            (0..1000)
                .chain([u64::MAX, 1 << 63])
                .all(|n| unmix(mix(n)) == n)
        );
    }

    #[test]
    fn stride_permutation_visits_each_number_once() {
        for count in [1u64, 2, 3, 10, 1000, 65_536, 99_991] {
            let seen: HashSet<u64> = (0..count).map(|i| stride_permutation(i, count)).collect();
            assert_eq!(seen.len() as u64, count);
            assert!(seen.iter().all(|&i| i < count));
        }
    }

    #[test]
    fn sequential_keys_keep_the_order_of_their_numbers() {
        let keys = Keys {
            order: Order::Sequential,
        };
        assert!(keys.key(255) < keys.key(256));
    }
}
