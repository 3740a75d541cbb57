//! Far bytes: where a key or value lies that is not in a node, and its seal.
//!
//! They stand at a byte offset of the file, page bounds do not matter:
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | seal: xxh3 of the bytes, its seed made of table id and offset |
//! | 8 | as the leaf says | the bytes |
//!
//! The length is in the leaf, whose checksum covers it. Values may be packed (`packed_far.rs`).

use super::{PAGE_BYTES, packed_far};
use crate::y::page::node::Far;
use xxhash_rust::xxh3::xxh3_64_with_seed;

pub(super) const SEAL_BYTES: usize = 8;
/// Keeps the seeds of neighbouring offsets apart: an odd number with bits all over.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The seal of `bytes` that stand at `offset` of table `id`.
pub(super) fn seal(id: u64, offset: u64, bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(bytes, id ^ offset.wrapping_mul(SPREAD))
}

/// Where far bytes lie with their seal, and the pages around them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) start: u64,
    pub(super) end: u64,
}

impl Place {
    pub(super) fn of(far: Far) -> Self {
        Self {
            start: packed_far::offset(far),
            end: packed_far::offset(far) + (SEAL_BYTES as u64 + u64::from(far.bytes)),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.end - self.start
    }

    /// Start of the first page.
    pub(super) fn first_page(&self) -> u64 {
        self.start - self.start % PAGE_BYTES as u64
    }

    /// Bytes of all pages.
    pub(super) fn page_bytes(&self) -> u64 {
        self.end.next_multiple_of(PAGE_BYTES as u64) - self.first_page()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_is_of_one_table_and_one_place() {
        let seals = [(1, 4096), (2, 4096), (1, 4104), (1, 8192)].map(|(id, at)| seal(id, at, b"x"));
        assert!((1..4).all(|i| !seals[..i].contains(&seals[i])), "{seals:?}");
        let long = [3; 1000];
        assert_ne!(seal(1, 4096, &long), seal(1, 4097, &long));
    }

    #[test]
    fn a_place_has_its_pages() {
        for (first, bytes, page, pages) in [
            (4096, 10, 4096, 4096),
            (8184, 0, 4096, 4096),
            (8184, 1, 4096, 8192),
            (8192, 4089, 8192, 8192),
        ] {
            let place = Place::of(Far { bytes, first });
            assert_eq!((place.first_page(), place.page_bytes()), (page, pages));
            assert_eq!(place.bytes(), 8 + u64::from(bytes));
        }
    }
}
