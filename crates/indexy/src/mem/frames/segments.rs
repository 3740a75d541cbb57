//! The memory of the frames: mappings that double in size, so that a frame never moves.
//!
//! Segment `k` holds `FIRST << k` frames. It is mapped when its first frame is used and unmapped
//! with the pool.
//!
//! A huge page is asked for before the first of its frames is used, if all of them are below the
//! limit: what is resident then stays below it. A read goes to a random place of a large pool, and
//! with small pages each one costs a walk through the page tables. When a frame goes back to the
//! system, its segment takes the advice back: the kernel would fill the hole again.

use crate::mem::mapping::{HUGE_PAGE_BYTES, Mapping, discard};
use std::{
    ptr::NonNull,
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed},
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
    /// How often the hand of the clock still passes it over.
    pub(super) rounds: AtomicU8,
}

struct Segment {
    memory: Mapping,
    meta: Box<[Meta]>,
    /// Huge pages were asked for, and nothing went back since.
    huge: AtomicBool,
}

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

    /// Makes sure that frame `number`, which was never used, has memory; frames below `limit` may
    /// be used.
    pub(super) fn map(&self, number: usize, limit: usize) {
        let (segment, at) = place(number);
        let Some(cell) = self.table.get(segment) else {
            return;
        };
        let segment = cell.get_or_init(|| Segment::new(FIRST << segment, self.page_bytes));
        let start = at * self.page_bytes;
        let frames = HUGE_PAGE_BYTES.div_ceil(self.page_bytes);
        let whole = start + HUGE_PAGE_BYTES <= segment.memory.bytes() && number + frames <= limit;
        if start.is_multiple_of(HUGE_PAGE_BYTES) && whole {
            segment
                .memory
                .advise_huge_within(start, HUGE_PAGE_BYTES, true);
            // Afterwards: whoever gives a frame of it back takes the advice back.
            segment.huge.store(true, Relaxed);
        }
    }

    /// The first frame from `fresh` on that no huge page can have made resident. Those from `fresh`
    /// on were never used.
    pub(super) fn first_untouched(&self, fresh: usize) -> usize {
        let (segment, at) = place(fresh);
        let segment = self.table.get(segment).and_then(OnceLock::get);
        let Some(segment) = segment.filter(|s| s.memory.bytes() >= HUGE_PAGE_BYTES) else {
            return fresh;
        };
        let start = at * self.page_bytes;
        let rest = start.next_multiple_of(HUGE_PAGE_BYTES) - start;
        fresh + rest.div_ceil(self.page_bytes).min(segment.meta.len() - at)
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
        Some(unsafe { segment.memory.base().add(at * self.page_bytes) })
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
    ///
    /// # Safety
    /// The caller owns the frame.
    pub(super) unsafe fn discard(&self, number: u32) {
        let (segment, _) = place(number as usize);
        let segment = self.table.get(segment).and_then(OnceLock::get);
        if let (Some(segment), Some(start)) = (segment, self.start(number)) {
            if segment.huge.swap(false, Relaxed) {
                segment.memory.advise_huge(false);
            }
            // SAFETY: inside the mapping; exclusive by the caller's promise.
            unsafe { discard(start, self.page_bytes) };
        }
    }
}

#[cfg(test)]
impl Segments {
    /// The addresses of each mapping.
    pub(super) fn mappings(&self) -> Vec<std::ops::Range<usize>> {
        let mapped = self.table.iter().filter_map(OnceLock::get);
        let range = |memory: &Mapping| {
            let start = memory.base().addr().get();
            start..start + memory.bytes()
        };
        mapped.map(|segment| range(&segment.memory)).collect()
    }
}

impl Segment {
    fn new(frames: usize, page_bytes: usize) -> Self {
        let meta = (0..frames).map(|_| Meta {
            tag: AtomicU64::new(NO_PAGE),
            split: AtomicU32::new(0),
            rounds: AtomicU8::new(0),
        });
        let memory = Mapping::new(frames * page_bytes);
        // Where the system gives huge pages to whoever asks for none, too.
        memory.advise_huge(false);
        Self {
            memory,
            meta: meta.collect(),
            huge: AtomicBool::new(false),
        }
    }
}
