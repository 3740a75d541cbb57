//! Memory from the system, aligned to huge pages, and what the system is told of it.
//!
//! Not here: who counts the bytes (`arena/`, `y/pool/`).

#[cfg(target_os = "linux")]
use rustix::mm::{Advice, madvise};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::{ptr::NonNull, sync::OnceLock};

/// Of x86-64, and of ARM with pages of 4 KiB.
pub(crate) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Address space aligned to [`HUGE_PAGE_BYTES`], readable, writable and zero at first. Dropped, it
/// is unmapped.
pub(crate) struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it owns its address range; its users synchronize what lies in it.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `bytes` (rounded up to pages); ends the process if the system has no memory for it, as
    /// every allocation does.
    pub(crate) fn new(bytes: usize) -> Self {
        let bytes = bytes.next_multiple_of(os_page());
        match Self::try_new(bytes) {
            Ok(mapping) => mapping,
            Err(_) => std::alloc::handle_alloc_error(
                std::alloc::Layout::from_size_align(bytes, HUGE_PAGE_BYTES)
                    .unwrap_or(std::alloc::Layout::new::<u8>()),
            ),
        }
    }

    fn try_new(bytes: usize) -> rustix::io::Result<Self> {
        let reserve = bytes + HUGE_PAGE_BYTES;
        // SAFETY: a new private mapping at an address of the system's choice touches nothing that
        // exists.
        let start = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                reserve,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )?
        }
        .cast::<u8>();
        let before = start.addr().wrapping_neg() % HUGE_PAGE_BYTES;
        let after = reserve - before - bytes;
        // SAFETY: `before + bytes + after == reserve`: the two ends are parts of the new
        // mapping that nothing refers to, and both are multiples of the page size.
        unsafe {
            let base = start.add(before);
            if before > 0 {
                munmap(start.cast(), before)?;
            }
            if after > 0 {
                munmap(base.add(bytes).cast(), after)?;
            }
            Ok(Self {
                base: NonNull::new_unchecked(base),
                bytes,
            })
        }
    }

    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Asks for huge pages, or for none. Only speed and residence depend on it, so a refusal does
    /// not matter.
    pub(crate) fn advise_huge(&self, huge: bool) {
        self.advise_huge_within(0, self.bytes, huge);
    }

    /// The same for `bytes` from offset `at` on, whole pages.
    pub(crate) fn advise_huge_within(&self, at: usize, bytes: usize, huge: bool) {
        assert!(at <= self.bytes && bytes <= self.bytes - at);
        #[cfg(target_os = "linux")]
        {
            let advice = if huge {
                Advice::LinuxHugepage
            } else {
                Advice::LinuxNoHugepage
            };
            // SAFETY: inside the mapping, and this advice changes no contents.
            let _ = unsafe { madvise(self.base.add(at).as_ptr().cast(), bytes, advice) };
        }
        #[cfg(not(target_os = "linux"))]
        let _ = huge;
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `try_new` and belongs to this value alone.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}

/// Gives the whole pages among `bytes` at `start` back to the system; afterwards all of the bytes
/// are zero.
///
/// # Safety
/// The range is inside a live mapping, and nobody else accesses it.
pub(crate) unsafe fn discard(start: NonNull<u8>, bytes: usize) {
    let head = (start.addr().get().wrapping_neg() % os_page()).min(bytes);
    let whole = (bytes - head) / os_page() * os_page();
    let tail = bytes - head - whole;
    // SAFETY: the three parts make up the caller's range.
    unsafe {
        start.write_bytes(0, head);
        let middle = start.add(head);
        if whole > 0 && !drop_pages(middle, whole) {
            middle.write_bytes(0, whole);
        }
        middle.add(whole).write_bytes(0, tail);
    }
}

/// # Safety
/// As [`discard`], of whole pages.
#[cfg(target_os = "linux")]
unsafe fn drop_pages(start: NonNull<u8>, bytes: usize) -> bool {
    // SAFETY: the caller owns the contents; private anonymous pages read as zero afterwards.
    unsafe { madvise(start.as_ptr().cast(), bytes, Advice::LinuxDontNeed).is_ok() }
}

/// # Safety
/// As [`discard`], of whole pages.
#[cfg(not(target_os = "linux"))]
unsafe fn drop_pages(start: NonNull<u8>, bytes: usize) -> bool {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the caller owns the contents; the new pages take the place of the old ones.
    unsafe { mmap_anonymous(start.as_ptr().cast(), bytes, access, flags).is_ok() }
}

/// Page size of the system, in bytes.
fn os_page() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(rustix::param::page_size)
}
