//! Moving large blocks out of slabs that are to run empty.
//!
//! The leaf stays where it is: of an entry whose block moves only the pointer changes, under the
//! leaf's latch.
//!
//! Keeps: an entry stays what it was (I3, I4): a moved block has the bytes of the old one.
//! Threads: any, beside everything else. A latch that is not free is not waited for. A reader that
//! read the old pointer and validated the leaf before the move follows it to the old block, which
//! is retired, not freed: its guard keeps it. A reader that validates later starts again.

use super::{
    handles::{LeafLatched, LeafRef, LeafSeen},
    layout::{Kind, MAX_ENTRIES},
};
use crate::{
    mem::Memory,
    x::{counters::Delta, entry::Form, large::LargeRef},
};

/// Blocks that are moved under one latch.
const MOVED_AT_ONCE: usize = 8;

impl LeafRef<'_> {
    /// Moves the large blocks that are in the way, as far as nobody changes the leaf meanwhile.
    /// Returns by how much counts changed. Cost: where none is in the way, a look at each entry.
    pub(crate) fn move_large(self, memory: &Memory) -> Delta {
        let (mut delta, mut at) = (Delta::default(), Some(0));
        while let Some(from) = at {
            let seen = self.see().filter(|seen| seen.has_large_in_the_way());
            let Some(leaf) = seen.and_then(LeafSeen::try_latch) else {
                break;
            };
            let (more, next) = leaf.move_some(memory, from);
            delta = delta.plus(more);
            at = next;
        }
        delta
    }
}

impl LeafSeen<'_> {
    /// A large block is in the way. A leaf that changes has none: it is looked at another time.
    fn has_large_in_the_way(&self) -> bool {
        let leaf = self.leaf();
        if leaf.kind() != Kind::Slotted {
            return false;
        }
        leaf.prefetch_entries();
        let (mut words, mut n) = ([0; MAX_ENTRIES], 0);
        for i in (0..leaf.len()).filter(|&i| leaf.slot(i).is_large()) {
            words[n] = leaf.large_word(&leaf.entry(i));
            n += 1;
        }
        // SAFETY: the leaf was validated after the words were read, which are those of large
        // entries; the guard that it was reached under lives.
        self.unchanged()
            && words[..n]
                .iter()
                .any(|&raw| unsafe { LargeRef::raw_is_in_the_way(raw) })
    }
}

impl LeafLatched<'_> {
    /// Moves some of the large blocks that are in the way, of entries from index `from` on. Returns
    /// by how much counts changed, and the index to go on at.
    fn move_some(&self, memory: &Memory, from: usize) -> (Delta, Option<usize>) {
        let leaf = self.leaf();
        let (mut delta, mut moved) = (Delta::default(), 0);
        for i in from..leaf.len() {
            let entry = leaf.entry(i);
            if entry.form == Form::Inline {
                continue;
            }
            let raw = leaf.large_word(&entry);
            // SAFETY: the leaf is latched, so that the entry is whole.
            if !unsafe { LargeRef::raw_is_in_the_way(raw) } {
                continue;
            }
            if moved == MOVED_AT_ONCE {
                return (delta, Some(i));
            }
            // SAFETY: as above; blocks that are unlinked here stay for as long as the guard.
            let old = unsafe { LargeRef::from_raw(raw) };
            let new = old.moved(memory);
            let pointer = new.get().raw().to_le_bytes();
            leaf.words().write(entry.tail, &pointer);
            let flags = leaf.flags(i);
            delta.drop_large(flags, old.arena_bytes());
            delta.add_large(flags, new.publish());
            old.retire(memory);
            moved += 1;
        }
        (delta, None)
    }
}
