//! One answer that somebody may wait for.
//!
//! Threads: one answers, once; any others look or wait. What ends every wait: the slot's only
//! answerer is a [`Request`](super::queue::Request), which answers when it is dropped at the
//! latest. Nothing is called with the lock held, and who answers calls the waker when it has
//! answered all that it has to: a waker may run anything. In a forked child there
//! is nobody who answers, and the lock may be held for ever: there a slot is asked by
//! [`Slot::take_forked`] alone.

#![forbid(unsafe_code)]

use crate::{error::Result, key::Value};
use parking_lot::{Condvar, Mutex};
use std::{
    mem::replace,
    panic::{AssertUnwindSafe, catch_unwind},
    task::{Poll, Waker},
};

/// What a read came to.
pub(crate) type Answer = Result<Option<Value>>;

/// See the module header.
#[derive(Default)]
pub(crate) struct Slot {
    state: Mutex<State>,
    answered: Condvar,
}

enum State {
    /// Whom to wake.
    Waiting(Option<Waker>),
    Answered(Answer),
    /// Somebody has the answer.
    Taken,
}

impl Default for State {
    fn default() -> Self {
        Self::Waiting(None)
    }
}

impl Slot {
    /// The first answer counts. Who is to be told of it by [`wake`].
    pub(super) fn answer(&self, answer: Answer) -> Option<Waker> {
        let mut state = self.state.lock();
        let State::Waiting(waker) = &mut *state else {
            return None;
        };
        let waker = waker.take();
        *state = State::Answered(answer);
        self.answered.notify_all();
        waker
    }

    pub(crate) fn is_answered(&self) -> bool {
        !matches!(*self.state.lock(), State::Waiting(_))
    }

    /// Waits for the answer and takes it. It is there for one taker.
    pub(crate) fn wait(&self) -> Answer {
        let mut state = self.state.lock();
        while matches!(*state, State::Waiting(_)) {
            self.answered.wait(&mut state);
        }
        take(&mut state).expect("the answer is there for one taker")
    }

    /// For a forked child, which takes no lock that a thread of its parent may have held: the
    /// answer, if it is known to be there. It is there for one taker, and no other call comes
    /// later.
    pub(crate) fn take_forked(&self) -> Option<Answer> {
        let mut state = self.state.try_lock()?;
        let answer = match *state {
            State::Answered(_) => take(&mut state),
            State::Waiting(_) | State::Taken => None,
        };
        // Never unlocked: that may have to wake a thread, by a table whose lock a thread of the
        // parent may have held.
        std::mem::forget(state);
        answer
    }

    /// The answer if it is there; else `waker` is woken when it is, instead of the one before.
    #[cfg_attr(not(any(test, feature = "async")), expect(dead_code))]
    pub(crate) fn poll(&self, waker: &Waker) -> Poll<Answer> {
        // Cloned, and the one before dropped, without the lock: that may run anything.
        let waker = waker.clone();
        let _before = {
            let mut state = self.state.lock();
            let State::Waiting(before) = &mut *state else {
                let answer = take(&mut state).expect("a future that was ready is not polled");
                return Poll::Ready(answer);
            };
            match before {
                Some(before) if before.will_wake(&waker) => Some(waker),
                _ => before.replace(waker),
            }
        };
        Poll::Pending
    }
}

/// Calls `waker`. What it does wrong is not the database's fault.
pub(super) fn wake(waker: Waker) {
    let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
}

fn take(state: &mut State) -> Option<Answer> {
    match replace(state, State::Taken) {
        State::Answered(answer) => Some(answer),
        State::Waiting(_) | State::Taken => None,
    }
}
