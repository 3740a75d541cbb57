//! What a write has to do with the entry that it finds, or does not find: the rules of
//! [`IndexX::put`](super::IndexX::put).
//!
//! Keeps: I2 (whatever is written is dirty; `in_y` stays, and is set for new entries of mounted
//! ranges).

#![forbid(unsafe_code)]

use super::entry::{DIRTY, IN_Y, TOMBSTONE};

/// A change of one entry of a leaf.
#[derive(Clone, Copy)]
pub(crate) enum Edit {
    Insert { at: usize, flags: u32 },
    Replace { at: usize, flags: u32 },
    Remove { at: usize },
}

/// What a write of a value, or a removal (`!writes`), has to do; `None`: nothing. `found`: index
/// and flags of the entry, or the index where it belongs.
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
        (Ok((at, flags)), true) => Some(Edit::Replace {
            at,
            flags: DIRTY | flags & IN_Y,
        }),
        (Ok((_, flags)), false) if flags & TOMBSTONE != 0 => None,
        (Ok((at, flags)), false) if flags & IN_Y == 0 && !mounted => Some(Edit::Remove { at }),
        (Ok((at, flags)), false) => Some(Edit::Replace {
            at,
            flags: DIRTY | TOMBSTONE | flags & IN_Y,
        }),
    }
}
