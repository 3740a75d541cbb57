//! What writers look at before they look at slots: their ends, as numbers.
//!
//! Threads: any number look, without a lock; whoever changes it holds the lock of the slots.

#![forbid(unsafe_code)]

use std::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

/// Stretches that a tree remembers.
pub(super) const SLOTS: usize = 7;

#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Slots in use.
    pub(super) used: AtomicUsize,
    /// Odd while the heads change: a stretch may go from one slot to another.
    version: AtomicUsize,
    /// The heads of the first and of the last key that may be in a slot.
    heads: [[AtomicU64; 2]; SLOTS],
}

impl Seen {
    /// A slot may hold a key with this head.
    pub(super) fn may_hold(&self, head: u64) -> bool {
        // Pairs with the release store at the end of `change`.
        let version = self.version.load(Acquire);
        let within =
            |[low, high]: &[AtomicU64; 2]| low.load(Relaxed) <= head && head <= high.load(Relaxed);
        let within = self.heads.iter().any(within);
        fence(Acquire);
        within || !version.is_multiple_of(2) || self.version.load(Relaxed) != version
    }

    /// Has `write` change the heads. The caller holds the lock of the slots.
    pub(super) fn change(&self, write: impl FnOnce(&[[AtomicU64; 2]; SLOTS])) {
        let version = self.version.load(Relaxed);
        self.version.store(version.wrapping_add(1), Relaxed);
        // Pairs with the fence in `may_hold`: who reads a new head reads a new version.
        fence(Release);
        write(&self.heads);
        self.version.store(version.wrapping_add(2), Release);
    }
}

/// The first bytes of a key as a number: keys in order have heads in order.
pub(super) fn head(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let len = key.len().min(8);
    bytes[..len].copy_from_slice(&key[..len]);
    u64::from_be_bytes(bytes)
}
