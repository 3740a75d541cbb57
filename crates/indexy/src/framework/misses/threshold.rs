//! Which estimates are among the highest percent of those that came lately.
//!
//! A histogram of the last few thousand estimates. Where an estimate has more ties than there is
//! room for, a part of them is let through, evenly: so the part that passes is the percent that was
//! asked for, whatever the estimates are. Above all a first read of a key passes now and then where
//! nearly all reads are first ones.
//!
//! Threads: any, without a lock; counts that meet a halving may be lost.

#![forbid(unsafe_code)]

use super::sketch::MOST;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Everything counted is halved when so many estimates are in the histogram.
const RECENT: u32 = 8192;

/// A whole estimate, as a share of its ties.
const WHOLE: u64 = 1 << 16;

/// See the module header.
#[derive(Debug)]
pub(super) struct Threshold {
    percent: u8,
    recent: [AtomicU32; MOST as usize + 1],
    /// What ties have saved up; each [`WHOLE`] lets one through.
    credit: AtomicU32,
}

impl Threshold {
    /// `percent`: 1 to 100.
    pub(super) fn new(percent: u8) -> Self {
        Self {
            percent,
            recent: Default::default(),
            credit: AtomicU32::new(0),
        }
    }

    /// Counts an estimate of 1 to [`MOST`]; whether it is among the highest percent.
    pub(super) fn passes(&self, estimate: u8) -> bool {
        let at = usize::from(estimate.min(MOST));
        self.recent[at].fetch_add(1, Relaxed);
        let counts = self.recent.each_ref().map(|n| u64::from(n.load(Relaxed)));
        let all: u64 = counts.iter().sum();
        if all >= RECENT.into() {
            for n in &self.recent {
                n.store(n.load(Relaxed) / 2, Relaxed);
            }
        }
        // In hundredths of an estimate.
        let above = counts[at + 1..].iter().sum::<u64>() * 100;
        let room = (all * u64::from(self.percent)).saturating_sub(above);
        let share = room * WHOLE / (counts[at] * 100).max(1);
        if share >= WHOLE {
            return true;
        }
        let saved = self.credit.fetch_add(share as u32, Relaxed);
        u64::from(saved) % WHOLE + share >= WHOLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::StdRng};

    /// How many of each estimate pass, of those that `next` makes.
    fn passed(percent: u8, n: u32, mut next: impl FnMut(u32) -> u8) -> Vec<(u8, u32, u32)> {
        let threshold = Threshold::new(percent);
        let mut all = vec![(0, 0); usize::from(MOST) + 1];
        for i in 0..n {
            let estimate = next(i);
            let (came, passed) = &mut all[usize::from(estimate)];
            *came += 1;
            *passed += u32::from(threshold.passes(estimate));
        }
        let all = (0..).zip(all).filter(|(_, (came, _))| *came > 0);
        all.map(|(estimate, (came, passed))| (estimate, came, passed))
            .collect()
    }

    fn about(n: u32, expected: u32) -> bool {
        n.abs_diff(expected) * 20 <= expected + 20
    }

    #[test]
    fn as_many_pass_as_were_asked_for() {
        for percent in [1, 5, 20, 50, 99, 100] {
            let mut random = StdRng::seed_from_u64(percent.into());
            let spread = |_| random.random_range(1..=MOST);
            for passed in [
                passed(percent, 100_000, spread),
                passed(percent, 100_000, |_| 1),
            ] {
                let all: u32 = passed.iter().map(|(_, _, n)| n).sum();
                assert!(about(all, 1000 * u32::from(percent)), "{percent}: {all}");
            }
        }
    }

    #[test]
    fn the_highest_pass_all_the_lowest_none() {
        // Of 100: 4 with 9, 6 with 5, 90 with 1.
        let next = |i: u32| match i * 37 % 100 {
            0..4 => 9,
            4..10 => 5,
            _ => 1,
        };
        let found = passed(7, 100_000, next);
        let [(1, _, low), (5, _, middle), (9, all, high)] = found[..] else {
            panic!("{found:?}");
        };
        assert!(about(high, all), "{found:?}");
        assert!(about(middle, 3000), "{found:?}");
        assert!(low < 100, "{found:?}");
        assert!(
            passed(100, 1000, next)
                .iter()
                .all(|(_, came, passed)| came == passed)
        );
    }

    #[test]
    fn it_follows_what_comes() {
        // What was high is low later.
        let found = passed(10, 200_000, |i| match i {
            0..100_000 => [1, 1, 1, 1, 1, 1, 1, 1, 1, 2][i as usize % 10],
            _ => [2, 2, 2, 2, 2, 2, 2, 2, 2, 6][i as usize % 10],
        });
        let [(1, _, low), (2, _, middle), (6, _, high)] = found[..] else {
            panic!("{found:?}");
        };
        assert!(low < 200 && about(high, 10_000), "{found:?}");
        assert!((9_500..12_500).contains(&middle), "{found:?}");
    }
}
