//! A block of memory seen as words that readers may look at while a writer changes them.
//!
//! Every access is a relaxed load or store of a whole aligned `AtomicU64`; there are no
//! accesses of other sizes, so no mixed-size atomics and no data races in the sense
//! of the language. A reader may see *any* mixture of old and new words: it uses nothing before
//! the latch has validated it (`latch.rs`). Until then its offsets may be nonsense, so
//! reads never leave the block: what lies behind its end reads as arbitrary bytes. Writers
//! hold the latch, so their offsets are right; a wrong one panics and writes nothing outside.
//!
//! Bytes are little-endian in their word: byte `i` of the block is byte `i % 8` of word `i / 8`.
//!
//! Threads: readers any, writers one at a time, under the latch.
//! Not here: what the bytes mean (node files of `x/`).

use std::{
    cmp::Ordering,
    marker::PhantomData,
    ptr::NonNull,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// A block as words; see the module header. Copying it copies the reference.
#[derive(Clone, Copy)]
pub(crate) struct Words<'a> {
    first: NonNull<AtomicU64>,
    /// Index of the last word; there is at least one.
    last: usize,
    block: PhantomData<&'a [AtomicU64]>,
}

// SAFETY: it is a shared reference to a slice of atomics, kept as pointer and length.
unsafe impl Send for Words<'_> {}
// SAFETY: as above.
unsafe impl Sync for Words<'_> {}

impl<'a> Words<'a> {
    /// The first `bytes / 8` words of the block at `ptr`, at least one.
    ///
    /// # Safety
    /// `ptr` is aligned to 8 and the start of `max(bytes, 8)` initialized bytes that stay allocated
    /// during `'a` (for a published block: while the guard lives under which it was reached) and
    /// are accessed only through atomics of 8 bytes meanwhile.
    #[inline(always)]
    pub(crate) unsafe fn new(ptr: NonNull<u64>, bytes: usize) -> Self {
        debug_assert!(ptr.is_aligned() && bytes >= 8);
        Self {
            first: ptr.cast(),
            last: (bytes / 8).max(1) - 1,
            block: PhantomData,
        }
    }

    /// Bytes of the block, a multiple of 8.
    #[inline(always)]
    pub(crate) fn len_bytes(self) -> usize {
        (self.last + 1) * 8
    }

