//! What must be true of a leaf.

use super::{
    layout::{Bit, Kind, leaf_bytes},
    stable::StableLeaf,
};
use crate::x::{
    entry::{DIRTY, IN_Y, is_operand, is_removal},
    heads::head,
};
use std::cmp::Ordering;

impl StableLeaf<'_> {
    /// `Err` says what is wrong.
    pub(crate) fn check(self) -> Result<(), String> {
        let (leaf, n) = (self.raw(), self.len());
        let (meta, kind) = (leaf.meta(), leaf.kind());
        if kind == Kind::Slotted && meta.top < leaf_bytes(Kind::Slotted, meta.cap, 0) {
            return Err(format!("the heap starts at {}", meta.top));
        }
        if n > meta.cap || leaf_bytes(kind, meta.cap, 0) > leaf.size() {
            return Err(format!("{n} entries, room for {}", meta.cap));
        }
        leaf.heads().check(n)?;
        for bit in [Bit::Dirty, Bit::InY, Bit::Tombstone] {
            if n < 64 && self.bits(bit) >> n != 0 {
                return Err(format!("a bit behind the {n} entries is set"));
            }
        }
        for i in 0..n {
            self.check_entry(i)?;
        }
        if let Some(records) = leaf.records() {
            let mut places: Vec<_> = (0..n).map(|i| leaf.place(&records, i)).collect();
            places.sort_unstable();
            if !places.into_iter().eq(0..n) {
                return Err(format!("the places are not those of {n} records"));
            }
        }
        self.check_heap()
    }

    fn check_entry(self, i: usize) -> Result<(), String> {
        let entry = self.entry(i);
        if self.flags(i) & (DIRTY | IN_Y) == 0 {
            return Err(format!("I2: entry {i} is clean and not in Y"));
        }
        if is_operand(self.flags(i)) && self.mount().is_none() {
            return Err(format!("operand {i} is in a complete range"));
        }
        if is_removal(self.flags(i)) && entry.value_len != 0 {
            return Err(format!("tombstone {i} has a value"));
        }
        if i > 0 && self.compare(i - 1, i) != Ordering::Less {
            return Err(format!("entries {} and {i} are not in order", i - 1));
        }
        let suffix = self.suffix(i);
        if head(&suffix) != entry.head || suffix.len() != entry.suffix_len {
            return Err(format!("the suffix of entry {i} is not what it says"));
        }
        let wrong = |len| len != entry.value_len;
        if self
            .large(&entry)
            .is_some_and(|large| wrong(large.value().len()))
        {
            return Err(format!("the large block of entry {i} is of another size"));
        }
        Ok(())
    }

    fn check_heap(self) -> Result<(), String> {
        let leaf = self.raw();
        if leaf.kind() != Kind::Slotted {
            return Ok(());
        }
        let (meta, size) = (leaf.meta(), leaf.size());
        let mut spans: Vec<_> = (0..self.len())
            .map(|i| self.entry(i))
            .map(|entry| (entry.start, entry.size()))
            .collect();
        spans.sort_unstable();
        let (mut used, mut end) = (0, meta.top);
        for (at, len) in spans {
            if at < end || at + len > size {
                return Err(format!("an entry at {at} overlaps another, or the end"));
            }
            (end, used) = (at + len, used + len);
        }
        if used + meta.dead + meta.top != size {
            return Err(format!(
                "{used} used and {} dead bytes above {}",
                meta.dead, meta.top
            ));
        }
        Ok(())
    }
}
