//! A byte buffer at an address that a device takes for direct I/O.
//!
//! Threads: owned by one at a time. No I/O.

use std::{
    alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error},
    ops::{Deref, DerefMut},
    ptr::NonNull,
};

/// What every device and file system takes: a page of memory.
pub(crate) const ALIGNMENT: usize = 4096;

/// Zeroed bytes, aligned to [`ALIGNMENT`]; the length never changes.
pub(crate) struct AlignedBuffer {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it owns its memory, which is not tied to a thread.
unsafe impl Send for AlignedBuffer {}
// SAFETY: shared references only give shared slices.
unsafe impl Sync for AlignedBuffer {}

impl AlignedBuffer {
    /// `bytes` zeros, at least one page of memory of them; ends the process if the system has no
    /// memory.
    pub(crate) fn new(bytes: usize) -> Self {
        let bytes = bytes.max(ALIGNMENT).next_multiple_of(ALIGNMENT);
        let Ok(layout) = Layout::from_size_align(bytes, ALIGNMENT) else {
            handle_alloc_error(Layout::new::<u8>());
        };
        // SAFETY: the layout's size is at least ALIGNMENT, hence not zero.
        let start = unsafe { alloc_zeroed(layout) };
        match NonNull::new(start) {
            Some(start) => Self { start, layout },
            None => handle_alloc_error(layout),
        }
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: allocated with this size in `new`, zeroed, and borrowed as `self` is.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.layout.size()) }
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; the exclusive borrow of `self` is the only way to these bytes.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.layout.size()) }
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, and freed once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligned_zeroed_and_of_the_size_asked() {
        for bytes in [0, 1, 4096, 5000, 16384] {
            let mut buffer = AlignedBuffer::new(bytes);
            assert_eq!(buffer.as_ptr().addr() % ALIGNMENT, 0);
            assert!(buffer.len() >= bytes.max(1));
            assert!(buffer.iter().all(|&b| b == 0));
            buffer.fill(7);
            assert!(buffer.iter().all(|&b| b == 7));
        }
    }
}