    /// Word `i` as an atomic, for latches and pointers that need an ordering. Panics behind the
    /// end.
    #[inline(always)]
    pub(crate) fn atomic(self, i: usize) -> &'a AtomicU64 {
        assert!(i <= self.last, "word {i} of {}", self.last + 1);
        // SAFETY: `i <= last`, so it is inside the block, which lives during `'a` (`new`).
        unsafe { self.first.add(i).as_ref() }
    }

    /// Word `i`, or the last one if `i` is behind the end.
    #[inline(always)]
    fn clamped(self, i: usize) -> u64 {
        // SAFETY: the index is at most `last`, so inside the block, which lives during `'a`
        // (`new`).
        unsafe { self.first.add(i.min(self.last)).as_ref() }.load(Relaxed)
    }

    /// Word `i`; arbitrary behind the end.
    #[inline(always)]
    pub(crate) fn word(self, i: usize) -> u64 {
        self.clamped(i)
    }

    /// Word `i`, without a look at the end.
    ///
    /// # Safety
    /// The block has more than `i` words.
    #[inline(always)]
    pub(crate) unsafe fn word_inside(self, i: usize) -> u64 {
        debug_assert!(i <= self.last);
        // SAFETY: the caller's promise; the block lives during `'a` (`new`).
        unsafe { self.first.add(i).as_ref() }.load(Relaxed)
    }

    /// Writes word `i`. Panics behind the end.
    #[inline(always)]
    pub(crate) fn set_word(self, i: usize, value: u64) {
        self.atomic(i).store(value, Relaxed);
    }

    /// The `N` words from `i` on, at least one; `None` when they are not all there.
    #[inline(always)]
    pub(crate) fn array<const N: usize>(self, i: usize) -> Option<[u64; N]> {
        if i > self.last.wrapping_sub(N - 1) || self.last < N - 1 {
            return None;
        }
        // SAFETY: `i + N - 1 <= last`, so they are inside the block, which lives during `'a`
        // (`new`).
        let word = |k: usize| unsafe { self.first.add(i + k).as_ref() }.load(Relaxed);
        Some(std::array::from_fn(word))
    }

    /// The 8 bytes from `at`, little-endian; arbitrary where they are behind the end. Two loads and
    /// a shift.
    #[inline(always)]
    pub(crate) fn read_u64(self, at: usize) -> u64 {
        let (low, high) = (self.clamped(at / 8), self.clamped(at / 8 + 1));
        funnel(low, high, at % 8)
    }

    /// The 4 bytes from `at`, as [`Words::read_u64`].
    #[inline(always)]
    #[cfg(test)]
    pub(crate) fn read_u32(self, at: usize) -> u32 {
        self.read_u64(at) as u32
    }

    /// The 2 bytes from `at`, as [`Words::read_u64`].
    #[inline(always)]
    #[cfg(test)]
    pub(crate) fn read_u16(self, at: usize) -> u16 {
        self.read_u64(at) as u16
    }

    /// The byte at `at`; arbitrary behind the end. One load.
    #[inline(always)]
    pub(crate) fn read_u8(self, at: usize) -> u8 {
        (self.clamped(at / 8) >> (at % 8 * 8)) as u8
    }

    /// The 4 bytes from `at`, which is a multiple of 4. One load.
    #[inline(always)]
    pub(crate) fn aligned_u32(self, at: usize) -> u32 {
        debug_assert!(at.is_multiple_of(4));
        (self.clamped(at / 8) >> (at % 8 * 8)) as u32
    }

    /// The 2 bytes from `at`, which is a multiple of 2. One load.
    #[inline(always)]
    #[cfg(test)]
    pub(crate) fn aligned_u16(self, at: usize) -> u16 {
        debug_assert!(at.is_multiple_of(2));
        (self.clamped(at / 8) >> (at % 8 * 8)) as u16
    }

    /// Appends the `len` bytes from `at` to `out`, as [`Words::copy_out`].
    pub(crate) fn push_to(self, at: usize, len: usize, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + len, 0);
        self.copy_out(at, &mut out[start..]);
    }

    /// Copies the bytes from `at` into `to`; arbitrary where they are behind the end. One load per
    /// 8 bytes.
    #[inline]
    pub(crate) fn copy_out(self, at: usize, to: &mut [u8]) {
        let first = at / 8;
        // Whole words, one for a shift, one for the rest.
        let all_there = to.len() / 8 + 2 <= self.last.saturating_sub(first);
        if all_there {
            // SAFETY: words up to `first + to.len() / 8 + 1` are at most `last`, so inside the
            // block, which lives during `'a` (`new`).
            let word = |i: usize| unsafe { self.first.add(first + i).as_ref() }.load(Relaxed);
            copy_shifted(word, at % 8, to);
        } else {
            copy_shifted(|i| self.clamped(first + i), at % 8, to);
        }
    }

    /// All words in order.
    pub(crate) fn all(self) -> impl Iterator<Item = u64> {
        // SAFETY: the index is at most `last`, so inside the block, which lives during `'a`
        // (`new`).
        let word = move |i: usize| unsafe { self.first.add(i).as_ref() }.load(Relaxed);
        (0..=self.last).map(word)
    }

    /// Compares the `len` bytes from `at` with `other`, bytewise. Arbitrary where they are behind
    /// the end. Two loads for up to eight bytes.
    #[inline]
    pub(crate) fn cmp(self, at: usize, len: usize, other: &[u8]) -> Ordering {
        self.cmp_from(at, len, other, load_le(&other[..other.len().min(8)]))
    }

    /// The same, where the first eight bytes of `other` are at hand; if it has less, anything
    /// stands behind them.
    #[inline]
    pub(crate) fn cmp_from(self, at: usize, len: usize, other: &[u8], word: u64) -> Ordering {
        let first = len.min(other.len()).min(8);
        if first > 0 {
            let mask = low_bytes(first);
            let (ours, theirs) = (self.read_u64(at) & mask, word & mask);
            if ours != theirs {
                return ours.swap_bytes().cmp(&theirs.swap_bytes());
            }
        }
        if first < 8 {
            return len.cmp(&other.len());
        }
        self.cmp_on(at.wrapping_add(8), len - 8, &other[8..])
    }

    /// Goes on with `cmp` behind the first eight bytes.
    fn cmp_on(self, at: usize, len: usize, other: &[u8]) -> Ordering {
        let common = len.min(other.len());
        let mut done = 0;
        for eight in other[..common].chunks(8) {
            let mask = low_bytes(eight.len());
            let (ours, theirs) = (self.read_u64(at.wrapping_add(done)) & mask, load_le(eight));
            if ours != theirs {
                return ours.swap_bytes().cmp(&theirs.swap_bytes());
            }
            done += eight.len();
        }
        len.cmp(&other.len())
    }

    /// Writes `bytes` at `at`. Panics if they do not fit.
    #[inline]
    pub(crate) fn write(self, at: usize, bytes: &[u8]) {
        self.check(at, bytes.len());
        if bytes.len() <= 8 {
            return self.write_few(at, bytes);
        }
        let Some(head) = self.head(at, bytes.len()) else {
            return;
        };
        let (first, rest) = bytes.split_at(head);
        if head > 0 {
            self.put_part(at, head, load_le(first));
        }
        let mut word = (at + head) / 8;
        let mut eights = rest.chunks_exact(8);
        for eight in &mut eights {
            self.set_word(word, load_le(eight));
            word += 1;
        }
        let tail = eights.remainder();
        if !tail.is_empty() {
            self.put_part(word * 8, tail.len(), load_le(tail));
        }
    }

    /// As `write`, up to eight bytes, which the caller checked to fit: one word, or two.
    #[inline]
    fn write_few(self, at: usize, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let (word, low) = (load_le(bytes), at % 8);
        let here = bytes.len().min(8 - low);
        if here == 8 {
            return self.set_word(at / 8, word);
        }
        self.put_part(at, here, word);
        if here < bytes.len() {
            self.put_part(at + here, bytes.len() - here, word >> (8 * here));
        }
    }

    /// Writes `len` zero bytes at `at`. Panics if they do not fit.
    #[inline]
    #[cfg(test)]
    pub(crate) fn fill_zero(self, at: usize, len: usize) {
        self.write(at, &vec![0; len]);
    }

    /// Copies `len` bytes from `from` to `to` inside the block; the two may overlap. Panics if they
    /// do not fit.
    #[inline]
    pub(crate) fn copy_within(self, from: usize, to: usize, len: usize) {
        self.check(from, len);
        self.check(to, len);
        if (from | to | len).is_multiple_of(8) {
            return self.copy_words(from / 8, to / 8, len / 8);
        }
        if to <= from {
            // Each step has read its bytes before it writes them lower down, and later steps read
            // only above.
            self.copy_from(&self, from, to, len);
        } else {
            self.copy_up(from, to, len);
        }
    }

    /// As `copy_within`, in words, of which the caller checked that they are there.
    #[inline]
    fn copy_words(self, from: usize, to: usize, words: usize) {
        // SAFETY: the caller checked that both stretches are inside the block, which lives during
        // `'a` (`new`).
        let word = |i: usize| unsafe { self.first.add(i).as_ref() };
        let copy = |i: usize| word(to + i).store(word(from + i).load(Relaxed), Relaxed);
        if to <= from {
            (0..words).for_each(copy);
        } else {
            (0..words).rev().for_each(copy);
        }
    }

    /// Puts the `size` (1..=7) low bytes of `new`, which has no others, at `at`, and what is there,
    /// `len` bytes, behind them. Panics if they do not fit. One load and one store a word, upwards:
    /// what the next word lost travels along.
    #[inline(always)]
    pub(crate) fn insert(self, at: usize, len: usize, new: u64, size: usize) {
        assert!((1..8).contains(&size), "{size} bytes inserted");
        debug_assert!(new <= low_bytes(size));
        self.check(at, len + size);
        let end = at + len + size;
        let (first, last) = (at / 8, (end - 1) / 8);
        let shift = size * 8;
        // SAFETY: `check`: words up to the one of byte `end - 1` are inside the block, which lives
        // during `'a` (`new`).
        let word = |i: usize| unsafe { self.first.add(i).as_ref() };
        // Bytes below `at` stay, and bytes from `end` on.
        let low = at % 8 * 8;
        let below = (1u64 << low) - 1;
        let above = !(u64::MAX >> ((8 - 1 - (end - 1) % 8) * 8));
        let old = word(first).load(Relaxed);
        let moved =
            u128::from(old & below) | u128::from(new) << low | u128::from(old & !below) << shift;
        if first == last {
            return word(first).store(moved as u64 & !above | old & above, Relaxed);
        }
        word(first).store(moved as u64, Relaxed);
        let mut carry = (moved >> 64) as u64;
        for i in first + 1..last {
            let old = word(i).load(Relaxed);
            word(i).store(old << shift | carry, Relaxed);
            carry = old >> (64 - shift);
        }
        let old = word(last).load(Relaxed);
        word(last).store((old << shift | carry) & !above | old & above, Relaxed);
    }

    /// Has the processor fetch the bytes of `range`, all at once: one line after the other they
    /// would cost a trip to memory each. Harmless where they are behind the end.
    #[inline(always)]
    pub(crate) fn prefetch(self, range: std::ops::Range<usize>) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let block = self.first.as_ptr().cast::<i8>();
            let mut at = range.start & !63;
            while at < range.end {
                // SAFETY: a prefetch reads nothing, whatever the address is.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(block.wrapping_add(at)) };
                at += 64;
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = range;
    }

    /// Writes bytes one after the other, from `at` on.
    #[inline]
    pub(crate) fn stream(self, at: usize) -> Stream<'a> {
        Stream {
            words: self,
            word: at / 8,
            low: self.word(at / 8) & ((1 << (at % 8 * 8)) - 1),
            bits: at % 8 * 8,
        }
    }

    /// Copies `len` bytes at `from` of another block to `to` of this one. Panics if they do not
    /// fit. One load and one store a word.
    #[inline]
    pub(crate) fn copy_from(self, source: &Words<'_>, from: usize, to: usize, len: usize) {
        source.check(from, len);
        self.check(to, len);
        let Some(head) = self.head(to, len) else {
            return;
        };
        if head > 0 {
            self.put_part(to, head, source.read_u64(from));
        }
        let (from, to, len) = (from + head, to + head, len - head);
        let (words, shift) = (len / 8, from % 8 * 8);
        // SAFETY: for `i < words` it is inside the block (`check`), which lives as long as its
        // `Words` (`new`).
        let ours = |i: usize| unsafe { self.first.add(to / 8 + i).as_ref() };
        // SAFETY: as above; for `i == words` it has the last of the bytes, if those do not start
        // with a word.
        let theirs = |i: usize| unsafe { source.first.add(from / 8 + i).as_ref() }.load(Relaxed);
        if shift == 0 {
            (0..words).for_each(|i| ours(i).store(theirs(i), Relaxed));
        } else if words > 0 {
            let mut low = theirs(0);
            for i in 0..words {
                let high = theirs(i + 1);
                ours(i).store(low >> shift | high << (64 - shift), Relaxed);
                low = high;
            }
        }
        let done = words * 8;
        if done < len {
            self.put_part(to + done, len - done, source.read_u64(from + done));
        }
    }

    /// As [`Words::copy_from`] inside the block to a place above `from`, from the end downwards, so
    /// that what overlaps is read before it is written.
    #[inline]
    fn copy_up(self, from: usize, to: usize, len: usize) {
        let Some(head) = self.head(to, len) else {
            return;
        };
        let (from_whole, to_whole, len) = (from + head, to + head, len - head);
        let (words, shift) = (len / 8, from_whole % 8 * 8);
        let done = words * 8;
        if done < len {
            let tail = self.read_u64(from_whole + done);
            self.put_part(to_whole + done, len - done, tail);
        }
        // SAFETY: the caller checked both stretches: for `i < words` these words are inside the
        // block, which lives during `'a` (`new`); for `i == words` the first has the last of the
        // bytes, if those do not start with a word.
        let source = |i: usize| unsafe { self.first.add(from_whole / 8 + i).as_ref() };
        // SAFETY: as above.
        let target = |i: usize| unsafe { self.first.add(to_whole / 8 + i).as_ref() };
        if shift == 0 {
            (0..words)
                .rev()
                .for_each(|i| target(i).store(source(i).load(Relaxed), Relaxed));
        } else if words > 0 {
            let mut high = source(words).load(Relaxed);
            for i in (0..words).rev() {
                let low = source(i).load(Relaxed);
                target(i).store(low >> shift | high << (64 - shift), Relaxed);
                high = low;
            }
        }
        if head > 0 {
            self.put_part(to, head, self.read_u64(from));
        }
    }

    /// How many of `len` bytes at `at` come before the first whole word; `None` if `len` is 0.
    #[inline(always)]
    fn head(self, at: usize, len: usize) -> Option<usize> {
        (len > 0).then(|| (at.wrapping_neg() % 8).min(len))
    }

    /// Replaces the `len` (1..=8) bytes at `at`, all of one word, by the low bytes of `bytes`.
    #[inline(always)]
    fn put_part(self, at: usize, len: usize, bytes: u64) {
        debug_assert!(len > 0 && at % 8 + len <= 8);
        let shift = at % 8 * 8;
        let mask = low_bytes(len) << shift;
        let old = self.word(at / 8);
        self.set_word(at / 8, (old & !mask) | (bytes << shift & mask));
    }

    #[inline(always)]
    fn check(self, at: usize, len: usize) {
        let size = self.len_bytes();
        assert!(
            at <= size && len <= size - at,
            "{len} bytes at {at} of a block of {size}"
        );
    }
}

