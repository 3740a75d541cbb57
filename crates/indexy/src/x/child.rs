//! The tagged word that stands for a child.
//!
//! It is one of: 0 (an empty, complete range), a stamp (an empty, mounted range), a pointer to a
//! leaf, a pointer to an inner node. The low three bits tell which; the high four bits of a pointer
//! tell how many cache lines of the node a search looks at, so that they can all be fetched at once
//! before the first is looked at.
//!
//! Threads: a word that was loaded from a node means nothing until the node's version was
//! validated; then what it points to stays allocated as long as the guard that was entered before.

use super::Stamp;
use std::ptr::NonNull;

const TAG_BITS: u32 = 3;
const TAG: u64 = (1 << TAG_BITS) - 1;
const MOUNT: u64 = 1;
const LEAF: u64 = 2;
const INNER: u64 = 3;
/// Where the number of lines to fetch, less one, is; addresses of a process are far below.
const LINES_SHIFT: u32 = 60;
const MAX_LINES: usize = 16;
const ADDRESS: u64 = (1 << LINES_SHIFT) - 1 - TAG;
const LINE_BYTES: usize = 64;

/// A child word; see the module header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ChildWord(u64);

impl ChildWord {
    pub(crate) const EMPTY: Self = Self(0);

    /// The word of an empty range that is mounted with this stamp, or complete.
    #[inline]
    pub(crate) fn empty(mount: Option<Stamp>) -> Self {
        mount.map_or(Self::EMPTY, |stamp| Self(stamp << TAG_BITS | MOUNT))
    }

    /// The word of a leaf; a search looks at its first `fetch` bytes.
    #[inline]
    pub(crate) fn leaf(block: NonNull<u64>, fetch: usize) -> Self {
        Self(pointer(block, fetch) | LEAF)
    }

    /// The word of an inner node; a search looks at its first `fetch` bytes.
    #[inline]
    pub(crate) fn inner(block: NonNull<u64>, fetch: usize) -> Self {
        Self(pointer(block, fetch) | INNER)
    }

    #[inline]
    pub(crate) fn from_raw(word: u64) -> Self {
        Self(word)
    }

    #[inline]
    pub(crate) fn raw(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) fn is_mount(self) -> bool {
        self.0 & TAG == MOUNT
    }

    /// Neither a leaf nor an inner node.
    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.0 & TAG <= MOUNT
    }

    #[inline]
    pub(crate) fn is_inner(self) -> bool {
        self.0 & TAG == INNER
    }

    /// Has the processor fetch what a search of the child looks at, all at once: one line after the
    /// other would cost a trip to memory each. Harmless for any word.
    #[inline(always)]
    pub(crate) fn prefetch(self) {
        #[cfg(target_arch = "x86_64")]
        if self.0 & TAG > MOUNT {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let mut line = (self.0 & ADDRESS) as usize;
            let last = line.wrapping_add((self.0 >> LINES_SHIFT) as usize * LINE_BYTES);
            while line <= last {
                // SAFETY: a prefetch reads nothing, whatever the address is.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::without_provenance(line)) };
                line += LINE_BYTES;
            }
        }
    }

    /// The block of the inner node that the word leads to, if it does; nonsense, as
    /// [`Self::target`], if it was not validated.
    #[inline]
    pub(crate) fn inner_block(self) -> Option<NonNull<u64>> {
        let address = (self.0 & ADDRESS) as usize;
        let block = NonNull::new(std::ptr::with_exposed_provenance_mut(address));
        block.filter(|_| self.is_inner())
    }

    /// What the word stands for, if it was loaded from a node that was validated since; else
    /// nonsense.
    #[inline]
    pub(crate) fn target(self) -> Target {
        let block = NonNull::new(std::ptr::with_exposed_provenance_mut(
            (self.0 & ADDRESS) as usize,
        ));
        match (self.0 & TAG, block) {
            (LEAF, Some(block)) => Target::Leaf(block),
            (INNER, Some(block)) => Target::Inner(block),
            (MOUNT, _) => Target::Empty(Some(self.0 >> TAG_BITS)),
            _ => Target::Empty(None),
        }
    }
}

/// The address of a block, and how much of it to fetch.
#[inline]
fn pointer(block: NonNull<u64>, fetch: usize) -> u64 {
    let lines = fetch.div_ceil(LINE_BYTES).clamp(1, MAX_LINES) as u64;
    let address = block.as_ptr().expose_provenance() as u64;
    debug_assert!(address & !ADDRESS == 0);
    address | (lines - 1) << LINES_SHIFT
}

/// What a child word stands for, as addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// An empty range; mounted with this stamp, or complete.
    Empty(Option<Stamp>),
    Leaf(NonNull<u64>),
    Inner(NonNull<u64>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_words_keep_their_stamp() {
        assert_eq!(ChildWord::empty(None), ChildWord::EMPTY);
        for stamp in [0, 1, 1 << 50] {
            let word = ChildWord::empty(Some(stamp));
            assert!(word.is_mount() && word.is_empty() && !word.is_inner());
            assert_eq!(word.target(), Target::Empty(Some(stamp)));
        }
    }
}
