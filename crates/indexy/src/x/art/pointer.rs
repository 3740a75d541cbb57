//! The tagged word that stands for a child, and the symbols that select it.
//!
//! A child word is one of: 0 (an empty, complete range), a stamp (an empty, mounted range), a pointer to a
//! leaf, a pointer to an inner node. The low three bits tell which.
//!
//! Below a node a key goes on with a *symbol*: "the key ends here" (0) or byte `b` (`b + 1`).
//!
//! Threads: a word that was loaded from a node means nothing until the node's version was validated; then
//! what it points to stays allocated as long as the guard that was entered before.

use super::{inner::InnerRef, leaf::LeafRef};
use crate::x::Stamp;
use std::ptr::NonNull;

/// What a key goes on with: 0 is its end, `b + 1` the byte `b`.
pub(super) type Symbol = u16;

/// The key ends here; sorts before every byte.
pub(super) const END: Symbol = 0;

/// The last symbol: byte 255.
pub(super) const LAST: Symbol = 256;

/// How many symbols there are.
pub(super) const SYMBOLS: usize = 257;

/// The symbol of what `rest` starts with.
#[inline]
pub(super) fn first_symbol(rest: &[u8]) -> Symbol {
    rest.first().map_or(END, |&b| Symbol::from(b) + 1)
}

const TAG_BITS: u32 = 3;
const TAG: u64 = (1 << TAG_BITS) - 1;
const MOUNT: u64 = 1;
const LEAF: u64 = 2;
const INNER: u64 = 3;

#[cfg(target_arch = "x86_64")]
const LINE_BYTES: usize = 64;
/// Header and slots of most leaves.
#[cfg(target_arch = "x86_64")]
const LEAF_LINES: usize = 4;
/// Header, separators and children of most nodes.
#[cfg(target_arch = "x86_64")]
const INNER_LINES: usize = 3;

/// A child word; see the module header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ChildWord(u64);

impl ChildWord {
    pub(super) const EMPTY: Self = Self(0);

    /// The word of an empty range that is mounted with this stamp, or complete.
    #[inline]
    pub(super) fn empty(mount: Option<Stamp>) -> Self {
        mount.map_or(Self::EMPTY, |stamp| Self(stamp << TAG_BITS | MOUNT))
    }

    pub(super) fn leaf(block: NonNull<u64>) -> Self {
        Self(block.as_ptr().expose_provenance() as u64 | LEAF)
    }

    pub(super) fn inner(block: NonNull<u64>) -> Self {
        Self(block.as_ptr().expose_provenance() as u64 | INNER)
    }

    #[inline]
    pub(super) fn from_raw(word: u64) -> Self {
        Self(word)
    }

    #[inline]
    pub(super) fn raw(self) -> u64 {
        self.0
    }

    pub(super) fn is_mount(self) -> bool {
        self.0 & TAG == MOUNT
    }

    /// Neither a leaf nor an inner node.
    pub(super) fn is_empty(self) -> bool {
        self.0 & TAG <= MOUNT
    }

    pub(super) fn is_inner(self) -> bool {
        self.0 & TAG == INNER
    }

    /// Has the processor fetch what a search of the child looks at, all at once: one line after the other would
    /// cost a trip to memory each. Harmless for any word.
    #[inline(always)]
    pub(super) fn prefetch(self) {
        #[cfg(target_arch = "x86_64")]
        if self.0 & TAG > MOUNT {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let block = std::ptr::without_provenance::<i8>((self.0 & !TAG) as usize);
            let lines = if self.0 & TAG == LEAF {
                LEAF_LINES
            } else {
                INNER_LINES
            };
            for line in 0..lines {
                // SAFETY: a prefetch reads nothing, whatever the address is.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(block.wrapping_add(line * LINE_BYTES)) };
            }
        }
    }

    /// What the word stands for.
    ///
    /// # Safety
    /// The word was loaded from a node (or the root) that was validated after the load, or is latched, and
    /// the guard entered before that load lives for `'g`.
    #[inline]
    pub(super) unsafe fn resolve<'g>(self) -> Child<'g> {
        let block = std::ptr::with_exposed_provenance_mut::<u64>((self.0 & !TAG) as usize);
        match self.0 & TAG {
            // SAFETY: by the contract above the word is one that `leaf` made of a live leaf.
            LEAF => Child::Leaf(unsafe { LeafRef::from_block(NonNull::new_unchecked(block)) }),
            // SAFETY: as above, for `inner`.
            INNER => Child::Inner(unsafe { InnerRef::from_block(NonNull::new_unchecked(block)) }),
            MOUNT => Child::Empty(Some(self.0 >> TAG_BITS)),
            _ => Child::Empty(None),
        }
    }
}

/// What a child word stands for.
#[derive(Clone, Copy)]
pub(super) enum Child<'g> {
    /// An empty range; mounted with this stamp, or complete.
    Empty(Option<Stamp>),
    Leaf(LeafRef<'g>),
    Inner(InnerRef<'g>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_sort_the_end_before_byte_zero() {
        assert_eq!(first_symbol(b""), END);
        assert_eq!(first_symbol(b"\0"), 1);
        assert_eq!(first_symbol(b"\xff"), LAST);
    }

    #[test]
    fn empty_words_keep_their_stamp() {
        assert_eq!(ChildWord::empty(None), ChildWord::EMPTY);
        for stamp in [0, 1, 1 << 50] {
            let word = ChildWord::empty(Some(stamp));
            assert!(word.is_mount() && word.is_empty() && !word.is_inner());
            // SAFETY: an empty word points nowhere.
            let Child::Empty(seen) = (unsafe { word.resolve() }) else {
                panic!("not empty");
            };
            assert_eq!(seen, Some(stamp));
        }
    }
}
