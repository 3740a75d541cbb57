//! What a tree keeps for its merges. What it does with that is in `merge/`.

#![forbid(unsafe_code)]

use super::operators::Operator;
use parking_lot::Mutex;
use std::sync::{
    OnceLock,
    atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
};

/// Values that are read at once, at most.
const MOST_AT_ONCE: usize = 1024;
/// And as many as take this part of the budget when they are as large as the largest of the last
/// ones: they are not counted.
const AT_ONCE_DIVISOR: usize = 64;

/// See the module header.
pub(super) struct Merging {
    /// Set at most once. Without it X has no operand.
    pub(super) operator: OnceLock<Operator>,
    /// Operands written, about.
    pub(super) ticks: AtomicU64,
    /// Where whoever finds too many operands goes on to resolve them.
    pub(super) cursor: Mutex<Vec<u8>>,
    /// See [`Merging::at_once`].
    at_once: AtomicUsize,
}

impl Default for Merging {
    fn default() -> Self {
        Self {
            operator: OnceLock::new(),
            ticks: AtomicU64::new(0),
            cursor: Mutex::default(),
            at_once: AtomicUsize::new(1),
        }
    }
}

impl Merging {
    /// How many values are read from Y with one overlapped read.
    pub(super) fn at_once(&self) -> usize {
        self.at_once.load(Relaxed)
    }

    /// So many were read, of `largest` bytes at most with all that belongs to them; `limit`: the
    /// budget. Of several that tell this at once one may be forgotten.
    pub(super) fn have_read(&self, values: usize, largest: usize, limit: usize) {
        let now = self.at_once();
        let grown = match values >= now {
            true => now * 2,
            false => now,
        };
        let most = limit / AT_ONCE_DIVISOR / largest.max(1);
        let next = grown.min(most).clamp(1, MOST_AT_ONCE);
        if next != now {
            self.at_once.store(next, Relaxed);
        }
    }
}

/// What a read does with the operand that it meets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Meeting {
    /// Resolves it, if there is room at once.
    Resolve,
    /// Leaves it.
    Look,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i7_as_many_values_are_read_at_once_as_the_largest_of_them_allows() {
        let merging = Merging::default();
        let limit = AT_ONCE_DIVISOR << 20;
        let mut read = Vec::new();
        for _ in 0..12 {
            read.push(merging.at_once());
            merging.have_read(merging.at_once(), 1 << 10, limit);
        }
        assert_eq!(read, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024]);
        merging.have_read(1, 1 << 18, limit);
        assert_eq!(merging.at_once(), 4);
        merging.have_read(3, 8, limit);
        assert_eq!(merging.at_once(), 4, "few tell nothing of many");
        merging.have_read(4, usize::MAX, limit);
        assert_eq!(merging.at_once(), 1);
    }
}
