//! The table and its bits against a set of keys, in any order of steps.

use super::{EvictedKeys, bits::Bits, room::FilterRoom, table::Plan};
use crate::{framework::policies::Evicted, mem::budget::Budget, y::line_filter::deny_nothing};
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

fn room() -> FilterRoom {
    FilterRoom::new(Arc::new(Budget::new(1 << 30)))
}

fn new_bits(plan: &Plan, bits_per_key: u8, room: &FilterRoom) -> Arc<Bits> {
    let reserved = room.reserve(super::bits::bytes_for(plan.capacity(), bits_per_key));
    Arc::new(Bits::new(plan.capacity(), bits_per_key, reserved.unwrap()))
}

#[test]
fn bits_deny_as_many_as_they_should() {
    let room = room();
    for bits_per_key in [4u8, 8, 10, 14, 20] {
        let reserved = room.reserve(1).unwrap();
        let bits = Bits::new(50_000, bits_per_key, reserved);
        let hash = |n: u32| Bits::hash_of(&n.to_be_bytes());
        for n in 0..50_000 {
            bits.add(hash(n));
        }
        assert!((0..50_000).all(|n| bits.admits(hash(n))));
        let wrong = (100_000..200_000).filter(|n| bits.admits(hash(*n))).count();
        let rate = wrong as f64 / 100_000.0;
        let expected = deny_nothing(bits_per_key.into());
        assert!(
            rate < expected * 1.5 + 0.001,
            "{bits_per_key}: {rate} of {expected}"
        );
        assert!(!bits.is_overfull() && !bits.is_stale());
        assert!(bits.keys() > 40_000, "{}", bits.keys());
    }
}

/// A scan under way, a chunk at a time.
struct Scan {
    plan: Plan,
    bits: Arc<Bits>,
    at: Vec<u8>,
    keys: u64,
}

/// An Index Y that is a set, and a filter over it.
struct Model {
    random: StdRng,
    keys: EvictedKeys,
    y: BTreeSet<Vec<u8>>,
    scan: Option<Scan>,
    room: FilterRoom,
    bits_per_key: u8,
}

impl Model {
    fn key(&mut self) -> Vec<u8> {
        // Short keys, so that ranges have ends that are keys.
        let n: u32 = self.random.random_range(0..40_000);
        n.to_be_bytes()[2..].to_vec()
    }

    fn range(&mut self) -> (Vec<u8>, Vec<u8>) {
        let (a, b) = (self.key(), self.key());
        if a <= b { (a, b) } else { (b, a) }
    }

    fn run(&mut self) {
        let noted = self.keys.for_run();
        let entries: Vec<_> = (0..self.random.random_range(1..3000))
            .map(|_| (self.key(), self.random.random_range(0..3) > 0))
            .collect();
        for (key, is_put) in &entries {
            noted.note(key, is_put.then_some(&b""[..]));
        }
        // The scan may go on between the notes and the moment in which Y shows them.
        self.scan_some();
        for (key, is_put) in entries {
            match is_put {
                true => self.y.insert(key),
                false => self.y.remove(&key),
            };
        }
    }

    fn begin_scan(&mut self) {
        let next = self.keys.next(self.y.len() as u64);
        let (None, Some((plan, bits_per_key))) = (&self.scan, next) else {
            return;
        };
        assert_eq!(bits_per_key, self.bits_per_key);
        let bits = new_bits(&plan, bits_per_key, &self.room);
        assert!(self.keys.begin(&plan, &bits));
        let at = plan.from.to_vec();
        self.scan = Some(Scan {
            plan,
            bits,
            at,
            keys: 0,
        });
    }

    /// A chunk; the end of it where that is the end of the part.
    fn scan_some(&mut self) {
        let Some(mut scan) = self.scan.take() else {
            return;
        };
        let chunk = self.random.random_range(1..2000);
        let inside = |key: &&Vec<u8>| scan.plan.to.as_ref().is_none_or(|to| key[..] < **to);
        let entries: Vec<_> = self
            .y
            .range(scan.at.clone()..)
            .take_while(inside)
            .take(chunk)
            .cloned()
            .collect();
        if entries.is_empty() {
            self.keys.finish(&scan.bits, None);
            return;
        }
        for key in entries {
            if scan.keys == scan.plan.keys {
                self.keys.finish(&scan.bits, Some(&key));
                return;
            }
            scan.bits.add(Bits::hash_of(&key));
            scan.keys += 1;
            scan.at = [&key[..], &[0]].concat();
        }
        self.scan = Some(scan);
    }

