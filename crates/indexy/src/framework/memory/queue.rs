//! Who waits for a large amount of memory, in order of arrival. Pure.
//!
//! The first one has a *claim*: nobody who comes later, large or small, is admitted into the room
//! that it waits for. So a large write is not starved by small ones.

#![forbid(unsafe_code)]

use std::collections::VecDeque;

/// See the module header.
#[derive(Debug, Default)]
pub(super) struct Queue {
    next: u64,
    waiting: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    place: u64,
    bytes: usize,
}

/// A place in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place(u64);

impl Queue {
    /// Joins at the end.
    pub(super) fn join(&mut self, bytes: usize) -> Place {
        let place = self.next;
        self.next += 1;
        self.waiting.push_back(Waiter { place, bytes });
        Place(place)
    }

    pub(super) fn leave(&mut self, place: Place) {
        self.waiting.retain(|waiter| waiter.place != place.0);
    }

    /// Bytes that those before `place` wait for; without a place, all.
    pub(super) fn ahead_of(&self, place: Option<Place>) -> usize {
        let before = |waiter: &&Waiter| place.is_none_or(|Place(place)| waiter.place < place);
        let bytes = self.waiting.iter().take_while(before).map(|w| w.bytes);
        bytes.fold(0, usize::saturating_add)
    }

    /// What the first one waits for.
    pub(super) fn claim(&self) -> usize {
        self.waiting.front().map_or(0, |waiter| waiter.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_claim_is_that_of_the_first_and_goes_on_to_the_next() {
        let mut queue = Queue::default();
        assert_eq!((queue.claim(), queue.ahead_of(None)), (0, 0));
        let [a, b, c] = [10, 20, 30].map(|bytes| queue.join(bytes));
        assert_eq!((queue.claim(), queue.ahead_of(None)), (10, 60));
        assert_eq!([a, b, c].map(|p| queue.ahead_of(Some(p))), [0, 10, 30]);
        queue.leave(b);
        assert_eq!((queue.claim(), queue.ahead_of(Some(c))), (10, 10));
        queue.leave(a);
        assert_eq!((queue.claim(), queue.ahead_of(Some(c))), (30, 0));
        queue.leave(c);
        assert_eq!(queue.claim(), 0);
    }
}
