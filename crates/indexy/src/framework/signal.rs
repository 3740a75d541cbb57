//! How threads of the framework wake each other.
//!
//! - [`Signal`]: wakes one background thread; notifications that come together are one.
//! - [`Progress`]: counts events, for any number of threads that wait for the next one.
//! - [`Request`]: one thread asks another for something and waits for the answer.
//! - [`Stop`]: the end of the background threads.
//!
//! Every wait has a limit, and the caller looks at [`Stop`] when it is reached. So a thread that
//! answers no more holds up nobody for longer than that.

#![forbid(unsafe_code)]

use crate::poison::Poison;
use parking_lot::{Condvar, Mutex};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// Wakes one background thread. Notifying an already pending signal costs one load.
#[derive(Default)]
pub(crate) struct Signal {
    pending: AtomicBool,
    lock: Mutex<()>,
    condvar: Condvar,
}

impl Signal {
    pub(crate) fn notify(&self) {
        // Pairs with the swap in `wait`: a notifier that finds `pending` set is served by the
        // wake-up that is under way.
        if !self.pending.load(Ordering::Relaxed) && !self.pending.swap(true, Ordering::AcqRel) {
            let _guard = self.lock.lock();
            self.condvar.notify_one();
        }
    }

    /// Waits until notified or `limit` has passed; true if notified.
    pub(crate) fn wait(&self, limit: Duration) -> bool {
        let mut guard = self.lock.lock();
        if !self.pending.load(Ordering::Acquire) {
            self.condvar.wait_for(&mut guard, limit);
        }
        self.pending.swap(false, Ordering::AcqRel)
    }
}

/// A count of events that threads wait for.
#[derive(Default)]
pub(crate) struct Progress {
    events: Mutex<u64>,
    advanced: Condvar,
}

impl Progress {
    /// Events so far. Read it before looking at what the event may change.
    pub(crate) fn seen(&self) -> u64 {
        *self.events.lock()
    }

    pub(crate) fn advance(&self) {
        *self.events.lock() += 1;
        self.advanced.notify_all();
    }

    /// Waits until there are more than `seen` events, or `limit` has passed.
    pub(crate) fn wait_past(&self, seen: u64, limit: Duration) {
        let deadline = Instant::now() + limit;
        let mut events = self.events.lock();
        while *events <= seen && !self.advanced.wait_until(&mut events, deadline).timed_out() {}
    }
}

/// Something that one thread asks of another. Requests that come before an answer share it.
#[derive(Default)]
pub(crate) struct Request {
    pending: AtomicBool,
    answers: Progress,
}

impl Request {
    /// Asks; returns what to hand to [`Request::wait`].
    pub(crate) fn ask(&self) -> u64 {
        let seen = self.answers.seen();
        // Release: pairs with the swap in `answer`.
        self.pending.store(true, Ordering::Release);
        seen
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.pending.load(Ordering::Acquire)
    }

    /// Answers what was asked so far; true if something was.
    pub(crate) fn answer(&self) -> bool {
        let asked = self.pending.swap(false, Ordering::AcqRel);
        if asked {
            self.answers.advance();
        }
        asked
    }

    /// Waits for the answer to an `ask`, until `stop`. Does `meanwhile` every now and then.
    pub(crate) fn wait(&self, asked: u64, stop: &Stop, mut meanwhile: impl FnMut()) {
        while self.answers.seen() <= asked && !stop.is_set() {
            meanwhile();
            self.answers.wait_past(asked, Stop::LOOK);
        }
    }
}

/// Tells the background threads to end: the database closes, or is poisoned.
#[derive(Clone)]
pub(crate) struct Stop {
    set: Arc<AtomicBool>,
    poison: Arc<Poison>,
}

impl Stop {
    /// A thread that waits for another one looks at the stop this often.
    pub(crate) const LOOK: Duration = Duration::from_millis(20);

    pub(crate) fn new(poison: Arc<Poison>) -> Self {
        Self {
            set: Arc::default(),
            poison,
        }
    }

    pub(crate) fn set(&self) {
        self.set.store(true, Ordering::Release);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.set.load(Ordering::Acquire) || self.poison.check().is_err()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stop() -> Stop {
        Stop::new(Arc::default())
    }

    #[test]
    fn an_answer_before_the_wait_is_not_missed() {
        let (request, stop) = (Request::default(), stop());
        let asked = request.ask();
        assert!(request.is_pending());
        assert!(request.answer());
        request.wait(asked, &stop, || ());
        assert!(!request.is_pending() && !request.answer());
    }

    #[test]
    fn a_wait_ends_with_the_stop_when_nobody_answers() {
        let (request, stop) = (Request::default(), stop());
        let asked = request.ask();
        std::thread::scope(|s| {
            let waiter = s.spawn(|| request.wait(asked, &stop, || ()));
            stop.set();
            waiter.join().unwrap();
        });
    }

    #[test]
    fn progress_wakes_all_who_wait_for_it() {
        let progress = Progress::default();
        let seen = progress.seen();
        std::thread::scope(|s| {
            let wait = || progress.wait_past(seen, Duration::from_secs(60));
            let waiters = [s.spawn(wait), s.spawn(wait)];
            progress.advance();
            waiters.into_iter().for_each(|w| w.join().unwrap());
        });
    }
}