    fn step(&mut self) {
        match self.random.random_range(0..100) {
            0..40 => self.run(),
            40..60 => self.begin_scan(),
            60..85 => self.scan_some(),
            85..88 => {
                let (from, to) = self.range();
                self.y.retain(|key| *key < from || *key >= to);
                self.keys.forget_removed(&from, Some(&to));
            }
            88..91 => {
                let (from, to) = self.range();
                self.keys.forget(&from, Some(&to));
                for _ in 0..100 {
                    let key = self.key();
                    if (&from..&to).contains(&&key) {
                        self.y.insert(key);
                    }
                }
            }
            91..93 => {
                self.keys.shed();
            }
            93..95 => {
                if let Some(scan) = self.scan.take() {
                    self.keys.abandon(&scan.bits);
                }
            }
            95 => {
                self.scan = None;
                self.keys.choose(Evicted::Ranges);
                assert_eq!(self.room.bytes(), 0);
                self.choose();
            }
            96 => {
                self.y.clear();
                self.keys.forget_removed(&[], None);
            }
            _ => {}
        }
        for key in &self.y {
            assert!(!self.keys.denies(key), "{key:?}");
        }
    }

    fn choose(&mut self) {
        let filter = Evicted::Filter {
            bits_per_key: self.bits_per_key,
        };
        self.keys.choose_with_parts(filter, 3 << 10);
    }
}

/// INDEXY_FILTER_SECONDS makes it longer.
#[test]
fn i1_no_key_of_y_is_denied_whatever_happens() {
    let seconds = std::env::var("INDEXY_FILTER_SECONDS").ok();
    let seconds: u64 = seconds.and_then(|n| n.parse().ok()).unwrap_or(0);
    let began = Instant::now();
    let mut seed = 0;
    while seed < 8 || began.elapsed() < Duration::from_secs(seconds) {
        let mut random = StdRng::seed_from_u64(seed);
        let bits_per_key = random.random_range(4..=16);
        let mut model = Model {
            random,
            keys: EvictedKeys::default(),
            y: BTreeSet::new(),
            scan: None,
            room: room(),
            bits_per_key,
        };
        model.choose();
        for _ in 0..150 {
            model.step();
        }
        // In the end it is whole, and knows what is absent.
        while model.scan.is_some() || model.keys.next(model.y.len() as u64).is_some() {
            model.begin_scan();
            model.scan_some();
        }
        assert!(!model.keys.is_incomplete());
        let absent = (0..20_000u32).filter(|n| model.keys.denies(&(n + 1_000_000).to_le_bytes()));
        let least = if bits_per_key < 8 { 9_000 } else { 17_000 };
        assert!(absent.count() > least, "{bits_per_key} bits, seed {seed}");
        seed += 1;
    }
}

/// Keys that come in order, and keys that come anywhere, leave parts that are neither many nor
/// small.
#[test]
fn parts_are_as_many_as_the_keys_need() {
    for scattered in [false, true] {
        let mut model = Model {
            random: StdRng::seed_from_u64(1),
            keys: EvictedKeys::default(),
            y: BTreeSet::new(),
            scan: None,
            room: room(),
            bits_per_key: 10,
        };
        model.choose();
        let count = 400_000u32;
        for n in 0..count {
            let key = if scattered {
                n.wrapping_mul(0x9E37_79B1)
            } else {
                n
            };
            let key = key.to_be_bytes().to_vec();
            model.keys.for_run().note(&key, Some(b""));
            model.y.insert(key);
            if n % 5000 == 0 {
                while model.scan.is_some() || model.keys.next(model.y.len() as u64).is_some() {
                    model.begin_scan();
                    model.scan_some();
                }
            }
        }
        let bytes = model.room.bytes();
        let needed = count as usize * 10 / 8;
        assert!(
            bytes < 3 * needed,
            "{bytes} of {needed}, scattered: {scattered}"
        );
    }
}
