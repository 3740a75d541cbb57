//! Counters of a tree: exact sums, kept without a shared cache line.
//!
//! Each thread adds to a shard of its own; readers sum all shards. A shard may be negative (who
//! removes need not be who inserted).
//!
//! Threads: any; a sum taken while writers run may miss what is under way.

#![forbid(unsafe_code)]

use super::{
    XStats,
    entry::{DIRTY, TOMBSTONE, is_operand},
};
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};
use thread_local::ThreadLocal;

/// By how much an operation changed the counts.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delta {
    pub bytes: isize,
    pub keys: isize,
    pub tombstones: isize,
    pub operands: isize,
    pub large: isize,
    pub large_operands: isize,
    pub dirty: isize,
    pub mounts: isize,
}

impl Delta {
    /// What an operation adds that brings all of `stats`.
    pub(crate) fn of(stats: XStats) -> Self {
        let signed = |n: usize| isize::try_from(n).unwrap_or(isize::MAX);
        Self {
            bytes: signed(stats.bytes),
            keys: signed(stats.keys),
            tombstones: signed(stats.tombstones),
            operands: signed(stats.operands),
            large: signed(stats.large_bytes),
            large_operands: signed(stats.large_operand_bytes),
            dirty: signed(stats.dirty),
            mounts: signed(stats.mounts),
        }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes + other.bytes,
            keys: self.keys + other.keys,
            tombstones: self.tombstones + other.tombstones,
            operands: self.operands + other.operands,
            large: self.large + other.large,
            large_operands: self.large_operands + other.large_operands,
            dirty: self.dirty + other.dirty,
            mounts: self.mounts + other.mounts,
        }
    }

    pub(crate) fn minus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes - other.bytes,
            keys: self.keys - other.keys,
            tombstones: self.tombstones - other.tombstones,
            operands: self.operands - other.operands,
            large: self.large - other.large,
            large_operands: self.large_operands - other.large_operands,
            dirty: self.dirty - other.dirty,
            mounts: self.mounts - other.mounts,
        }
    }

    /// One more entry with these flags.
    #[inline]
    pub(crate) fn add_entry(&mut self, flags: u32) {
        self.keys += 1;
        self.dirty += isize::from(flags & DIRTY != 0);
        if flags & TOMBSTONE != 0 {
            self.tombstones += 1;
            self.operands += isize::from(is_operand(flags));
        }
    }

    /// One entry less.
    #[inline]
    pub(crate) fn drop_entry(&mut self, flags: u32) {
        self.keys -= 1;
        self.dirty -= isize::from(flags & DIRTY != 0);
        if flags & TOMBSTONE != 0 {
            self.tombstones -= 1;
            self.operands -= isize::from(is_operand(flags));
        }
    }

    /// The entry with these flags has a large block of so many bytes.
    #[inline]
    pub(crate) fn add_large(&mut self, flags: u32, bytes: usize) {
        let bytes = bytes as isize;
        self.bytes += bytes;
        self.large += bytes;
        if is_operand(flags) {
            self.large_operands += bytes;
        }
    }

    /// It has it no more.
    #[inline]
    pub(crate) fn drop_large(&mut self, flags: u32, bytes: usize) {
        let bytes = bytes as isize;
        self.bytes -= bytes;
        self.large -= bytes;
        if is_operand(flags) {
            self.large_operands -= bytes;
        }
    }
}

/// One thread's part, on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct Shard {
    bytes: AtomicIsize,
    keys: AtomicIsize,
    tombstones: AtomicIsize,
    operands: AtomicIsize,
    large: AtomicIsize,
    large_operands: AtomicIsize,
    dirty: AtomicIsize,
    mounts: AtomicIsize,
}

/// Only the owning thread writes, so that a load and a store do.
#[inline]
fn bump(counter: &AtomicIsize, by: isize) {
    if by != 0 {
        counter.store(counter.load(Relaxed).wrapping_add(by), Relaxed);
    }
}

#[derive(Default)]
pub(crate) struct Counters {
    shards: ThreadLocal<Shard>,
}

impl Counters {
    /// Adds `delta`. Cost: no shared cache line is written.
    #[inline]
    pub(crate) fn add(&self, delta: Delta) {
        let shard = self.shards.get_or_default();
        bump(&shard.bytes, delta.bytes);
        bump(&shard.keys, delta.keys);
        bump(&shard.tombstones, delta.tombstones);
        bump(&shard.operands, delta.operands);
        bump(&shard.large, delta.large);
        bump(&shard.large_operands, delta.large_operands);
        bump(&shard.dirty, delta.dirty);
        bump(&shard.mounts, delta.mounts);
    }

    /// The sums. What is below zero while others add and take away is zero.
    pub(crate) fn sum(&self) -> XStats {
        let total = self.total();
        let positive = |sum: isize| usize::try_from(sum).unwrap_or(0);
        XStats {
            keys: positive(total.keys),
            tombstones: positive(total.tombstones),
            operands: positive(total.operands),
            large_bytes: positive(total.large),
            large_operand_bytes: positive(total.large_operands),
            dirty: positive(total.dirty),
            bytes: positive(total.bytes),
            mounts: positive(total.mounts),
        }
    }

    /// The sums as they are.
    pub(crate) fn total(&self) -> Delta {
        let total = |counter: fn(&Shard) -> &AtomicIsize| {
            self.shards.iter().map(|s| counter(s).load(Relaxed)).sum()
        };
        Delta {
            keys: total(|s| &s.keys),
            tombstones: total(|s| &s.tombstones),
            operands: total(|s| &s.operands),
            large: total(|s| &s.large),
            large_operands: total(|s| &s.large_operands),
            dirty: total(|s| &s.dirty),
            bytes: total(|s| &s.bytes),
            mounts: total(|s| &s.mounts),
        }
    }
}
