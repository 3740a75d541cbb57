//! What a child word stands for.

use super::layout::InnerRef;
use crate::x::{
    Stamp,
    child::{ChildWord, Target},
    leaf::LeafRef,
};

#[derive(Clone, Copy)]
pub(crate) enum Child<'g> {
    /// An empty range; mounted with this stamp, or complete.
    Empty(Option<Stamp>),
    Leaf(LeafRef<'g>),
    Inner(InnerRef<'g>),
}

impl Child<'_> {
    /// What `word` stands for.
    ///
    /// # Safety
    /// The word was loaded from a node (or the root) that was validated after the load, or is
    /// latched, and the guard entered before that load lives for the lifetime of the child.
    #[inline]
    pub(crate) unsafe fn resolve(word: ChildWord) -> Self {
        match word.target() {
            // SAFETY: by the contract above the word is that of a live leaf.
            Target::Leaf(block) => Child::Leaf(unsafe { LeafRef::from_block(block) }),
            // SAFETY: as above, of a live node.
            Target::Inner(block) => Child::Inner(unsafe { InnerRef::from_block(block) }),
            Target::Empty(mount) => Child::Empty(mount),
        }
    }
}
