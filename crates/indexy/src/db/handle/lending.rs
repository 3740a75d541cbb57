//! When the filters of LSM trees borrow memory from Index X.
//!
//! A key that is not there, in a stretch that is not all in X, costs a read unless a filter denies
//! it. Filters share a small part of the budget with the pages of Y, in which those of many keys
//! have no place. Memory goes where a byte of it saves more reads: one of filters saves the absent
//! keys that are looked for, divided by the bytes of all filters of the tree; one of X saves what X
//! answers, and some for writes that it gathers, divided by its bytes. The last bytes that X would
//! give save less than that, so X is favoured. What is lent comes back when filters save less than
//! half of it for a while: the pages of filters have to be read again.
//!
//! Pure but for the loans, which readers count in.

#![forbid(unsafe_code)]

use crate::y::pool::loan::FilterLoan;
use std::{
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

/// What is saved is compared so often,
const WINDOW: Duration = Duration::from_millis(400);
/// when there were so many reads since the last time,
const LEAST_READS: u64 = 256;
/// or after so long.
const LONGEST_WINDOW: Duration = Duration::from_secs(10);
/// A loan ends after so many times in a row that X would have saved more.
const PATIENCE: u32 = 5;
/// What could not be lent, or had to be given back, is not asked for again for so long.
const BACK_OFF: Duration = Duration::from_secs(5);
/// X is to make room within this time.
const MAKING_ROOM: Duration = Duration::from_secs(2);
/// Filters borrow at most this part of the budget,
const MOST_DIVISOR: usize = 4;
/// and this part of what X could have for what it may release.
const LEFT_DIVISOR: usize = 2;
/// A smaller change than this part of the budget is not made.
const SMALL_DIVISOR: usize = 128;
/// Loans grow and shrink by this part of it at a time, so that nobody waits for all of it.
const STEP_DIVISOR: usize = 32;

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

/// What X did so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct OfX {
    /// Reads that it answered.
    pub(super) answered: u64,
    /// Bytes of it that may be released.
    pub(super) bytes: usize,
    /// Bytes that nobody has, below where X has to release.
    pub(super) spare: usize,
}

/// What filters did since the last look.
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

/// Who saves more; `answered` by X in the same time.
fn verdict(filters: OfFilters, x: OfX, answered: u64) -> Verdict {
    let OfFilters { absent, needed, .. } = filters;
    // What is free after a loan keeps it, with something between.
    let free = match filters.lent {
        true => x.spare > needed / 4,
        false => x.spare > needed + needed / 2,
    };
    if needed == 0 {
        return Verdict::TakeBack;
    }
    if absent < LEAST_READS {
        return if free {
            Verdict::Keep
        } else {
            Verdict::TakeBack
        };
    }
    let saved = absent as f64 / filters.all.max(1) as f64;
    let by_x = answered as f64 / x.bytes.max(1) as f64;
    match free || saved >= by_x {
        true => Verdict::Lend,
        false if saved < by_x / 2.0 => Verdict::TakeBack,
        false => Verdict::Keep,
    }
}

/// A tree whose filters may borrow.
struct Borrower {
    loan: Weak<FilterLoan>,
    borrows: bool,
    /// Looks in a row at which X would have saved more.
    against: u32,
}

/// Looks who saves more, and says what to lend.
pub(super) struct Lender {
    /// When what is saved was compared.
    looked: Instant,
    due: Instant,
    answered: u64,
    borrowers: Vec<Borrower>,
    /// Nothing more is lent until then.
    resting: Option<Instant>,
    /// Since when X is to make room.
    owed_since: Option<Instant>,
}

