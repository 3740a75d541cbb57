//! How many values are read at once where nobody knows how large they are.
//!
//! Keeps: I7. What is read is not counted in the budget: it is as many values as take a small part
//! of it when they are as large as the largest of the last ones. It begins with one, and doubles.
//!
//! Threads: any. Of several that tell at once what they have read one may be forgotten.

#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Values that are read at once, at most.
const MOST: usize = 1024;
/// The part of the budget that they take.
const BUDGET_DIVISOR: usize = 64;

/// See the module header.
pub(super) struct AtOnce(AtomicUsize);

impl Default for AtOnce {
    fn default() -> Self {
        Self(AtomicUsize::new(1))
    }
}

impl AtOnce {
    /// So many may be read.
    pub(super) fn now(&self) -> usize {
        self.0.load(Relaxed)
    }

    /// So many were read, of `largest` bytes at most with all that belongs to them; `limit`: the
    /// budget.
    pub(super) fn have_read(&self, values: usize, largest: usize, limit: usize) {
        let now = self.now();
        let grown = match values >= now {
            true => now * 2,
            false => now,
        };
        let most = limit / BUDGET_DIVISOR / largest.max(1);
        let next = grown.min(most).clamp(1, MOST);
        if next != now {
            self.0.store(next, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i7_as_many_values_are_read_at_once_as_the_largest_of_them_allows() {
        let at_once = AtOnce::default();
        let limit = BUDGET_DIVISOR << 20;
        let mut read = Vec::new();
        for _ in 0..12 {
            read.push(at_once.now());
            at_once.have_read(at_once.now(), 1 << 10, limit);
        }
        assert_eq!(read, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024]);
        at_once.have_read(1, 1 << 18, limit);
        assert_eq!(at_once.now(), 4);
        at_once.have_read(3, 8, limit);
        assert_eq!(at_once.now(), 4, "few tell nothing of many");
        at_once.have_read(4, usize::MAX, limit);
        assert_eq!(at_once.now(), 1);
    }
}
