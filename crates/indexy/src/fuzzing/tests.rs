//! Runs every target on samples, mutated at random, for as long as `INDEXY_FUZZ_SECONDS` says
//! (default 1).

use super::*;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::{Duration, Instant},
};

/// Inputs kept; new ones replace old ones at random.
const CORPUS: usize = 256;
const MAX_BYTES: usize = 64 << 10;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

fn mutate(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let at = random.below(bytes.len());
    match random.below(9) {
        _ if bytes.is_empty() => bytes.push(random.next() as u8),
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = random.next() as u8,
        2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
        3 => bytes.insert(at, random.next() as u8),
        4 => drop(bytes.remove(at)),
        5 => bytes.truncate(at),
        6 => {
            let word = [0, 1, u64::MAX, 1 << 31, 1 << 63, random.next()][random.below(6)];
            let width = [2, 4, 8][random.below(3)].min(bytes.len() - at);
            bytes[at..at + width].copy_from_slice(&word.to_le_bytes()[..width]);
        }
        7 => {
            let from = random.below(other.len());
            let part = other.get(from..).unwrap_or_default();
            bytes.truncate(at);
            bytes.extend_from_slice(&part[..random.below(part.len() + 1)]);
        }
        _ => {
            let len = random.below(bytes.len() - at + 1);
            bytes.extend_from_within(at..at + len);
        }
    }
    bytes.truncate(MAX_BYTES);
}

fn fuzz(name: &str) {
    let target = TARGETS.iter().find(|t| t.name == name).unwrap();
    let setting = |name, default| {
        let value = std::env::var(name).ok();
        value.and_then(|v| v.parse().ok()).unwrap_or(default)
    };
    let mut random = Random(setting("INDEXY_FUZZ_SEED", 1));
    let end = Instant::now() + Duration::from_secs(setting("INDEXY_FUZZ_SECONDS", 1));
    let mut corpus = (target.samples)();
    corpus.push(Vec::new());
    for sample in &corpus {
        (target.run)(sample);
    }
    let mut runs = 0u64;
    while Instant::now() < end {
        let mut input = corpus[random.below(corpus.len())].clone();
        for _ in 0..=random.below(6) {
            let other = corpus[random.below(corpus.len())].clone();
            mutate(&mut input, &other, &mut random);
        }
        let result = catch_unwind(AssertUnwindSafe(|| (target.run)(&input)));
        assert!(result.is_ok(), "{name} panics on {input:02x?}");
        runs += 1;
        if corpus.len() < CORPUS {
            corpus.push(input);
        } else if random.below(16) == 0 {
            // The samples stay.
            let kept = (target.samples)().len();
            let at = kept + random.below(corpus.len() - kept);
            corpus[at] = input;
        }
    }
    println!("{name}: {runs} inputs");
}

macro_rules! targets {
    ($($name:ident)*) => {
        $(#[test] fn $name() { fuzz(stringify!($name)); })*

        #[test]
        fn every_target_is_run() {
            let names = [$(stringify!($name)),*];
            assert_eq!(TARGETS.map(|t| t.name), names);
        }
    };
}

targets!(
    log_record log_group log_segment log_payload
    manifest hot_set index_y_page run_table version_log
);
