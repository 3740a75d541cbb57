//! Memory behind a descriptor, as atomic words: the one file with `unsafe`.
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
    mm::{MapFlags, ProtFlags, mmap, munmap},
};
use std::{
    ffi::c_void,
    os::fd::{AsRawFd, OwnedFd},
    ptr::NonNull,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// The size of a mapping never changes.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);

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
        let start = start.map_err(Error::system("mmap"))?.cast();
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

/// Memory that others write, mapped for reading.
pub(super) struct ReadOnly(Mapping);

impl ReadOnly {
    /// The memory behind `descriptor`, which must be sealed.
    pub(super) fn of(descriptor: OwnedFd) -> Result<Self> {
        Mapping::with(descriptor, ProtFlags::READ).map(Self)
    }

    /// Loads of `words`, and nothing else: a store would end the process. `None`: outside.
    #[inline]
    pub(super) fn load(&self, words: std::ops::Range<usize>) -> Option<impl Iterator<Item = u64>> {
        let words = self.0.words().get(words)?;
        Some(words.iter().map(|word| word.load(Relaxed)))
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
        assert!(two.load(0..(1 << 17) + 1).is_none());
        assert_eq!(two.load(77..78).unwrap().next(), Some(5));
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
