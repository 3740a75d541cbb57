//! Building a leaf out of entries of others: growing, splitting, joining, cutting.
//!
//! The sources are latched (or validated copies); the new leaf is latched and not yet published.

use super::{
    edit::heap_bytes,
    handles::{LeafLatched, LeafRef},
    layout::{
        Bit, Kind, LEAF_BYTES, MAX_BLOCK_BYTES, MAX_ENTRIES, Meta, Records, Slot, leaf_bytes,
    },
    mask::{mask, ones},
    read::EntryAt,
    stable::StableLeaf,
};
use crate::{
    mem::{Guard, Memory, words::Words},
    x::{
        RunId, Stamp,
        entry::{Form, Lengths, MAX_INLINE_SUFFIX, NewEntry, is_removal},
        heads::{head, rest},
    },
};
use std::ops::Range;

/// How the suffixes of a source's entries become those of the new leaf.
#[derive(Clone, Copy)]
pub(crate) enum Shift<'a> {
    /// The new leaf is so much deeper.
    Strip(usize),
    /// The new leaf is less deep: these bytes come before each suffix.
    Extend(&'a [u8]),
}

impl Shift<'_> {
    fn len(self, suffix_len: usize) -> usize {
        match self {
            Self::Strip(bytes) => suffix_len - bytes,
            Self::Extend(front) => suffix_len + front.len(),
        }
    }

    /// Suffixes stay what they are.
    fn is_none(self) -> bool {
        matches!(self, Self::Strip(0) | Self::Extend([]))
    }

    /// An entry in this form may be shifted.
    fn suits(self, form: Form, suffix_len: usize) -> bool {
        match self {
            Self::Strip(_) | Self::Extend([]) => true,
            Self::Extend(_) => form != Form::BothOut && self.len(suffix_len) <= MAX_INLINE_SUFFIX,
        }
    }
}

/// Room beside what a leaf is to hold, if its size allows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spare {
    None,
    /// Of the entries one [`SPARE_DIVISOR`]th.
    Some,
    /// As many again: keys are appended, and the leaf will soon be full.
    Much,
}

/// See [`Spare::Some`]: less of it takes less memory, and more copies of a leaf that grows.
const SPARE_DIVISOR: usize = 4;

/// What a leaf is to hold: entries are announced first, so that kind and size are known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Contents {
    pub n: usize,
    /// Bytes of a heap with all of them.
    heap: usize,
    /// What a fixed leaf of them would be.
    suffix_len: Option<usize>,
    value_len: Option<usize>,
    /// No fixed leaf has them.
    mixed: bool,
    /// A removal is among them that has no room of a value yet, as one of a fixed leaf has.
    bare: bool,
}

impl Contents {
    fn note(&mut self, suffix_len: usize, value_len: usize, form: Form, tombstone: bool) {
        self.n += 1;
        self.heap += heap_bytes(suffix_len, value_len, form);
        self.note_lengths(suffix_len, value_len, form, tombstone);
    }

    fn note_lengths(&mut self, suffix_len: usize, value_len: usize, form: Form, tombstone: bool) {
        let same = |known: &mut Option<usize>, len| *known.get_or_insert(len) == len;
        self.bare |= tombstone;
        self.mixed |= form != Form::Inline
            || Kind::of(suffix_len, value_len) == Kind::Slotted
            || !same(&mut self.suffix_len, suffix_len)
            || !tombstone && !same(&mut self.value_len, value_len);
    }

    /// Announces a new entry.
    pub(crate) fn add(&mut self, entry: &NewEntry<'_>) {
        let tombstone = is_removal(entry.flags);
        self.note(
            entry.suffix.len(),
            entry.value.len(),
            entry.form(),
            tombstone,
        );
    }

