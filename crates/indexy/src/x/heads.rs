//! Normalized heads of keys, and the hints that narrow the search among them.
//!
//! A *head* is the first four bytes of a key behind the node's prefix, big-endian, zero padded, as
//! a number: two keys with different heads compare as those. The heads of a node stand in one
//! array, and are compared sixteen at a time. An inner node with room for more than [`HINTS`] keys
//! has a *hint array* of one cache line before it: every `stride`-th head, so that one vectorized
//! comparison says in which stretch of `stride` heads a key belongs. A leaf has at most 64 heads in
//! four lines, which are fetched together: of those the last of each line serve as hints (decision
//! 0004).
//!
//! Source: IOMemTable ("normalized keys in a cache-friendly manner, a hint array to narrow down the
//! search range"). [`HEADS_AND_HINTS`] switches both off for measurements: then nodes search whole
//! keys by halving.
//!
//! Nothing here trusts what it reads: the caller validates. SSE2 is part of x86-64, so nothing is
//! detected.

pub(crate) use crate::key::{HEAD_BYTES, head};

use crate::mem::words::Words;
use std::cmp::Ordering;

/// Whether searches use heads and hints: off with `--cfg indexy_plain_search`, to measure their
/// effect.
pub(crate) const HEADS_AND_HINTS: bool = cfg!(not(indexy_plain_search));

/// Hints of a node that has them: one cache line.
pub(crate) const HINTS: usize = 16;
/// What a hint says where there is no head.
const NO_HINT: u32 = u32::MAX;

/// Bytes of `suffix` that its head does not hold.
#[inline]
pub(crate) fn rest(suffix: &[u8]) -> &[u8] {
    suffix.get(HEAD_BYTES..).unwrap_or_default()
}

/// The first eight bytes of `suffix` that its head does not hold, little-endian, with zeros behind.
/// One load: bytes before them make up for those that are not there.
#[inline]
fn rest_word(suffix: &[u8]) -> u64 {
    let rest = rest(suffix);
    if let Some(eight) = rest.first_chunk::<8>() {
        return u64::from_le_bytes(*eight);
    }
    let absent_bits = 8 * (8 - rest.len());
    if let Some(eight) = suffix.last_chunk::<8>() {
        return u64::from_le_bytes(*eight) >> absent_bits;
    }
    let four = suffix.last_chunk::<4>();
    four.map_or(0, |four| {
        u64::from(u32::from_le_bytes(*four)) >> (absent_bits - 32)
    })
}

/// A longer run of equal heads is searched by halving.
const LINEAR_RUN: usize = 4;

/// What is looked for, and its head.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'k> {
    pub suffix: &'k [u8],
    pub head: u32,
}

impl<'k> Wanted<'k> {
    #[inline]
    pub(crate) fn new(suffix: &'k [u8]) -> Self {
        Self {
            suffix,
            head: head(suffix),
        }
    }

    /// Compares a key of `len` bytes with the same head, whose bytes behind that are at `rest_at`,
    /// with what is wanted.
    #[inline]
    pub(crate) fn order_of(&self, words: Words<'_>, len: usize, rest_at: usize) -> Ordering {
        if len.min(self.suffix.len()) < HEAD_BYTES {
            // One is the other with zero bytes behind.
            return len.cmp(&self.suffix.len());
        }
        let rest_len = len - HEAD_BYTES;
        if len == self.suffix.len() && (1..=8).contains(&rest_len) {
            let ours = words.read_u64(rest_at) << (64 - 8 * rest_len);
            let theirs = rest_word(self.suffix) << (64 - 8 * rest_len);
            return ours.swap_bytes().cmp(&theirs.swap_bytes());
        }
        words.cmp_from(rest_at, rest_len, rest(self.suffix), rest_word(self.suffix))
    }
}

/// Heads that one comparison takes in.
const GROUP: usize = 16;
/// The most heads that do without hints.
pub(crate) const UNHINTED: usize = 4 * GROUP;

