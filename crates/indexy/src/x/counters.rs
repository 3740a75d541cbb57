//! Counters of a tree: exact sums, kept without a shared cache line.
//!
//! Each thread adds to a shard of its own; readers sum all shards. A shard may be negative (who
//! removes need not be who inserted).
//!
//! Threads: any; a sum taken while writers run may miss what is under way.

#![forbid(unsafe_code)]

use super::{
    XStats,
    entry::{DIRTY, MAX_INLINE_VALUE, TOMBSTONE, is_operand},
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
    pub long: isize,
    pub long_operands: isize,
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
            long: signed(stats.long_bytes),
            long_operands: signed(stats.long_operand_bytes),
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
            long: self.long + other.long,
            long_operands: self.long_operands + other.long_operands,
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
            long: self.long - other.long,
            long_operands: self.long_operands - other.long_operands,
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

    /// The value of the entry that was added has so many bytes.
    #[inline]
    pub(crate) fn add_value(&mut self, flags: u32, len: usize) {
        if len > MAX_INLINE_VALUE {
            self.long += len as isize;
            if is_operand(flags) {
                self.long_operands += len as isize;
            }
        }
    }

    /// The value of the entry that was dropped had so many bytes. Where it has no large block this
    /// need not be said.
    pub(crate) fn drop_value(&mut self, flags: u32, len: usize) {
        let mut had = Self::default();
        had.add_value(flags, len);
        *self = self.minus(had);
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
    long: AtomicIsize,
    long_operands: AtomicIsize,
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
        bump(&shard.long, delta.long);
        bump(&shard.long_operands, delta.long_operands);
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
            long_bytes: positive(total.long),
            long_operand_bytes: positive(total.long_operands),
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
            long: total(|s| &s.long),
            long_operands: total(|s| &s.long_operands),
            dirty: total(|s| &s.dirty),
            bytes: total(|s| &s.bytes),
            mounts: total(|s| &s.mounts),
        }
    }
}