    /// Announces those entries of `from` that are in `mask`. False when one of them cannot be
    /// shifted.
    pub(crate) fn add_from(&mut self, from: StableLeaf<'_>, mask: u64, shift: Shift<'_>) -> bool {
        if let Kind::Fixed {
            suffix_len,
            value_len,
        } = from.raw().kind()
        {
            return mask == 0 || self.add_fixed(mask, shift, suffix_len, value_len);
        }
        if shift.is_none() && mask == self::mask(0..from.len()) {
            self.add_all(from);
            return true;
        }
        ones(mask).all(|i| {
            let entry = from.entry(i);
            let suits = shift.suits(entry.form, entry.suffix_len);
            if suits {
                let tombstone = is_removal(from.flags(i));
                let suffix_len = shift.len(entry.suffix_len);
                self.note(suffix_len, entry.value_len, entry.form, tombstone);
            }
            suits
        })
    }

    /// Announces the entries of a slotted leaf. Cost: a look at entries until they are seen to need
    /// a slotted one again.
    fn add_all(&mut self, from: StableLeaf<'_>) {
        self.n += from.len();
        self.heap += from.raw().heap_used();
        for i in 0..from.len() {
            if self.mixed {
                return;
            }
            let entry = from.entry(i);
            let tombstone = is_removal(from.flags(i));
            self.note_lengths(entry.suffix_len, entry.value_len, entry.form, tombstone);
        }
    }

    /// Announces entries of a fixed leaf, tombstones as if they had a value.
    fn add_fixed(
        &mut self,
        mask: u64,
        shift: Shift<'_>,
        suffix_len: usize,
        value_len: usize,
    ) -> bool {
        let suits = shift.suits(Form::Inline, suffix_len);
        if suits {
            let suffix_len = shift.len(suffix_len);
            let more = mask.count_ones() as usize - 1;
            self.note(suffix_len, value_len, Form::Inline, false);
            self.n += more;
            self.heap += more * heap_bytes(suffix_len, value_len, Form::Inline);
        }
        suits
    }

    pub(crate) fn kind(&self) -> Kind {
        let suffix_len = match self.suffix_len {
            Some(suffix_len) if !self.mixed => suffix_len,
            _ => return Kind::Slotted,
        };
        let fixed = Kind::of(suffix_len, self.value_len.unwrap_or_default());
        let bytes = |kind| leaf_bytes(kind, self.n, self.heap);
        // With room for a value each, many removals may take more than the leaf that they come
        // from, and than any leaf has.
        if self.bare && bytes(fixed) > bytes(Kind::Slotted) {
            return Kind::Slotted;
        }
        fixed
    }

    /// Bytes of a leaf with exactly the announced entries.
    pub(crate) fn bytes(&self) -> usize {
        leaf_bytes(self.kind(), self.n, self.heap)
    }

    /// They may stand in one leaf.
    pub(crate) fn fits(&self) -> bool {
        self.n <= MAX_ENTRIES && (self.bytes() <= LEAF_BYTES || self.n < 2)
    }

    /// Room for entries, and bytes, of the leaf to be made.
    fn size(&self, spare: Spare) -> (usize, usize) {
        let kind = self.kind();
        let more = match spare {
            Spare::None => 0,
            Spare::Some => (self.n / SPARE_DIVISOR).max(2),
            Spare::Much => self.n.max(2),
        };
        let mut cap = (self.n + more).clamp(1, MAX_ENTRIES);
        loop {
            let heap = self.heap * cap / self.n.max(1);
            let bytes = leaf_bytes(kind, cap, heap.max(self.heap));
            if bytes <= LEAF_BYTES || cap <= self.n {
                return (cap, bytes.min(MAX_BLOCK_BYTES));
            }
            cap -= 1;
        }
    }
}

/// A leaf in the making.
pub(crate) struct Builder<'g> {
    leaf: LeafLatched<'g>,
    suffix: Vec<u8>,
}