/// Bytes of so many heads.
#[inline]
pub(crate) const fn head_bytes(cap: usize) -> usize {
    (cap * HEAD_BYTES).next_multiple_of(8)
}

/// Bytes of hints and heads of a node with room for so many keys.
#[inline]
pub(crate) const fn hinted_bytes(cap: usize) -> usize {
    hint_bytes(cap) + head_bytes(cap)
}

#[inline]
const fn hint_bytes(cap: usize) -> usize {
    if cap > HINTS { HINTS * HEAD_BYTES } else { 0 }
}

/// The heads of a node.
#[derive(Clone, Copy)]
pub(crate) struct Heads<'g> {
    words: Words<'g>,
    /// Offset of the hints, if there are any, and of the heads.
    hints: usize,
    heads: usize,
    /// Heads that one hint stands for; 0: there are no hints.
    stride: usize,
}

impl<'g> Heads<'g> {
    /// Hints and heads of a node with room for `cap` keys, from offset `at` on, a multiple of 8.
    #[inline]
    pub(crate) fn hinted(words: Words<'g>, at: usize, cap: usize) -> Self {
        let stride = if cap > HINTS { cap.div_ceil(HINTS) } else { 0 };
        Self {
            words,
            hints: at,
            heads: at + hint_bytes(cap),
            stride,
        }
    }

    /// The heads, at most [`UNHINTED`], from offset `at` on, a multiple of 8.
    #[inline]
    pub(crate) fn plain(words: Words<'g>, at: usize) -> Self {
        Self {
            words,
            hints: at,
            heads: at,
            stride: 0,
        }
    }

    #[inline]
    pub(crate) fn get(self, i: usize) -> u32 {
        self.words.aligned_u32(self.heads + i * HEAD_BYTES)
    }

    /// How many of the first `n` heads are below `wanted`.
    #[inline(always)]
    pub(crate) fn count_below(self, n: usize, wanted: u32) -> usize {
        let first = if self.stride > 0 {
            let hints = count_ascending(self.words, self.hints, wanted);
            // Whole words are loaded. The head before the stretch, if it is the word's first, is
            // below.
            (hints * self.stride) & !1
        } else {
            let full = |k: usize| {
                let last = k * GROUP + GROUP - 1;
                usize::from(last < n && self.get(last) < wanted)
            };
            GROUP * (full(0) + full(1) + full(2))
        };
        let at = self.heads + first * HEAD_BYTES;
        (first + count_ascending(self.words, at, wanted)).min(n)
    }

    /// The end of the keys with the head `wanted`, which begin at `first` if there are any.
    #[inline]
    pub(crate) fn end_of_equal(self, first: usize, n: usize, wanted: u32) -> usize {
        let same = |at: usize| at < n && self.get(at) == wanted;
        let mut end = first;
        while end - first < LINEAR_RUN && same(end) {
            end += 1;
        }
        if end - first == LINEAR_RUN && same(end) {
            end = self.end_of(n, wanted);
        }
        end.max(first)
    }

    /// The end of a long run of `wanted`.
    #[cold]
    fn end_of(self, n: usize, wanted: u32) -> usize {
        wanted
            .checked_add(1)
            .map_or(n, |above| self.count_below(n, above))
    }

    /// Puts a head at `i`; those from there on, of `n`, move up.
    pub(crate) fn insert(self, i: usize, n: usize, head: u32) {
        let at = self.heads + i * HEAD_BYTES;
        let behind = (n - i) * HEAD_BYTES;
        self.words.insert(at, behind, u64::from(head), HEAD_BYTES);
        self.refresh_hints(i, n + 1);
    }

    /// Takes the head at `i` out of `n`.
    pub(crate) fn remove(self, i: usize, n: usize) {
        let at = self.heads + i * HEAD_BYTES;
        self.words
            .copy_within(at + HEAD_BYTES, at, (n - i - 1) * HEAD_BYTES);
        self.refresh_hints(i, n - 1);
    }

    /// Puts a head behind the `n` that are there. The hints are not kept: see `refresh_hints`.
    pub(crate) fn push(self, n: usize, head: u32) {
        self.words
            .write(self.heads + n * HEAD_BYTES, &head.to_le_bytes());
    }

