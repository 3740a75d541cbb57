//! How the budget is divided between Index X and the caches of Index Y.
//!
//! Source: IndeXY III-A, which compares with systems of one structure. A database that has an Index
//! X gives Y a small, fixed part (`index_y.rs`). One whose trees all have a write buffer alone
//! gives Y everything that the write buffer, the log and Y's own tables leave. That changes: tables
//! grow, and a batch may need more than the write buffer at once. The caches shrink at once, and
//! grow when X has made room. Beside an X, filters of LSM trees borrow from it (`lending.rs`).
//!
//! Keeps: I7 (the caches never grow into memory that something else has).
//! Threads: any; one divides at a time. Under its lock those of the list of trees and of the caches
//! are taken, each for a moment.

#![forbid(unsafe_code)]

use super::{
    core::Core,
    lending::{self, Division, Next, OfX},
};
use crate::{
    db::{index_y, kinds::IndexYKind, machine},
    framework::memory::{Holdings as _, Watermarks},
    mem::budget::Holder,
};
use std::time::Instant;

/// The write buffer of trees without an Index X over LSM trees, where it is the memtable, is this
/// part of the budget.
const MEMTABLE_DIVISOR: usize = 8;
/// Over paged trees the write buffer gathers what goes to the same page.
const GATHER_DIVISOR: usize = 16;
/// Radix caches add this part of the budget to the room of the write buffer, which they share.
const RADIX_DIVISOR: usize = 4;
/// What a read-only database replays from its log has to fit without being written away.
const READ_ONLY_DIVISOR: usize = 2;
/// A smaller write buffer would be written away all the time.
const MIN_BUFFER_BYTES: usize = 256 << 10;
/// The caches of such a database change their size by this part of the budget, because some forget
/// all when they do.
const STEP_DIVISOR: usize = 32;

/// Writes that X gathers until they share a page of Y, about.
const GATHERED_IN_A_PAGE: u64 = 16;

/// What the division depends on, in bytes.
#[derive(Debug, Clone, Copy)]
struct Needs {
    limit: usize,
    /// The log's buffers, runs in flight, tables of Y, caches that cannot shrink.
    fixed: usize,
    /// What the write buffer is to hold.
    buffer: usize,
    /// What X holds now. A writer cannot get all of it: a slab comes back only when it is empty.
    x: usize,
    /// What a writer waits for.
    wanted: usize,
}

/// Bytes for the caches of Y where there is no Index X. Pure.
fn without_x(needs: Needs) -> usize {
    let Needs { limit, fixed, .. } = needs;
    let step = limit / STEP_DIVISOR;
    let taken = fixed + needs.buffer.max(needs.wanted + needs.x.min(needs.buffer));
    let rest = Watermarks::of(limit).low.saturating_sub(taken);
    (rest / step * step).max(index_y::cache_bytes(limit))
}

/// What happens to caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    None,
    /// They are to grow by so many bytes, for which X has to make room.
    Owe(usize),
    To(usize),
}

/// From `now` bytes of caches to `asked`, with `used` bytes in use under `limit`. Pure.
fn change(now: usize, asked: usize, used: usize, limit: usize) -> Change {
    // A little more room is not worth what a cache forgets.
    if (now..now + 2 * (limit / STEP_DIVISOR)).contains(&asked) {
        return Change::None;
    }
    let grow = asked.saturating_sub(now);
    match fits(grow, used, limit) {
        true => Change::To(asked),
        false => Change::Owe(grow),
    }
}

/// Whether caches may grow by `bytes`; what does not grow fits whatever is in use.
fn fits(bytes: usize, used: usize, limit: usize) -> bool {
    let marks = Watermarks::of(limit);
    bytes == 0 || used + bytes <= marks.high.midpoint(marks.hard)
}

impl Core {
    /// The limit of the budget has changed: what depends on it alone follows. Cost: some locks, and
    /// a look at each shard of X's memory; images of snapshots that are past their new limit may be
    /// dropped.
    pub(crate) fn follow_budget(&self) {
        self.memory.follow_budget();
        self.work.follow(&self.budget);
        if self.shared.versions.follow_budget() {
            self.shared.wake_spiller.notify();
        }
    }

