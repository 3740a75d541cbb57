//! What a tree keeps for its merges. What it does with that is in `merge/`.

#![forbid(unsafe_code)]

use super::{at_once::AtOnce, operators::Operator};
use parking_lot::Mutex;
use std::sync::{OnceLock, atomic::AtomicU64};

/// See the module header.
#[derive(Default)]
pub(super) struct Merging {
    /// Set at most once. Without it X has no operand.
    pub(super) operator: OnceLock<Operator>,
    /// Operands written, about.
    pub(super) ticks: AtomicU64,
    /// Where whoever finds too many operands goes on to resolve them.
    pub(super) cursor: Mutex<Vec<u8>>,
    /// Values that are read from Y with one overlapped read.
    pub(super) at_once: AtOnce,
}

/// What a read does with the operand that it meets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Meeting {
    /// Resolves it, if there is room at once.
    Resolve,
    /// Leaves it.
    Look,
}
