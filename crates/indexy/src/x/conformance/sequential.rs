//! Random histories of one thread, over key sets that have hurt radix trees before.

use super::{
    Make,
    world::{PendingLoad, World},
};
use crate::{
    mem::EVERYTHING_IS_IN_THE_WAY,
    x::{IndexX, Order, ScanLimits},
};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};

const STEPS: usize = 4000;
const SEEDS: u64 = 6;
/// From this seed on all values have one length.
const EQUAL_FROM: u64 = 4;
const EQUAL_BYTES: usize = 24;

struct History<X> {
    world: World<X>,
    rng: StdRng,
    keys: Vec<Vec<u8>>,
    value_bytes: usize,
    /// All values are so long.
    equal_bytes: Option<usize>,
    pending: Vec<PendingLoad>,
}

impl<X: IndexX> History<X> {
    fn key(&mut self) -> Vec<u8> {
        self.keys.choose(&mut self.rng).cloned().unwrap_or_default()
    }

    /// A bound of a range: a key, something next to one, or none.
    fn bound(&mut self) -> Vec<u8> {
        let mut key = self.key();
        match self.rng.random_range(0..6) {
            0 => key.clear(),
            1 => key.push(0),
            2 => {
                key.pop();
            }
            3 => key.push(0xFF),
            _ => {}
        }
        key
    }

    fn range(&mut self) -> (Vec<u8>, Option<Vec<u8>>) {
        let (a, b) = (self.bound(), self.bound());
        match self.rng.random_range(0..5) {
            0 => (vec![], None),
            1 => (a, None),
            2 => (b, Some(a)),
            _ => (a.clone().min(b.clone()), Some(a.max(b))),
        }
    }

    fn value(&mut self) -> Vec<u8> {
        let len = match self.rng.random_range(0..20) {
            0 => self.rng.random_range(0..=self.value_bytes),
            1 => 0,
            2 => self.rng.random_range(100..200),
            _ => self.rng.random_range(0..20),
        };
        let len = self.equal_bytes.unwrap_or(len);
        let byte = self.rng.random();
        vec![byte; len]
    }

    fn step(&mut self) {
        match self.rng.random_range(0..100) {
            0..40 => {
                let (key, value) = (self.key(), self.value());
                self.world.put(&key, &value);
            }
            40..52 => {
                let key = self.key();
                self.world.remove(&key);
            }
            52..70 => {
                let key = self.key();
                self.world.check(&key);
            }
            70..74 => {
                let key = self.key();
                self.pending.extend(self.world.begin_load(&key));
            }
            74..78 => {
                if !self.pending.is_empty() {
                    let at = self.rng.random_range(0..self.pending.len());
                    let load = self.pending.swap_remove(at);
                    self.world.finish_load(&load);
                    self.world.check(&load.key);
                }
            }
            78..84 => self.scan(),
            84..90 => self.run(),
            90..95 => {
                let (from, to) = self.range();
                let (spare, enough) = (self.rng.random(), self.enough());
                let acked = self.world.acked;
                let before = self.world.x.stats();
                let cut = self.world.x.cut(&from, to.as_deref(), acked, spare, enough);
                let after = self.world.x.stats();
                assert_eq!(before.keys - after.keys, cut.dropped);
                assert_eq!(before.dirty, after.dirty);
                assert_eq!(before.bytes - after.bytes, cut.freed_bytes);
            }
            95 => {
                let (key, value) = (self.key(), self.value());
                if self.world.flight.is_none() {
                    self.world.write_past(&key, &value);
                }
            }
            96 => {
                let on = self.rng.random();
                self.world.x.track_references(on);
            }
            97 if self.rng.random() => self.refused(),
            97 => {
                let before = self.world.x.stats();
                EVERYTHING_IS_IN_THE_WAY.set(true);
                self.world.x.relocate();
                EVERYTHING_IS_IN_THE_WAY.set(false);
                assert_eq!(self.world.x.stats(), before);
            }
            98 => {
                if self.world.y.is_empty() && self.world.flight.is_none() {
                    self.world.x.clear_mounts(&[], None);
                    assert_eq!(self.world.x.stats().mounts, 0);
                }
            }
            _ => self.empty_y(),
        }
    }

    fn enough(&mut self) -> usize {
        if self.rng.random() {
            usize::MAX
        } else {
            self.rng.random_range(0..4000)
        }
    }

    fn scan(&mut self) {
        let (from, to) = self.range();
        let order = if self.rng.random() {
            Order::Ascending
        } else {
            Order::Descending
        };
        let limits = match self.rng.random_range(0..4) {
            0 => ScanLimits {
                bytes: usize::MAX,
                entries: usize::MAX,
                leaves: 1,
                leaves_if_mounted: 1,
            },
            1 => ScanLimits {
                bytes: usize::MAX,
                entries: 1,
                leaves: usize::MAX,
                leaves_if_mounted: usize::MAX,
            },
            2 => ScanLimits {
                bytes: 100,
                entries: usize::MAX,
                leaves: usize::MAX,
                leaves_if_mounted: usize::MAX,
            },
            _ => ScanLimits {
                bytes: usize::MAX,
                entries: usize::MAX,
                leaves: usize::MAX,
                leaves_if_mounted: usize::MAX,
            },
        };
        self.world.check_scan(&from, to.as_deref(), order, limits);
    }

