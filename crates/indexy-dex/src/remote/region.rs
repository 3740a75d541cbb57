//! The memory of one memory server: a superblock, then nodes.
//!
//! Ordering of verbs: [`Region::read`] ends with an acquire fence and [`Region::write`] starts
//! with a release fence. A read that sees a word of a write therefore sees all that the writer
//! did before it, and the next read sees it too. That is what the version check of shared nodes
//! needs.
//!
//! | offset | size | field | rule |
//! |---|---|---|---|
//! | 0 | 8 | magic | [`MAGIC`] |
//! | 8 | 8 | next free byte | a multiple of a node's size; grows by compare-and-swap |
//! | 16 | 8 | bytes | of the region |
//! | 24 | 8 | root | address of the tree's root; server 0 only, 0 before there is a tree |
//! | 1024 | 1024 | the table of partitions | server 0 only |
//! | 2048 | 2048 | locks | of a baseline, `baselines/sherman.rs` |
//! | 4096 | | nodes | |

use super::mapping::{Mapping, ReadOnly, copy_out};
use crate::error::{Error, Result};
use std::{
    os::fd::OwnedFd,
    sync::atomic::{
        AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
        fence,
    },
};

/// The first word of a region.
pub const MAGIC: u64 = u64::from_le_bytes(*b"DEXPOOL1");
/// Where the word of the next free byte lies.
pub const NEXT_FREE_OFFSET: u64 = 8;
/// Where the word of the region's size lies.
pub const BYTES_OFFSET: u64 = 16;
/// Where the word of the root's address lies.
pub const ROOT_OFFSET: u64 = 24;
/// Where the table of partitions lies.
pub const TABLE_OFFSET: u64 = 1024;
/// Where the lock table of a baseline lies.
pub(crate) const LOCKS_OFFSET: u64 = 2048;
/// Its words.
pub(crate) const LOCKS: u64 = 256;
/// Where the nodes begin.
pub const NODES_OFFSET: u64 = 4096;

/// Memory of another crate, for a network that has to take it itself.
///
/// The slice is the same at every call, as long as the value lives. Others may change the words.
pub trait Lent: Send + Sync {
    /// All words.
    fn words(&self) -> &[AtomicU64];
}

enum Memory {
    Mapped(Mapping),
    Lent(Box<dyn Lent>),
}

/// Memory that verbs reach.
pub struct Region {
    memory: Memory,
}

impl Region {
    /// A formatted region of `bytes`; untouched parts take no memory.
    pub fn create(bytes: u64) -> Result<Self> {
        if bytes <= NODES_OFFSET || !bytes.is_multiple_of(NODES_OFFSET) {
            return Err(Error::Options(format!("a region of {bytes} bytes")));
        }
        Self::format(bytes, Memory::Mapped(Mapping::create(bytes)?))
    }

    /// A formatted region over memory that is all zero. Unix sockets cannot hand it to other
    /// processes ([`super::shm`]).
    pub fn over(lent: Box<dyn Lent>) -> Result<Self> {
        let bytes = 8 * lent.words().len() as u64;
        if bytes <= NODES_OFFSET || !bytes.is_multiple_of(NODES_OFFSET) {
            return Err(Error::Options(format!("a region of {bytes} bytes")));
        }
        Self::format(bytes, Memory::Lent(lent))
    }

    fn format(bytes: u64, memory: Memory) -> Result<Self> {
        let this = Self { memory };
        let words = this.all();
        for (offset, word) in [
            (NEXT_FREE_OFFSET, NODES_OFFSET),
            (BYTES_OFFSET, bytes),
            (0, MAGIC),
        ] {
            words[offset as usize / 8].store(word, Relaxed);
        }
        fence(Release);
        Ok(this)
    }

    #[inline]
    fn all(&self) -> &[AtomicU64] {
        match &self.memory {
            Memory::Mapped(mapping) => mapping.words(),
            Memory::Lent(lent) => lent.words(),
        }
    }

    pub(super) fn descriptor_for_reading(&self) -> std::io::Result<OwnedFd> {
        match &self.memory {
            Memory::Mapped(mapping) => {
                let readable = mapping.descriptor_for_reading();
                readable.map_err(std::io::Error::other)
            }
            Memory::Lent(_) => Err(std::io::Error::other("the region has no descriptor")),
        }
    }

