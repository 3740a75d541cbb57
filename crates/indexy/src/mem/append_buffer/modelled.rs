//! The same as `native.rs` for the model checker: it explores the interleavings and reorderings of
//! the atomics and reports bytes accessed without synchronization.

use loom::cell::UnsafeCell;
pub(super) use loom::sync::atomic::{AtomicU8, AtomicU64};
use std::cell::Cell;

pub(super) const SHARDS: usize = 2;

pub(super) struct Cells(Vec<UnsafeCell<u8>>);

impl Cells {
    pub(super) fn new(len: usize) -> Self {
        Self((0..len).map(|_| UnsafeCell::new(0)).collect())
    }

    /// # Safety
    /// As in `native.rs`; the model checker watches.
    pub(super) unsafe fn write(&self, at: usize, part: &[u8]) {
        for (cell, byte) in self.0[at..].iter().zip(part) {
            // SAFETY: exclusive by the contract of this function.
            cell.with_mut(|to| unsafe { *to = *byte });
        }
    }

    /// # Safety
    /// Nobody writes meanwhile.
    pub(super) unsafe fn copy(&self, from: usize, len: usize) -> Vec<u8> {
        // SAFETY: nobody writes, by the contract of this function.
        self.0[from..from + len]
            .iter()
            .map(|cell| cell.with(|p| unsafe { *p }))
            .collect()
    }
}

loom::thread_local! {
    /// Which counter the thread uses.
    pub(super) static SHARD: Cell<usize> = Cell::new(0);
}

pub(super) fn shard() -> usize {
    SHARD.with(Cell::get)
}

pub(super) fn pause() {
    loom::thread::yield_now();
}
