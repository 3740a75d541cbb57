//! The cooling map: candidates for eviction, first in, first out within a bucket.
//! Source: DEX section 5.2. A bucket has six places; a small cache has fewer in all.

use super::mapping::spread;
use crate::address::Address;
use parking_lot::Mutex;

const PLACES: usize = 6;
const EMPTY: u32 = u32::MAX;

/// Oldest first.
struct Bucket {
    frames: [u32; PLACES],
    used: usize,
}

pub(crate) struct Cooling {
    buckets: Box<[Mutex<Bucket>]>,
    places: usize,
}

impl Bucket {
    fn take(&mut self, at: usize) -> Option<usize> {
        let frame = *self.frames[..self.used].get(at)?;
        self.frames.copy_within(at + 1..self.used, at);
        self.used -= 1;
        self.frames[self.used] = EMPTY;
        Some(frame as usize)
    }
}

impl Cooling {
    /// Room for `frames`, at least one, in whole buckets.
    pub(super) fn new(frames: usize) -> Self {
        let bucket = || {
            Mutex::new(Bucket {
                frames: [EMPTY; PLACES],
                used: 0,
            })
        };
        let buckets = (frames / PLACES).max(1);
        Self {
            buckets: (0..buckets).map(|_| bucket()).collect(),
            places: frames.clamp(1, PLACES),
        }
    }

    pub(super) fn buckets(&self) -> usize {
        self.buckets.len()
    }

    fn bucket(&self, at: Address) -> &Mutex<Bucket> {
        &self.buckets[spread(at) % self.buckets.len()]
    }

    /// Adds the frame of the node `at`; returns the oldest one if there is no place.
    pub(super) fn push(&self, at: Address, frame: usize) -> Option<usize> {
        let mut bucket = self.bucket(at).lock();
        let pushed_out = if bucket.used == self.places {
            bucket.take(0)
        } else {
            None
        };
        let used = bucket.used;
        bucket.frames[used] = frame as u32;
        bucket.used += 1;
        pushed_out
    }

    /// Removes the frame of the node `at`; `false`: it was taken out before.
    pub(super) fn remove(&self, at: Address, frame: usize) -> bool {
        let mut bucket = self.bucket(at).lock();
        let found = bucket.frames[..bucket.used]
            .iter()
            .position(|&other| other as usize == frame);
        found.and_then(|at| bucket.take(at)).is_some()
    }

    /// Takes the oldest frame of a bucket.
    pub(super) fn take_oldest(&self, bucket: usize) -> Option<usize> {
        self.buckets[bucket % self.buckets.len()].lock().take(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_its_oldest() {
        let cooling = Cooling::new(6);
        let at = |i: u64| Address::new(0, 4096 + 1024 * i);
        for i in 0..6 {
            assert_eq!(cooling.push(at(i), i as usize), None);
        }
        assert_eq!(cooling.push(at(6), 6), Some(0));
        assert!(cooling.remove(at(2), 2) && !cooling.remove(at(2), 2));
        let order: Vec<_> = std::iter::from_fn(|| cooling.take_oldest(0)).collect();
        assert_eq!(order, [1, 3, 4, 5, 6]);
    }

    #[test]
    fn a_small_cache_cools_little() {
        let cooling = Cooling::new(1);
        assert_eq!(cooling.buckets(), 1);
        assert_eq!(cooling.push(Address::new(0, 4096), 3), None);
        assert_eq!(cooling.push(Address::new(0, 5120), 4), Some(3));
    }
}
