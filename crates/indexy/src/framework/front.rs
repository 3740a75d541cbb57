//! The first key of a tree, for who is about to remove it, and others after it: X is read some keys
//! ahead, once for all of them (`dead_stretches/`).
//!
//! Where Y has to be asked for the first key, there is no front: `ends.rs` reads ahead there.
//!
//! Threads: any. Several may get the same key: whoever removes it has it.

#![forbid(unsafe_code)]

use super::{
    dead_stretches::{Armed, First, Passed},
    regions::sample,
    scan::{LEAVES_OF_ONE, MAX_LEAVES},
    tree::Joined,
};
use crate::x::{Chunk, IndexX, Order, ScanLimits};

/// Bytes of keys and values that are read ahead: large values are copied, and not looked at.
const MAX_BYTES: usize = 4 << 10;

impl Joined {
    /// The first key in `order`, if it was read ahead or is in X. When it does not live any more,
    /// say so by [`Joined::pass_first`]. Cost: a lock; once for up to sixteen keys, a scan of X.
    pub(crate) fn first(&self, order: Order) -> Option<First> {
        self.dead
            .first(order)
            .or_else(|| self.read_front(self.dead.ahead(order)?, order))
    }

    /// Watches for writers of values while all of the tree is scanned in `order` for its first key;
    /// `None`: that cannot be had now.
    pub(crate) fn watch_ends(&self, order: Order) -> Option<Armed<'_>> {
        self.dead.watch(order)
    }

    /// `first` was removed, or found to be absent, since it was asked for.
    pub(crate) fn pass_first(&self, first: &First) {
        self.dead.pass_first(first);
    }

    fn read_front(&self, ahead: usize, order: Order) -> Option<First> {
        let passed = self.dead.pass(&[], None, order);
        let (from, to) = match (&passed, order) {
            (Passed::Nothing, _) => (&[][..], None),
            (Passed::UpTo(at), Order::Ascending) => (&at[..], None),
            (Passed::UpTo(at), Order::Descending) => (&[][..], Some(&at[..])),
            (Passed::All, _) => return None,
        };
        let armed = self.dead.arm(from, to, order)?;
        let limits = ScanLimits {
            bytes: MAX_BYTES,
            entries: ahead,
            leaves: MAX_LEAVES,
            leaves_if_mounted: LEAVES_OF_ONE,
        };
        let mut chunk = Chunk::default();
        self.x.scan(from, to, order, limits, &mut chunk);
        if !chunk.mounted.is_empty() || chunk.entries.is_empty() {
            self.dead.give_up(order);
            return None;
        }
        let sampled = sample::due_of(chunk.entries.len());
        if sampled > 0 {
            self.regions.note_accesses(&chunk.entries[0].key, sampled);
        }
        armed.settle_front(chunk.entries.iter().map(|entry| &entry.key[..]))
    }
}
