//! The shape of an arena: how large new slabs are, how many are in reserve, and how many shards
//! threads allocate from. It follows from the budget, and changes with it: what one class of one
//! shard keeps partly used is much in a small budget.
//!
//! Slabs of two sizes may be in use side by side, and shards that nobody allocates from any more
//! have slabs until what lies there is freed or moved. Such slabs are *misfits*.

#![forbid(unsafe_code)]

use super::slab::Slab;

/// From this budget on, slabs are large, in bytes.
const LARGE_SLABS_FROM: usize = 16 << 20;
/// Slabs of the two sizes have `1 << SHIFTS[i]` bytes.
pub(super) const SHIFTS: [u32; 2] = [14, 16];
/// A shard per so many bytes of budget: each may keep one partly used slab per class.
const BUDGET_PER_SHARD: usize = 16 << 20;
const SHARDS_MAX: usize = 64;
/// The reserve is this part of the budget, within bounds.
const RESERVE_DIVISOR: usize = 256;
const RESERVE_SLABS: (usize, usize) = (2, 32);

/// See the module header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// Which of the two sizes new slabs have.
    pub(super) size: usize,
    /// Slabs in reserve at most.
    pub(super) reserve: usize,
    /// Shards that threads allocate from, a power of two.
    pub(super) shards: usize,
}

impl Shape {
    /// For a budget of `limit` bytes and so many `threads` at a time.
    pub(super) fn of(limit: usize, threads: usize) -> Self {
        let size = usize::from(limit >= LARGE_SLABS_FROM);
        let (least, most) = RESERVE_SLABS;
        let shards = threads.min(limit / BUDGET_PER_SHARD).clamp(1, SHARDS_MAX);
        Self {
            size,
            reserve: ((limit / RESERVE_DIVISOR) >> SHIFTS[size]).clamp(least, most),
            // A power of two, so that a thread's shard is a mask away.
            shards: 1 << shards.ilog2(),
        }
    }

    /// What lies in `slab` may be moved to slabs that are not there yet: they are smaller, or
    /// shared with the blocks of more threads.
    pub(super) fn is_misfit(self, slab: Slab) -> bool {
        slab.shift() > SHIFTS[self.size] || slab.shard() >= self.shards
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_budget_has_small_slabs_in_one_shard() {
        let shape = Shape::of(4 << 20, 64);
        assert_eq!((shape.size, shape.reserve, shape.shards), (0, 2, 1));
    }

    #[test]
    fn shards_are_a_power_of_two_and_no_more_than_threads() {
        for (limit, threads, shards) in [
            (16 << 20, 64, 1),
            (100 << 20, 64, 4),
            (1 << 40, 64, 64),
            (1 << 40, 200, 64),
            (1 << 40, 6, 4),
            (1 << 40, 1, 1),
        ] {
            assert_eq!(
                Shape::of(limit, threads).shards,
                shards,
                "{limit} {threads}"
            );
        }
    }
}
