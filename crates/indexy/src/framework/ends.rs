//! What Index Y has at the two ends of a tree, read ahead for who takes one entry after the other
//! from there: a queue, a stack.
//!
//! A *piece* is what Y has of a range of keys, all of it, as it was when `shown` had a certain
//! count. It answers as long as that count stands: what Y has changes under the run lock alone, and
//! whoever is about to show a change counts it first (`disk_writer.rs`).
//!
//! Keeps: I1 and I9. An answer out of a piece is what Y itself would have said at the moment in
//! which the count was compared, and that is after the look at X, as it is when Y is read. A piece
//! is kept only if the count was even before Y was read and is the same afterwards: nothing was
//! shown meanwhile.
//!
//! Threads: any. A piece is used under its lock, which is not held while Y is read. Memory: each
//! piece takes its bytes from the budget, all pieces of a database together at most
//! 1/[`TOTAL_DIVISOR`] of it; what there is no room for is not read ahead. A piece lives until it
//! is replaced, found to be old, or the tree is closed.

#![forbid(unsafe_code)]

use super::shared::Shared;
use crate::{
    key::{Key, Value},
    mem::budget::Holder,
    x::Order,
};
use parking_lot::Mutex;
use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
};

/// All pieces together hold at most this part of the budget, and one at most a quarter of that.
const TOTAL_DIVISOR: usize = 64;
const PIECES_AT_LEAST: usize = 4;
/// A larger piece would not be cheaper by the entry.
const MAX_BYTES: usize = 64 << 10;
/// So much of a piece is read at first. It doubles whenever a piece was used up.
const FIRST_BYTES: usize = 2 << 10;
/// Heap and handles of an entry beside its key and value.
const ENTRY_OVERHEAD: usize = 2 * size_of::<Key>() + 32;

/// Counts the changes of what Y shows. Odd while one is under way.
#[derive(Debug, Default)]
pub(crate) struct Shown(AtomicU64);

impl Shown {
    /// Something is about to be shown, and may be until the guard is dropped. The caller holds the
    /// run lock.
    pub(crate) fn announce(&self) -> Showing<'_> {
        self.0.fetch_add(1, SeqCst);
        Showing(&self.0)
    }

    /// Even while nothing is shown.
    pub(super) fn count(&self) -> u64 {
        self.0.load(SeqCst)
    }
}

/// See [`Shown::announce`].
#[derive(Debug)]
pub(crate) struct Showing<'a>(&'a AtomicU64);

impl Drop for Showing<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// See the module header. One piece for each order.
pub(crate) struct Ends {
    pieces: [Mutex<Piece>; 2],
    shared: Arc<Shared>,
}

struct Piece {
    /// The count of what was shown when this was read.
    shown: u64,
    /// Where it begins in its order: ascending a key that may be in it, descending one above it.
    start: Option<Vec<u8>>,
    /// In order; empty: there is no piece.
    entries: Vec<(Key, Value)>,
    /// What it has taken from the budget.
    bytes: usize,
    /// How much the next one may hold.
    ahead: usize,
}

impl Piece {
    fn nothing() -> Self {
        Self {
            shown: 0,
            start: None,
            entries: Vec::new(),
            bytes: 0,
            ahead: FIRST_BYTES,
        }
    }

    fn is_of(&self, shown: &Shown) -> bool {
        !self.entries.is_empty() && self.shown == shown.count()
    }

    /// It was used up: who begins at `start` goes on behind it.
    fn is_before(&self, start: Option<&[u8]>, order: Order) -> bool {
        let last = self.entries.last().map(|(key, _)| &key[..]);
        match (order, start) {
            (Order::Ascending, Some(start)) => last.is_some_and(|last| last < start),
            (Order::Descending, Some(start)) => last.is_some_and(|last| start <= last),
            (_, None) => false,
        }
    }

    /// The number of its first entry from `start` on, unless that lies outside of it.
    fn position(&self, start: Option<&[u8]>, order: Order) -> Option<usize> {
        let (last, _) = self.entries.last()?;
        let own = self.start.as_deref();
        let at = match (order, start) {
            (Order::Ascending, start) => {
                let start = start.unwrap_or_default();
                let within = own.unwrap_or_default() <= start && start <= &last[..];
                within.then(|| self.entries.partition_point(|(key, _)| &key[..] < start))
            }
            (Order::Descending, None) => own.is_none().then_some(0),
            (Order::Descending, Some(start)) => {
                let within = own.is_none_or(|own| start <= own) && start > &last[..];
                within.then(|| self.entries.partition_point(|(key, _)| &key[..] >= start))
            }
        };
        at.filter(|&at| at < self.entries.len())
    }
}

