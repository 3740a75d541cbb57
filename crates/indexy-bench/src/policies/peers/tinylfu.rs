//! W-TinyLFU (Einziger, Friedman, Manes, 2017): new entries go through a window of 1 %, an LRU;
//! what leaves it is compared with the entry that the main part would lose, and the one that was
//! accessed more often lately stays. The main part is an LRU in two segments: a fifth on probation,
//! and four fifths that were read again. How often keys are accessed is estimated by a count-min
//! sketch of four rows of 4-bit counters, which are halved after ten accesses for each entry.

use super::queue::{Links, Queue};
use crate::{
    policies::{Access, Cache},
    workload::mix,
};

const WINDOW_DIVISOR: usize = 100;
/// The protected part of the main segment, in tenths.
const PROTECTED_TENTHS: usize = 8;
const ROWS: usize = 4;
const MOST: u8 = 15;
/// Accesses for each entry after which counts are halved.
const ACCESSES_AN_ENTRY: usize = 10;
/// Counters of a row, at least.
const LEAST_WIDTH: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Nowhere,
    Window,
    Probation,
    Protected,
}

/// See the module header.
#[derive(Debug)]
pub(in crate::policies) struct TinyLfu {
    links: Links,
    window: Queue,
    probation: Queue,
    protected: Queue,
    place: Vec<Place>,
    room: usize,
    window_room: usize,
    protected_room: usize,
    sketch: Sketch,
}

impl TinyLfu {
    /// Four counters of four bits an entry.
    pub(in crate::policies) const EXTRA_BYTES: f64 = 2.0;

    pub(in crate::policies) fn new(keys: u32, room: usize) -> Self {
        let window_room = (room / WINDOW_DIVISOR).max(1);
        let main = room.saturating_sub(window_room);
        Self {
            links: Links::new(keys),
            window: Queue::new(),
            probation: Queue::new(),
            protected: Queue::new(),
            place: vec![Place::Nowhere; keys as usize],
            room,
            window_room,
            protected_room: main * PROTECTED_TENTHS / 10,
            sketch: Sketch::new(room),
        }
    }

    fn queue(&mut self, place: Place) -> (&mut Queue, &mut Links) {
        let queue = match place {
            Place::Window => &mut self.window,
            Place::Protected => &mut self.protected,
            _ => &mut self.probation,
        };
        (queue, &mut self.links)
    }

    fn put(&mut self, key: u32, place: Place) {
        let (queue, links) = self.queue(place);
        queue.push(links, key);
        self.place[key as usize] = place;
    }

    fn touch(&mut self, key: u32, place: Place) {
        let (queue, links) = self.queue(place);
        queue.remove(links, key);
        let now = match place {
            Place::Window => Place::Window,
            _ => Place::Protected,
        };
        self.put(key, now);
        if self.protected.len() > self.protected_room
            && let Some(demoted) = self.protected.pop(&mut self.links)
        {
            self.put(demoted, Place::Probation);
        }
    }

    /// What the window has too much goes to the main part, if that has room, or something that was
    /// accessed less often.
    fn settle(&mut self) {
        if self.window.len() <= self.window_room {
            return;
        }
        let Some(candidate) = self.window.pop(&mut self.links) else {
            return;
        };
        let used = self.window.len() + self.probation.len() + self.protected.len();
        if used < self.room {
            self.put(candidate, Place::Probation);
            return;
        }
        let victim = self.probation.oldest().or(self.protected.oldest());
        let stays = |victim: &u32| self.sketch.estimate(*victim) < self.sketch.estimate(candidate);
        let Some(victim) = victim.filter(stays) else {
            self.place[candidate as usize] = Place::Nowhere;
            return;
        };
        let (queue, links) = self.queue(self.place[victim as usize]);
        queue.remove(links, victim);
        self.place[victim as usize] = Place::Nowhere;
        self.put(candidate, Place::Probation);
    }
}

impl Cache for TinyLfu {
    fn access(&mut self, key: u32, _: Access) -> bool {
        self.sketch.count(key);
        match self.place[key as usize] {
            Place::Nowhere => {
                self.put(key, Place::Window);
                self.settle();
                false
            }
            place => {
                self.touch(key, place);
                true
            }
        }
    }
}

/// Counters of keys, a byte each here, as large as their 4 bits count.
#[derive(Debug)]
struct Sketch {
    counters: Vec<u8>,
    width: usize,
    counted: usize,
    most_counted: usize,
}

impl Sketch {
    fn new(entries: usize) -> Self {
        let width = entries.max(LEAST_WIDTH);
        Self {
            counters: vec![0; width * ROWS],
            width,
            counted: 0,
            most_counted: entries * ACCESSES_AN_ENTRY,
        }
    }

    fn places(&self, key: u32) -> [usize; ROWS] {
        std::array::from_fn(|row| {
            let hash = mix(u64::from(key) | (row as u64) << 32);
            row * self.width + (hash % self.width as u64) as usize
        })
    }

    fn estimate(&self, key: u32) -> u8 {
        let counters = self.places(key).map(|at| self.counters[at]);
        counters.into_iter().min().unwrap_or(0)
    }

    fn count(&mut self, key: u32) {
        let least = self.estimate(key);
        if least < MOST {
            for at in self.places(key) {
                self.counters[at] += u8::from(self.counters[at] == least);
            }
        }
        self.counted += 1;
        if self.counted >= self.most_counted {
            self.counters.iter_mut().for_each(|n| *n /= 2);
            self.counted /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::hits;
    use super::*;

    #[test]
    fn worked_by_hand() {
        // Room for a window of 1 and a main part of 2, of which 1 protected. 1, then 2, go to
        // probation; 1 is read and protected. 3 is in the window; 4 pushes it out: it was seen as
        // often as 2, the victim, which stays. 4, seen three times by then, drives out 2 for 5.
        let mut cache = TinyLfu::new(10, 3);
        assert_eq!(hits(&mut cache, &[1, 2, 3, 1, 4, 4, 4, 5]), "---+-++-");
        assert_eq!(cache.place[1..=5], {
            use Place::{Nowhere, Probation, Protected, Window};
            [Protected, Nowhere, Nowhere, Probation, Window]
        });
    }

    #[test]
    fn counts_are_halved() {
        let mut sketch = Sketch::new(4);
        (0..39).for_each(|_| sketch.count(1));
        assert_eq!(sketch.estimate(1), MOST);
        sketch.count(1);
        assert_eq!((sketch.estimate(1), sketch.counted), (MOST / 2, 20));
    }
}
