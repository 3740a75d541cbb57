//! What a write has to do with the entry that it finds, or does not find: the rules of
//! [`IndexX::put`](super::IndexX::put).
//!
//! Keeps: I2 (whatever is written is dirty; `in_y` stays, and is set for new entries of mounted
//! ranges).

#![forbid(unsafe_code)]

use super::entry::{DIRTY, IN_Y, TOMBSTONE, is_operand, is_removal};

/// A change of one entry of a leaf.
#[derive(Clone, Copy)]
pub(crate) enum Edit {
    Insert { at: usize, flags: u32 },
    Replace { at: usize, flags: u32 },
    Remove { at: usize },
}

/// What a write of a value, or a removal (`!writes`), has to do; `None`: nothing. `found`: index
/// and flags of the entry, or the index where it belongs.
#[inline]
pub(crate) fn edit_for_put(
    found: Result<(usize, u32), usize>,
    mounted: bool,
    writes: bool,
) -> Option<Edit> {
    match (found, writes) {
        (Err(at), true) => {
            let flags = if mounted { DIRTY | IN_Y } else { DIRTY };
            Some(Edit::Insert { at, flags })
        }
        (Err(_), false) if !mounted => None,
        (Err(at), false) => Some(Edit::Insert {
            at,
            flags: DIRTY | IN_Y | TOMBSTONE,
        }),
        // Below an operand Y may have a value.
        (Ok((at, flags)), true) if is_operand(flags) => Some(Edit::Replace {
            at,
            flags: DIRTY | IN_Y,
        }),
        (Ok((at, flags)), true) => Some(Edit::Replace {
            at,
            flags: DIRTY | flags & IN_Y,
        }),
        (Ok((_, flags)), false) if is_removal(flags) => None,
        (Ok((at, flags)), false) if flags & IN_Y == 0 && !mounted => Some(Edit::Remove { at }),
        // Without `IN_Y` it would be an operand.
        (Ok((at, _)), false) => Some(Edit::Replace {
            at,
            flags: DIRTY | IN_Y | TOMBSTONE,
        }),
    }
}