/// Writes bytes of a block one after the other, with one store a word. To be finished.
pub(crate) struct Stream<'a> {
    words: Words<'a>,
    /// Index of the word that is being filled, what it has, and how many bits that is.
    word: usize,
    low: u64,
    bits: usize,
}

impl Stream<'_> {
    /// Writes the `len` (1..=8) low bytes of `bytes`. Panics if they do not fit.
    #[inline(always)]
    pub(crate) fn put(&mut self, bytes: u64, len: usize) {
        let all = u128::from(bytes & low_bytes(len)) << (self.bits % 64) | u128::from(self.low);
        self.low = all as u64;
        self.bits += len * 8;
        if self.bits >= 64 {
            self.words.set_word(self.word, self.low);
            self.word += 1;
            self.low = (all >> 64) as u64;
            self.bits -= 64;
        }
    }

    /// Writes `bytes`.
    #[inline(always)]
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let mut eights = bytes.chunks_exact(8);
        for eight in &mut eights {
            self.put(load_le(eight), 8);
        }
        let rest = eights.remainder();
        if !rest.is_empty() {
            self.put(load_le(rest), rest.len());
        }
    }

    /// Writes the `len` bytes that are at `from` of another block.
    #[inline(always)]
    pub(crate) fn copy(&mut self, source: &Words<'_>, from: usize, len: usize) {
        let mut done = 0;
        while done < len {
            let part = (len - done).min(8);
            self.put(source.read_u64(from + done), part);
            done += part;
        }
    }

    /// Writes what the last word has so far; its other bytes stay.
    #[inline]
    pub(crate) fn finish(self) {
        if self.bits > 0 {
            self.words.put_part(self.word * 8, self.bits / 8, self.low);
        }
    }
}

