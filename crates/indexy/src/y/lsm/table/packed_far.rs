//! Packed values: far values that are compressed. They stand where far bytes stand, with their
//! seal.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | seal, as that of far bytes, over all that follows |
//! | 8 | 1 | codec |
//! | 9 | 3 | zero |
//! | 12 | 4 | length of the value |
//! | 16 | | the form: what the codec made of the value |
//!
//! The reference in the leaf has the length of what is sealed, and bit 39 of its offset set: no
//! table is so long.
//!
//! Memory: form and value are whole in memory while one is made of the other, so that only values
//! up to [`MOST_BYTES`] are packed.

use super::codec::Codec;
use crate::{
    error::Result,
    y::{
        page::{PAGE_LIMIT, node::Far, put, u8_at, u32_at},
        pool::TABLE_PAGES,
    },
};

/// In the offset of a reference: what is there is packed.
const PACKED: u64 = 1 << 39;
const HEADER_BYTES: usize = 8;
/// Longer values are stored as they are.
pub(super) const MOST_BYTES: usize = 1 << 20;
/// A value is packed if that saves this part of it.
const SAVED_DIVISOR: usize = 8;
// No offset has the bit, and every reference fits its field.
const _: () = assert!(PACKED < PAGE_LIMIT && TABLE_PAGES * super::PAGE_BYTES as u64 <= PACKED);

/// Whether what `far` refers to is packed.
pub(super) fn is_packed(far: Far) -> bool {
    far.first & PACKED != 0
}

/// Where the seal is of what `far` refers to.
pub(super) fn offset(far: Far) -> u64 {
    far.first & !PACKED
}

/// The reference to what is packed, and stands where `far` says.
pub(super) fn reference(far: Far) -> Far {
    Far {
        first: far.first | PACKED,
        ..far
    }
}

/// Packs `value` into `to`: all that is sealed. False if that does not pay.
pub(super) fn pack(codec: Codec, value: &[u8], to: &mut Vec<u8>) -> bool {
    to.clear();
    let len = u32::try_from(value.len()).ok();
    let Some(len) = len.filter(|_| codec != Codec::Stored && value.len() <= MOST_BYTES) else {
        return false;
    };
    to.resize(HEADER_BYTES, 0);
    put(to, 0, &[codec as u8]);
    put(to, 4, &len.to_le_bytes());
    codec.compress(value, to) && to.len() <= value.len() - value.len() / SAVED_DIVISOR
}

/// The value of which `sealed` was made; `None`: it is of none. Errors: `Unsupported`, if this
/// build does not have the codec.
pub(super) fn unpack(sealed: &[u8]) -> Result<Option<Vec<u8>>> {
    let header = u8_at(sealed, 0).and_then(Codec::of).zip(u32_at(sealed, 4));
    let Some((codec, len)) = header.filter(|(_, len)| *len as usize <= MOST_BYTES) else {
        return Ok(None);
    };
    let mut value = vec![0; len as usize];
    let form = sealed.get(HEADER_BYTES..).unwrap_or_default();
    Ok(codec.decompress(form, &mut value)?.then_some(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::y::lsm::table::tests::codecs;

    #[test]
    fn values_come_back_where_packing_pays() {
        let text: Vec<u8> = (0..100_000u32).map(|i| (i / 9 % 70) as u8).collect();
        let mut to = vec![1, 2, 3];
        for codec in codecs() {
            for len in [1025, 4096, 65_536, 100_000] {
                let value = &text[..len];
                let packs = pack(codec, value, &mut to);
                assert_eq!(packs, codec != Codec::Stored, "{codec:?}, {len}");
                if packs {
                    assert!(to.len() < len / 2);
                    assert_eq!(unpack(&to).unwrap().as_deref(), Some(value));
                    assert_eq!(unpack(&to[..to.len() - 1]).unwrap(), None);
                }
            }
            let random: Vec<u8> = std::iter::repeat_with(rand::random).take(5000).collect();
            assert!(!pack(codec, &random, &mut to), "{codec:?}");
            assert!(!pack(codec, &vec![7; MOST_BYTES + 1], &mut to));
        }
    }

    #[test]
    fn what_is_no_packed_value_is_none() {
        let mut long = vec![Codec::Lz4 as u8, 0, 0, 0];
        long.extend(u32::MAX.to_le_bytes());
        for sealed in [&[][..], &[0; 7], &[9; 8], &long] {
            assert_eq!(unpack(sealed).unwrap(), None);
        }
    }

    #[test]
    fn a_reference_says_that_it_is_packed() {
        let far = Far {
            bytes: 5,
            first: 4096,
        };
        let packed = reference(far);
        assert!(is_packed(packed) && !is_packed(far));
        assert_eq!((offset(packed), packed.bytes), (4096, 5));
    }
}
