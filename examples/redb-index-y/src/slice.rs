//! Slices of the memory for caches: what each tree of a database has taken of it.

use std::sync::{Arc, Mutex, PoisonError};

/// The least that a tree's cache works with.
const MIN_SLICE_BYTES: usize = 64 << 10;

#[derive(Debug)]
pub(crate) struct Slices {
    pub(crate) share: usize,
    pub(crate) taken: usize,
}

/// One tree's part of the share; dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Slice {
    all: Arc<Mutex<Slices>>,
    pub bytes: usize,
}

impl Slice {
    pub(crate) fn take(all: &Arc<Mutex<Slices>>) -> Self {
        let mut slices = lock(all);
        let left = slices.share.saturating_sub(slices.taken);
        let bytes = (left / 2).max(MIN_SLICE_BYTES);
        slices.taken += bytes;
        Self {
            all: Arc::clone(all),
            bytes,
        }
    }
}

impl Drop for Slice {
    fn drop(&mut self) {
        lock(&self.all).taken -= self.bytes;
    }
}

pub(crate) fn lock(slices: &Mutex<Slices>) -> std::sync::MutexGuard<'_, Slices> {
    // Nothing in here is left half done by a panic.
    slices.lock().unwrap_or_else(PoisonError::into_inner)
}