impl<'g> Builder<'g> {
    /// A new, empty, latched leaf at `depth` with room for what `contents` says and `spare`.
    /// `guard` stands for the time that it may be used.
    pub(crate) fn new(
        memory: &Memory,
        _guard: &'g Guard<'_>,
        contents: &Contents,
        spare: Spare,
        depth: usize,
    ) -> Self {
        let (mut cap, bytes) = contents.size(spare);
        let block = memory.allocate(bytes);
        let bytes = block.bytes.min(MAX_BLOCK_BYTES);
        let kind = contents.kind();
        // What the block has beyond what was asked for holds more entries; in a heap it serves as
        // it is.
        while kind != Kind::Slotted && cap < MAX_ENTRIES && leaf_bytes(kind, cap + 1, 0) <= bytes {
            cap += 1;
        }
        // SAFETY: the block is new and zeroed; once published it is retired, not freed, so that it
        // stays for as long as a guard does.
        let leaf = unsafe { LeafRef::new(block.ptr, Words::new(block.ptr, bytes)) };
        let meta = Meta {
            n: 0,
            cap,
            top: bytes,
            dead: 0,
            depth,
        };
        leaf.format(kind, meta);
        if let Some(records) = leaf.records() {
            leaf.number_places(&records);
        }
        Self {
            leaf: leaf.latch_new(),
            suffix: Vec::new(),
        }
    }

    /// Appends those entries of `from` that are in `entries`; they sort after all that are here,
    /// and were announced.
    pub(crate) fn push_from(&mut self, from: StableLeaf<'_>, entries: u64, shift: Shift<'_>) {
        if entries == 0 {
            return;
        }
        let start = entries.trailing_zeros() as usize;
        let run = start..start + entries.count_ones() as usize;
        if entries == mask(run.clone())
            && (self.push_run(from, run.clone(), shift) || self.push_heap(from, run, shift))
        {
            return;
        }
        for i in ones(entries) {
            self.push(from, i, shift);
        }
    }

    /// Appends the entries `run` of a fixed leaf to a fixed one. False, and nothing is done, when
    /// suffixes do not only lose what stands before whole heads.
    fn push_run(&mut self, from: StableLeaf<'_>, run: Range<usize>, shift: Shift<'_>) -> bool {
        let (to, from) = (self.leaf.leaf(), from.raw());
        let strip = match shift {
            Shift::Strip(bytes) => bytes,
            Shift::Extend([]) => 0,
            Shift::Extend(_) => return false,
        };
        let (Some(old), Some(new)) = (from.records(), to.records()) else {
            return false;
        };
        if old.rest != new.rest + strip || old.size != new.size + strip {
            return false;
        }
        let mut meta = to.meta();
        let n = meta.n;
        if strip == 0 {
            to.heads().push_from(n, from.heads(), run.clone());
        } else {
            let heads = run.clone().map(|i| from.head_behind(&old, i, strip));
            to.heads().push_all(n, heads);
        }
        let words = to.words();
        let whole = n == 0 && run.len() == from.meta().n;
        if strip == 0 && (old.ordered || whole) {
            if !old.ordered {
                words.copy_from(&from.words(), old.places, new.places, run.len());
            }
            let (source, target) = (old.at(run.start), new.at(n));
            words.copy_from(&from.words(), source, target, run.len() * old.size);
        } else {
            let mut records = words.stream(new.at(n));
            for i in run.clone() {
                let at = old.at(from.place(&old, i)) + strip;
                records.copy(&from.words(), at, new.size);
            }
            records.finish();
        }
        push_bits(to, n, from, &run);
        meta.n += run.len();
        to.set_meta(meta);
        true
    }

