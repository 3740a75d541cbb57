//! Splits and merges after a write whose answer was lost.
//!
//! P5: no private node is split or merged while a frame is in doubt. A split and a merge end with a
//! write of the parent. If its answer is lost, the pool's parent may name other nodes than the
//! cached one: those that the split wrote, or those that the merge took together. The pool has a
//! tree with either, as long as what they name is neither split nor merged nor used again: only
//! their children are named by two nodes then. A change of the children holds their parent's latch,
//! under which the doubt arose, and so sees it.
//!
//! What is in doubt is dirty: it is written again before the next split or merge, or as any other
//! page.

use super::{
    Tree,
    attempt::{Attempt, Stop},
};
use crate::{error::Result, node::TreeKey, remote::RemoteMemory};

impl<M: RemoteMemory, K: TreeKey> Tree<M, K> {
    /// Writes what is in doubt again. The caller holds no latch.
    ///
    /// Cost: a load; with a frame in doubt, a look at each frame and a write for each doubt.
    pub(super) fn settle_doubts(&self) -> Result<()> {
        if !self.cache.has_doubts() {
            return Ok(());
        }
        let frames = 0..self.cache.len();
        let mut in_doubt = frames.filter(|frame| self.cache.frame(*frame).is_in_doubt());
        in_doubt.try_for_each(|frame| self.flush_frame(frame))
    }

    /// P5. The caller holds the latches of what it changes.
    pub(super) fn has_no_doubts(&self) -> Attempt<()> {
        match self.cache.has_doubts() {
            true => Err(Stop::Restart),
            false => Ok(()),
        }
    }
}