    fn run(&mut self) {
        let (from, to) = self.range();
        match &self.world.flight {
            None => self.world.begin_run(&from, to.as_deref()),
            Some(flight) if self.rng.random_range(0..4) == 0 => {
                let taken = self.rng.random_range(0..=flight.entries.len());
                self.world.fail(taken);
            }
            Some(_) => self.world.acknowledge(),
        }
    }

    /// A commit that fails.
    fn refused(&mut self) {
        let (key, value) = (self.key(), self.value());
        let value = self.rng.random::<bool>().then_some(&value[..]);
        let _ = self.world.x.put(&key, value, || Err::<(), ()>(()));
        self.world.check(&key);
    }

    /// Removes everything and lets Y take it, so that mounts can be cleared.
    fn empty_y(&mut self) {
        if self.rng.random_range(0..4) > 0 {
            return;
        }
        let keys: Vec<_> = self.world.truth.keys().cloned().collect();
        for key in keys {
            self.world.remove(&key);
        }
        self.world.flush();
        assert!(self.world.y.is_empty());
        assert_eq!(self.world.x.stats().keys, 0);
    }

    fn check_everything(&mut self) {
        self.world.check_all();
        for key in &self.keys {
            self.world.check(key);
        }
    }
}

fn run<X: IndexX>(make: Make<X>, keys: fn(&mut StdRng) -> Vec<Vec<u8>>, value_bytes: usize) {
    for seed in 0..SEEDS {
        let mut rng = StdRng::seed_from_u64(seed);
        let keys = keys(&mut rng);
        let world = World::new(make(seed % 2 == 0));
        let mut history = History {
            world,
            rng,
            keys,
            value_bytes,
            equal_bytes: (seed >= EQUAL_FROM).then_some(EQUAL_BYTES),
            pending: vec![],
        };
        for step in 0..STEPS {
            history.step();
            if step % 400 == 0 {
                history.check_everything();
            }
        }
        history.world.flush();
        history.check_everything();
        let truth = &history.world.truth;
        assert!(history.world.y == *truth, "Y has everything after a flush");
        history.world.cut_all();
        assert_eq!(history.world.x.stats().keys, 0);
        history.check_everything();
    }
}

pub(super) fn dense_keys<X: IndexX>(make: Make<X>) {
    run(
        make,
        |_| (0..1500u16).map(|i| i.to_be_bytes().to_vec()).collect(),
        700,
    );
}

pub(super) fn random_keys<X: IndexX>(make: Make<X>) {
    let keys = |rng: &mut StdRng| {
        let one = |rng: &mut StdRng| rng.random::<u64>().to_be_bytes().to_vec();
        (0..2000).map(|_| one(rng)).collect()
    };
    run(make, keys, 400);
}

pub(super) fn nested_prefixes<X: IndexX>(make: Make<X>) {
    let keys = |rng: &mut StdRng| {
        let mut keys: Vec<_> = (0..300).map(|n| vec![b'a'; n]).collect();
        for _ in 0..600 {
            let mut key = vec![b'a'; rng.random_range(0..200)];
            key.extend((0..rng.random_range(0..4)).map(|_| rng.random_range(b'`'..b'd')));
            keys.push(key);
        }
        keys
    };
    run(make, keys, 700);
}

pub(super) fn long_shared_prefixes<X: IndexX>(make: Make<X>) {
    let keys = |rng: &mut StdRng| {
        (0..800)
            .map(|_| {
                let mut key = vec![];
                for part in 0..3u8 {
                    let which = rng.random_range(0..4u8);
                    key.extend(std::iter::repeat_n(
                        part * 16 + which,
                        90 + usize::from(which),
                    ));
                }
                key.push(rng.random());
                key
            })
            .collect()
    };
    run(make, keys, 700);
}

pub(super) fn huge_keys<X: IndexX>(make: Make<X>) {
    let keys = |rng: &mut StdRng| {
        (0..40u8)
            .map(|i| {
                let len = [65_534, 65_533, 30_000, 257, 256][usize::from(i % 5)];
                let mut key = vec![i % 2; len];
                if rng.random() {
                    let at = rng.random_range(0..len);
                    key[at] = rng.random();
                }
                key
            })
            .collect()
    };
    run(make, keys, 700);
}

pub(super) fn large_values<X: IndexX>(make: Make<X>) {
    let keys = |rng: &mut StdRng| {
        let one = |rng: &mut StdRng| rng.random::<u16>().to_be_bytes().to_vec();
        (0..300).map(|_| one(rng)).collect()
    };
    run(make, keys, 400_000);
}

pub(super) fn runs_of_zero_and_ff<X: IndexX>(make: Make<X>) {
    let keys = |rng: &mut StdRng| {
        let mut keys = vec![vec![]];
        for _ in 0..1500 {
            let len = rng.random_range(0..8);
            let bytes = [0, 0, 0, 1, 0x7F, 0x80, 0xFE, 0xFF, 0xFF, 0xFF];
            let key = (0..len).map(|_| *bytes.choose(rng).unwrap_or(&0));
            keys.push(key.collect());
        }
        keys
    };
    run(make, keys, 700);
}
