//! What takes the place of a leaf that is too small, too large, or one of two.
//!
//! Nothing here is published: the caller has the parents' latches and puts the new leaf where the
//! old one was.
//!
//! Keeps: a new leaf has the run of the old one, of two the later (I4).

use super::{
    build::{Builder, Contents, Shift, Spare},
    edit::heap_bytes,
    handles::LeafLatched,
    layout::{Kind, LEAF_BYTES, MAX_ENTRIES, leaf_bytes},
    mask::mask,
};
use crate::{
    mem::{Guard, Memory},
    x::{Stamp, edit::Edit, entry::NewEntry},
};

/// A leaf that is full of dead bytes is tidied in place only when that gives at least this much
/// room.
const WORTHWHILE_BYTES: usize = 64;
/// A slotted leaf whose entries were written shorter becomes a smaller one after so many of them,
/// and after one part in [`SHORTENED_DIVISOR`] of all: sizes that change to and fro cost one
/// rebuild in so many writes at most, and as many copied entries a write.
const SHORTENED: usize = 3;
/// See [`SHORTENED`].
const SHORTENED_DIVISOR: usize = 8;
/// And when that gives at least one part in so many of its block back.
const SAVED_DIVISOR: usize = 6;
/// A leaf that entries were taken out of is rebuilt when less than one part in so many is used.
const SPARSE_DIVISOR: usize = 2;
/// Smaller leaves are not rebuilt.
const SMALL_LEAF_BYTES: usize = 128;
/// Leaves are joined up to this size, so that they have room before they split again.
const JOINED_LEAF_BYTES: usize = LEAF_BYTES * 3 / 4;
/// And up to so many entries.
const JOINED_ENTRIES: usize = MAX_ENTRIES * 5 / 8;

/// How a leaf gets room for an edit.
pub(crate) enum Room {
    /// It has it: dead bytes were given up.
    Here,
    /// By another leaf with these contents.
    Larger(Contents, Spare),
    /// By two; the new entry belongs at this index, if it is new.
    Split(Option<usize>),
}

