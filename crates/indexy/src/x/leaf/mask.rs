//! Sets of entries of a leaf, one bit each.

#![forbid(unsafe_code)]

use std::ops::Range;

/// The entries in `range`.
#[inline]
pub(crate) fn mask(range: Range<usize>) -> u64 {
    if range.is_empty() {
        return 0;
    }
    u64::MAX >> (64 - range.len()) << range.start
}

/// The entries in `mask`, in order.
pub(crate) fn ones(mask: u64) -> impl DoubleEndedIterator<Item = usize> {
    let first = mask.trailing_zeros() as usize;
    let end = 64 - mask.leading_zeros() as usize;
    (first..end).filter(move |i| mask >> i & 1 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_hold_what_they_were_made_of() {
        for range in [0..0, 5..5, 0..1, 3..7, 0..64, 63..64] {
            let all: Vec<_> = ones(mask(range.clone())).collect();
            assert_eq!(all, range.collect::<Vec<_>>());
        }
        assert_eq!(ones(0b1010_0001).rev().collect::<Vec<_>>(), [7, 5, 0]);
    }
}
