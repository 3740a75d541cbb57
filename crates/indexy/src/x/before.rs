//! What a key was before a write, as the holder of its leaf's latch finds it.

#![forbid(unsafe_code)]

use super::{
    Before, Lookup,
    edit::Edit,
    leaf::{Bit, StableLeaf},
};

/// An entry that is about to be changed, or the place of a new one. Nothing is read before it is
/// asked for.
pub(super) struct InLeaf<'a> {
    pub(super) leaf: StableLeaf<'a>,
    pub(super) edit: Edit,
}

impl Before for InLeaf<'_> {
    #[inline]
    fn look(&self, found: &mut dyn FnMut(&[u8])) -> Lookup<()> {
        match self.edit {
            // I1: no entry; only a mount makes Y's word count.
            Edit::Insert { .. } => self.leaf.mount().map_or(Lookup::Absent, Lookup::AskY),
            Edit::Replace { at, .. } | Edit::Remove { at } => match self.leaf.value(at, found) {
                Some(()) => Lookup::Found(()),
                None if self.leaf.has(at, Bit::InY) => Lookup::Deleted,
                None => Lookup::Operand,
            },
        }
    }
}
