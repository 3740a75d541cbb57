//! Where the frames lie.

use super::frame::Frame;
use rustix::mm::{Advice, madvise};

/// Of x86-64, and of ARM with pages of 4 KiB. A wrong size costs speed alone.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// New frames, in huge pages where whole ones lie in them and the kernel has some.
///
/// A large cache is looked up in random places. With small pages each one costs a walk through the
/// page tables, which no cache of the processor holds either.
pub(super) fn frames(count: usize) -> Box<[Frame]> {
    let mut frames = Vec::with_capacity(count);
    // Before the first touch: pages that are there stay as they are.
    advise_huge(&frames);
    frames.resize_with(count, Frame::default);
    frames.into_boxed_slice()
}

/// Only speed depends on it, so a refusal does not matter.
fn advise_huge(room: &Vec<Frame>) {
    let start = room.as_ptr().addr();
    let end = start + room.capacity() * size_of::<Frame>();
    let first = start.next_multiple_of(HUGE_PAGE_BYTES);
    let last = end - end % HUGE_PAGE_BYTES;
    if first < last {
        let at = room.as_ptr().wrapping_byte_add(first - start);
        // SAFETY: the pages lie in the vector's own room, and this advice changes no contents.
        let _ = unsafe { madvise(at.cast_mut().cast(), last - first, Advice::LinuxHugepage) };
    }
}
