//! What the format of a leaf has to provide: how its bytes are read and edited.
//!
//! Reads may be optimistic. So nothing that a read returns may be trusted before the leaf was
//! validated: lengths and offsets are clamped, loops are bounded, and no pointer is followed
//! before the caller says that the leaf has not changed.

#![forbid(unsafe_code)]

use super::handles::{LeafLatched, LeafRef};
use crate::x::{
    RunId, Stamp,
    entry::{Form, NewEntry},
};

/// A bit that every entry has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bit {
    /// Newer than what Y was given.
    Dirty,
    /// Y may hold some version of the key.
    InY,
    /// The key was removed.
    Tombstone,
    /// Read since the last cut. A hint: an edit at the same time may lose or move it.
    Referenced,
}

/// Where an entry's parts are.
pub(crate) trait EntryAt: Copy {
    fn form(&self) -> Form;
    /// Length of the suffix, wherever it is.
    fn suffix_len(&self) -> usize;
    /// Length of the value, wherever it is.
    fn value_len(&self) -> usize;
    /// Offset of the value, or of the pointer to the large block.
    fn tail(&self) -> usize;
}

/// A format: how the bytes of a leaf are read.
pub(crate) trait LeafFormat: Copy + 'static {
    type Entry: EntryAt;

    /// Entries, tombstones included.
    fn len(leaf: LeafRef<'_, Self>) -> usize;

    /// The range is mounted with this stamp, or complete.
    fn mount(leaf: LeafRef<'_, Self>) -> Option<Stamp>;

    /// The last run that copied from this leaf.
    fn run(leaf: LeafRef<'_, Self>) -> RunId;

    /// The entries that have `bit`.
    fn bits(leaf: LeafRef<'_, Self>, bit: Bit) -> u64;

    /// False: no entry has `bit`, which is `Dirty` or `Tombstone`. Cost: one load.
    fn may_have(leaf: LeafRef<'_, Self>, bit: Bit) -> bool;

    /// Some entry has a block of its own.
    fn any_large(leaf: LeafRef<'_, Self>) -> bool;

    /// Notes that entry `i` was read.
    fn reference(leaf: LeafRef<'_, Self>, i: usize);

    /// Entry `i`.
    fn entry(leaf: LeafRef<'_, Self>, i: usize) -> Self::Entry;

    /// `DIRTY`, `IN_Y` and `TOMBSTONE` of entry `i`, and maybe others.
    fn flags(leaf: LeafRef<'_, Self>, i: usize) -> u32;

    /// `entry`, which is number `i`, has `bit`: `Dirty` or `Tombstone`.
    fn has(leaf: LeafRef<'_, Self>, i: usize, entry: &Self::Entry, bit: Bit) -> bool;

    /// The index of `suffix`, or the one where it belongs. `stable` is asked before a pointer is
    /// followed and says whether the leaf is still as it was when the search began; `None` when
    /// it is not.
    fn find(
        leaf: LeafRef<'_, Self>,
        suffix: &[u8],
        stable: impl Fn() -> bool,
    ) -> Option<Result<usize, usize>>;

    /// Copies the suffix of `entry`, which is in the leaf, to `out`, which is as long.
    fn copy_inline_suffix(leaf: LeafRef<'_, Self>, entry: &Self::Entry, out: &mut [u8]);
}

/// A format: how a latched leaf is changed in place.
pub(crate) trait LeafEdits: LeafFormat {
    /// There is room for `entry`, which is not here yet.
    fn has_room(latched: &LeafLatched<'_, Self>, entry: &NewEntry<'_>) -> bool;

    /// There is room to write `entry` in place of entry `i`.
    fn has_room_instead(latched: &LeafLatched<'_, Self>, i: usize, entry: &NewEntry<'_>) -> bool;

    /// Writes `entry` at index `i`; those from there on move up. The caller checked `has_room`.
    fn insert(latched: &LeafLatched<'_, Self>, i: usize, entry: &NewEntry<'_>);

    /// Writes `entry`, of the same suffix, over entry `i`. The caller checked `has_room_instead`.
    fn replace(latched: &LeafLatched<'_, Self>, i: usize, entry: &NewEntry<'_>);

    /// Drops the entry `i`.
    fn remove(latched: &LeafLatched<'_, Self>, i: usize);

    /// Makes the summary exact, of which `may_have` tells, after entries were removed.
    fn recount(_latched: &LeafLatched<'_, Self>) {}

    fn set_mount(latched: &LeafLatched<'_, Self>, mount: Option<Stamp>);

    /// The entries of `mask` were copied to `run`: they are clean and in Y from here on (I2).
    fn mark_copied(latched: &LeafLatched<'_, Self>, mask: u64, run: RunId);

    /// Marks the entries of `mask` dirty.
    fn mark_dirty(latched: &LeafLatched<'_, Self>, mask: u64);

    /// Forgets the reference bits among `mask`.
    fn clear_references(latched: &LeafLatched<'_, Self>, mask: u64);
}

impl<'g, F: LeafFormat> LeafRef<'g, F> {
    #[inline]
    pub(crate) fn len(self) -> usize {
        F::len(self)
    }

    #[inline]
    pub(crate) fn mount(self) -> Option<Stamp> {
        F::mount(self)
    }

    #[inline]
    pub(crate) fn run(self) -> RunId {
        F::run(self)
    }

    #[inline]
    pub(crate) fn bits(self, bit: Bit) -> u64 {
        F::bits(self, bit)
    }

    #[inline]
    pub(crate) fn entry(self, i: usize) -> F::Entry {
        F::entry(self, i)
    }

    #[inline]
    pub(crate) fn find(
        self,
        suffix: &[u8],
        stable: impl Fn() -> bool,
    ) -> Option<Result<usize, usize>> {
        F::find(self, suffix, stable)
    }

    /// The word that points to the large block of `entry`; to be followed after validation only.
    #[inline]
    pub(crate) fn large_word(self, entry: &F::Entry) -> u64 {
        self.words().read_u64(entry.tail())
    }
}
