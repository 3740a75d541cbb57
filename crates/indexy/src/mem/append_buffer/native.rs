//! The bytes of an append buffer, and the atomics of the standard library.

pub(super) use std::sync::atomic::{AtomicU8, AtomicU64};
use std::{
    cell::UnsafeCell,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

/// Completion counters per buffer.
pub(super) const SHARDS: usize = 8;

/// Bytes that several threads write to at disjoint places.
pub(super) struct Cells(Box<[UnsafeCell<u8>]>);

impl Cells {
    pub(super) fn new(len: usize) -> Self {
        Self((0..len).map(|_| UnsafeCell::new(0)).collect())
    }

    /// Copies `part` to `at`.
    ///
    /// # Safety
    /// `at + part.len()` is within the length, and nobody else accesses these bytes meanwhile.
    #[inline]
    pub(super) unsafe fn write(&self, at: usize, part: &[u8]) {
        debug_assert!(at + part.len() <= self.0.len());
        // SAFETY: in bounds and exclusive, by the contract of this function; what is written to
        // lies in `UnsafeCell`s, and the pointer is that of the whole slice. `part` cannot overlap:
        // nobody holds a reference into the cells.
        unsafe {
            let to = self.0.as_ptr().cast::<u8>().cast_mut().add(at);
            std::ptr::copy_nonoverlapping(part.as_ptr(), to, part.len());
        }
    }

    /// All of it.
    ///
    /// # Safety
    /// Nobody else accesses any of the bytes while the slice lives.
    #[expect(clippy::mut_from_ref, reason = "what `UnsafeCell` is for")]
    pub(super) unsafe fn all_mut(&self) -> &mut [u8] {
        // SAFETY: exclusive by the contract of this function; pointer and length are those of the
        // slice of cells, and `UnsafeCell<u8>` has the layout of `u8`.
        unsafe {
            std::slice::from_raw_parts_mut(self.0.as_ptr().cast::<u8>().cast_mut(), self.0.len())
        }
    }
}

/// The counter of this thread: threads are dealt out round robin.
#[inline]
pub(super) fn shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static MINE: usize = NEXT.fetch_add(1, Relaxed) % SHARDS);
    MINE.with(|m| *m)
}

/// One turn of a wait for a thread that is between two instructions or in a copy.
pub(super) fn pause() {
    std::hint::spin_loop();
    std::thread::yield_now();
}
