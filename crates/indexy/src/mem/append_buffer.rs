//! A buffer that many threads append to side by side: the memory under the log.
//!
//! An append is one `fetch_add` on the tail (the reservation), a copy into the bytes that are
//! now its own, and one addition to a completion counter; no lock, no wait. When the
//! buffer is full or sealed the reservation fails and the caller takes its slow path.
//!
//! Life of a buffer: `Free` -> [`AppendBuffer::open`] -> `Open` -> [`AppendBuffer::seal`] ->
//! `Sealed` -> (all copies complete) [`AppendBuffer::take`] -> `Taken` -> [`Filled::release`] ->
//! `Free`. The phase is checked at every step, so no order of calls breaks memory safety.
//!
//! Reservations overshoot: after the one that *crosses* the capacity, every later one fails
//! too. The crossing thread publishes where the valid bytes end; a sealer that meets an
//! overshot tail waits for these two instructions.
//!
//! Threads: any. The completion counters are sharded, so that the tail is the only shared line
//! that every append writes.
//! Not here: what the bytes mean, which buffer is the active one (`wal/`).

use crossbeam_utils::CachePadded;
use platform::{AtomicU8, AtomicU64, Cells, SHARDS, pause, shard};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

#[cfg(not(all(loom, test)))]
#[path = "append_buffer/native.rs"]
mod platform;
#[cfg(all(loom, test))]
#[path = "append_buffer/modelled.rs"]
mod platform;
#[cfg(test)]
mod tests;

/// Tail of a buffer that takes nothing. Failing reservations add to it; 2^62 bytes of them are out
/// of reach.
const CLOSED: u64 = 1 << 62;
/// "Nobody crossed the capacity yet."
const NOT_CROSSED: u64 = u64::MAX;

const FREE: u8 = 0;
const CHANGING: u8 = 1;
const OPEN: u8 = 2;
const SEALED: u8 = 3;
const TAKEN: u8 = 4;

/// The reservation failed: the buffer is full or sealed, nothing was written.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) struct Full;

/// See the module header.
pub(crate) struct AppendBuffer {
    bytes: Cells,
    /// Bytes in front of the first reservation, for the taker's header.
    headroom: usize,
    capacity: usize,
    phase: AtomicU8,
    /// Position in the caller's stream of the first byte.
    base: AtomicU64,
    /// Valid bytes, once sealed.
    len: AtomicU64,
    crossed: AtomicU64,
    tail: CachePadded<AtomicU64>,
    completed: [CachePadded<AtomicU64>; SHARDS],
}

// SAFETY: `bytes` is the only field that is not `Sync` by itself. It is written only through
// (a) disjoint ranges handed out by the `fetch_add` on `tail` while the phase is `OPEN`, and
// (b) the one `Filled` that exists while the phase is `TAKEN`; (b) begins only after the
// completion counters say that every (a) has ended (`take`).
unsafe impl Sync for AppendBuffer {}

impl AppendBuffer {
    /// A free buffer of `capacity` bytes after `headroom`, and with `slack` bytes behind for
    /// padding.
    pub(crate) fn new(headroom: usize, capacity: usize, slack: usize) -> Self {
        Self {
            bytes: Cells::new(headroom + capacity + slack),
            headroom,
            capacity,
            phase: AtomicU8::new(FREE),
            base: AtomicU64::new(0),
            len: AtomicU64::new(0),
            crossed: AtomicU64::new(NOT_CROSSED),
            tail: CachePadded::new(AtomicU64::new(CLOSED)),
            completed: Default::default(),
        }
    }

    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Bytes of memory that it holds.
    pub(crate) fn memory_bytes(headroom: usize, capacity: usize, slack: usize) -> usize {
        size_of::<Self>() + headroom + capacity + slack
    }

    /// Makes a free buffer take appends; its first byte is at `base` of the stream.
    /// Returns false, and does nothing, if it is not free.
    pub(crate) fn open(&self, base: u64) -> bool {
        // Acquire: partner is the Release of `Filled::release`.
        if self
            .phase
            .compare_exchange(FREE, CHANGING, Acquire, Relaxed)
            .is_err()
        {
            return false;
        }
        self.base.store(base, Relaxed);
        self.crossed.store(NOT_CROSSED, Relaxed);
        for shard in &self.completed {
            shard.store(0, Relaxed);
        }
        self.phase.store(OPEN, Release);
        // Release: partner is the Acquire of the reservation; whoever reserves sees all of the
        // above. A swap, so that its place among failing reservations is certain to the model
        // checker too.
        self.tail.swap(0, Release);
        true
    }