    /// `words` words from byte `offset` on; `None` if they do not lie in the region.
    pub fn words(&self, offset: u64, words: usize) -> Option<&[AtomicU64]> {
        if !offset.is_multiple_of(8) {
            return None;
        }
        let start = usize::try_from(offset / 8).ok()?;
        let end = start.checked_add(words)?;
        self.all().get(start..end)
    }

    /// Copies words out. `None`: they do not lie in the region.
    pub fn read(&self, offset: u64, into: &mut [u64]) -> Option<()> {
        let words = self.words(offset, into.len())?;
        copy_out(words, into);
        // Pairs with the release fence of `write`.
        fence(Acquire);
        Some(())
    }

    /// Copies words in. `None`: they do not lie in the region.
    pub fn write(&self, offset: u64, from: &[u64]) -> Option<()> {
        let words = self.words(offset, from.len())?;
        // Pairs with the acquire fence of `read`.
        fence(Release);
        for (to, &from) in words.iter().zip(from) {
            to.store(from, Relaxed);
        }
        Some(())
    }

    /// Stores `new` if the word is `expected`; returns what the word was.
    pub fn cas(&self, offset: u64, expected: u64, new: u64) -> Option<u64> {
        let word = self.words(offset, 1)?.first()?;
        let was = word.compare_exchange(expected, new, AcqRel, Acquire);
        Some(was.unwrap_or_else(|was| was))
    }
}

/// Another process's region, to read.
pub(super) struct RegionReader {
    mapping: ReadOnly,
}

impl RegionReader {
    /// The region behind a descriptor that another process sent.
    pub(super) fn of(descriptor: OwnedFd) -> Result<Self> {
        let mapping = ReadOnly::of(descriptor)?;
        let mut magic = [0];
        let there = mapping.load(0, &mut magic);
        fence(Acquire);
        match (there, magic) {
            (Some(()), [MAGIC]) => Ok(Self { mapping }),
            _ => Err(Error::Options("the descriptor is no region".into())),
        }
    }

    /// As [`Region::read`].
    pub(super) fn read(&self, offset: u64, into: &mut [u64]) -> Option<()> {
        if !offset.is_multiple_of(8) {
            return None;
        }
        let start = usize::try_from(offset / 8).ok()?;
        self.mapping.load(start, into)?;
        // Pairs with the release fence of `Region::write`.
        fence(Acquire);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_is_reached() {
        let region = Region::create(8192).unwrap();
        let mut two = [0; 2];
        assert_eq!(region.read(8184, &mut two), None);
        assert_eq!(region.read(u64::MAX - 7, &mut two), None);
        assert_eq!(region.read(4, &mut two), None);
        assert_eq!(region.write(8192, &[1]), None);
        assert_eq!(region.cas(8192, 0, 1), None);
        assert_eq!(region.write(8176, &[1, 2]), Some(()));
        assert_eq!(region.read(8176, &mut two), Some(()));
        assert_eq!(two, [1, 2]);
    }

    #[test]
    fn lent_memory_is_a_region() {
        struct Words(Vec<AtomicU64>);
        impl Lent for Words {
            fn words(&self) -> &[AtomicU64] {
                &self.0
            }
        }
        let lent = |words| Box::new(Words((0..words).map(|_| AtomicU64::new(0)).collect()));
        assert!(matches!(Region::over(lent(1_000)), Err(Error::Options(_))));
        let region = Region::over(lent(1_024)).unwrap();
        let mut words = [0; 3];
        region.read(0, &mut words).unwrap();
        assert_eq!(words, [MAGIC, NODES_OFFSET, 8192]);
        assert_eq!(region.write(8192, &[1]), None);
        assert!(region.descriptor_for_reading().is_err());
    }

    #[test]
    fn a_swap_says_what_was() {
        let region = Region::create(8192).unwrap();
        assert_eq!(region.cas(4096, 0, 7), Some(0));
        assert_eq!(region.cas(4096, 0, 8), Some(7));
        assert_eq!(region.cas(4096, 7, 9), Some(7));
    }

    #[test]
    fn a_region_that_is_none_is_refused() {
        let mapping = Mapping::create(8192).unwrap();
        let fd = mapping.descriptor_for_reading().unwrap();
        assert!(matches!(RegionReader::of(fd), Err(Error::Options(_))));
        assert!(matches!(Region::create(5000), Err(Error::Options(_))));
    }
}
