//! Where regions begin: chosen so that each holds about as many bytes as one release step frees.
//!
//! Source: IndeXY II-B chooses a level of the tree; here a walk over the leaves counts bytes, so
//! that trees of any shape give even regions. Pure but for the walk.

#![forbid(unsafe_code)]

use crate::x::{AnyX, IndexX};
use std::ops::ControlFlow;

/// A region holds about this part of the budget, and at least so many bytes.
const REGION_DIVISOR: usize = 128;
const MIN_REGION_BYTES: usize = 16 << 10;

/// A region this many times larger than planned calls for a new choice of regions.
const OVERSIZE: usize = 4;

/// Bytes of X that one region should hold.
pub(crate) fn region_bytes(budget: usize) -> usize {
    (budget / REGION_DIVISOR).max(MIN_REGION_BYTES)
}

/// Bytes of X above which a region is too large: keys that are appended all go to one.
pub(crate) fn oversize_bytes(budget: usize) -> usize {
    OVERSIZE.saturating_mul(region_bytes(budget))
}

/// First keys of regions of about `target` bytes of `x`, the first one empty. No region of several
/// leaves has more than `too_large` bytes, or it would be chosen again and again. Cost: a visit per
/// leaf.
pub(crate) fn choose(x: &AnyX, target: u64, too_large: u64) -> Vec<Box<[u8]>> {
    let mut starts: Vec<Box<[u8]>> = vec![Box::default()];
    let mut bytes = 0;
    let _ = x.leaves(&[], None, &mut |leaf| {
        let full = bytes >= target || bytes > 0 && bytes + leaf.bytes as u64 > too_large;
        if full && starts.last().is_none_or(|last| leaf.start > &**last) {
            starts.push(Box::from(leaf.start));
            bytes = 0;
        }
        bytes += leaf.bytes as u64;
        ControlFlow::Continue(())
    });
    starts
}
