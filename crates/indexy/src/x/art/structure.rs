//! The structure of the tree, put together.

#![forbid(unsafe_code)]

use super::{Radix, parent, place::Place};
use crate::{
    mem::Memory,
    x::{root::Root, tree::Structure},
};

impl Structure for Radix {
    type Place<'g> = Place<'g>;
    type Parent<'g> = parent::ParentLatched<'g>;

    fn free_all(root: &mut Root, memory: &Memory) {
        parent::free_all(root, memory);
    }
}
