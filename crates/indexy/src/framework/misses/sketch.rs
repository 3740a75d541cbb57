//! How often keys were counted lately, roughly, in few bytes: a count-min sketch that ages.
//!
//! Source: TinyLFU (Einziger, Friedman, Manes, 2017). A key has a counter of 4 bits in each of four
//! rows, and its estimate is the least of them: never less than its count, but for ageing, and more
//! only where it shares all four. Conservative update: only counters that hold the estimate grow.
//!
//! Differs: the four counters lie in one *block*, a cache line, and blocks are halved one after the
//! other, one for each [`ADDITIONS_A_BLOCK`] counts. So no caller pays for a pass over all, all
//! counters of a key age at the same moment, and at any moment some keys are just halved and some
//! about to be.
//!
//! Threads: any, without a lock. Counts that meet in one word may be lost. No I/O, no allocation
//! but for the counters.

#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The most that is counted of a key.
pub(super) const MOST: u8 = 15;

/// A block is halved when so many counts came for each. A row of a block has 32 counters.
pub(super) const ADDITIONS_A_BLOCK: u64 = 32;

const BLOCK_WORDS: usize = 8;
const BLOCK_BYTES: usize = BLOCK_WORDS * size_of::<u64>();
const ROWS: usize = 4;
const ROW_WORDS: usize = BLOCK_WORDS / ROWS;
const COUNTERS_A_WORD: u64 = 16;
const COUNTER_BITS: u32 = 4;
/// Each counter without its highest bit: what a halved word may hold.
const HALVED: u64 = 0x7777_7777_7777_7777;

/// See the module header.
#[derive(Debug)]
pub(in crate::framework) struct Sketch {
    words: Box<[AtomicU64]>,
    additions: AtomicU64,
}

/// Where a key has its counter in one row.
#[derive(Clone, Copy)]
struct Place {
    word: usize,
    shift: u32,
}

impl Sketch {
    /// A sketch of about `bytes`: whole blocks, at least one.
    pub(in crate::framework) fn new(bytes: usize) -> Self {
        let blocks = (bytes / BLOCK_BYTES).max(1);
        Self {
            words: (0..blocks * BLOCK_WORDS)
                .map(|_| AtomicU64::default())
                .collect(),
            additions: AtomicU64::new(0),
        }
    }

    pub(in crate::framework) fn bytes(&self) -> usize {
        self.words.len() * size_of::<u64>()
    }

    /// Counts the key with this hash once more; returns its estimate, this time included. Cost: a
    /// cache line, and now and then another one.
    pub(in crate::framework) fn count(&self, hash: u64) -> u8 {
        let seen = self.places(hash).map(|place| {
            let word = self.words[place.word].load(Relaxed);
            (place, word, (word >> place.shift) as u8 & MOST)
        });
        let least = seen.iter().map(|(.., n)| *n).min().unwrap_or(MOST);
        let grow = seen.iter().filter(|(.., n)| *n == least && least < MOST);
        for (place, word, _) in grow {
            // Only from what was seen: a counter that is full must not run over into the next.
            let more = word + (1 << place.shift);
            let _ = self.words[place.word].compare_exchange(*word, more, Relaxed, Relaxed);
        }
        self.age();
        (least + 1).min(MOST)
    }

    /// How often the key with this hash was counted lately. Cost: a cache line.
    pub(in crate::framework) fn estimate(&self, hash: u64) -> u8 {
        let counters = self
            .places(hash)
            .map(|place| (self.words[place.word].load(Relaxed) >> place.shift) as u8 & MOST);
        counters.into_iter().min().unwrap_or_default()
    }

    /// The block by the high half of the hash, the counter in each row by eight bits of the low
    /// one.
    fn places(&self, hash: u64) -> [Place; ROWS] {
        let blocks = (self.words.len() / BLOCK_WORDS) as u64;
        let block = (((hash >> 32) * blocks) >> 32) as usize * BLOCK_WORDS;
        std::array::from_fn(|row| {
            let bits = hash >> (8 * row);
            let in_row = (bits / COUNTERS_A_WORD) as usize % ROW_WORDS;
            Place {
                word: block + row * ROW_WORDS + in_row,
                shift: (bits % COUNTERS_A_WORD) as u32 * COUNTER_BITS,
            }
        })
    }