/// A piece that is being read.
pub(crate) struct Reading {
    shown: u64,
    start: Option<Vec<u8>>,
    order: Order,
    entries: Vec<(Key, Value)>,
    bytes: usize,
    most: usize,
    /// No piece before it was used up.
    is_first: bool,
}

impl Reading {
    /// Keeps the next entry that Y has, after which `at_hand` more come without I/O. False: it is
    /// enough.
    pub(crate) fn keep(&mut self, key: &Key, value: &Value, at_hand: usize) -> bool {
        let bytes = key.len() + value.len() + ENTRY_OVERHEAD;
        if self.bytes + bytes > self.most {
            self.most = 0;
            return false;
        }
        self.bytes += bytes;
        self.entries.push((key.clone(), value.clone()));
        // Whoever takes one entry and no more causes no second read.
        if at_hand == 0 && self.is_first {
            self.most = 0;
        }
        self.most > 0
    }
}

impl Ends {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let pieces = [Piece::nothing(), Piece::nothing()].map(Mutex::new);
        Self { pieces, shared }
    }

    fn piece(&self, order: Order) -> &Mutex<Piece> {
        &self.pieces[usize::from(order == Order::Descending)]
    }

    /// Gives `take` what Y has from `start` on, one entry after the other, until that breaks.
    /// `None`: there is no piece of these keys, and nothing was given. Else where it ended, or
    /// `Break` if `take` did.
    pub(crate) fn feed(
        &self,
        shown: &Shown,
        start: Option<&[u8]>,
        order: Order,
        mut take: impl FnMut(&Key, &Value) -> ControlFlow<()>,
    ) -> Option<ControlFlow<(), Key>> {
        let mut piece = self.piece(order).lock();
        if !piece.is_of(shown) {
            self.give_up(&mut piece);
            return None;
        }
        let at = piece.position(start, order)?;
        for (key, value) in &piece.entries[at..] {
            if take(key, value).is_break() {
                return Some(ControlFlow::Break(()));
            }
        }
        let (last, _) = piece.entries.last()?;
        Some(ControlFlow::Continue(last.clone()))
    }

    /// The value that Y has of `key`, if the piece tells.
    pub(crate) fn value(&self, shown: &Shown, key: &[u8], order: Order) -> Option<Value> {
        let piece = self.piece(order).lock();
        let by = |entry: &(Key, Value)| match order {
            Order::Ascending => entry.0[..].cmp(key),
            Order::Descending => key.cmp(&entry.0[..]),
        };
        let at = piece.entries.binary_search_by(by).ok()?;
        let (_, value) = piece.entries.get(at)?;
        piece.is_of(shown).then(|| value.clone())
    }

    /// Begins a piece from `start` on: to be called before Y is asked. `None` while something is
    /// shown, or no memory is to be had.
    pub(crate) fn begin(
        &self,
        shown: &Shown,
        start: Option<&[u8]>,
        order: Order,
    ) -> Option<Reading> {
        let total = self.shared.budget.limit() / TOTAL_DIVISOR;
        let left = total.saturating_sub(self.shared.budget.held(Holder::Ends));
        let ahead = {
            let mut piece = self.piece(order).lock();
            if piece.is_of(shown) && piece.is_before(start, order) {
                piece.ahead = (piece.ahead * 2).min(MAX_BYTES);
            }
            piece.ahead
        };
        let most = ahead.min(total / PIECES_AT_LEAST).min(left);
        let count = shown.count();
        let begins = count.is_multiple_of(2) && most > 0 && !self.shared.budget.is_full();
        begins.then(|| Reading {
            shown: count,
            start: start.map(<[u8]>::to_vec),
            order,
            entries: Vec::new(),
            bytes: 0,
            most,
            is_first: ahead == FIRST_BYTES,
        })
    }

    /// Keeps what was read, unless something was shown since it was begun.
    pub(crate) fn end(&self, shown: &Shown, reading: Reading) {
        if reading.entries.is_empty() || shown.count() != reading.shown {
            return;
        }
        let bytes = reading.bytes + reading.start.as_ref().map_or(0, Vec::len);
        self.shared.budget.take(Holder::Ends, bytes);
        let mut piece = self.piece(reading.order).lock();
        self.give_up(&mut piece);
        piece.shown = reading.shown;
        piece.start = reading.start;
        piece.entries = reading.entries;
        piece.bytes = bytes;
    }

    /// Drops what was read ahead.
    pub(crate) fn forget(&self) {
        for order in [Order::Ascending, Order::Descending] {
            self.give_up(&mut self.piece(order).lock());
        }
    }

    fn give_up(&self, piece: &mut Piece) {
        self.shared.budget.give(Holder::Ends, piece.bytes);
        piece.bytes = 0;
        piece.entries = Vec::new();
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.forget();
    }
}
