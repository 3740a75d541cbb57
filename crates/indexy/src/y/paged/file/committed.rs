//! What is durable: the last superblock, and where its map lies.

use super::{map::StoredMap, superblock::Superblock};

/// What the last superblock says, and where its map lies.
pub(crate) struct Committed {
    pub(crate) superblock: Superblock,
    pub(crate) map: StoredMap,
    /// The last generation that a superblock was written for, perhaps in vain.
    pub(crate) tried: u64,
    /// The second copy may be torn or older.
    pub(crate) stale: bool,
}

impl Committed {
    /// Both copies say the same, and lie on the device as far as anything does.
    pub(crate) fn new(superblock: Superblock, map: StoredMap) -> Self {
        Self {
            tried: superblock.generation,
            superblock,
            map,
            stale: false,
        }
    }

    /// A write of a superblock failed, and was not made good yet.
    pub(crate) fn doubtful(&self) -> bool {
        self.stale || self.tried != self.superblock.generation
    }
}
