//! Filters: pages that say of most absent keys that they are absent.
//!
//! A filter is cut into *segments*, each for the keys from its `from` up to the next one's. The
//! hash of a key says which page of its segment, which line of 64 bytes of that page, and which
//! bits of the line (`y/line_filter.rs`). So a look-up costs one page and one cache line.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 56 | header of every page; its payload says 4032 |
//! | 56 | 8 | zero |
//! | 64 | 4032 | 63 lines |
//!
//! Keeps T3. No I/O.

use super::PAGE_BYTES;
use crate::y::{
    line_filter::{LINE_BYTES, lanes},
    page::{self, Header, Kind, PageNo},
};
use std::cmp::Ordering;

pub(crate) use crate::y::line_filter::{deny_nothing, hash_of};

/// How a read asks a table's filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilterUse {
    /// If its page is in a frame; of the first so many segments the page is read else.
    First(u32),
    Never,
}

impl FilterUse {
    /// Whether a page of `segment` is read if it is in no frame.
    #[inline]
    pub(super) fn reads(self, segment: usize) -> bool {
        match self {
            Self::First(count) => segment < count as usize,
            Self::Never => false,
        }
    }
}

const LINES: usize = PAGE_BYTES / LINE_BYTES - 1;
/// Pages of a segment at most.
pub(super) const MAX_PAGES: usize = 64;
const _: () = assert!(page::HEADER_BYTES <= LINE_BYTES && (LINES + 1) * LINE_BYTES == PAGE_BYTES);

/// The filter of a stretch of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Segment {
    /// The first bytes of `from`, which mostly decide.
    head: u64,
    /// No key of it is less; the first segment has all keys below the second one's.
    pub(super) from: Box<[u8]>,
    pub(super) first: PageNo,
    pub(super) pages: u32,
}

impl Segment {
    pub(super) fn new(from: Box<[u8]>, first: PageNo, pages: u32) -> Self {
        Self {
            head: head_of(&from),
            from,
            first,
            pages,
        }
    }
}

/// The first eight bytes of `key`, filled up with zeros, as a number that orders as they do.
#[inline]
fn head_of(key: &[u8]) -> u64 {
    match key.first_chunk() {
        Some(head) => u64::from_be_bytes(*head),
        None => {
            let mut head = [0; 8];
            page::put(&mut head, 0, key);
            u64::from_be_bytes(head)
        }
    }
}

/// Which page and line of a segment of `pages` pages speak of `hash`.
#[inline]
pub(super) fn place(hash: u64, pages: u32) -> (u32, usize) {
    let product = (hash >> 32) * u64::from(pages);
    let line = ((product & u64::from(u32::MAX)) * LINES as u64) >> 32;
    ((product >> 32) as u32, (1 + line as usize) * LINE_BYTES)
}

/// Pages that a segment of `keys` keys takes, with `bits` bits a key.
pub(super) fn pages_for(keys: usize, bits: usize) -> usize {
    (keys * bits)
        .div_ceil(LINES * LINE_BYTES * 8)
        .clamp(1, MAX_PAGES)
}

/// Fills `pages` (zeros, whole pages) with the filter of `hashes`, all but what `seal` writes.
pub(super) fn build(hashes: &[u64], pages: &mut [u8]) {
    let count = (pages.len() / PAGE_BYTES) as u32;
    for &hash in hashes {
        let (page, line) = place(hash, count);
        let at = page as usize * PAGE_BYTES + line;
        let line = pages.get_mut(at..at + LINE_BYTES).unwrap_or_default();
        for (word, lane) in line.chunks_exact_mut(8).zip(lanes(hash)) {
            if let Some(word) = word.first_chunk_mut() {
                *word = (u64::from_le_bytes(*word) | lane).to_le_bytes();
            }
        }
    }
    let header = Header {
        payload: (LINES * LINE_BYTES) as u32,
        ..Header::of_kind(Kind::Filter)
    };
    for page in pages.chunks_mut(PAGE_BYTES) {
        header.write(page);
    }
}