    /// What is taken from the budget and does not follow its limit, and what would be taken in one
    /// of `limit` bytes whatever lives in X.
    pub(crate) fn lasting_bytes(&self, limit: usize) -> usize {
        let held = |holder| self.budget.held(holder);
        // What passes by itself is not waited for.
        let passing = held(Holder::Admitted)
            + held(Holder::LogPieces)
            + held(Holder::Scans)
            + held(Holder::Ends)
            + held(Holder::Fetches);
        let follow = passing
            + held(Holder::Arena)
            + held(Holder::IndexY)
            + held(Holder::Filters)
            + self.shared.miss_counts.bytes()
            + self.work.counted();
        let others = self.budget.used().saturating_sub(follow);
        others + index_y::cache_bytes(limit) + self.work.of(limit)
    }

    /// Gives the caches of Y their part of the budget, as it is now. Cost: a lock; now and then a
    /// cache is made anew.
    pub(crate) fn divide_memory(&self) {
        let mut division = self.division.lock();
        let limit = self.budget.limit();
        let machine = machine::usable(limit);
        let owed = match self.write_buffer_bytes(limit) {
            Some(buffer) => {
                self.y_shared.offer(0);
                self.lend(&mut division, 0);
                self.divide_without_x(&mut division, limit, buffer)
            }
            None => {
                self.y_shared.offer(lending::offered(machine));
                self.give_caches(&mut division, index_y::cache_bytes(machine));
                self.divide_for_filters(&mut division, limit)
            }
        };
        self.shared.room.owe_to_y(owed);
        let caches = self.y_shared.memory_bytes();
        self.budget.set(Holder::IndexY, caches);
        let given = division.caches + division.lent;
        let kept = caches.saturating_sub(given);
        self.shared.room.caches_keep(kept);
    }

    /// Gives the caches what trees without an Index X leave; returns what X is to make room for.
    fn divide_without_x(&self, division: &mut Division, limit: usize, buffer: usize) -> usize {
        let now = division.caches;
        // Caches that cannot shrink hold more than they were given.
        let kept = self.y_shared.memory_bytes().saturating_sub(now);
        let asked = without_x(self.needs(limit, buffer, kept)).min(machine::usable(limit));
        match change(now, asked, self.budget.used(), limit) {
            Change::None => 0,
            Change::Owe(bytes) => bytes,
            Change::To(bytes) => {
                self.give_caches(division, bytes);
                0
            }
        }
    }

    fn give_caches(&self, division: &mut Division, bytes: usize) {
        if bytes != division.caches {
            self.y_shared.set_memory(bytes);
            division.caches = bytes;
        }
    }

    /// Lends the filters of LSM trees what they save more reads with than X; returns what X is to
    /// make room for.
    fn divide_for_filters(&self, division: &mut Division, limit: usize) -> usize {
        let now = Instant::now();
        if division.lender.is_due(now) {
            division
                .lender
                .look(now, &self.y_shared.loans(), self.of_x(limit));
            division.lender.hand_out(division.lent);
        }
        let asked = division.lender.asked();
        if asked == 0 && division.lent == 0 {
            return 0;
        }
        let most = self.most_lent(limit, division);
        if division.lent > most {
            division.lender.rest(now);
        }
        let steady = division.lender.rests(now) || self.shared.room.is_awaited();
        let mut owed = 0;
        while let Next::To(bytes) = lending::next(division.lent, asked, most, limit, steady) {
            let grow = bytes.saturating_sub(division.lent);
            if !fits(grow, self.budget.used(), limit) {
                owed = grow;
                break;
            }
            self.lend(division, bytes);
        }
        division.lender.owe(now, owed > 0);
        owed
    }

    fn of_x(&self, limit: usize) -> OfX {
        let counters = &self.shared.counters;
        // A write that X gathers saves a part of a page.
        let gathered = counters.writes() / GATHERED_IN_A_PAGE;
        let bytes = self.budget.held(Holder::Arena);
        OfX {
            answered: counters.hits() + counters.absent_without_io() + gathered,
            bytes: bytes.saturating_sub(self.resident_bytes()),
            spare: Watermarks::of(limit).low.saturating_sub(self.budget.used()),
        }
    }

    fn most_lent(&self, limit: usize, division: &Division) -> usize {
        let room = &self.shared.room;
        if room.y_failure().is_some() {
            // Nothing of X can be made clean.
            return 0;
        }
        let held = |holder| self.budget.held(holder);
        let cached = held(Holder::IndexY);
        // Those that cannot shrink are no room of X.
        let caches = cached.saturating_sub(division.lent).max(division.caches);
        let others = self.budget.used().saturating_sub(held(Holder::Arena));
        let others = others.saturating_sub(cached) + caches;
        let left = Watermarks::of(limit).low.saturating_sub(others);
        let kept = self.resident_bytes() + self.shared.versions.bytes().0;
        let machine = machine::usable(limit);
        lending::most(machine, left, kept, room.writers_want())
    }

