//! Where a leaf splits: at a byte boundary, for the children of a node cover whole bytes.

#![forbid(unsafe_code)]

use super::symbol::{END, Symbol, first_symbol};
use crate::x::leaf::StableLeaf;

/// Where a leaf splits in two: entries below `at` have symbols below `symbol`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SplitAt {
    pub at: usize,
    pub symbol: Symbol,
}

/// The boundary between first symbols (after `skip` bytes, which all suffixes have in common) that
/// is nearest the middle; `None` when all are the same.
pub(super) fn split_point(leaf: StableLeaf<'_>, skip: usize) -> Option<SplitAt> {
    let n = leaf.len();
    let mut best: Option<SplitAt> = None;
    let mut before = None;
    for at in 0..n {
        let symbol = symbol_at(leaf, at, skip);
        let nearer = |best: SplitAt| at.abs_diff(n / 2) < best.at.abs_diff(n / 2);
        if before.is_some_and(|b| b != symbol) && best.is_none_or(nearer) {
            best = Some(SplitAt { at, symbol });
        }
        before = Some(symbol);
    }
    best
}

/// As `split_point`, for a leaf in which a new entry with `suffix` belongs at index `new`. Of keys
/// that come in order what is there stays full: the new one starts a range of its own.
pub(super) fn split_for(leaf: StableLeaf<'_>, new: Option<(usize, &[u8])>) -> Option<SplitAt> {
    let n = leaf.len();
    if let Some((at, suffix)) = new
        && at == n
        && n > 0
        && first_symbol(suffix) > symbol_at(leaf, n - 1, 0)
    {
        let symbol = first_symbol(suffix);
        return Some(SplitAt { at, symbol });
    }
    split_point(leaf, 0)
}

/// The symbol of entry `i` after `skip` bytes of its suffix.
fn symbol_at(leaf: StableLeaf<'_>, i: usize, skip: usize) -> Symbol {
    let entry = leaf.entry(i);
    if entry.suffix_len == skip {
        return END;
    }
    Symbol::from(leaf.suffix_byte(&entry, skip)) + 1
}

/// How many bytes the suffixes of all entries have in common, which go to `out`.
pub(super) fn common_prefix(leaf: StableLeaf<'_>, out: &mut Vec<u8>) -> usize {
    out.clear();
    let Some(last) = leaf.len().checked_sub(1) else {
        return 0;
    };
    leaf.push_suffix(&leaf.entry(0), out);
    let other = leaf.suffix(last);
    let common = out.iter().zip(&other).take_while(|(a, b)| a == b).count();
    out.truncate(common);
    common
}
