//! Memory behind a descriptor, as atomic words.
//!
//! The memory may be shared with other processes, which write whenever they like. Each access is
//! an atomic one of 8 bytes, so it is never undefined, and what is read is never trusted.
//! The descriptor is sealed against shrinking: no access beyond the end can come to be.

use crate::error::{Error, Result};
use rustix::{
    fs::{
        MemfdFlags, Mode, OFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate,
        memfd_create, open,
    },
    mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap},
};
use std::{
    ffi::c_void,
    hint::black_box,
    os::fd::{AsRawFd, OwnedFd},
    ptr::NonNull,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// The size of a mapping never changes.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);

/// Words of a cache line.
const LINE_WORDS: usize = 8;

pub(super) struct Mapping {
    start: NonNull<AtomicU64>,
    words: usize,
    descriptor: OwnedFd,
}

// SAFETY: the mapping is plain memory that every thread may access; all accesses are atomic.
unsafe impl Send for Mapping {}
// SAFETY: as for `Send`.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// New zeroed memory of `bytes`, which takes room when it is written.
    pub(super) fn create(bytes: u64) -> Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = memfd_create("indexy-pool", flags).map_err(Error::system("memfd_create"))?;
        ftruncate(&fd, bytes).map_err(Error::system("ftruncate"))?;
        fcntl_add_seals(&fd, SEALS).map_err(Error::system("seal"))?;
        Self::of(fd)
    }

    /// The memory behind `descriptor`, which must be sealed, to read and write.
    fn of(descriptor: OwnedFd) -> Result<Self> {
        Self::with(descriptor, ProtFlags::READ | ProtFlags::WRITE)
    }

    fn with(descriptor: OwnedFd, protection: ProtFlags) -> Result<Self> {
        let seals = fcntl_get_seals(&descriptor).map_err(Error::system("seals"))?;
        if !seals.contains(SEALS) {
            return Err(Error::Options("the region may change its size".into()));
        }
        let stat = fstat(&descriptor).map_err(Error::system("fstat"))?;
        let bytes = usize::try_from(stat.st_size).unwrap_or(0);
        if bytes == 0 || !bytes.is_multiple_of(size_of::<u64>()) {
            return Err(Error::Options(format!("a region of {bytes} bytes")));
        }
        let null = std::ptr::null_mut();
        // SAFETY: the kernel chooses the place, so nothing that exists is touched.
        let start = unsafe { mmap(null, bytes, protection, MapFlags::SHARED, &descriptor, 0) };
        let start = start.map_err(Error::system("mmap"))?;
        // Only speed depends on it, and on the kernel: a refusal does not matter.
        // SAFETY: the range was mapped just now, and this advice changes no contents.
        let _ = unsafe { madvise(start, bytes, Advice::LinuxHugepage) };
        let start = start.cast();
        let start = NonNull::new(start).ok_or_else(|| Error::Options("mapped at 0".into()))?;
        let words = bytes / size_of::<u64>();
        Ok(Self {
            start,
            words,
            descriptor,
        })
    }

    pub(super) fn words(&self) -> &[AtomicU64] {
        // SAFETY: `start` is aligned to a page, the mapping has this many words, it cannot shrink
        // (sealed) and lives as long as `self`; any bits are a valid `AtomicU64`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }

    /// A descriptor of the same memory that cannot be mapped for writing.
    pub(super) fn descriptor_for_reading(&self) -> Result<OwnedFd> {
        let path = format!("/proc/self/fd/{}", self.descriptor.as_raw_fd());
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let readable = open(path, flags, Mode::empty());
        readable.map_err(Error::system("a descriptor for reading"))
    }
}

/// Copies words of one length.
///
/// The first word of each cache line is loaded ahead. These loads need no room for stores, so the
/// processor has all lines under way at once; in the copy only as many as its stores have room.
#[inline]
pub(super) fn copy_out(from: &[AtomicU64], into: &mut [u64]) {
    for line in from.chunks(LINE_WORDS) {
        black_box(line[0].load(Relaxed));
    }
    for (to, from) in into.iter_mut().zip(from) {
        *to = from.load(Relaxed);
    }
}

/// Memory that others write, mapped for reading.
pub(super) struct ReadOnly(Mapping);

impl ReadOnly {
    /// The memory behind `descriptor`, which must be sealed.
    pub(super) fn of(descriptor: OwnedFd) -> Result<Self> {
        Mapping::with(descriptor, ProtFlags::READ).map(Self)
    }

    /// Copies words from index `start` on, by loads alone: a store would end the process.
    /// `None`: outside.
    #[inline]
    pub(super) fn load(&self, start: usize, into: &mut [u64]) -> Option<()> {
        let end = start.checked_add(into.len())?;
        copy_out(self.0.words().get(start..end)?, into);
        Some(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let start = self.start.as_ptr().cast::<c_void>();
        // SAFETY: the range was mapped by `of`, and no borrow of `words` outlives `self`.
        let unmapped = unsafe { munmap(start, self.words * size_of::<u64>()) };
        debug_assert!(unmapped.is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_mappings_of_one_descriptor_are_the_same_memory() {
        let one = Mapping::create(1 << 20).unwrap();
        let two = ReadOnly::of(one.descriptor_for_reading().unwrap()).unwrap();
        one.words()[77].store(5, Relaxed);
        let mut all = vec![0; (1 << 17) + 1];
        assert!(two.load(0, &mut all).is_none());
        two.load(70, &mut all[..9]).unwrap();
        assert_eq!(all[..9], [0, 0, 0, 0, 0, 0, 0, 5, 0]);
        // What is sent to compute servers cannot be written.
        assert!(Mapping::of(one.descriptor_for_reading().unwrap()).is_err());
    }

    #[test]
    fn a_descriptor_that_may_shrink_is_refused() {
        let fd = memfd_create("loose", MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&fd, 4096).unwrap();
        assert!(matches!(Mapping::of(fd), Err(Error::Options(_))));
    }
}