    /// Filters have `bytes` of X's memory from now on.
    fn lend(&self, division: &mut Division, bytes: usize) {
        if bytes == division.lent {
            return;
        }
        // They ask for no page that has no place any more, nor for one that has none yet; and what
        // is lent is never counted as somebody else's.
        let shrinks = bytes < division.lent;
        if shrinks {
            division.lender.hand_out(bytes);
        } else {
            self.shared.room.lend_to_y(bytes);
        }
        self.y_shared.lend(bytes);
        self.budget
            .set(Holder::IndexY, self.y_shared.memory_bytes());
        if shrinks {
            self.shared.room.lend_to_y(bytes);
            self.shared.room.announce_freed();
        } else {
            division.lender.hand_out(bytes);
        }
        division.lent = bytes;
    }

    fn needs(&self, limit: usize, buffer: usize, kept: usize) -> Needs {
        let held = [
            Holder::Log,
            Holder::LogPieces,
            Holder::Transfer,
            Holder::IndexYTrees,
            Holder::Filters,
        ];
        Needs {
            limit,
            fixed: kept + held.iter().map(|h| self.budget.held(*h)).sum::<usize>(),
            buffer,
            x: self.budget.held(Holder::Arena),
            wanted: self.shared.room.writers_want(),
        }
    }

    /// Bytes of the write buffer when no tree has an Index X; before there is a tree, by the
    /// database's default.
    fn write_buffer_bytes(&self, limit: usize) -> Option<usize> {
        let trees = self.trees.read();
        let default = (self.options.index_x, self.options.index_y);
        let entries = trees.values().map(|t| (t.entry.index_x, t.entry.index_y));
        let pairs: Vec<_> = match trees.is_empty() {
            true => vec![default],
            false => entries.collect(),
        };
        let paged = |y: &IndexYKind| matches!(y, IndexYKind::BPlus { .. });
        let part = match pairs.iter().all(|(_, y)| paged(y)) {
            _ if self.options.read_only => READ_ONLY_DIVISOR,
            true => GATHER_DIVISOR,
            false => MEMTABLE_DIVISOR,
        };
        let alone = pairs.iter().all(|(x, _)| x.is_buffer_only());
        let radix = match pairs.iter().any(|(x, _)| x.radix_entries().is_some()) {
            true => limit / RADIX_DIVISOR,
            false => 0,
        };
        alone.then_some((limit / part).max(MIN_BUFFER_BYTES) + radix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(limit: usize) -> Needs {
        Needs {
            limit,
            fixed: limit / 32,
            buffer: limit / 8,
            x: limit / 8,
            wanted: 0,
        }
    }

    #[test]
    fn most_of_the_budget_is_cache() {
        let limit = 128 << 20;
        let bytes = without_x(needs(limit));
        assert!((limit / 8 * 5..limit / 4 * 3).contains(&bytes), "{bytes}");
    }

    /// I7: tables of Y, and a batch that somebody waits for, come before the caches.
    #[test]
    fn i7_caches_give_way() {
        let limit = 64 << 20;
        let usual = without_x(needs(limit));
        let tables = without_x(Needs {
            fixed: limit / 3,
            ..needs(limit)
        });
        let batch = without_x(Needs {
            wanted: limit / 2,
            ..needs(limit)
        });
        assert!(tables < usual && batch < usual, "{usual} {tables} {batch}");
        let low = Watermarks::of(limit).low;
        assert!(tables + limit / 3 + limit / 8 <= low);
        assert!(batch + limit / 32 + limit / 8 + limit / 2 <= low);
    }

    /// I7: they shrink at once, however full the budget is.
    #[test]
    fn i7_caches_grow_into_free_memory_and_shrink_at_once() {
        let limit = 64 << 20;
        let (now, step) = (limit / 2, limit / STEP_DIVISOR);
        for used in [limit / 2, limit] {
            assert_eq!(change(now, now + step, used, limit), Change::None);
            assert_eq!(change(now, now - 1, used, limit), Change::To(now - 1));
        }
        let more = now + 2 * step;
        assert_eq!(change(now, more, limit / 2, limit), Change::To(more));
        assert_eq!(change(now, more, limit, limit), Change::Owe(2 * step));
    }

    #[test]
    fn never_less_than_with_an_index_x() {
        let limit = 2 << 20;
        let full = Needs {
            fixed: limit,
            ..needs(limit)
        };
        assert_eq!(without_x(full), index_y::cache_bytes(limit));
    }
}
