//! YCSB's latest: the newest items are the most popular, while items are being added.
//!
//! Several threads insert, so the newest number whose predecessors are all acknowledged is not the
//! number that was handed out last; [`Acknowledged`] keeps both.

use super::{rng::Rng, zipf::Zipf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Hands out numbers to insert and knows up to which all have been inserted.
#[derive(Debug)]
pub struct Acknowledged {
    next: AtomicU64,
    /// All numbers below are acknowledged.
    limit: AtomicU64,
    window: Vec<AtomicBool>,
}

/// Inserts under way at a time; far more than threads.
const WINDOW: usize = 1 << 16;

impl Acknowledged {
    /// The first number handed out is `first`; all below count as acknowledged.
    pub fn new(first: u64) -> Self {
        Self {
            next: AtomicU64::new(first),
            limit: AtomicU64::new(first),
            window: (0..WINDOW).map(|_| AtomicBool::new(false)).collect(),
        }
    }

    /// A number that no one else gets.
    pub fn take(&self) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        // A slot is free again once the limit has passed its last user. Only a caller that
        // died between take and acknowledge could hold it up, and that ends the run anyway.
        while number >= self.limit.load(Ordering::Acquire) + WINDOW as u64 {
            std::thread::yield_now();
        }
        number
    }

    /// Says that `number` has been inserted.
    pub fn acknowledge(&self, number: u64) {
        // Everything here is SeqCst: a thread that sets its slot and then reads an old limit must
        // be seen by the thread that moved the limit and then looked at that slot.
        self.slot(number).store(true, Ordering::SeqCst);
        loop {
            let limit = self.limit.load(Ordering::SeqCst);
            if !self.slot(limit).swap(false, Ordering::SeqCst) {
                return;
            }
            let moved =
                self.limit
                    .compare_exchange(limit, limit + 1, Ordering::SeqCst, Ordering::SeqCst);
            if moved.is_err() {
                // We slept, and the slot already belongs to a later number: give it back and look
                // again.
                self.slot(limit).store(true, Ordering::SeqCst);
            }
        }
    }

    /// All numbers below have been inserted.
    #[inline]
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Acquire)
    }

    fn slot(&self, number: u64) -> &AtomicBool {
        &self.window[number as usize % WINDOW]
    }
}

/// The distribution over `first..first + items`, the newest most popular.
#[derive(Debug, Clone, Copy)]
pub struct Latest {
    zipf: Zipf,
}

impl Latest {
    /// `exponent` is 0.99 in YCSB.
    pub fn new(items: u64, exponent: f64) -> Self {
        Self {
            zipf: Zipf::new(items.max(1), exponent),
        }
    }

    /// Draws a number of `first..limit`.
    #[inline]
    pub fn sample(&mut self, first: u64, limit: u64, rng: &mut Rng) -> u64 {
        self.zipf.set_items(limit.saturating_sub(first).max(1));
        limit.max(first + 1) - 1 - self.zipf.sample(rng)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::rng;

    #[test]
    fn the_limit_waits_for_the_slowest() {
        let acknowledged = Acknowledged::new(10);
        let (a, b, c) = (
            acknowledged.take(),
            acknowledged.take(),
            acknowledged.take(),
        );
        acknowledged.acknowledge(c);
        acknowledged.acknowledge(b);
        assert_eq!(acknowledged.limit(), 10);
        acknowledged.acknowledge(a);
        assert_eq!(acknowledged.limit(), 13);
    }

    #[test]
    fn four_threads_lose_no_number() {
        let acknowledged = Acknowledged::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100_000 {
                        let n = acknowledged.take();
                        acknowledged.acknowledge(n);
                    }
                });
            }
        });
        assert_eq!(acknowledged.limit(), 400_000);
    }

    #[test]
    fn the_newest_is_drawn_most() {
        let mut latest = Latest::new(100, 0.99);
        let mut rng = rng(7, 0, 0);
        let mut counts = [0u32; 201];
        for _ in 0..50_000 {
            counts[latest.sample(100, 201, &mut rng) as usize] += 1;
        }
        assert_eq!(counts[..100].iter().sum::<u32>(), 0);
        assert!(counts[200] > counts[199] && counts[199] > counts[190]);
    }
}
