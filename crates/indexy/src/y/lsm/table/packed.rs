//! Packed leaves: compressed ones, which stand where far bytes stand, page bounds do not matter.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | seal, as that of far bytes, of what follows up to the end of the form |
//! | 8 | 1 | codec |
//! | 9 | 1 | zero |
//! | 10 | 2 | length of the form |
//! | 12 | | the form: what the codec made of the leaf, whose checksum, number, tree and birth are zero |
//!
//! Zeros follow, up to a multiple of [`UNIT`]. A reference to a packed leaf has in its lower 31
//! bits the offset in units, and above them the length in units, so that one read brings it. A
//! plain page's reference is below 2^24: its length is zero.

use super::{
    PAGE_BYTES,
    codec::Codec,
    far::{self, SEAL_BYTES},
};
use crate::{
    error::Result,
    y::{
        page::{Header, Kind, PAGE_LIMIT, PageNo, u8_at, u16_at, u64_at},
        pool::{TABLE_PAGES, TABLE_PLACES},
    },
};

/// Packed leaves begin and end at multiples of so many bytes.
pub(super) const UNIT: usize = 32;
const OFFSET_BITS: u32 = 31;
const HEADER_BYTES: usize = SEAL_BYTES + 4;
/// No packed leaf is shorter, so that a pool knows one by the part of the file in which it begins.
const MIN_BYTES: usize = PAGE_BYTES / TABLE_PLACES as usize;
/// The longest is stored as it is.
const MAX_BYTES: usize = (HEADER_BYTES + PAGE_BYTES).next_multiple_of(UNIT);
// Every byte of the largest file can be named, and every length.
const _: () = assert!((TABLE_PAGES << OFFSET_BITS >> OFFSET_BITS) == TABLE_PAGES);
const _: () = assert!(TABLE_PAGES as usize * (PAGE_BYTES / UNIT) <= 1 << OFFSET_BITS);
const _: () = assert!((MAX_BYTES / UNIT) as u64 <= (PAGE_LIMIT - 1) >> OFFSET_BITS);
const _: () = assert!(MIN_BYTES.is_multiple_of(UNIT) && HEADER_BYTES == 12);

/// Where a leaf is in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Page(PageNo),
    Packed(Packed),
}

/// Offset and length in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packed {
    pub(super) offset: u64,
    pub(super) bytes: usize,
}

impl Place {
    /// What `reference` says.
    #[inline]
    pub(super) fn of(reference: PageNo) -> Self {
        let units = reference >> OFFSET_BITS;
        if units == 0 {
            return Self::Page(reference);
        }
        let offset = (reference & ((1 << OFFSET_BITS) - 1)) * UNIT as u64;
        let bytes = units as usize * UNIT;
        Self::Packed(Packed { offset, bytes })
    }

    /// A number below `TABLE_PAGES * TABLE_PLACES` that no other page of the table has.
    #[inline]
    pub(super) fn number(self) -> u64 {
        match self {
            Self::Page(number) => number * TABLE_PLACES,
            Self::Packed(packed) => packed.offset / MIN_BYTES as u64,
        }
    }
}

impl Packed {
    /// The reference to a leaf that takes `bytes` at `offset`; `None`: it is too far behind.
    pub(super) fn reference(self) -> Option<PageNo> {
        let offset = self.offset / UNIT as u64;
        let units = (self.bytes / UNIT) as u64;
        (offset >> OFFSET_BITS == 0).then_some(offset | units << OFFSET_BITS)
    }

    /// Start of the first page, and bytes of all pages.
    #[inline]
    pub(super) fn pages(self) -> (u64, usize) {
        let start = self.offset - self.offset % PAGE_BYTES as u64;
        let end = (self.offset + self.bytes as u64).next_multiple_of(PAGE_BYTES as u64);
        (start, (end - start) as usize)
    }

    /// Whether a packed leaf can be there, in a file of `file_bytes`.
    #[inline]
    pub(super) fn fits(self, file_bytes: u64) -> bool {
        (MIN_BYTES..=MAX_BYTES).contains(&self.bytes)
            && self.offset >= PAGE_BYTES as u64
            && self.offset + self.bytes as u64 <= file_bytes
    }

    /// Unpacks the leaf, whose bytes in the file are `bytes`, into `to`; `Err` inside: what is
    /// wrong. Errors: `Unsupported`.
    pub(super) fn unpack(
        self,
        id: u64,
        bytes: &[u8],
        to: &mut [u8],
    ) -> Result<std::result::Result<(), &'static str>> {
        let Some((seal, codec, form)) = parts(bytes) else {
            return Ok(Err("a packed leaf is cut off"));
        };
        let sealed = bytes.get(SEAL_BYTES..HEADER_BYTES + form.len());
        if far::seal(id, self.offset, sealed.unwrap_or_default()) != seal {
            return Ok(Err("the checksum of a packed leaf does not match"));
        }
        Ok(match unpack(codec, form, to)? {
            true => Ok(()),
            false => Err("what is packed is no leaf"),
        })
    }
}