/// Fills `to` with the bytes behind the first `shift` ones of the words that `word` gives, of which
/// it is asked for the first `to.len() / 8 + 2` at most.
#[inline(always)]
fn copy_shifted(word: impl Fn(usize) -> u64, shift: usize, to: &mut [u8]) {
    let (mut next, mut low) = (0, word(0));
    let mut eights = to.chunks_exact_mut(8);
    for eight in &mut eights {
        next += 1;
        let high = word(next);
        eight.copy_from_slice(&funnel(low, high, shift).to_le_bytes());
        low = high;
    }
    let rest = eights.into_remainder();
    if !rest.is_empty() {
        let bytes = funnel(low, word(next + 1), shift).to_le_bytes();
        rest.copy_from_slice(&bytes[..rest.len()]);
    }
}

/// Bytes `shift..shift + 8` of the 16 bytes `low`, `high`; `shift < 8`.
#[inline(always)]
fn funnel(low: u64, high: u64, shift: usize) -> u64 {
    (((u128::from(high) << 64) | u128::from(low)) >> (shift * 8)) as u64
}

/// A mask of the `len` (1..=8) low bytes.
#[inline(always)]
fn low_bytes(len: usize) -> u64 {
    u64::MAX >> (64 - 8 * len)
}

/// The up to 8 `bytes`, little-endian.
#[inline(always)]
fn load_le(bytes: &[u8]) -> u64 {
    let len = bytes.len();
    if let Ok(eight) = <[u8; 8]>::try_from(bytes) {
        u64::from_le_bytes(eight)
    } else if len >= 4 {
        // Two halves that overlap.
        let low = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let high = u32::from_le_bytes([
            bytes[len - 4],
            bytes[len - 3],
            bytes[len - 2],
            bytes[len - 1],
        ]);
        u64::from(low) | u64::from(high) << (8 * (len - 4))
    } else if len > 0 {
        // One to three, without a loop: some may be the same byte.
        let byte = |i: usize| u64::from(bytes[i]) << (8 * i);
        byte(0) | byte(len / 2) | byte(len - 1)
    } else {
        0
    }
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