    /// Halves the next block, where that is due.
    fn age(&self) {
        let additions = self.additions.fetch_add(1, Relaxed);
        if !additions.is_multiple_of(ADDITIONS_A_BLOCK) {
            return;
        }
        let blocks = self.words.len() / BLOCK_WORDS;
        let block = (additions / ADDITIONS_A_BLOCK) as usize % blocks * BLOCK_WORDS;
        for word in &self.words[block..block + BLOCK_WORDS] {
            word.store(word.load(Relaxed) >> 1 & HALVED, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::StdRng};
    use std::collections::HashMap;

    fn hash(n: u64) -> u64 {
        xxhash_rust::xxh3::xxh3_64(&n.to_le_bytes())
    }

    fn estimate(sketch: &Sketch, n: u64) -> u8 {
        sketch.estimate(hash(n))
    }

    /// As many counts as make every block age so often.
    fn rounds(sketch: &Sketch, rounds: u64) -> u64 {
        (sketch.bytes() / BLOCK_BYTES) as u64 * ADDITIONS_A_BLOCK * rounds
    }

    #[test]
    fn it_takes_the_bytes_that_it_was_given() {
        for bytes in [0, 1, 63, 64, 65, 1000, 16 << 10, 1 << 20] {
            let sketch = Sketch::new(bytes);
            assert!(sketch.bytes() <= bytes.max(BLOCK_BYTES));
            assert!(sketch.bytes() + BLOCK_BYTES > bytes);
            (0..1000).for_each(|n| assert!((1..=MOST).contains(&sketch.count(hash(n)))));
        }
    }

    /// Until the first block ages for the second time nothing is forgotten: never too little, and
    /// hardly ever too much.
    #[test]
    fn estimates_are_never_too_small_and_seldom_too_large() {
        let sketch = Sketch::new(64 << 10);
        let mut random = StdRng::seed_from_u64(1);
        let (mut exact, mut too_large) = (HashMap::<u64, u8>::new(), 0);
        let counts = rounds(&sketch, 1) / 2;
        for _ in 0..counts {
            // Blocks that are still to age: the first half has aged once at the end.
            let n = random.random_range(0..counts / 2);
            let found = sketch.count(hash(n));
            let block = sketch.places(hash(n))[0].word / BLOCK_WORDS;
            if block * 2 * BLOCK_BYTES < sketch.bytes() {
                continue;
            }
            let count = exact.entry(n).or_default();
            *count = (*count + 1).min(MOST);
            assert!(found >= *count, "{found} of {count}");
            too_large += u32::from(found > *count);
        }
        let counted = counts as u32 / 2;
        assert!(too_large < counted / 20, "{too_large} of {counted}");
    }

    #[test]
    fn counts_are_halved_once_a_round() {
        let sketch = Sketch::new(4 << 10);
        for _ in 0..40 {
            sketch.count(hash(7));
        }
        assert_eq!(estimate(&sketch, 7), MOST);
        // Of others, as many as make it age four times: it was halved, and they did not meet it.
        let mut left = vec![estimate(&sketch, 7)];
        for n in 0..rounds(&sketch, 4) {
            sketch.count(hash(1000 + n * n));
            left.push(estimate(&sketch, 7));
        }
        left.dedup();
        assert!(left.starts_with(&[15, 7, 3]), "{left:?}");
    }

    /// The keys that a zipf trace has most often, beside exact counts of the last round.
    #[test]
    fn the_most_frequent_keys_of_a_zipf_trace_are_told_apart() {
        let (keys, sketch) = (100_000u64, Sketch::new(64 << 10));
        let mut random = StdRng::seed_from_u64(2);
        // Inverse of the harmonic sum, about: skew 1.
        let mut zipf = || (keys as f64).powf(random.random::<f64>()) as u64;
        let round = rounds(&sketch, 1);
        for _ in 0..3 * round {
            sketch.count(hash(zipf()));
        }
        let mut exact = HashMap::<u64, u64>::new();
        for _ in 0..round {
            let n = zipf();
            sketch.count(hash(n));
            *exact.entry(n).or_default() += 1;
        }
        let (mut right, mut all) = (0, 0);
        for (&n, &count) in &exact {
            // What is counted twice a round has 2 to 4 on average in an aged sketch.
            let (frequent, rare) = (count >= 6, count <= 1);
            if frequent || rare {
                all += 1;
                right += u32::from((estimate(&sketch, n) >= 3) == frequent);
            }
        }
        assert!(all > 5000 && right * 50 > all * 49, "{right} of {all}");
    }

    #[test]
    fn threads_count_side_by_side() {
        let sketch = Sketch::new(1 << 10);
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for n in 0..20_000 {
                        sketch.count(hash(n % 50));
                    }
                });
            }
        });
        assert!((0..50).filter(|&n| estimate(&sketch, n) > 3).count() > 40);
    }
}
