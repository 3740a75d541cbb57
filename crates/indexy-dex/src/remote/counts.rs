//! Verbs and bytes of one compute server.

use std::{
    ops::Sub,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// What was sent and received: exact, and equal on every transport.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// One-sided reads; each part of a `read_many` is one.
    pub reads: u64,
    /// One-sided writes.
    pub writes: u64,
    /// Compare-and-swaps.
    pub swaps: u64,
    /// Two-sided calls.
    pub calls: u64,
    /// Bytes that reads brought.
    pub read_bytes: u64,
    /// Bytes that writes carried.
    pub written_bytes: u64,
    /// Bytes of requests and answers of calls.
    pub call_bytes: u64,
}

impl Counts {
    /// All verbs.
    pub fn verbs(&self) -> u64 {
        self.reads + self.writes + self.swaps + self.calls
    }

    /// All bytes; a swap carries 8 each way.
    pub fn bytes(&self) -> u64 {
        self.read_bytes + self.written_bytes + self.call_bytes + 16 * self.swaps
    }
}

impl Sub for Counts {
    type Output = Self;

    /// What came between two looks.
    fn sub(self, earlier: Self) -> Self {
        Self {
            reads: self.reads - earlier.reads,
            writes: self.writes - earlier.writes,
            swaps: self.swaps - earlier.swaps,
            calls: self.calls - earlier.calls,
            read_bytes: self.read_bytes - earlier.read_bytes,
            written_bytes: self.written_bytes - earlier.written_bytes,
            call_bytes: self.call_bytes - earlier.call_bytes,
        }
    }
}

/// Counters that all threads of an endpoint add to, when a verb succeeded. For transports.
#[derive(Debug, Default)]
pub struct Counters {
    reads: AtomicU64,
    writes: AtomicU64,
    swaps: AtomicU64,
    calls: AtomicU64,
    read_bytes: AtomicU64,
    written_bytes: AtomicU64,
    call_bytes: AtomicU64,
}

impl Counters {
    /// A read of so many words.
    pub fn read(&self, words: usize) {
        self.reads.fetch_add(1, Relaxed);
        self.read_bytes.fetch_add(8 * words as u64, Relaxed);
    }

    /// A write of so many words.
    pub fn wrote(&self, words: usize) {
        self.writes.fetch_add(1, Relaxed);
        self.written_bytes.fetch_add(8 * words as u64, Relaxed);
    }

    /// A compare-and-swap.
    pub fn swapped(&self) {
        self.swaps.fetch_add(1, Relaxed);
    }

    /// A call whose request and answer have so many words together.
    pub fn called(&self, words: usize) {
        self.calls.fetch_add(1, Relaxed);
        self.call_bytes.fetch_add(8 * words as u64, Relaxed);
    }

    /// What was counted so far.
    pub fn get(&self) -> Counts {
        Counts {
            reads: self.reads.load(Relaxed),
            writes: self.writes.load(Relaxed),
            swaps: self.swaps.load(Relaxed),
            calls: self.calls.load(Relaxed),
            read_bytes: self.read_bytes.load(Relaxed),
            written_bytes: self.written_bytes.load(Relaxed),
            call_bytes: self.call_bytes.load(Relaxed),
        }
    }
}
