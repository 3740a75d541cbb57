//! Frames whose last write was sent, and of which nobody knows whether the pool has it.

use super::Cache;
use crate::node::TreeKey;
use std::sync::atomic::Ordering::Relaxed;

impl<K: TreeKey> Cache<K> {
    /// The answer to a write of the frame was lost: it is dirty. The caller holds its latch.
    pub(crate) fn doubt(&self, frame: usize) {
        let this = &self.frames[frame];
        this.set_dirty(true);
        if !this.set_in_doubt(true) {
            self.doubts.fetch_add(1, Relaxed);
        }
    }

    /// The pool has the frame as it is, or as the caller makes it. The caller holds its latch.
    pub(crate) fn note_written(&self, frame: usize) {
        let this = &self.frames[frame];
        this.set_dirty(false);
        if this.set_in_doubt(false) {
            self.doubts.fetch_sub(1, Relaxed);
        }
    }

    /// A frame is in doubt. Who holds the latch of a frame sees the doubts that arose under it.
    pub(crate) fn has_doubts(&self) -> bool {
        self.doubts.load(Relaxed) > 0
    }
}
