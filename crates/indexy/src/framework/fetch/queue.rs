//! Keys that wait for a fetcher.
//!
//! Threads: any. The lock is held for a few moves and for nothing else; it is a leaf of the lock
//! order.
//!
//! What ends every wait: a [`Request`] answers when it is dropped at the latest. It is in the
//! queue, in a fetcher's batch, or gone. Whoever leaves a request in the queue sees to it that a
//! fetcher is there ([`Pushed::Queued`]`.start`), and the last fetcher that goes, by whatever way,
//! takes along what waits. After [`Fetches::close`] nothing enters the queue.
//!
//! Keeps: I7. What waits takes its bytes from the budget, all together at most
//! 1/[`WAITING_DIVISOR`] of it. Where there is no room, the caller reads by itself: that is how the
//! queue pushes back. Answers belong to the callers, as those of `multi_get` do.

#![forbid(unsafe_code)]

use super::slot::{Answer, Slot, wake};
use crate::{
    error::Error,
    framework::tree::Joined,
    mem::budget::{Budget, Holder},
};
use parking_lot::{Condvar, Mutex};
use std::{collections::VecDeque, mem::take, sync::Arc, task::Waker};

/// Keys that one fetcher reads at once: enough to keep a device busy.
pub(super) const BATCH: usize = 64;
/// Keys of a database that may wait.
pub(crate) const MOST_WAITING: usize = 1024;
/// And the part of the budget that they may take.
const WAITING_DIVISOR: usize = 64;
/// One fetcher keeps a device at a depth of [`BATCH`]; more are for batches that take long.
pub(crate) const MOST_FETCHERS: usize = 4;
/// Heap and handles of a request and its slot beside the key.
const REQUEST_OVERHEAD: usize = 256;

/// A key that somebody asked for.
pub(in crate::framework) struct Request {
    pub(super) tree: Arc<Joined>,
    pub(super) key: Box<[u8]>,
    slot: Arc<Slot>,
    bytes: usize,
    budget: Arc<Budget>,
}

impl Request {
    /// Who is to be told.
    pub(super) fn answer(&self, answer: Answer) -> Option<Waker> {
        self.slot.answer(answer)
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.budget.give(Holder::Fetches, self.bytes);
        // Only if nobody has answered.
        if let Some(waker) = self.answer(Err(Error::Closed)) {
            wake(waker);
        }
    }
}

/// Answers that nobody serves `requests`: all of them before the first waker is called.
pub(super) fn refuse(requests: impl IntoIterator<Item = Request>) {
    let refused = |request: Request| request.answer(Err(Error::Closed));
    let wakers: Vec<Waker> = requests.into_iter().filter_map(refused).collect();
    wakers.into_iter().for_each(wake);
}

/// What became of a key that was to wait.
pub(crate) enum Pushed {
    /// It waits. `start`: the caller starts a fetcher, or serves the queue as one does.
    Queued { slot: Arc<Slot>, start: bool },
    /// There is no room.
    Full,
}

/// See the module header.
pub(crate) struct Fetches {
    budget: Arc<Budget>,
    waiting: Mutex<Waiting>,
    arrived: Condvar,
}

#[derive(Default)]
struct Waiting {
    requests: VecDeque<Request>,
    /// Fetchers that run or are about to.
    fetchers: usize,
    /// Of them, those that wait for a request.
    idle: usize,
    closed: bool,
}

impl Fetches {
    pub(crate) fn new(budget: Arc<Budget>) -> Self {
        Self {
            budget,
            waiting: Mutex::default(),
            arrived: Condvar::new(),
        }
    }

    pub(crate) fn push(&self, tree: &Arc<Joined>, key: &[u8]) -> Pushed {
        let bytes = key.len() + REQUEST_OVERHEAD;
        let room = self.budget.limit() / WAITING_DIVISOR;
        let mut waiting = self.waiting.lock();
        let full = waiting.requests.len() >= MOST_WAITING
            || self.budget.held(Holder::Fetches) + bytes > room;
        if waiting.closed || full {
            return Pushed::Full;
        }
        self.budget.take(Holder::Fetches, bytes);
        let slot = Arc::<Slot>::default();
        waiting.requests.push_back(Request {
            tree: Arc::clone(tree),
            key: key.into(),
            slot: Arc::clone(&slot),
            bytes,
            budget: Arc::clone(&self.budget),
        });
        let busy = waiting.idle == 0 && waiting.requests.len() > BATCH;
        let start = waiting.fetchers == 0 || (busy && waiting.fetchers < MOST_FETCHERS);
        waiting.fetchers += usize::from(start);
        if !start && waiting.idle > 0 {
            self.arrived.notify_one();
        }
        Pushed::Queued { slot, start }
    }

    /// A fetcher begins, where `push` said so. It ends when what is returned is dropped.
    pub(in crate::framework) fn enter(&self) -> Present<'_> {
        Present {
            fetches: self,
            left: false,
        }
    }

    /// Refuses what comes, answers what waits with `Closed`, and ends the fetchers.
    pub(crate) fn close(&self) {
        let left = {
            let mut waiting = self.waiting.lock();
            waiting.closed = true;
            take(&mut waiting.requests)
        };
        self.arrived.notify_all();
        refuse(left);
    }
}

/// A fetcher that is there. The last one to go answers what waits: nobody else would.
pub(in crate::framework) struct Present<'a> {
    fetches: &'a Fetches,
    /// It is not counted any more.
    left: bool,
}

impl Present<'_> {
    /// Waits for requests and takes a batch of them; `None` when the queue is closed.
    pub(super) fn next(&self) -> Option<Vec<Request>> {
        let mut waiting = self.fetches.waiting.lock();
        while waiting.requests.is_empty() && !waiting.closed {
            waiting.idle += 1;
            self.fetches.arrived.wait(&mut waiting);
            waiting.idle -= 1;
        }
        waiting.batch()
    }

    /// Leaves at once if there are others, which take what waits; false: there are none.
    pub(super) fn leave_to_others(&mut self) -> bool {
        let mut waiting = self.fetches.waiting.lock();
        let others = waiting.fetchers > 1;
        if others {
            waiting.fetchers -= 1;
            self.left = true;
        }
        others
    }

    /// Somebody else has come in its place.
    pub(super) fn hand_over(mut self) {
        self.left = true;
    }

    /// A batch of what waits. If nothing does, the fetcher has left at that moment: for what comes
    /// later another one is started.
    pub(in crate::framework) fn next_or_leave(&mut self) -> Option<Vec<Request>> {
        let mut waiting = self.fetches.waiting.lock();
        let batch = waiting.batch();
        if batch.is_none() && !self.left {
            waiting.fetchers -= 1;
            self.left = true;
        }
        batch
    }
}

impl Waiting {
    fn batch(&mut self) -> Option<Vec<Request>> {
        let n = self.requests.len().min(BATCH);
        (n > 0).then(|| self.requests.drain(..n).collect())
    }
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        if self.left {
            return;
        }
        let left = {
            let mut waiting = self.fetches.waiting.lock();
            waiting.fetchers -= 1;
            match waiting.fetchers {
                0 => take(&mut waiting.requests),
                _ => VecDeque::new(),
            }
        };
        refuse(left);
    }
}
