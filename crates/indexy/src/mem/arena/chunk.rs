//! Chunks: the address space that blocks are carved from, and how a block finds its owner.
//!
//! Every chunk starts at a multiple of [`CHUNK_BYTES`] with a [`ChunkHeader`], and every block
//! starts in the first `CHUNK_BYTES` of its chunk. So the header of any block is one mask away,
//! whatever its kind and the budget.
//!
//! | kind | bytes | behind the header |
//! |---|---|---|
//! | slabs | `CHUNK_BYTES` | slab headers, slabs (`slab.rs`, `slab_pool.rs`) |
//! | runs | `CHUNK_BYTES` | run lengths, pages (`large.rs`) |
//! | single | any | one block (`large.rs`) |
//!
//! A header is written once, before the first block of its chunk is handed out, and then only read.
//! Not here: who counts the bytes (`mod.rs`).

#[cfg(target_os = "linux")]
use rustix::mm::{Advice, madvise};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::{ptr::NonNull, sync::OnceLock};

/// Alignment of every chunk, and the size of all but single ones. The size of a huge page.
pub(crate) const CHUNK_BYTES: usize = 2 << 20;
/// Bytes of a [`ChunkHeader`].
pub(crate) const HEADER_BYTES: usize = 64;

/// What a chunk is divided into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Slabs of `1 << shift` bytes.
    Slabs { shift: u32 },
    /// Runs of pages.
    Runs,
    /// One block of so many bytes.
    Single { bytes: usize },
}

/// The arena that a chunk belongs to: `mod.rs` alone knows the type.
pub(crate) type Owner = *const ();

/// The start of a chunk.
#[repr(C, align(64))]
pub(crate) struct ChunkHeader {
    pub(crate) arena: Owner,
    pub(crate) kind: Kind,
    /// Which chunk of its kind it is, in the tables of its owner.
    pub(crate) slot: usize,
}
const _: () = assert!(size_of::<ChunkHeader>() == HEADER_BYTES);

/// The header of the chunk that `inside` points into the first [`CHUNK_BYTES`] of.
///
/// # Safety
/// `inside` was derived from the base of a mapped chunk with a header.
#[inline(always)]
pub(crate) unsafe fn chunk_of<T>(inside: NonNull<T>) -> NonNull<ChunkHeader> {
    let base = inside
        .as_ptr()
        .map_addr(|address| address & !(CHUNK_BYTES - 1))
        .cast();
    // SAFETY: the caller's pointer is inside a chunk, and no chunk is at address 0.
    unsafe { NonNull::new_unchecked(base) }
}

/// Address space aligned to [`CHUNK_BYTES`], readable, writable and zero at first. Unmapped when
/// dropped.
pub(crate) struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it owns its address range; its users synchronize what lies in it.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `bytes` (rounded up to pages); ends the process if the system has no memory for it, as
    /// every allocation does.
    pub(crate) fn new(bytes: usize) -> Self {
        let bytes = bytes.next_multiple_of(os_page());
        match Self::try_new(bytes) {
            Ok(mapping) => mapping,
            Err(_) => std::alloc::handle_alloc_error(
                std::alloc::Layout::from_size_align(bytes, CHUNK_BYTES)
                    .unwrap_or(std::alloc::Layout::new::<u8>()),
            ),
        }
    }

    fn try_new(bytes: usize) -> rustix::io::Result<Self> {
        let reserve = bytes + CHUNK_BYTES;
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
        let before = start.addr().wrapping_neg() % CHUNK_BYTES;
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

    /// Writes the header. The chunk is new: nobody has a pointer into it.
    pub(crate) fn set_header(&mut self, header: ChunkHeader) {
        // SAFETY: the mapping is at least a page, aligned, and exclusively borrowed.
        unsafe { self.base.cast::<ChunkHeader>().write(header) };
    }

    /// Asks for huge pages, or for none. Only speed and residence depend on it, so a refusal does
    /// not matter.
    pub(crate) fn advise_huge(&self, huge: bool) {
        #[cfg(target_os = "linux")]
        {
            let advice = if huge {
                Advice::LinuxHugepage
            } else {
                Advice::LinuxNoHugepage
            };
            // SAFETY: this advice changes no contents.
            let _ = unsafe { madvise(self.base.as_ptr().cast(), self.bytes, advice) };
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
