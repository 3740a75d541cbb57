//! Size classes: which block an allocation of so many bytes gets.
//!
//! Small blocks: multiples of 16 up to 256, then eight steps per doubling up to [`SMALL_MAX`], so
//! that less than an eighth of a block above 128 bytes is unused. Larger ones are whole pages. The
//! classes do not depend on the budget: a node's layout can be computed without an arena.

#![forbid(unsafe_code)]

use std::ops::Range;

/// Largest block that shares a slab with others, in bytes.
pub(crate) const SMALL_MAX: usize = 8 << 10;
/// Granularity of larger blocks, in bytes.
pub(crate) const PAGE: usize = 4 << 10;
/// Number of small classes.
pub(crate) const CLASSES: usize = FINE + 8 * 5;

/// A block may be this part larger than what was asked for where memory is tight.
pub(crate) const LARGER_DIVISOR: usize = 2;

/// Classes that are multiples of 16.
const FINE: usize = 16;
const FINE_MAX: usize = FINE * 16;

/// Bytes of the blocks of each class.
const SIZES: [u16; CLASSES] = {
    let mut sizes = [0; CLASSES];
    let mut class = 0;
    while class < CLASSES {
        sizes[class] = if class < FINE {
            (class as u16 + 1) * 16
        } else {
            let (doubling, eighth) = ((class - FINE) / 8, (class - FINE) % 8);
            (9 + eighth as u16) << (5 + doubling)
        };
        class += 1;
    }
    sizes
};
const _: () = assert!(SIZES[CLASSES - 1] as usize == SMALL_MAX);

/// The small class of `bytes` (0 counts as 1), which is at most [`SMALL_MAX`].
#[inline(always)]
pub(crate) fn class_of(bytes: usize) -> usize {
    debug_assert!(bytes <= SMALL_MAX);
    let last = bytes.saturating_sub(1);
    if last < FINE_MAX {
        return last / 16;
    }
    let doubling = last.ilog2() as usize; // 8..=12
    let eighth = (last >> (doubling - 3)) & 7;
    FINE + (doubling - 8) * 8 + eighth
}

/// Bytes of the blocks of a small class.
#[inline(always)]
pub(crate) fn class_bytes(class: usize) -> usize {
    usize::from(SIZES[class])
}

/// Classes whose blocks may stand in for those of `class` where memory is tight: somewhat larger
/// ones, the smallest first.
pub(crate) fn stand_ins(class: usize) -> Range<usize> {
    let most = class_bytes(class) + class_bytes(class) / LARGER_DIVISOR;
    let fitting = SIZES.partition_point(|&bytes| usize::from(bytes) <= most);
    class + 1..fitting
}

/// Bytes of the block that an allocation of `bytes` gets.
#[inline(always)]
pub(crate) fn block_bytes(bytes: usize) -> usize {
    if bytes <= SMALL_MAX {
        class_bytes(class_of(bytes))
    } else {
        bytes.next_multiple_of(PAGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_size_gets_the_smallest_class_that_holds_it() {
        for bytes in 0..=SMALL_MAX {
            let class = class_of(bytes);
            assert!(class_bytes(class) >= bytes, "{bytes}");
            assert!(class == 0 || class_bytes(class - 1) < bytes, "{bytes}");
            assert_eq!(class_bytes(class) % 16, 0);
        }
        assert!(SIZES.is_sorted());
    }

    #[test]
    fn blocks_that_stand_in_are_up_to_half_larger() {
        for class in 0..CLASSES {
            let stand_ins = stand_ins(class);
            assert_eq!(stand_ins.start, class + 1);
            let half_larger = |c: usize| class_bytes(c) * 2 <= class_bytes(class) * 3;
            assert!(stand_ins.clone().all(half_larger));
            assert!(
                stand_ins.end == CLASSES || !half_larger(stand_ins.end),
                "{class}"
            );
        }
    }

    #[test]
    fn waste_is_below_an_eighth() {
        for bytes in 128..=SMALL_MAX {
            assert!(
                (block_bytes(bytes) - bytes) * 8 < block_bytes(bytes),
                "{bytes}"
            );
        }
        assert_eq!(block_bytes(0), 16);
        assert_eq!(block_bytes(SMALL_MAX + 1), 3 * PAGE);
    }
}
