//! Belady's MIN: of what is there, the entry whose next read is farthest goes; what is read farther
//! still does not come in. No policy hits more often over a whole trace.
//!
//! A key that is written next, or passed over uncounted, is not kept for that: the write brings it
//! in again, and the pass is not counted.

use crate::policies::{Access, Cache, Trace};
use std::collections::BinaryHeap;

/// No read that counts comes.
const NEVER: u32 = u32::MAX;

/// See the module header.
#[derive(Debug)]
pub(in crate::policies) struct Belady {
    /// For each access, the index of the next one to its key, if that is a read that counts.
    next: Vec<u32>,
    at: usize,
    /// For each key that is there, its next read; [`NEVER`] for the others.
    due: Vec<u32>,
    /// Reads with their keys; those that are not due any more are passed over.
    heap: BinaryHeap<(u32, u32)>,
    entries: usize,
    room: usize,
}

impl Belady {
    pub(in crate::policies) fn new(trace: &Trace, room: usize) -> Self {
        let mut next = vec![NEVER; trace.len()];
        let mut coming = vec![NEVER; trace.keys as usize];
        for (index, (key, access)) in trace.iter().enumerate().rev() {
            let counts = matches!(access, Access::Read | Access::Update);
            let now = if counts { index as u32 } else { NEVER };
            next[index] = std::mem::replace(&mut coming[key as usize], now);
        }
        Self {
            next,
            at: 0,
            due: vec![NEVER; trace.keys as usize],
            heap: BinaryHeap::new(),
            entries: 0,
            room,
        }
    }

    /// The entry whose read is farthest.
    fn farthest(&mut self) -> Option<(u32, u32)> {
        while let Some(&(due, key)) = self.heap.peek() {
            if self.due[key as usize] == due {
                return Some((due, key));
            }
            self.heap.pop();
        }
        None
    }
}

impl Cache for Belady {
    fn access(&mut self, key: u32, _: Access) -> bool {
        let next = self.next[self.at];
        self.at += 1;
        let hit = std::mem::replace(&mut self.due[key as usize], NEVER) != NEVER;
        self.entries -= usize::from(hit);
        if next == NEVER {
            return hit;
        }
        if self.entries == self.room {
            match self.farthest() {
                Some((due, farthest)) if due > next => {
                    self.due[farthest as usize] = NEVER;
                    self.entries -= 1;
                }
                _ => return hit,
            }
        }
        self.due[key as usize] = next;
        self.heap.push((next, key));
        self.entries += 1;
        hit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(accesses: &[(u32, Access)], room: usize) -> String {
        let mut trace = Trace::new("t", 10);
        accesses
            .iter()
            .for_each(|(key, access)| trace.push(*key, *access));
        let mut belady = Belady::new(&trace, room);
        let access = |(key, access): &(u32, Access)| belady.access(*key, *access);
        accesses
            .iter()
            .map(access)
            .map(|hit| if hit { '+' } else { '-' })
            .collect()
    }

    #[test]
    fn worked_by_hand() {
        // The example of textbooks, three places: LRU hits 8 of 20 there, and FIFO 5.
        let keys = [7, 0, 1, 2, 0, 3, 0, 4, 2, 3, 0, 3, 2, 1, 2, 0, 1, 7, 0, 1];
        let reads = keys.map(|key| (key, Access::Read));
        // 4 is read once: it does not come in, and one hit more than with 11 of 20 is left.
        let found = hits(&reads, 3);
        assert_eq!(found.matches('+').count(), 12, "{found}");
        assert_eq!(found.len(), 20);
    }

    #[test]
    fn what_is_written_next_is_not_kept_for_it() {
        use Access::{Pass, Read, Write};
        // One place: 1 is written before it is read again, so 2 is kept meanwhile.
        let accesses = [(1, Read), (2, Read), (2, Read), (1, Write), (1, Read)];
        assert_eq!(hits(&accesses, 1), "--+-+");
        let passed = [(1, Read), (2, Read), (1, Pass), (2, Read), (1, Read)];
        assert_eq!(hits(&passed, 1), "---+-");
    }
}
