//! The memory of the frames: mappings that double in size, so that a frame never moves.
//!
//! Segment `k` holds `FIRST << k` frames. It is mapped when its first frame is used and unmapped
//! with the pool.

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::{
    alloc::{Layout, handle_alloc_error},
    ptr::NonNull,
    sync::{
        OnceLock,
        atomic::{AtomicU8, AtomicU32, AtomicU64},
    },
};

const FIRST: usize = 64;
/// Enough for 2^24 frames.
const SEGMENTS: usize = 18;

/// Tag of a frame that holds no page.
pub(crate) const NO_PAGE: u64 = 0;
/// What a published frame holds.
#[derive(Clone, Copy)]
pub(crate) struct FrameView<'g> {
    /// The page up to its split.
    pub(crate) bytes: &'g [u8],
    /// The words from the split on, as they lie in memory.
    pub(crate) words: &'g [AtomicU64],
}

/// What is known of a frame.
pub(super) struct Meta {
    /// The page that it holds.
    pub(super) tag: AtomicU64,
    /// Where the atomic words of that page start.
    pub(super) split: AtomicU32,
    /// Read since the clock's hand came by.
    pub(super) used: AtomicU8,
}

struct Segment {
    base: NonNull<u8>,
    bytes: usize,
    meta: Box<[Meta]>,
}

// SAFETY: it owns its mapping; access to the frames in it is arranged by `mod.rs`.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

pub(super) struct Segments {
    page_bytes: usize,
    table: [OnceLock<Segment>; SEGMENTS],
}

/// Segment and place in it of frame `number`.
fn place(number: usize) -> (usize, usize) {
    let up = number / FIRST + 1;
    let segment = up.ilog2() as usize;
    (segment, number - FIRST * ((1 << segment) - 1))
}

impl Segments {
    pub(super) fn new(page_bytes: usize) -> Self {
        assert!(page_bytes.is_multiple_of(4096) && page_bytes > 0);
        Self {
            page_bytes,
            table: [const { OnceLock::new() }; SEGMENTS],
        }
    }

    /// Makes sure that frame `number` has memory.
    pub(super) fn map(&self, number: usize) {
        let (segment, _) = place(number);
        if let Some(cell) = self.table.get(segment) {
            cell.get_or_init(|| Segment::new(FIRST << segment, self.page_bytes));
        }
    }

    #[inline]
    pub(super) fn meta(&self, number: u32) -> Option<&Meta> {
        let (segment, at) = place(number as usize);
        self.table.get(segment)?.get()?.meta.get(at)
    }

    /// Start of the frame's bytes. `None` for a frame that was never mapped.
    #[inline]
    fn start(&self, number: u32) -> Option<NonNull<u8>> {
        let (segment, at) = place(number as usize);
        let segment = self.table.get(segment)?.get()?;
        assert!(at < segment.meta.len());
        // SAFETY: `at` is below the number of frames of the mapping, each of `page_bytes`.
        Some(unsafe { segment.base.add(at * self.page_bytes) })
    }

    /// # Safety
    /// While the result lives, nobody writes to the frame below `split`, and above it only
    /// atomically. `split` is a multiple of 8 and at most the size of a page.
    #[inline]
    pub(super) unsafe fn view(&self, number: u32, split: usize) -> FrameView<'_> {
        debug_assert!(split <= self.page_bytes && split.is_multiple_of(8));
        let Some(start) = self.start(number) else {
            return FrameView {
                bytes: &[],
                words: &[],
            };
        };
        // SAFETY: both parts are inside the frame and do not overlap; the frame is aligned to 4096
        // and `split` to 8; mapped memory is initialized; the rest is the caller's promise.
        unsafe {
            FrameView {
                bytes: std::slice::from_raw_parts(start.as_ptr(), split),
                words: std::slice::from_raw_parts(
                    start.as_ptr().add(split).cast::<AtomicU64>(),
                    (self.page_bytes - split) / 8,
                ),
            }
        }
    }

    /// # Safety
    /// While the result lives, nobody else accesses the frame.
    #[expect(clippy::mut_from_ref, reason = "frames are owned one by one")]
    pub(super) unsafe fn bytes_mut(&self, number: u32) -> &mut [u8] {
        match self.start(number) {
            // SAFETY: inside the mapping, initialized; exclusive by the caller's promise.
            Some(start) => unsafe {
                std::slice::from_raw_parts_mut(start.as_ptr(), self.page_bytes)
            },
            None => &mut [],
        }
    }

    /// Gives the memory of a frame that nobody uses back to the system; it reads as zeros then.
    pub(super) fn discard(&self, number: u32) {
        if let Some(start) = self.start(number) {
            // SAFETY: whole pages of our own mapping; the caller owns the frame, so that nobody
            // refers to them. An error would only mean that the memory stays.
            let _ = unsafe {
                madvise(
                    start.as_ptr().cast(),
                    self.page_bytes,
                    Advice::LinuxDontNeed,
                )
            };
        }
    }
}

impl Segment {
    fn new(frames: usize, page_bytes: usize) -> Self {
        let bytes = frames * page_bytes;
        // SAFETY: a new private mapping at an address of the system's choice touches nothing that
        // exists.
        let mapped = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        };
        let base = mapped.ok().and_then(|p| NonNull::new(p.cast::<u8>()));
        let Some(base) = base else {
            handle_alloc_error(Layout::from_size_align(bytes, 4096).unwrap_or(Layout::new::<u8>()));
        };
        let meta = (0..frames).map(|_| Meta {
            tag: AtomicU64::new(NO_PAGE),
            split: AtomicU32::new(0),
            used: AtomicU8::new(0),
        });
        Self {
            base,
            bytes,
            meta: meta.collect(),
        }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: mapped in `new` with this size; views borrow the pool that is being dropped, so
        // none is left.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}