/// Whether the key of `hash` may be in the segment, by the `line` of its page that [`place`] says.
/// `None`: the page is no filter.
#[inline]
pub(super) fn admits(page: &[u8], line: usize, hash: u64) -> Option<bool> {
    Header::read(page).filter(|header| header.kind == Kind::Filter)?;
    let line = page.get(line..line.checked_add(LINE_BYTES)?)?;
    let mut missing = 0;
    for (word, lane) in line.chunks_exact(8).zip(lanes(hash)) {
        missing |= !u64::from_le_bytes(word.try_into().ok()?) & lane;
    }
    Some(missing == 0)
}

/// The number of the segment that has `key`.
#[inline]
pub(super) fn segment_of(segments: &[Segment], key: &[u8]) -> usize {
    let head = head_of(key);
    let before = |segment: &Segment| match segment.head.cmp(&head) {
        Ordering::Equal => *segment.from <= *key,
        other => other == Ordering::Less,
    };
    segments.partition_point(before).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(seed: u64, count: u64) -> Vec<u64> {
        (0..count)
            .map(|i| hash_of(&[seed.to_be_bytes(), i.to_be_bytes()].concat()))
            .collect()
    }

    fn asked(pages: &[u8], hash: u64) -> bool {
        let (page, line) = place(hash, (pages.len() / PAGE_BYTES) as u32);
        let at = page as usize * PAGE_BYTES;
        admits(&pages[at..at + PAGE_BYTES], line, hash).unwrap()
    }

    #[test]
    fn t3_denies_no_key_and_most_others() {
        for (keys, bits, at_most) in [
            (1, 10, 0.0001),
            (500, 10, 0.012),
            (60_000, 10, 0.012),
            (60_000, 5, 0.2),
            (60_000, 14, 0.004),
        ] {
            let present = hashes(1, keys);
            let mut pages = vec![0; pages_for(present.len(), bits) * PAGE_BYTES];
            build(&present, &mut pages);
            assert!(present.iter().all(|hash| asked(&pages, *hash)));
            let absent = hashes(2, 100_000);
            let wrong = absent.iter().filter(|hash| asked(&pages, **hash)).count();
            let rate = wrong as f64 / absent.len() as f64;
            assert!(rate <= at_most, "{keys} keys, {bits} bits: {rate}");
            assert!(
                rate <= deny_nothing(bits) * 1.5 + 0.001,
                "{rate} of {bits} bits"
            );
        }
    }

    #[test]
    fn a_key_finds_its_segment_whatever_the_heads() {
        let from = ["", "a", "a\0", "aaaaaaaa", "aaaaaaaab", "aaaaaaaac", "b"];
        let segments = from.map(|from| Segment::new(from.as_bytes().into(), 1, 1));
        for key in [
            "",
            "\0",
            "a",
            "a\0\0",
            "aaaaaaaa\0",
            "aaaaaaaab",
            "aaaaaaaabc",
            "c",
        ] {
            let expected = from.iter().rposition(|from| *from <= key);
            assert_eq!(
                Some(segment_of(&segments, key.as_bytes())),
                expected,
                "{key:?}"
            );
        }
    }

    /// The bits are a format: what is on disk was made by these.
    #[test]
    fn the_bits_of_a_key_never_change() {
        let hash = hash_of(b"key");
        assert_eq!(hash, 0xbbea_0d63_a051_65e3);
        assert_eq!(place(hash, 19), (13, (1 + 59) * LINE_BYTES));
        let lanes = lanes(hash).map(u64::trailing_zeros);
        assert_eq!(lanes, [29, 43, 58, 33, 47, 49, 4, 42]);
        let mut page = vec![0; PAGE_BYTES];
        build(&[hash], &mut page);
        let line = &page[(1 + 46) * LINE_BYTES..][..LINE_BYTES];
        for (word, bit) in line.chunks_exact(8).zip(lanes) {
            assert_eq!(u64::from_le_bytes(word.try_into().unwrap()), 1 << bit);
        }
    }
}
