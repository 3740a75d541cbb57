//! CLOCK: a hand over the entries clears their bits, and takes the first one without. A hit sets
//! the bit. As a queue: what is spared goes to the head again.

use super::queue::{Links, Queue};
use crate::policies::{Access, Cache};

/// What is known of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Absent,
    Unread,
    Read,
}

/// See the module header.
#[derive(Debug)]
pub(in crate::policies) struct Clock {
    links: Links,
    queue: Queue,
    state: Vec<State>,
    room: usize,
}

impl Clock {
    pub(in crate::policies) fn new(keys: u32, room: usize) -> Self {
        Self {
            links: Links::new(keys),
            queue: Queue::new(),
            state: vec![State::Absent; keys as usize],
            room,
        }
    }

    fn evict(&mut self) {
        while let Some(key) = self.queue.pop(&mut self.links) {
            let state = &mut self.state[key as usize];
            if *state == State::Unread {
                *state = State::Absent;
                return;
            }
            *state = State::Unread;
            self.queue.push(&mut self.links, key);
        }
    }
}

impl Cache for Clock {
    fn access(&mut self, key: u32, _: Access) -> bool {
        if self.state[key as usize] != State::Absent {
            self.state[key as usize] = State::Read;
            return true;
        }
        if self.queue.len() == self.room {
            self.evict();
        }
        self.queue.push(&mut self.links, key);
        self.state[key as usize] = State::Unread;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::hits;
    use super::*;

    #[test]
    fn worked_by_hand() {
        // 1 is read again: for 4 the hand spares it and takes 2, for 2 it takes 3.
        let mut clock = Clock::new(10, 3);
        assert_eq!(hits(&mut clock, &[1, 2, 3, 1, 4, 2, 4, 1]), "---+--++");
        // All have bits but 2: it goes for 5.
        assert_eq!(hits(&mut clock, &[5, 1, 4, 2]), "-++-");
    }
}
