//! S3-FIFO (Yang and others, SOSP 2023): a small queue of a tenth, a main queue, and a ghost queue
//! of the keys that left the small one. A new key goes to the small queue, one that is a ghost to
//! the main queue. What leaves the small queue goes to the main one if it was read more than once,
//! else it becomes a ghost. The main queue gives what was read another round for each of up to
//! three reads.

use super::queue::{Links, Queue};
use crate::policies::{Access, Cache};

/// Reads are counted so far.
const MOST_READS: u8 = 3;
/// The small queue's part.
const SMALL_DIVISOR: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Nowhere,
    Small,
    Main,
    Ghost,
}

/// See the module header.
#[derive(Debug)]
pub(in crate::policies) struct S3Fifo {
    links: Links,
    small: Queue,
    main: Queue,
    ghosts: Queue,
    place: Vec<Place>,
    reads: Vec<u8>,
    room: usize,
    small_room: usize,
}

impl S3Fifo {
    /// A ghost takes four bytes (a fingerprint), and there are as many as the main queue has room
    /// for.
    pub(in crate::policies) const EXTRA_BYTES: f64 = 4.0 * 0.9;

    pub(in crate::policies) fn new(keys: u32, room: usize) -> Self {
        Self {
            links: Links::new(keys),
            small: Queue::new(),
            main: Queue::new(),
            ghosts: Queue::new(),
            place: vec![Place::Nowhere; keys as usize],
            reads: vec![0; keys as usize],
            room,
            small_room: (room / SMALL_DIVISOR).max(1),
        }
    }

    fn put(&mut self, key: u32, place: Place) {
        let queue = match place {
            Place::Small => &mut self.small,
            Place::Main => &mut self.main,
            _ => &mut self.ghosts,
        };
        queue.push(&mut self.links, key);
        self.place[key as usize] = place;
    }

    fn evict(&mut self) {
        while self.small.len() >= self.small_room {
            let Some(key) = self.small.pop(&mut self.links) else {
                break;
            };
            if self.reads[key as usize] > 1 {
                self.reads[key as usize] = 0;
                self.put(key, Place::Main);
                continue;
            }
            self.put(key, Place::Ghost);
            if self.ghosts.len() > self.room - self.small_room
                && let Some(forgotten) = self.ghosts.pop(&mut self.links)
            {
                self.place[forgotten as usize] = Place::Nowhere;
            }
            return;
        }
        while let Some(key) = self.main.pop(&mut self.links) {
            if self.reads[key as usize] == 0 {
                self.place[key as usize] = Place::Nowhere;
                return;
            }
            self.reads[key as usize] -= 1;
            self.put(key, Place::Main);
        }
    }
}

impl Cache for S3Fifo {
    fn access(&mut self, key: u32, _: Access) -> bool {
        let at = key as usize;
        if matches!(self.place[at], Place::Small | Place::Main) {
            self.reads[at] = (self.reads[at] + 1).min(MOST_READS);
            return true;
        }
        // Before the eviction, which may forget ghosts.
        let place = match self.place[at] {
            Place::Ghost => {
                self.ghosts.remove(&mut self.links, key);
                Place::Main
            }
            _ => Place::Small,
        };
        if self.small.len() + self.main.len() >= self.room {
            self.evict();
        }
        self.reads[at] = 0;
        self.put(key, place);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::hits;
    use super::*;

    #[test]
    fn worked_by_hand() {
        // Room for 3, of which the small queue has 1, and 2 ghosts. 1 is read twice more. For 4 the
        // small queue moves 1 to the main queue and makes 2 a ghost; for 5, 3 becomes one. 2 is a
        // ghost and goes to the main queue, for which 4 leaves the small one.
        let mut cache = S3Fifo::new(10, 3);
        assert_eq!(hits(&mut cache, &[1, 2, 3, 1, 1, 4, 5, 2]), "---++---");
        assert_eq!(cache.place[1..=5], {
            use Place::{Ghost, Main, Small};
            [Main, Main, Ghost, Ghost, Small]
        });
        assert_eq!(hits(&mut cache, &[1, 2, 5]), "+++");
    }

    #[test]
    fn the_main_queue_gives_what_was_read_another_round() {
        // 1, 2 and 3 come to the main queue as ghosts, and the small queue is empty then. 1 is
        // read. 4, the next ghost, needs a place there: 1 gets another round, and 2 goes.
        let mut cache = S3Fifo::new(10, 3);
        let keys = [1, 2, 3, 4, 5, 1, 2, 3, 1, 4, 1, 2];
        assert_eq!(hits(&mut cache, &keys), "--------+-+-");
    }
}