    /// Appends the entries `run` of a slotted leaf to a slotted one, as they are: one copy of
    /// their heads, and one of the whole heap where nothing of it is dead or left out, as when a
    /// leaf grows. False, and nothing is done, where suffixes change.
    fn push_heap(&mut self, from: StableLeaf<'_>, run: Range<usize>, shift: Shift<'_>) -> bool {
        let (to, from) = (self.leaf.leaf(), from.raw());
        let (mut meta, old) = (to.meta(), from.meta());
        let slotted = to.kind() == Kind::Slotted && from.kind() == Kind::Slotted;
        if !slotted || !shift.is_none() {
            return false;
        }
        let n = meta.n;
        to.heads().push_from(n, from.heads(), run.clone());
        let (source, target) = (from.words(), to.words());
        if run == (0..old.n) && old.dead == 0 {
            let heap = from.size() - old.top;
            meta.top -= heap;
            target.copy_from(&source, old.top, meta.top, heap);
            for i in run.clone() {
                let slot = from.slot(i);
                let offset = slot.offset() - old.top + meta.top;
                to.set_slot(n + i, Slot::new(offset, slot.is_large()));
            }
        } else {
            for (n, i) in (n..).zip(run.clone()) {
                let entry = from.entry(i);
                meta.top -= entry.size();
                target.copy_from(&source, entry.start, meta.top, entry.size());
                to.set_slot(n, Slot::new(meta.top, entry.form != Form::Inline));
            }
        }
        push_bits(to, n, from, &run);
        meta.n += run.len();
        to.set_meta(meta);
        true
    }

    fn push(&mut self, from: StableLeaf<'_>, i: usize, shift: Shift<'_>) {
        let entry = from.entry(i);
        self.suffix.clear();
        let suffix_len = shift.len(entry.suffix_len);
        match shift {
            Shift::Strip(bytes) => {
                from.push_suffix(&entry, &mut self.suffix);
                self.suffix.drain(..bytes);
            }
            Shift::Extend(front) => {
                self.suffix.extend_from_slice(front);
                from.push_suffix(&entry, &mut self.suffix);
            }
        }
        debug_assert!(self.suffix.len() == suffix_len);
        let leaf = self.leaf.leaf();
        let mut meta = leaf.meta();
        let n = meta.n;
        leaf.heads().push(n, head(&self.suffix));
        match leaf.records() {
            Some(records) => self.push_record(from, &entry, &records, n),
            None => {
                meta.top -= heap_bytes(suffix_len, entry.value_len, entry.form);
                self.push_body(from, &entry, meta.top);
                leaf.set_slot(n, Slot::new(meta.top, entry.form != Form::Inline));
            }
        }
        for bit in [Bit::Dirty, Bit::InY, Bit::Tombstone, Bit::Referenced] {
            if from.raw().has_bit(i, bit) {
                leaf.set_bits(bit, leaf.bits(bit) | 1 << n);
            }
        }
        meta.n += 1;
        leaf.set_meta(meta);
    }

    fn push_record(&self, from: StableLeaf<'_>, entry: &EntryAt, records: &Records, n: usize) {
        let (words, old) = (self.leaf.leaf().words(), from.raw().words());
        let at = records.at(n);
        words.write(at, rest(&self.suffix));
        words.copy_from(&old, entry.tail, at + records.rest, entry.value_len);
    }

    fn push_body(&self, from: StableLeaf<'_>, entry: &EntryAt, at: usize) {
        let (words, old) = (self.leaf.leaf().words(), from.raw().words());
        let lengths = Lengths::new(self.suffix.len(), entry.value_len, entry.form);
        words.write(at, lengths.as_slice());
        let mut end = at + lengths.as_slice().len();
        if entry.form != Form::BothOut {
            words.write(end, rest(&self.suffix));
            end += rest(&self.suffix).len();
        }
        words.copy_from(&old, entry.tail, end, entry.tail_len());
    }

    /// The leaf, with the mark, the stamp and the run that it is to have. Still latched.
    pub(crate) fn finish(self, mount: Option<Stamp>, run: RunId) -> LeafLatched<'g> {
        let leaf = self.leaf.leaf();
        leaf.write_mount(mount);
        leaf.write_run(run);
        self.leaf
    }
}

/// Gives the bits of the entries `run` of `from` to those from `n` on of `to`.
fn push_bits(to: LeafRef<'_>, n: usize, from: LeafRef<'_>, run: &Range<usize>) {
    for bit in [Bit::Dirty, Bit::InY, Bit::Tombstone, Bit::Referenced] {
        let bits = from.bits(bit) >> run.start & mask(0..run.len());
        if bits != 0 {
            to.set_bits(bit, to.bits(bit) | bits << n);
        }
    }
}