fn parts(bytes: &[u8]) -> Option<(u64, Option<Codec>, &[u8])> {
    let len = usize::from(u16_at(bytes, SEAL_BYTES + 2)?);
    let form = bytes.get(HEADER_BYTES..HEADER_BYTES + len)?;
    Some((
        u64_at(bytes, 0)?,
        Codec::of(u8_at(bytes, SEAL_BYTES)?),
        form,
    ))
}

/// Makes a leaf of its form; false: it is none.
pub(super) fn unpack(codec: Option<Codec>, form: &[u8], to: &mut [u8]) -> Result<bool> {
    let Some(codec) = codec else {
        return Ok(false);
    };
    if !codec.decompress(form, to)? {
        return Ok(false);
    }
    let leaf = |header: Header| matches!(header.kind, Kind::Leaf | Kind::FixedLeaf);
    Ok(Header::read(to).is_some_and(leaf))
}

/// Packs leaves, as long as that saves something.
pub(super) struct Packer {
    codec: Codec,
    /// Everything of a packed leaf, but the seal.
    form: Vec<u8>,
    /// Leaves that are not tried.
    rest: u32,
    /// Leaves that were tried since it was last looked at whether that pays, and their bytes.
    tried: u32,
    packed: usize,
}

/// Leaves after which it is looked at whether packing pays, and leaves for which it is not tried if
/// it does not.
const TRIED: u32 = 64;
const NOT_TRIED: u32 = 512;
/// It pays if it saves this part.
const SAVED_DIVISOR: usize = 8;

impl Packer {
    pub(super) fn new(codec: Codec) -> Self {
        Self {
            codec,
            form: Vec::new(),
            rest: 0,
            tried: 0,
            packed: 0,
        }
    }

    pub(super) fn codec(&self) -> Codec {
        self.codec
    }

    /// Whether the next leaf is to be packed.
    pub(super) fn is_next(&mut self) -> bool {
        let passed = self.rest > 0;
        self.rest = self.rest.saturating_sub(1);
        !passed && self.codec != Codec::Stored
    }

    /// Packs `leaf`: all that stands behind the seal, and its length up to the end of the form.
    pub(super) fn pack(&mut self, leaf: &[u8]) -> (&[u8], usize) {
        self.form.clear();
        self.form.extend([self.codec as u8, 0, 0, 0]);
        if !self.codec.compress(leaf, &mut self.form) {
            self.form.clear();
            self.form.extend([Codec::Stored as u8, 0, 0, 0]);
            self.form.extend_from_slice(leaf);
        }
        let sealed = self.form.len();
        let len = (sealed + SEAL_BYTES - HEADER_BYTES) as u16;
        crate::y::page::put(&mut self.form, 2, &len.to_le_bytes());
        let whole = (SEAL_BYTES + sealed).max(MIN_BYTES).next_multiple_of(UNIT);
        self.form.resize(whole - SEAL_BYTES, 0);
        self.tried += 1;
        self.packed += whole;
        if self.tried == TRIED {
            let all = TRIED as usize * PAGE_BYTES;
            if self.packed > all - all / SAVED_DIVISOR {
                self.rest = NOT_TRIED;
            }
            (self.tried, self.packed) = (0, 0);
        }
        (&self.form, sealed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_says_where_a_leaf_is() {
        let last = TABLE_PAGES * PAGE_BYTES as u64 - UNIT as u64;
        for (offset, bytes) in [(4096, MIN_BYTES), (4128, MAX_BYTES), (last, MIN_BYTES)] {
            let packed = Packed { offset, bytes };
            let reference = packed.reference().unwrap();
            assert!(reference < PAGE_LIMIT);
            assert_eq!(Place::of(reference), Place::Packed(packed));
        }
        assert_eq!(Place::of(TABLE_PAGES - 1), Place::Page(TABLE_PAGES - 1));
        let (offset, bytes) = (last + UNIT as u64, MIN_BYTES);
        assert_eq!(Packed { offset, bytes }.reference(), None);
    }

    #[test]
    fn no_two_leaves_have_the_same_number() {
        let packed = |offset| {
            Place::Packed(Packed {
                offset,
                bytes: MIN_BYTES,
            })
            .number()
        };
        let next = |offset| packed(offset + MIN_BYTES as u64);
        for offset in (4096..16_384).step_by(UNIT) {
            assert!(next(offset) > packed(offset));
        }
        assert_eq!(packed(8192), Place::Page(2).number());
        assert!(Place::Page(TABLE_PAGES - 1).number() < TABLE_PAGES * TABLE_PLACES);
    }

    #[test]
    fn packing_that_saves_nothing_is_given_up_for_a_while() {
        let mut packer = Packer::new(Codec::Lz4);
        let mut state = 1u64;
        let mut leaf = || {
            let random = std::iter::repeat_with(|| {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                (state >> 56) as u8
            });
            random.take(PAGE_BYTES).collect::<Vec<u8>>()
        };
        let packed = (0..TRIED + NOT_TRIED + 1).map(|_| {
            let is_next = packer.is_next();
            is_next && packer.pack(&leaf()).1 > 0
        });
        let packed: Vec<bool> = packed.collect();
        assert_eq!(
            packed.iter().filter(|packed| **packed).count(),
            TRIED as usize + 1
        );
        assert!(packed[0] && !packed[TRIED as usize] && packed[packed.len() - 1]);
    }
}
