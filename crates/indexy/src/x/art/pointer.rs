//! What a child word stands for, and the symbols that select a child.
//!
//! Below a node a key goes on with a *symbol*: "the key ends here" (0) or byte `b` (`b + 1`).

use super::{inner::InnerRef, leaf::LeafRef};
use crate::x::{
    Stamp,
    child::{ChildWord, Target},
};

/// What a key goes on with: 0 is its end, `b + 1` the byte `b`.
pub(crate) type Symbol = u16;

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

impl ChildWord {
    /// What the word stands for.
    ///
    /// # Safety
    /// The word was loaded from a node (or the root) that was validated after the load, or is latched, and
    /// the guard entered before that load lives for `'g`.
    #[inline]
    pub(super) unsafe fn resolve<'g>(self) -> Child<'g> {
        match self.target() {
            // SAFETY: by the contract above the word is one that `leaf` made of a live leaf.
            Target::Leaf(block) => Child::Leaf(unsafe { LeafRef::from_block(block) }),
            // SAFETY: as above, for `inner`.
            Target::Inner(block) => Child::Inner(unsafe { InnerRef::from_block(block) }),
            Target::Empty(mount) => Child::Empty(mount),
        }
    }
}

/// What a child word stands for.
#[derive(Clone, Copy)]
pub(crate) enum Child<'g> {
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
}