    /// Puts the heads `range` of another node behind the `n` that are there. The hints are not
    /// kept.
    pub(crate) fn push_from(self, n: usize, other: Heads<'_>, range: std::ops::Range<usize>) {
        let (from, to) = (
            other.heads + range.start * HEAD_BYTES,
            self.heads + n * HEAD_BYTES,
        );
        let len = range.len() * HEAD_BYTES;
        self.words.copy_from(&other.words, from, to, len);
    }

    /// Puts heads behind the `n` that are there. The hints are not kept.
    pub(crate) fn push_all(self, n: usize, heads: impl Iterator<Item = u32>) {
        let mut stream = self.words.stream(self.heads + n * HEAD_BYTES);
        heads.for_each(|head| stream.put(u64::from(head), HEAD_BYTES));
        stream.finish();
    }

    /// Makes the hints of heads from `i` on agree with the `n` heads that are there.
    pub(crate) fn refresh_hints(self, i: usize, n: usize) {
        if self.stride == 0 {
            return;
        }
        let stride = self.stride;
        let hint = |k: usize| {
            let at = (k + 1) * stride - 1;
            u64::from(if at < n { self.get(at) } else { NO_HINT })
        };
        for pair in i / stride / 2..HINTS / 2 {
            let both = hint(2 * pair) | hint(2 * pair + 1) << 32;
            self.words.set_word(self.hints / 8 + pair, both);
        }
    }

    /// What is wrong with the hints.
    pub(crate) fn check(self, n: usize) -> Result<(), String> {
        let hints = if self.stride > 0 { HINTS } else { 0 };
        for k in 0..hints {
            let at = (k + 1) * self.stride - 1;
            let right = if at < n { self.get(at) } else { NO_HINT };
            if self.words.aligned_u32(self.hints + k * HEAD_BYTES) != right {
                return Err(format!("hint {k} of {n} heads is wrong"));
            }
        }
        Ok(())
    }
}

/// How many of the [`GROUP`] numbers at `at`, a multiple of 8, come before the first that is not
/// below `wanted`. What is behind the end of the block counts as it likes.
#[inline(always)]
fn count_ascending(words: Words<'_>, at: usize, wanted: u32) -> usize {
    #[cfg(target_arch = "x86_64")]
    if let Some(eight) = words.array(at / 8) {
        // SAFETY: SSE2 is part of x86-64.
        return unsafe { count_with_sse2(eight, wanted) };
    }
    count_plainly(words, at, wanted)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
#[inline]
fn count_with_sse2(eight: [u64; 8], wanted: u32) -> usize {
    use std::arch::x86_64::{
        _mm_cmplt_epi32, _mm_movemask_epi8, _mm_packs_epi16, _mm_packs_epi32, _mm_set_epi64x,
        _mm_set1_epi32, _mm_xor_si128,
    };
    // SSE2 compares signed numbers: flipping the highest bit keeps the order.
    let flip = _mm_set1_epi32(i32::MIN);
    let wanted = _mm_set1_epi32((wanted ^ 1 << 31) as i32);
    let below = |quarter: usize| {
        let four = _mm_set_epi64x(eight[2 * quarter + 1] as i64, eight[2 * quarter] as i64);
        _mm_cmplt_epi32(_mm_xor_si128(four, flip), wanted)
    };
    let all = _mm_packs_epi16(
        _mm_packs_epi32(below(0), below(1)),
        _mm_packs_epi32(below(2), below(3)),
    );
    (!_mm_movemask_epi8(all)).trailing_zeros() as usize
}

/// The same without vectors.
fn count_plainly(words: Words<'_>, at: usize, wanted: u32) -> usize {
    let below = |k: usize| words.aligned_u32(at + k * HEAD_BYTES) < wanted;
    (0..GROUP).take_while(|&k| below(k)).count()
}

#[cfg(test)]
#[path = "heads_tests.rs"]
mod tests;
