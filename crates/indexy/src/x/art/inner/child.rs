//! What a child word stands for.

use super::layout::InnerRef;
use crate::x::{
    Stamp,
    child::{ChildWord, Target},
    leaf::LeafRef,
    root::RootSeen,
};
use std::marker::PhantomData;

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

/// A child word that was loaded from the root or from a node that was validated after the load; the
/// guard entered before that lives for `'g`.
#[derive(Clone, Copy)]
pub(crate) struct ValidWord<'g>(ChildWord, PhantomData<&'g ChildWord>);

impl<'g> ValidWord<'g> {
    /// # Safety
    /// `word` is what the type says.
    #[inline]
    pub(super) unsafe fn new(word: ChildWord) -> Self {
        Self(word, PhantomData)
    }

    /// The tree's only child; `None` when it changed.
    #[inline]
    pub(crate) fn of_root(root: RootSeen<'g>) -> Option<Self> {
        root.word().map(|word| Self(word, PhantomData))
    }

    /// The inner node that it leads to.
    #[inline]
    pub(crate) fn inner(self) -> Option<InnerRef<'g>> {
        // SAFETY: by what the type says the word is one that `inner` made of a live node.
        let node = |block| unsafe { InnerRef::from_block(block) };
        self.0.inner_block().map(node)
    }

    /// What it stands for.
    #[inline]
    pub(crate) fn resolve(self) -> Child<'g> {
        // SAFETY: what the type says is what `resolve` asks for.
        unsafe { self.0.resolve() }
    }
}