    /// Appends the concatenation of `parts` as one piece; returns the position just behind it.
    /// Cost: two atomic additions and the copy. An empty piece is refused as `Full`.
    #[inline]
    pub(crate) fn append(&self, parts: &[&[u8]]) -> Result<u64, Full> {
        let len: usize = parts.iter().map(|p| p.len()).sum();
        if len == 0 || len > self.capacity {
            return Err(Full);
        }
        // Acquire: partner is the Release of `open`. Release: partner is the Acquire of
        // `reserved_end` and `seal`, so that who reads an end beyond this piece sees the latch that
        // its writer had taken before (I6).
        let at = self.tail.fetch_add(len as u64, AcqRel);
        let end = at + len as u64;
        if end > self.capacity as u64 {
            if at <= self.capacity as u64 {
                // Release: partner is the Acquire in `seal` and `reserved`.
                self.crossed.store(at, Release);
            }
            return Err(Full);
        }
        let base = self.base.load(Relaxed);
        let mut to = self.headroom + at as usize;
        for part in parts {
            // SAFETY: `to + part.len() <= headroom + end <= headroom + capacity <= bytes.len()`.
            // The range `[at, end)` belongs to this call alone: the tail only grows between `open`
            // and `seal`, and the buffer is not taken, so not opened again, before `completed`
            // counts these bytes below.
            unsafe { self.bytes.write(to, part) };
            to += part.len();
        }
        // Release: partner is the Acquire in `is_complete`.
        self.completed[shard()].fetch_add(len as u64, Release);
        Ok(base + end)
    }

    /// Position behind the last reservation, whether copied yet or not; `None` unless open. The
    /// caller keeps others from sealing meanwhile.
    pub(crate) fn reserved_end(&self) -> Option<u64> {
        let tail = self.tail.load(Acquire);
        if tail >= CLOSED {
            return None;
        }
        Some(self.base.load(Relaxed) + self.valid_len(tail))
    }

    /// Stops appends; returns how many bytes are valid, or `None` if it was not open.
    pub(crate) fn seal(&self) -> Option<u64> {
        self.phase
            .compare_exchange(OPEN, CHANGING, Acquire, Relaxed)
            .ok()?;
        let tail = self.tail.swap(CLOSED, AcqRel);
        let len = self.valid_len(tail);
        self.len.store(len, Relaxed);
        self.phase.store(SEALED, Release);
        Some(len)
    }

    fn valid_len(&self, tail: u64) -> u64 {
        if tail <= self.capacity as u64 {
            return tail;
        }
        loop {
            let crossed = self.crossed.load(Acquire);
            if crossed != NOT_CROSSED {
                return crossed;
            }
            pause();
        }
    }

    fn is_complete(&self, len: u64) -> bool {
        // Each counter only grows and counts finished copies of this opening, so a sum
        // of `len` means that all are finished, whenever each counter was read.
        let sum: u64 = self.completed.iter().map(|c| c.load(Acquire)).sum();
        debug_assert!(sum <= len);
        sum == len
    }

    /// Exclusive access to a sealed buffer; waits for copies under way. `None` if it is not sealed.
    pub(crate) fn take(&self) -> Option<Filled<'_>> {
        self.phase
            .compare_exchange(SEALED, TAKEN, Acquire, Relaxed)
            .ok()?;
        let len = self.len.load(Relaxed);
        while !self.is_complete(len) {
            pause();
        }
        Some(Filled {
            buffer: self,
            len: len as usize,
        })
    }
}

/// A complete buffer in the hands of its one reader. Dropped without [`Filled::release`], the
/// buffer is sealed as before.
pub(crate) struct Filled<'a> {
    buffer: &'a AppendBuffer,
    len: usize,
}

impl Filled<'_> {
    /// Headroom, valid bytes and slack, in one slice; the valid bytes start at the headroom.
    #[cfg(not(all(loom, test)))]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the phase is `TAKEN` (only `take` sets it, by compare-exchange, so this is the
        // only `Filled`), every copy is complete (`take` waited), and no reservation succeeds
        // before `open`, which needs `FREE`. `&mut self` makes this the only borrow.
        unsafe { self.buffer.bytes.all_mut() }
    }

    /// Number of valid bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Gives the buffer back, free.
    pub(crate) fn release(self) {
        // Release: partner is the Acquire of `open`.
        self.buffer.phase.store(FREE, Release);
        std::mem::forget(self);
    }
}

impl Drop for Filled<'_> {
    fn drop(&mut self) {
        self.buffer.phase.store(SEALED, Release);
    }
}
