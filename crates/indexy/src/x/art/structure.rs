//! The structure of the tree, put together.

#![forbid(unsafe_code)]

use super::{Radix, parent, place::Place};
use crate::{
    mem::Memory,
    x::{XStats, child::ChildWord, root::Root, tree::Structure},
};

impl Structure for Radix {
    type Place<'g> = Place<'g>;
    type Parent<'g> = parent::ParentLatched<'g>;

    fn free_all(root: &mut Root, memory: &Memory) {
        parent::free_all(root, memory);
    }

    fn take_apart(memory: &Memory, word: ChildWord) -> XStats {
        parent::take_apart(memory, word)
    }
}