impl Lender {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            looked: now,
            due: now + WINDOW,
            answered: 0,
            borrowers: Vec::new(),
            resting: None,
            owed_since: None,
        }
    }

    /// Whether it is time to [`look`](Self::look) again.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        now >= self.due
    }

    /// Compares what filters and X saved since the last look, if that was enough to tell.
    pub(super) fn look(&mut self, now: Instant, loans: &[Arc<FilterLoan>], x: OfX) {
        self.due = now + WINDOW;
        let answered = x.answered.saturating_sub(self.answered);
        let absent = loans.iter().map(|loan| loan.absent()).max();
        let most = answered.max(absent.unwrap_or(0));
        if most < LEAST_READS && now.duration_since(self.looked) < LONGEST_WINDOW {
            return;
        }
        (self.looked, self.answered) = (now, x.answered);
        let (mut x, known) = (x, std::mem::take(&mut self.borrowers));
        for loan in loans {
            let was = known.iter().find(|b| b.loan.as_ptr() == Arc::as_ptr(loan));
            let (mut borrows, mut against) = was.map_or((false, 0), |b| (b.borrows, b.against));
            let filters = OfFilters {
                absent: loan.take_absent(),
                all: loan.all(),
                needed: loan.needed(),
                lent: borrows,
            };
            match verdict(filters, x, answered) {
                Verdict::Lend if !borrows => {
                    (borrows, against) = (true, 0);
                    x.spare = x.spare.saturating_sub(filters.needed);
                }
                Verdict::Lend | Verdict::Keep => against = 0,
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

    /// Nothing more is to be lent for a while.
    pub(super) fn rest(&mut self, now: Instant) {
        self.resting = Some(now + BACK_OFF);
        self.owed_since = None;
    }

    pub(super) fn rests(&self, now: Instant) -> bool {
        self.resting.is_some_and(|until| now < until)
    }

    /// X is to make room, or has made it. It is not asked for ever: there may be nothing that it
    /// can release.
    pub(super) fn owe(&mut self, now: Instant, owed: bool) {
        self.owed_since = match (owed, self.owed_since) {
            (false, _) => None,
            (true, None) => Some(now),
            (true, since) => since,
        };
        let since = self.owed_since;
        if since.is_some_and(|since| now.duration_since(since) >= MAKING_ROOM) {
            self.rest(now);
        }
    }
}

/// The next change of a loan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Nothing,
    To(usize),
}

/// From `lent` bytes to `asked`, of which `most` may be, under `limit`; in steps. `steady`: no more
/// than there is. Pure.
pub(super) fn next(lent: usize, asked: usize, most: usize, limit: usize, steady: bool) -> Next {
    let (small, step) = (limit / SMALL_DIVISOR, limit / STEP_DIVISOR);
    let asked = match lent > most {
        // With something to spare, or the next moment would take back more.
        true => asked.min(most.saturating_sub(small)),
        false => asked.min(most),
    };
    let forced = lent > most || asked == 0;
    if asked == lent || !forced && asked.abs_diff(lent) < small || steady && asked > lent {
        return Next::Nothing;
    }
    Next::To(asked.clamp(lent.saturating_sub(step), lent + step))
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
    use crate::y::pool::loan::Borrowers;

    const MIB: usize = 1 << 20;

    fn x(answered: u64, spare: usize) -> OfX {
        OfX {
            answered,
            bytes: 100 * MIB,
            spare,
        }
    }

    fn of_filters(absent: u64, lent: bool) -> OfFilters {
        OfFilters {
            absent,
            all: 25 * MIB,
            needed: 20 * MIB,
            lent,
        }
    }

    fn loans<const N: usize>(all: [usize; N], usual: usize) -> [Arc<FilterLoan>; N] {
        let together: Arc<Borrowers> = Arc::default();
        let loans = all.map(|_| Arc::new(FilterLoan::new(&together)));
        for (loan, all) in loans.iter().zip(all) {
            loan.need(all, usual);
        }
        loans
    }

    #[test]
    fn memory_goes_where_a_byte_of_it_saves_more() {
        for lent in [false, true] {
            let verdict = |absent, answered| {
                let filters = of_filters(absent, lent);
                verdict(filters, x(answered, 0), answered)
            };
            // Four bytes of X for one of filters.
            assert_eq!(verdict(10_000, 39_000), Verdict::Lend);
            assert_eq!(verdict(10_000, 41_000), Verdict::Keep);
            assert_eq!(verdict(10_000, 81_000), Verdict::TakeBack);
            assert_eq!(verdict(0, 10_000), Verdict::TakeBack);
            // Hardly anybody asks: whatever X does, it wants for memory.
            assert_eq!(verdict(LEAST_READS - 1, 0), Verdict::TakeBack);
        }
    }

    #[test]
    fn memory_that_nobody_has_is_lent_and_stays_lent() {
        let many = 1 << 40;
        let needed = of_filters(0, false).needed;
        let mut lends = 0;
        for spare in (0..60 * MIB).step_by(MIB) {
            let before = verdict(of_filters(1000, false), x(many, spare), many);
            if before != Verdict::Lend {
                continue;
            }
            lends += 1;
            let left = spare - needed;
            for absent in [0, 1000] {
                let after = verdict(of_filters(absent, true), x(many, left), many);
                assert_ne!(after, Verdict::TakeBack, "{spare} bytes were free");
            }
        }
        assert!((20..40).contains(&lends), "{lends}");
        let fits = OfFilters {
            needed: 0,
            ..of_filters(1000, true)
        };
        assert_eq!(verdict(fits, x(0, 60 * MIB), 0), Verdict::TakeBack);
    }

    /// What `lender` asks for after a window with so much in it.
    fn look(
        lender: &mut Lender,
        now: &mut Instant,
        loans: &[Arc<FilterLoan>],
        (absent, answered): (u64, u64),
    ) -> usize {
        *now += WINDOW;
        assert!(lender.is_due(*now));
        loans[0].note_absent(absent);
        lender.look(*now, loans, x(lender.answered + answered, 0));
        assert!(!lender.is_due(*now));
        lender.asked()
    }

    #[test]
    fn a_loan_outlives_a_moment_without_absent_keys_and_no_more() {
        let (mut lender, mut now) = (Lender::new(), Instant::now());
        let loans = loans([25 * MIB], 5 * MIB);
        let mut look = |of| look(&mut lender, &mut now, &loans, of);
        assert_eq!(look((100_000, 0)), 20 * MIB);
        for _ in 0..3 {
            for _ in 1..PATIENCE {
                assert_eq!(look((0, 50_000)), 20 * MIB);
            }
            assert_eq!(look((100_000, 0)), 20 * MIB);
        }
        for _ in 1..PATIENCE {
            look((0, 50_000));
        }
        assert_eq!(look((0, 50_000)), 0);
    }

    /// Few reads, or none: it takes longer, and ends all the same.
    #[test]
    fn a_loan_ends_where_hardly_anybody_reads() {
        for answered in [0, 10, 200] {
            let (mut lender, mut now) = (Lender::new(), Instant::now());
            let loans = loans([25 * MIB], 5 * MIB);
            look(&mut lender, &mut now, &loans, (100_000, 0));
            let begun = now;
            while look(&mut lender, &mut now, &loans, (0, answered)) > 0 {
                assert!(now - begun < 7 * LONGEST_WINDOW, "{answered}");
            }
            assert!(now - begun > PATIENCE * WINDOW);
        }
        // Few absent keys at a time add up.
        let (mut lender, mut now) = (Lender::new(), Instant::now());
        let loans = loans([25 * MIB], 5 * MIB);
        let of = (LEAST_READS / 4, 0);
        assert_eq!(look(&mut lender, &mut now, &loans, of), 0);
        for _ in 0..3 {
            look(&mut lender, &mut now, &loans, of);
        }
        assert_eq!(lender.asked(), 20 * MIB);
    }

    #[test]
    fn trees_share_a_loan_by_what_they_need() {
        let mut lender = Lender::new();
        let loans = loans([30 * MIB, 10 * MIB, 5 * MIB], 0);
        let note = |absent: [u64; 3]| {
            let each = loans.iter().zip(absent);
            each.for_each(|(loan, absent)| loan.note_absent(absent));
        };
        let lent = |lender: &Lender| {
            lender.hand_out(20 * MIB);
            loans.each_ref().map(|loan| loan.lent() / MIB)
        };
        note([1_000_000, 1_000_000, 0]);
        lender.look(Instant::now(), &loans, x(1000, 0));
        assert_eq!(lender.asked(), 40 * MIB);
        assert_eq!(lent(&lender), [15, 5, 0]);
        // One is not asked any more, and another is.
        for n in 1..=PATIENCE {
            note([0, 1_000_000, 1_000_000]);
            lender.look(Instant::now(), &loans, x(n as u64 * 2_000_000, 0));
        }
        assert_eq!(lent(&lender), [0, 10, 5]);
    }

    /// What filters have without a loan is one room for all trees of the pool.
    #[test]
    fn many_small_trees_need_as_much_as_a_large_one() {
        let [one] = loans([200 * MIB], 5 * MIB);
        let many = loans([MIB; 200], 5 * MIB);
        let needed: usize = many.iter().map(|loan| loan.needed()).sum();
        assert!(needed.abs_diff(one.needed()) < MIB / 100, "{needed}");
        many[0].together().offer(40 * MIB);
        assert_eq!(many[7].offered(), 40 * MIB / 200);
        let [large, small] = loans([30 * MIB, 10 * MIB], 0);
        large.together().offer(40 * MIB);
        // By its bytes, and what each of two would have.
        assert_eq!(large.offered(), 30 * MIB);
        assert_eq!(small.offered(), 20 * MIB);
        drop(large);
        assert_eq!(small.offered(), 40 * MIB);
    }

    /// Steps from `lent` until nothing changes any more.
    fn steps(lent: usize, asked: usize, most: usize, steady: bool) -> (usize, u32) {
        let (mut lent, mut steps) = (lent, 0);
        while let Next::To(bytes) = next(lent, asked, most, 128 * MIB, steady) {
            assert!(bytes.abs_diff(lent) <= 4 * MIB && bytes != lent);
            (lent, steps) = (bytes, steps + 1);
            assert!(steps < 20);
        }
        (lent, steps)
    }

    #[test]
    fn loans_change_in_steps_and_not_for_little() {
        assert_eq!(steps(0, 20 * MIB, 32 * MIB, false), (20 * MIB, 5));
        assert_eq!(steps(0, 50 * MIB, 32 * MIB, false), (32 * MIB, 8));
        assert_eq!(steps(20 * MIB, 0, 32 * MIB, false), (0, 5));
        let little = 20 * MIB + MIB / 2;
        assert_eq!(steps(20 * MIB, little, 32 * MIB, false), (20 * MIB, 0));
        // Writers wait, or it was taken back a moment ago.
        assert_eq!(steps(8 * MIB, 20 * MIB, 32 * MIB, true), (8 * MIB, 0));
        assert_eq!(steps(20 * MIB, 0, 32 * MIB, true), (0, 5));
        // I7: at once, and a little more, so that the next moment takes back nothing.
        let (lent, _) = steps(20 * MIB, 20 * MIB, 10 * MIB, true);
        assert!((6 * MIB..10 * MIB).contains(&lent), "{lent}");
        assert_eq!(steps(20 * MIB, 20 * MIB, 0, true).0, 0);
    }

    #[test]
    fn room_that_does_not_come_is_not_waited_for() {
        let (mut lender, now) = (Lender::new(), Instant::now());
        lender.owe(now, true);
        lender.owe(now + MAKING_ROOM / 2, false);
        lender.owe(now + MAKING_ROOM, true);
        assert!(!lender.rests(now + MAKING_ROOM));
        lender.owe(now + 2 * MAKING_ROOM, true);
        assert!(lender.rests(now + 2 * MAKING_ROOM));
        assert!(!lender.rests(now + 2 * MAKING_ROOM + BACK_OFF));
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
