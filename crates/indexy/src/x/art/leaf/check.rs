//! What must be true of a leaf.

use super::layout::{HEADER_BYTES, SLOT_BYTES, StableLeaf, head};
use crate::x::entry::{DIRTY, IN_Y, LARGE, TOMBSTONE};
use std::cmp::Ordering;

impl StableLeaf<'_> {
    /// `Err` says what is wrong.
    pub(crate) fn check(self) -> Result<(), String> {
        let leaf = self.raw();
        let (meta, state, n) = (leaf.meta(), leaf.state(), self.len());
        if meta.top > leaf.size() || meta.top < HEADER_BYTES + n * SLOT_BYTES {
            return Err(format!("the heap of {n} entries starts at {}", meta.top));
        }
        let mut spans = Vec::with_capacity(n);
        for i in 0..n {
            let entry = self.entry(i);
            spans.push((entry.slot.offset(), entry.size()));
            let flags = entry.slot.flags();
            if flags & (DIRTY | IN_Y) == 0 {
                return Err(format!("I2: entry {i} is clean and not in Y"));
            }
            if flags & DIRTY != 0 && !state.dirty || flags & TOMBSTONE != 0 && !state.tombstones {
                return Err(format!("the summary does not cover entry {i}"));
            }
            if flags & TOMBSTONE != 0 && entry.value_len != 0 {
                return Err(format!("tombstone {i} has a value"));
            }
            if i > 0 && self.compare(i - 1, i) != Ordering::Less {
                return Err(format!("entries {} and {i} are not in order", i - 1));
            }
            let suffix = self.suffix(i);
            if head(&suffix) != entry.slot.head() || suffix.len() != entry.suffix_len {
                return Err(format!("the suffix of entry {i} is not what its slot says"));
            }
            let wrong_value = self
                .large(&entry)
                .is_some_and(|large| large.value().len() != entry.value_len);
            if wrong_value || flags & LARGE == 0 && self.large(&entry).is_some() {
                return Err(format!("the large block of entry {i} is of another size"));
            }
        }
        spans.sort_unstable();
        let mut used = 0;
        let mut end = meta.top;
        for (at, size) in spans {
            if at < end || at + size > leaf.size() {
                return Err(format!("an entry at {at} overlaps another, or the end"));
            }
            (end, used) = (at + size, used + size);
        }
        if used + meta.dead + meta.top != leaf.size() {
            return Err(format!(
                "{used} used and {} dead bytes above {}",
                meta.dead, meta.top
            ));
        }
        Ok(())
    }
}
