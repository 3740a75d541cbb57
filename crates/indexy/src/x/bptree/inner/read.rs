//! Finding children, and reading separators.
//!
//! Nothing here trusts what it reads, as in leaves: the caller validates, `stable` is asked before a pointer is followed.

use super::{
    super::heads::{HEAD_BYTES, HEADS_AND_HINTS, head, rest},
    layout::{InnerRef, RECORD_HEADER},
};
use crate::x::large::LargeRef;
use std::cmp::Ordering;

/// A longer run of equal heads is searched by halving.
const LINEAR_RUN: usize = 4;

/// Where a separator is.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeparatorAt {
    pub head: u32,
    pub len: usize,
    /// It is in a block of its own, that the word at `rest` points to.
    pub large: bool,
    /// Offset of what it has behind its head.
    pub rest: usize,
}

impl<'g> InnerRef<'g> {
    #[inline]
    pub(super) fn separator_at(self, i: usize) -> SeparatorAt {
        let head = self.heads().get(i);
        let slot = self.slot(i);
        if slot <= HEAD_BYTES {
            return SeparatorAt {
                head,
                len: slot,
                large: false,
                rest: 0,
            };
        }
        let record = self.words().read_u64(slot) as u32;
        SeparatorAt {
            head,
            len: record as usize >> 1,
            large: record & 1 != 0,
            rest: slot + RECORD_HEADER,
        }
    }

    /// The large block of separator `at`.
    ///
    /// # Safety
    /// The node was validated after `at` was read (or is latched), under a guard that lives for `'g`.
    pub(super) unsafe fn large(self, at: &SeparatorAt) -> Option<LargeRef<'g>> {
        // SAFETY: by the contract the record is whole, so that the word is one that `raw` gave.
        at.large
            .then(|| unsafe { LargeRef::from_raw(self.words().read_u64(at.rest)) })
    }

    /// Compares separator `i` with `suffix`, which has the same head; `None` when the node changed.
    #[inline]
    fn compare(self, i: usize, suffix: &[u8], stable: impl Fn() -> bool) -> Option<Ordering> {
        let at = self.separator_at(i);
        if at.len.min(suffix.len()) < HEAD_BYTES {
            // One is the other with zero bytes behind.
            return Some(at.len.cmp(&suffix.len()));
        }
        if !at.large {
            let len = at.len - HEAD_BYTES;
            return Some(self.words().cmp(at.rest, len, rest(suffix)));
        }
        let word = self.words().read_u64(at.rest);
        if !stable() {
            return None;
        }
        // SAFETY: the node did not change since the separator and the word were read.
        let large = unsafe { LargeRef::from_raw(word) };
        Some(large.suffix(at.len).cmp(suffix))
    }

    /// The child for `suffix`: the number of separators that are not above it. `None` when the node changed.
    #[inline]
    pub(super) fn child_of(self, suffix: &[u8], stable: impl Fn() -> bool) -> Option<usize> {
        let n = self.meta().n - 1;
        if !HEADS_AND_HINTS {
            return self.child_by_halving(0, n, suffix, stable);
        }
        let wanted = head(suffix);
        let heads = self.heads();
        let first = heads.count_below(n, wanted);
        let mut at = first;
        while at < n && heads.get(at) == wanted {
            if at - first == LINEAR_RUN {
                return self.child_by_halving(at, n, suffix, stable);
            }
            if self.compare(at, suffix, &stable)? == Ordering::Greater {
                break;
            }
            at += 1;
        }
        Some(at)
    }

    /// Goes on with `child_of`: the separators before `lo` are not above `suffix`, those from `hi` on are.
    #[cold]
    fn child_by_halving(
        self,
        mut lo: usize,
        mut hi: usize,
        suffix: &[u8],
        stable: impl Fn() -> bool,
    ) -> Option<usize> {
        let wanted = head(suffix);
        while lo < hi {
            let mid = (lo + hi) / 2;
            let order = match self.heads().get(mid).cmp(&wanted) {
                Ordering::Equal => self.compare(mid, suffix, &stable)?,
                other => other,
            };
            if order == Ordering::Greater {
                hi = mid;
            } else {
                lo = mid + 1;
            }
        }
        Some(lo)
    }
}
