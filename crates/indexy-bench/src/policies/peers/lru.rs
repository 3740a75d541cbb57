//! LRU: the entry used longest ago goes.

use super::queue::{Links, Queue};
use crate::policies::{Access, Cache};

/// See the module header.
#[derive(Debug)]
pub(in crate::policies) struct Lru {
    links: Links,
    queue: Queue,
    present: Vec<bool>,
    room: usize,
}

impl Lru {
    pub(in crate::policies) fn new(keys: u32, room: usize) -> Self {
        Self {
            links: Links::new(keys),
            queue: Queue::new(),
            present: vec![false; keys as usize],
            room,
        }
    }
}

impl Cache for Lru {
    fn access(&mut self, key: u32, _: Access) -> bool {
        let hit = std::mem::replace(&mut self.present[key as usize], true);
        if hit {
            self.queue.remove(&mut self.links, key);
        } else if self.queue.len() == self.room
            && let Some(gone) = self.queue.pop(&mut self.links)
        {
            self.present[gone as usize] = false;
        }
        self.queue.push(&mut self.links, key);
        hit
    }
}

#[cfg(test)]
mod tests {
    use super::super::hits;
    use super::*;

    #[test]
    fn worked_by_hand() {
        // 1 2 3, then 1 again; 4 drives out 2, 2 drives out 3.
        let mut lru = Lru::new(10, 3);
        assert_eq!(hits(&mut lru, &[1, 2, 3, 1, 4, 1, 2, 3, 1]), "---+-+--+");
    }
}
