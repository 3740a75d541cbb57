//! The mapping of a growing file: segments, each twice as long as all before it.
//!
//! A segment is mapped when it is first looked at, wherever the file ends by then: address space
//! costs nothing. It is unmapped with the file.
//!
//! `unsafe`: a slice of a mapping shows memory that the file's owner does not write to while
//! somebody looks, which is the rule of views (`mod.rs`); and that is there, because the file has
//! those bytes or a fault puts zeros there (`faults.rs`). Another process that writes to the file
//! breaks the rule: the directory's lock keeps out those of ours.

#![allow(unsafe_code)]

use super::faults::Watched;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
use std::{
    fs::File,
    ptr::NonNull,
    slice,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering, fence},
    },
};

/// Bytes of the first segment.
const FIRST_BYTES: u64 = 1 << 30;
/// They cover 64 TiB: half of the address space of a process.
const SEGMENTS: usize = 17;

/// See the module header.
#[derive(Default)]
pub(super) struct Segments {
    /// `None` inside: the system does not map it. Dropped before what they point to.
    segments: [OnceLock<Option<Segment>>; SEGMENTS],
    /// A fault met a view.
    broken: Box<AtomicBool>,
    /// The system refused to map a part.
    refused: AtomicBool,
}

struct Segment {
    base: NonNull<u8>,
    bytes: usize,
    watched: Watched,
}

// SAFETY: the memory is only read, under the rule of views.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

impl Segments {
    /// The bytes `[offset, offset + len)`, which `file` has; `None`: they lie in more than one
    /// segment, or cannot be mapped. Cost: a system call for a segment that is new.
    pub(super) fn bytes(&self, file: &File, offset: u64, len: usize) -> Option<&[u8]> {
        let (number, start, bytes) = place(offset);
        let map = || Segment::map(file, start, bytes, &self.broken);
        let segment = self.segments.get(number);
        let Some(segment) = segment.and_then(|segment| segment.get_or_init(map).as_ref()) else {
            self.refused.store(true, Ordering::Relaxed);
            return None;
        };
        let at = usize::try_from(offset - start).ok()?;
        if len > segment.bytes - at {
            return None;
        }
        // SAFETY: inside the mapping, which lives as long as `self`; see the header.
        Some(unsafe { slice::from_raw_parts(segment.base.add(at).as_ptr(), len) })
    }

    /// Whether the system maps all of the file, as far as that was tried.
    pub(super) fn can_map(&self) -> bool {
        !self.refused.load(Ordering::Relaxed)
    }

    /// Whether no fault met a view so far. Cost: a load.
    pub(super) fn hold(&self) -> bool {
        // What was read from views was read before.
        fence(Ordering::Acquire);
        !self.broken.load(Ordering::Relaxed)
    }
}

/// The segment of the byte `offset`: its number, where it starts, and its length.
fn place(offset: u64) -> (usize, u64, u64) {
    match (offset / FIRST_BYTES).checked_ilog2() {
        None => (0, 0, FIRST_BYTES),
        Some(power) => {
            let start = FIRST_BYTES << power;
            (power as usize + 1, start, start)
        }
    }
}

impl Segment {
    fn map(file: &File, start: u64, bytes: u64, broken: &AtomicBool) -> Option<Self> {
        let bytes = usize::try_from(bytes).ok()?;
        // SAFETY: a new mapping at an address of the system's choice touches nothing that exists.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ,
                MapFlags::SHARED | MapFlags::NORESERVE,
                file,
                start,
            )
        };
        let base = NonNull::new(base.ok()?.cast::<u8>())?;
        // Neighbours of what is looked at are of no use. Only speed depends on it.
        // SAFETY: the new mapping; this advice changes no contents.
        let _ = unsafe { madvise(base.as_ptr().cast(), bytes, Advice::Random) };
        let watched = Watched::new(base.addr().get(), bytes, broken);
        Some(Self {
            base,
            bytes,
            watched,
        })
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // Before the addresses are anybody else's.
        self.watched.end();
        // SAFETY: `map` made it, and views borrow what owns it.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_lie_one_behind_the_other() {
        let mut end = 0;
        for number in 0..SEGMENTS {
            let (found, start, bytes) = place(end);
            assert_eq!((found, start), (number, end));
            end += bytes;
            assert_eq!(place(end - 1), (number, start, bytes));
        }
        assert_eq!(end, 64 << 40);
    }

    #[test]
    fn what_lies_in_two_segments_has_no_view() {
        let dir = tempfile::tempdir().unwrap();
        let file = File::create_new(dir.path().join("sparse")).unwrap();
        file.set_len(FIRST_BYTES + 4096).unwrap();
        let file = File::open(dir.path().join("sparse")).unwrap();
        let segments = Segments::default();
        assert!(segments.bytes(&file, FIRST_BYTES - 10, 10).is_some());
        assert!(segments.bytes(&file, FIRST_BYTES - 10, 11).is_none());
        assert_eq!(segments.bytes(&file, FIRST_BYTES, 10), Some(&[0; 10][..]));
        assert!(segments.hold());
    }
}
