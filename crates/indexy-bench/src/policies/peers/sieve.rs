//! SIEVE (Zhang and others, NSDI 2024): a queue whose hand goes from the oldest to the newest,
//! clears the bits of what was read, and takes the first entry without. What is spared stays where
//! it is, so that new entries meet the hand soon.

use super::queue::{Links, Queue};
use crate::policies::{Access, Cache};

const PRESENT: u8 = 1;
const READ: u8 = 2;

/// See the module header.
#[derive(Debug)]
pub(in crate::policies) struct Sieve {
    links: Links,
    queue: Queue,
    state: Vec<u8>,
    hand: Option<u32>,
    room: usize,
}

impl Sieve {
    pub(in crate::policies) fn new(keys: u32, room: usize) -> Self {
        Self {
            links: Links::new(keys),
            queue: Queue::new(),
            state: vec![0; keys as usize],
            hand: None,
            room,
        }
    }

    fn evict(&mut self) {
        let mut at = self.hand.or(self.queue.oldest());
        while let Some(key) = at {
            if self.state[key as usize] & READ == 0 {
                self.hand = self.links.newer(key);
                self.queue.remove(&mut self.links, key);
                self.state[key as usize] = 0;
                return;
            }
            self.state[key as usize] = PRESENT;
            at = self.links.newer(key).or(self.queue.oldest());
        }
    }
}

impl Cache for Sieve {
    fn access(&mut self, key: u32, _: Access) -> bool {
        if self.state[key as usize] != 0 {
            self.state[key as usize] |= READ;
            return true;
        }
        if self.queue.len() == self.room {
            self.evict();
        }
        self.queue.push(&mut self.links, key);
        self.state[key as usize] = PRESENT;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::hits;
    use super::*;

    #[test]
    fn worked_by_hand() {
        // For 4 the hand clears 1 and takes 2; it stands at 3 then, which goes for 5. Behind it is
        // 4, which was not read: it goes for 2. 1 stays all the while.
        let mut sieve = Sieve::new(10, 3);
        assert_eq!(hits(&mut sieve, &[1, 2, 3, 1, 4, 5, 2, 1, 4]), "---+---+-");
    }
}
