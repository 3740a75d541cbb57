//! Finding children, and reading separators.
//!
//! Nothing here trusts what it reads, as in leaves: the caller validates, `stable` is asked before
//! a pointer is followed.

use super::layout::{InnerRef, Meta, RECORD_HEADER};
use crate::x::{
    heads::{HEAD_BYTES, HEADS_AND_HINTS, Wanted},
    large::LargeRef,
};
use std::{cmp::Ordering, ops::Range};

/// Where a separator is; without what all of the node's share.
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
    /// The node was validated after `at` was read (or is latched), under a guard that lives for
    /// `'g`.
    pub(super) unsafe fn large(self, at: &SeparatorAt) -> Option<LargeRef<'g>> {
        // SAFETY: by the contract the record is whole, so that the word is one that `raw` gave.
        at.large
            .then(|| unsafe { LargeRef::from_raw(self.words().read_u64(at.rest)) })
    }

    /// Compares separator `i` with what is wanted, which has the same head; `None` when the node
    /// changed.
    #[inline]
    fn compare(self, i: usize, wanted: &Wanted<'_>, stable: impl Fn() -> bool) -> Option<Ordering> {
        let at = self.separator_at(i);
        if !at.large {
            return Some(wanted.order_of(self.words(), at.len, at.rest));
        }
        let word = self.words().read_u64(at.rest);
        if !stable() {
            return None;
        }
        // SAFETY: the node did not change since the separator and the word were read.
        let large = unsafe { LargeRef::from_raw(word) };
        Some(large.suffix(at.len).cmp(wanted.suffix))
    }

    /// The child for `suffix` of a node with these counts: the number of separators that are not
    /// above it. `None` when the node changed.
    #[inline]
    pub(super) fn child_of(
        self,
        meta: Meta,
        suffix: &[u8],
        stable: impl Fn() -> bool,
    ) -> Option<usize> {
        let n = meta.n - 1;
        let shared = self.shared_len();
        if shared > 0 {
            match self.compare_shared(suffix) {
                Ordering::Greater => return Some(0),
                Ordering::Less => return Some(n),
                Ordering::Equal => (),
            }
        }
        let wanted = Wanted::new(suffix.get(shared..).unwrap_or_default());
        if !HEADS_AND_HINTS {
            return self.child_by_halving(0..n, &wanted, stable);
        }
        let heads = self.heads_of(meta);
        let first = heads.count_below(n, wanted.head);
        if first >= n || heads.get(first) != wanted.head {
            return Some(first);
        }
        match self.compare(first, &wanted, &stable)? {
            Ordering::Greater => Some(first),
            // Others may have the same head.
            _ => {
                let end = heads.end_of_equal(first, n, wanted.head);
                self.child_by_halving(first + 1..end, &wanted, stable)
            }
        }
    }

    /// Goes on with `child_of`: the separators before `within` are not above what is wanted, those
    /// behind it are.
    fn child_by_halving(
        self,
        within: Range<usize>,
        wanted: &Wanted<'_>,
        stable: impl Fn() -> bool,
    ) -> Option<usize> {
        let Range {
            start: mut lo,
            end: mut hi,
        } = within;
        while lo < hi {
            let mid = (lo + hi) / 2;
            let order = match self.heads().get(mid).cmp(&wanted.head) {
                Ordering::Equal => self.compare(mid, wanted, &stable)?,
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