/// A leaf to be joined with another, and what comes before its suffixes in the new leaf.
pub(crate) type Joined<'a, 'g> = (&'a LeafLatched<'g>, &'a [u8]);

impl<'g> LeafLatched<'g> {
    /// How the leaf gets room for what `edit` does with `entry`, for which it has none.
    pub(crate) fn room_for(&self, edit: Edit, entry: &NewEntry<'_>) -> Room {
        let (meta, kind) = (self.leaf().meta(), self.leaf().kind());
        let n = meta.n;
        let (at, more) = match edit {
            Edit::Insert { at, .. } => (Some(at), 1),
            Edit::Replace { .. } | Edit::Remove { .. } => (None, 0),
        };
        let size = heap_bytes(entry.suffix.len(), entry.value.len(), entry.form());
        let roomy = self.leaf().gap() + meta.dead >= size + WORTHWHILE_BYTES;
        if kind == Kind::Slotted && n + more <= meta.cap && roomy {
            self.compact();
            return Room::Here;
        }
        // Of a replaced entry the old version stays until the new one is written.
        let mut contents = Contents::default();
        contents.add_from(self.stable(), mask(0..n), Shift::Strip(0));
        contents.add(entry);
        contents.n = n + more;
        if !contents.fits() {
            return Room::Split(at);
        }
        let spare = match at {
            Some(at) if at == n => Spare::Much,
            _ => Spare::Some,
        };
        Room::Larger(contents, spare)
    }

    /// What a smaller leaf is to hold, if this one is too large.
    #[inline]
    pub(crate) fn smaller(&self) -> Option<Contents> {
        let (leaf, size) = (self.leaf(), self.leaf().size());
        let used = leaf_bytes(leaf.kind(), leaf.len(), leaf.heap_used());
        let sparse = size > SMALL_LEAF_BYTES && used * SPARSE_DIVISOR < size;
        if !sparse && !self.is_loose() {
            return None;
        }
        let mut contents = Contents::default();
        contents.add_from(self.stable(), mask(0..leaf.len()), Shift::Strip(0));
        Some(contents)
    }

    /// Enough entries of a slotted leaf were written shorter for a smaller one.
    #[inline]
    pub(crate) fn is_loose(&self) -> bool {
        self.is_loose_after(self.leaf().shortened(), 0)
    }

    /// As [`LeafLatched::is_loose`], once `entry` is written in place of entry `i`.
    #[inline]
    pub(crate) fn is_loose_with(&self, i: usize, entry: &NewEntry<'_>) -> bool {
        let leaf = self.leaf();
        let shortened = leaf.shortened() + 1;
        if shortened < SHORTENED || leaf.kind() != Kind::Slotted {
            return false;
        }
        let size = heap_bytes(entry.suffix.len(), entry.value.len(), entry.form());
        let less = leaf.entry(i).size().saturating_sub(size);
        less > 0 && self.is_loose_after(shortened, less)
    }

    /// The leaf is loose when so many entries were written shorter and `less` heap bytes fewer are
    /// used.
    #[inline]
    fn is_loose_after(&self, shortened: usize, less: usize) -> bool {
        let (leaf, size) = (self.leaf(), self.leaf().size());
        let n = leaf.len();
        if shortened < SHORTENED.max(n / SHORTENED_DIVISOR) {
            return false;
        }
        let used = leaf_bytes(Kind::Slotted, n, leaf.heap_used().saturating_sub(less));
        Memory::class_size(used) + size / SAVED_DIVISOR <= size
    }

    /// A leaf with the same entries, for `contents`, to take the place of this one.
    pub(crate) fn resized(
        &self,
        memory: &Memory,
        guard: &'g Guard<'_>,
        contents: &Contents,
        spare: Spare,
    ) -> Self {
        let old = self.stable();
        let mut new = Builder::new(memory, guard, contents, spare, old.raw().depth());
        new.push_from(old, mask(0..old.len()), Shift::Strip(0));
        new.finish(old.mount(), old.run())
    }

    /// A leaf with the entries of `keep` alone, without the first `strip` bytes of their suffixes.
    pub(crate) fn part(
        &self,
        memory: &Memory,
        guard: &'g Guard<'_>,
        keep: u64,
        strip: usize,
        spare: Spare,
    ) -> Self {
        let (old, shift) = (self.stable(), Shift::Strip(strip));
        let mut contents = Contents::default();
        contents.add_from(old, keep, shift);
        let mut new = Builder::new(memory, guard, &contents, spare, old.raw().depth() + strip);
        new.push_from(old, keep, shift);
        new.finish(old.mount(), old.run())
    }

    /// The same leaf in another block, latched, with the same large blocks. `guard` stands for the
    /// time that it may be used.
    pub(crate) fn copy(&self, memory: &Memory, _guard: &'g Guard<'_>) -> Self {
        self.leaf().copy(memory).latch_new()
    }

    /// The leaf has few enough entries to be joined with another.
    pub(crate) fn is_small(entries: usize) -> bool {
        entries <= JOINED_ENTRIES
    }

    /// One small leaf at `depth` with all entries of `parts`, in order. `None` when it would be
    /// large, or not less than `before` bytes.
    pub(crate) fn joined(
        memory: &Memory,
        guard: &'g Guard<'_>,
        parts: &[Joined<'_, 'g>],
        depth: usize,
        before: isize,
        mount: impl FnOnce() -> Option<Stamp>,
    ) -> Option<Self> {
        let mut contents = Contents::default();
        let (mut run, mut suits) = (0, true);
        for (leaf, front) in parts {
            let all = mask(0..leaf.leaf().len());
            suits &= contents.add_from(leaf.stable(), all, Shift::Extend(front));
            run = run.max(leaf.leaf().run());
        }
        let bytes = contents.bytes();
        let small = bytes <= JOINED_LEAF_BYTES && (parts.len() < 2 || Self::is_small(contents.n));
        if !suits || !small || Memory::class_size(bytes) as isize >= before {
            return None;
        }
        let mut new = Builder::new(memory, guard, &contents, Spare::None, depth);
        for (leaf, front) in parts {
            let all = mask(0..leaf.leaf().len());
            new.push_from(leaf.stable(), all, Shift::Extend(front));
        }
        Some(new.finish(mount(), run))
    }
}
