//! When the filters of LSM trees borrow memory from Index X.
//!
//! A key that is not there, in a stretch that is not all in X, costs a read unless a filter denies
//! it. Filters share a small part of the budget with the pages of Y, in which those of many keys
//! have no place. Memory goes where a byte of it saves more reads: one of filters saves the absent
//! keys that are looked for, divided by the bytes of all filters of the tree; one of X saves its
//! hits, divided by its bytes. The last bytes that X would give save less than that, so X is
//! favoured, and what is lent comes back only when filters save half of it, for a while: the pages
//! of filters have to be read again.
//!
//! Pure but for the loans, which readers count in.

#![forbid(unsafe_code)]

use crate::y::pool::loan::FilterLoan;
use std::{
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

/// What is saved is compared so often.
const WINDOW: Duration = Duration::from_millis(400);
/// Fewer reads than these in a window tell nothing.
const LEAST_READS: u64 = 256;
/// A loan ends after so many windows in a row in which X would save more.
const PATIENCE: u32 = 5;
/// Filters borrow at most this part of the budget,
const MOST_DIVISOR: usize = 4;
/// and this part of what X could have for what it may release.
const LEFT_DIVISOR: usize = 2;
/// A smaller change than this part of the budget is not made.
pub(super) const STEP_DIVISOR: usize = 128;

/// What the caches of Y have, in bytes.
pub(crate) struct Division {
    /// Of all kinds together.
    pub(super) caches: usize,
    /// What filters have beside that.
    pub(super) lent: usize,
    pub(super) lender: Lender,
}

impl Division {
    pub(crate) fn new(caches: usize) -> Self {
        Self {
            caches,
            lent: 0,
            lender: Lender::new(),
        }
    }
}

/// What X did since the last look.
#[derive(Debug, Clone, Copy)]
pub(super) struct OfX {
    /// All hits so far.
    pub(super) hits: u64,
    pub(super) bytes: usize,
    /// Bytes that nobody has, below where X has to release.
    pub(super) spare: usize,
}

/// What filters did in the same time.
#[derive(Debug, Clone, Copy)]
struct OfFilters {
    /// Absent keys that were looked for.
    absent: u64,
    /// Bytes of all filters of the tree.
    all: usize,
    /// Those that have no place without a loan.
    needed: usize,
    lent: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Lend,
    Keep,
    TakeBack,
}

/// Who saves more. `hits` of X are those of the window.
fn verdict(filters: OfFilters, x: OfX, hits: u64) -> Verdict {
    let OfFilters { absent, needed, .. } = filters;
    if needed == 0 {
        return Verdict::TakeBack;
    }
    if absent.max(hits) < LEAST_READS {
        return Verdict::Keep;
    }
    let saved = absent as f64 / filters.all.max(1) as f64;
    let by_x = hits as f64 / x.bytes.max(1) as f64;
    let free = match filters.lent {
        // More than a release leaves by chance.
        true => x.spare > needed / 4,
        false => x.spare > needed,
    };
    match absent >= LEAST_READS && (free || saved >= by_x) {
        true => Verdict::Lend,
        false if !free && saved < by_x / 2.0 => Verdict::TakeBack,
        false => Verdict::Keep,
    }
}

/// A tree whose filters may borrow.
struct Borrower {
    loan: Weak<FilterLoan>,
    borrows: bool,
    /// Windows in a row in which X would have saved more.
    against: u32,
}

/// Looks who saves more, and says what to lend.
pub(super) struct Lender {
    looked: Instant,
    hits: u64,
    borrowers: Vec<Borrower>,
}

impl Lender {
    pub(super) fn new() -> Self {
        Self {
            looked: Instant::now(),
            hits: 0,
            borrowers: Vec::new(),
        }
    }

    /// Whether it is time to [`look`](Self::look) again.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        now.duration_since(self.looked) >= WINDOW
    }

    /// Compares what filters and X saved since the last look.
    pub(super) fn look(&mut self, now: Instant, loans: &[Arc<FilterLoan>], x: OfX) {
        let hits = x.hits.saturating_sub(self.hits);
        (self.looked, self.hits) = (now, x.hits);
        let known = std::mem::take(&mut self.borrowers);
        for loan in loans {
            let was = known.iter().find(|b| b.loan.as_ptr() == Arc::as_ptr(loan));
            let (mut borrows, mut against) = was.map_or((false, 0), |b| (b.borrows, b.against));
            let filters = OfFilters {
                absent: loan.take_absent(),
                all: loan.all(),
                needed: loan.needed(),
                lent: loan.lent() > 0,
            };
            match verdict(filters, x, hits) {
                Verdict::Lend => (borrows, against) = (true, 0),
                Verdict::Keep => against = 0,
                Verdict::TakeBack => against += 1,
            }
            borrows &= against < PATIENCE;
            self.borrowers.push(Borrower {
                loan: Arc::downgrade(loan),
                borrows,
                against,
            });
        }
    }

    /// What the filters that may borrow need, in bytes.
    pub(super) fn asked(&self) -> usize {
        let borrowers = self.borrowers.iter().filter(|b| b.borrows);
        borrowers
            .filter_map(|b| b.loan.upgrade())
            .map(|loan| loan.needed())
            .sum()
    }

    /// Hands `bytes` out, to each who may borrow by what it needs.
    pub(super) fn hand_out(&self, bytes: usize) {
        let asked = self.asked().max(1) as f64;
        for borrower in &self.borrowers {
            let Some(loan) = borrower.loan.upgrade() else {
                continue;
            };
            let part = loan.needed() as f64 / asked * bytes as f64;
            loan.lend(match borrower.borrows {
                true => (part as usize).min(loan.needed()),
                false => 0,
            });
        }
    }
}

