//! What a child word stands for.

use super::layout::InnerRef;
use crate::x::{
    Stamp,
    child::{ChildWord, Target},
    leaf::LeafRef,
};

impl ChildWord {
    /// What the word stands for.
    ///
    /// # Safety
    /// The word was loaded from a node (or the root) that was validated after the load, or is
    /// latched, and the guard entered before that load lives for `'g`.
    #[inline]
    pub(crate) unsafe fn resolve<'g>(self) -> Child<'g> {
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
