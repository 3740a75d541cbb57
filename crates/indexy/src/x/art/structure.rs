//! The structure of the tree, put together.

#![forbid(unsafe_code)]

use super::{Radix, parent, place::Place};
use crate::{
    mem::Memory,
    x::{XStats, child::ChildWord, tree::Structure},
};

impl Structure for Radix {
    type Place<'g> = Place<'g>;
    type Parent<'g> = parent::ParentLatched<'g>;

    fn free_all(words: Vec<ChildWord>, memory: &Memory) {
        parent::free_all(words, memory);
    }

    fn take_apart(memory: &Memory, words: &mut Vec<ChildWord>, enough_bytes: usize) -> XStats {
        parent::take_apart(memory, words, enough_bytes)
    }
}