/// The most that is ever lent of a budget of `limit` bytes.
pub(super) fn offered(limit: usize) -> usize {
    limit / MOST_DIVISOR
}

/// The most that may be lent now of a budget of `limit` bytes, of which X may have `room`, the
/// memory that is lent included, and can release all but `kept`; writers wait for `wanted`. Pure.
pub(super) fn most(limit: usize, room: usize, kept: usize, wanted: usize) -> usize {
    let left = room.saturating_sub(kept) / LEFT_DIVISOR;
    left.saturating_sub(wanted).min(offered(limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn x(hits: u64, spare: usize) -> OfX {
        OfX {
            hits,
            bytes: 100 * MIB,
            spare,
        }
    }

    fn of_filters(absent: u64) -> OfFilters {
        OfFilters {
            absent,
            all: 25 * MIB,
            needed: 20 * MIB,
            lent: false,
        }
    }

    #[test]
    fn memory_goes_where_a_byte_of_it_saves_more() {
        let verdict = |absent, hits, lent| {
            let filters = OfFilters {
                lent,
                ..of_filters(absent)
            };
            verdict(filters, x(hits, 0), hits)
        };
        for lent in [false, true] {
            // Four bytes of X for one of filters.
            assert_eq!(verdict(10_000, 39_000, lent), Verdict::Lend);
            assert_eq!(verdict(10_000, 41_000, lent), Verdict::Keep);
            assert_eq!(verdict(10_000, 81_000, lent), Verdict::TakeBack);
            assert_eq!(verdict(0, 10_000, lent), Verdict::TakeBack);
            // Nobody reads: nothing is known.
            assert_eq!(verdict(0, 0, lent), Verdict::Keep);
            assert_eq!(verdict(LEAST_READS - 1, 0, lent), Verdict::Keep);
        }
    }

    #[test]
    fn memory_that_nobody_has_is_lent_and_stays_lent() {
        let filters = of_filters(1000);
        assert_eq!(
            verdict(filters, x(1 << 40, 19 * MIB), 1 << 40),
            Verdict::TakeBack
        );
        assert_eq!(
            verdict(filters, x(1 << 40, 21 * MIB), 1 << 40),
            Verdict::Lend
        );
        let filters = OfFilters {
            lent: true,
            absent: 0,
            ..filters
        };
        let after = |spare| verdict(filters, x(1 << 40, spare), 1 << 40);
        assert_eq!(after(6 * MIB), Verdict::Keep);
        assert_eq!(after(4 * MIB), Verdict::TakeBack);
        let fits = OfFilters {
            needed: 0,
            ..of_filters(1000)
        };
        assert_eq!(verdict(fits, x(0, 21 * MIB), 0), Verdict::TakeBack);
    }

    #[test]
    fn a_loan_outlives_a_moment_without_absent_keys_and_no_more() {
        let (mut lender, mut now) = (Lender::new(), Instant::now());
        let loans = [Arc::new(FilterLoan::default())];
        loans[0].need(25 * MIB, 5 * MIB);
        let mut hits = 0;
        let mut look = |lender: &mut Lender, absent: u64, more: u64| {
            assert!(!lender.is_due(now));
            now += WINDOW;
            assert!(lender.is_due(now));
            hits += more;
            loans[0].note_absent(absent);
            lender.look(now, &loans, x(hits, 0));
            lender.asked()
        };
        assert_eq!(look(&mut lender, 100_000, 0), 20 * MIB);
        lender.hand_out(15 * MIB);
        assert_eq!(loans[0].lent(), 15 * MIB);
        for _ in 0..3 {
            for _ in 1..PATIENCE {
                assert_eq!(look(&mut lender, 0, 50_000), 20 * MIB);
            }
            assert_eq!(look(&mut lender, 100_000, 0), 20 * MIB);
        }
        for _ in 1..PATIENCE {
            look(&mut lender, 0, 50_000);
        }
        assert_eq!(look(&mut lender, 0, 50_000), 0);
        lender.hand_out(0);
        assert_eq!(loans[0].lent(), 0);
    }

    #[test]
    fn trees_share_a_loan_by_what_they_need() {
        let mut lender = Lender::new();
        let loans: Vec<_> = [30, 10, 5].map(|_| Arc::new(FilterLoan::default())).into();
        for (loan, mib) in loans.iter().zip([30, 10, 5]) {
            loan.need(mib * MIB, 0);
            loan.note_absent(if mib == 5 { 0 } else { 1_000_000 });
        }
        lender.look(Instant::now(), &loans, x(1000, 0));
        assert_eq!(lender.asked(), 40 * MIB);
        lender.hand_out(20 * MIB);
        let lent: Vec<_> = loans.iter().map(|loan| loan.lent() / MIB).collect();
        assert_eq!(lent, [15, 5, 0]);
    }

    /// I7: what cannot be released, and what writers wait for, comes first.
    #[test]
    fn i7_x_keeps_what_it_needs() {
        let limit = 160 * MIB;
        assert_eq!(most(limit, 100 * MIB, 0, 0), 40 * MIB);
        assert_eq!(most(limit, 100 * MIB, 60 * MIB, 0), 20 * MIB);
        assert_eq!(most(limit, 100 * MIB, 60 * MIB, 15 * MIB), 5 * MIB);
        assert_eq!(most(limit, 100 * MIB, 100 * MIB, 0), 0);
    }
}
