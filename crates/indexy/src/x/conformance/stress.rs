//! Writers, readers, a cleaner, a cutter and one who moves everything on one X, every read checked.
//!
//! Each writer owns its keys; a value says which write of its key it is. A reader must see, for
//! each key, a number between the last one finished before it looked and the last one begun after
//! it looked.

use super::{Make, world::Map};
use crate::{
    mem::EVERYTHING_IS_IN_THE_WAY,
    x::{Chunk, ChunkEntry, IndexX, Lookup, Order, ScanLimits},
};
use parking_lot::{Mutex, RwLock};
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::{
    ops::ControlFlow,
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

const WRITERS: usize = 3;
const READERS: usize = 3;
const KEYS_PER_WRITER: usize = 3000;
const RUNNING: Duration = Duration::from_millis(2500);

struct Shared<X> {
    x: X,
    y: RwLock<Map>,
    /// Number of the last write begun and finished, by key. Odd numbers are removals.
    begun: Vec<AtomicU64>,
    finished: Vec<AtomicU64>,
    /// Number of the newest write that a reader saw: who looks later sees none older.
    observed: Vec<AtomicU64>,
    acked: AtomicU32,
    /// Stripes: the writers of one key are serial, and so are its load and its write.
    stripes: Vec<Mutex<()>>,
    stop: AtomicBool,
    loads: AtomicU64,
    dropped: AtomicU64,
}

/// Keys of three shapes: spread, dense, and long with a shared prefix.
fn key(i: usize) -> Vec<u8> {
    match i % 3 {
        0 => (i as u64)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .to_be_bytes()
            .to_vec(),
        1 => (i as u32).to_be_bytes().to_vec(),
        _ => format!("a rather long prefix that all of these share/{i:05}").into_bytes(),
    }
}

fn value(i: usize, write: u64) -> Vec<u8> {
    let mut value = write.to_le_bytes().to_vec();
    value.extend_from_slice(&(i as u64).to_le_bytes());
    // Lengths change, so that entries move; some live out of line. Those of spread keys, which have
    // leaves to themselves, do not.
    let extra = if i.is_multiple_of(3) {
        0
    } else if write.is_multiple_of(61) {
        700
    } else if i % 3 == 1 {
        // In the leaf and beside it, so that leaves become smaller and larger.
        (write / 2 % 3 * 60) as usize
    } else {
        (write % 40) as usize
    };
    value.resize(16 + extra, write as u8);
    value
}

/// The number of the write that made this value of key `i`; panics when it is torn.
fn write_of(i: usize, bytes: &[u8]) -> u64 {
    let write = u64::from_le_bytes(bytes[..8].try_into().expect("a value has a number"));
    assert_eq!(bytes, value(i, write), "a torn value");
    write
}

impl<X: IndexX> Shared<X> {
    fn write(&self, i: usize) {
        let _stripe = self.stripes[i % self.stripes.len()].lock();
        let write = self.begun[i].fetch_add(1, Ordering::SeqCst) + 1;
        let bytes = value(i, write);
        let given = write.is_multiple_of(2).then_some(&bytes[..]);
        let done = self.x.put(&key(i), given, || Ok::<(), ()>(()));
        assert!(done.is_ok());
        self.finished[i].store(write, Ordering::SeqCst);
    }

    /// Looks key `i` up as the framework does, and checks the answer.
    fn read(&self, i: usize) {
        let key = key(i);
        let finished = self.finished[i].load(Ordering::SeqCst);
        let oldest = finished.max(self.observed[i].load(Ordering::SeqCst));
        let seen = match self.x.get(&key, |bytes| write_of(i, bytes)) {
            Lookup::Found(write) => Some(write),
            Lookup::Operand => unreachable!("nothing is merged"),
            Lookup::Deleted | Lookup::Absent => None,
            Lookup::AskY(stamp) => {
                let bytes = self.y.read().get(&key).cloned();
                if let Some(bytes) = &bytes {
                    if i.is_multiple_of(5) {
                        thread::yield_now();
                    }
                    self.x.load(&key, bytes, stamp);
                    self.loads.fetch_add(1, Ordering::Relaxed);
                }
                bytes.map(|bytes| write_of(i, &bytes))
            }
        };
        let newest = self.begun[i].load(Ordering::SeqCst);
        // Absent is right when it was never written, or some write in between was a removal: the
        // first of them counts.
        let removal = if oldest == 0 { 0 } else { oldest | 1 };
        let write = seen.unwrap_or(removal);
        assert!(
            (oldest..=newest).contains(&write),
            "key {i}: read {seen:?}, between {oldest} and {newest} were possible"
        );
        self.observed[i].fetch_max(write, Ordering::SeqCst);
    }

    fn transfer(&self, run: u32, rng: &mut StdRng) {
        let (from, to) = bounds(rng);
        let mut entries = vec![];
        let flow = self
            .x
            .clean(&from, to.as_deref(), run, &mut |key, value, _| {
                entries.push((key.to_vec(), value.map(<[u8]>::to_vec)));
                ControlFlow::Continue(())
            });
        assert!(flow.is_continue());
        thread::yield_now();
        let fails = rng.random_range(0..8) == 0;
        let taken = if fails {
            entries.len() / 2
        } else {
            entries.len()
        };
        for part in entries[..taken].chunks(64) {
            let mut y = self.y.write();
            for (key, value) in part {
                match value {
                    Some(value) => y.insert(key.clone(), value.clone()),
                    None => y.remove(key),
                };
            }
        }
        if fails {
            self.x.redirty(&from, to.as_deref(), run);
            self.acked.store(run, Ordering::Release);
        } else {
            self.acked.store(run, Ordering::Release);
            self.x.settle(&from, to.as_deref(), run);
        }
    }

    fn cut(&self, rng: &mut StdRng) {
        let (from, to) = bounds(rng);
        let enough = if rng.random() { usize::MAX } else { 20_000 };
        let acked = self.acked.load(Ordering::Acquire);
        let cut = self
            .x
            .cut(&from, to.as_deref(), acked, rng.random(), enough);
        self.dropped
            .fetch_add(cut.dropped as u64, Ordering::Relaxed);
    }

    fn scan(&self, rng: &mut StdRng) {
        let (from, to) = bounds(rng);
        let order = if rng.random() {
            Order::Ascending
        } else {
            Order::Descending
        };
        let limits = ScanLimits {
            bytes: usize::MAX,
            entries: 500,
            leaves: 100,
            leaves_if_mounted: 100,
        };
        let mut chunk = Chunk::default();
        self.x.scan(&from, to.as_deref(), order, limits, &mut chunk);
        let keys = chunk.entries.iter().map(|e| &e.key);
        match order {
            Order::Ascending => assert!(keys.is_sorted_by(|a, b| a < b)),
            Order::Descending => assert!(keys.is_sorted_by(|a, b| a > b)),
        }
        for bytes in chunk.entries.iter().filter_map(|e| e.value.as_ref()) {
            let i = u64::from_le_bytes(bytes[8..16].try_into().expect("a value has its key"));
            write_of(i as usize, bytes);
        }
        let mut last = None;
        let _ = self.x.keys(&from, to.as_deref(), usize::MAX, &mut |entry| {
            let key = Some(entry.key.to_vec());
            assert!(last < key && entry.key >= &from[..] && entry.value_bytes >= 16);
            assert!(to.as_deref().is_none_or(|to| entry.key < to));
            last = key;
            ControlFlow::Continue(())
        });
    }
}

fn bounds(rng: &mut StdRng) -> (Vec<u8>, Option<Vec<u8>>) {
    let mut bound = || key(rng.random_range(0..WRITERS * KEYS_PER_WRITER));
    let (a, b) = (bound(), bound());
    match rng.random_range(0..3) {
        0 => (vec![], None),
        1 => (a, None),
        _ => (a.clone().min(b.clone()), Some(a.max(b))),
    }
}

pub(super) fn writers_readers_and_a_cutter<X: IndexX>(make: Make<X>) {
    let keys = WRITERS * KEYS_PER_WRITER;
    let shared = Shared {
        x: make(false),
        y: RwLock::default(),
        begun: (0..keys).map(|_| AtomicU64::new(0)).collect(),
        finished: (0..keys).map(|_| AtomicU64::new(0)).collect(),
        observed: (0..keys).map(|_| AtomicU64::new(0)).collect(),
        acked: AtomicU32::new(0),
        stripes: (0..64).map(|_| Mutex::new(())).collect(),
        stop: AtomicBool::new(false),
        loads: AtomicU64::new(0),
        dropped: AtomicU64::new(0),
    };
    let until = Instant::now() + RUNNING;
    thread::scope(|scope| {
        let on = |role: usize, act: fn(&Shared<X>, usize, &mut StdRng, u32)| {
            let shared = &shared;
            scope.spawn(move || {
                let mut rng = StdRng::seed_from_u64(role as u64);
                let mut round = 0;
                while !shared.stop.load(Ordering::Relaxed) {
                    round += 1;
                    act(shared, role, &mut rng, round);
                }
            });
        };
        for role in 0..WRITERS {
            on(role, |shared, role, rng, _| {
                shared.write(rng.random_range(0..KEYS_PER_WRITER) * WRITERS + role);
            });
        }
        for role in 0..READERS {
            on(role, |shared, _, rng, round| {
                shared.read(rng.random_range(0..WRITERS * KEYS_PER_WRITER));
                if round % 2000 == 0 {
                    shared.scan(rng);
                }
            });
        }
        on(100, |shared, _, rng, round| {
            shared.transfer(round, rng);
            if round % 8 == 0 {
                assert_eq!(shared.x.verify(false), Ok(()));
            }
            thread::sleep(Duration::from_millis(2));
        });
        on(200, |shared, _, rng, _| {
            shared.x.track_references(true);
            shared.cut(rng);
            thread::sleep(Duration::from_millis(1));
        });
        on(300, |shared, _, _, _| {
            EVERYTHING_IS_IN_THE_WAY.set(true);
            shared.x.relocate();
            thread::sleep(Duration::from_millis(5));
        });
        while Instant::now() < until {
            thread::sleep(Duration::from_millis(20));
        }
        shared.stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(shared.x.verify(true), Ok(()));
    for i in 0..keys {
        shared.read(i);
    }
    assert!(shared.loads.load(Ordering::Relaxed) > 0 && shared.dropped.load(Ordering::Relaxed) > 0);
}

/// One writer writes a number under the first key of a leaf, then under the last one: whoever reads
/// the leaf at one moment sees the same number twice, or the last one not yet.
pub(super) fn i9_a_scan_reads_a_leaf_at_one_moment<X: IndexX>(make: Make<X>) {
    const KEYS: u8 = 40;
    const SCANS: usize = 1000;
    for len in [8, 34, 300] {
        let x = make(false);
        let put = |key: u8, n: u64| {
            let mut value = n.to_le_bytes().to_vec();
            value.resize(len, key);
            assert!(x.put(&[key], Some(&value), || Ok::<(), ()>(())).is_ok());
        };
        (0..KEYS).for_each(|key| put(key, 0));
        let stop = AtomicBool::new(false);
        thread::scope(|s| {
            s.spawn(|| {
                let mut n = 0;
                while !stop.load(Ordering::Relaxed) {
                    n += 1;
                    put(0, n);
                    put(KEYS - 1, n);
                }
            });
            let limits = ScanLimits {
                bytes: usize::MAX,
                entries: KEYS.into(),
                leaves: 1,
                leaves_if_mounted: 1,
            };
            let mut chunk = Chunk::default();
            let wrong = (0..SCANS).find_map(|i| {
                let order = [Order::Ascending, Order::Descending][i % 2];
                x.scan(&[], None, order, limits, &mut chunk);
                // What has become two leaves is not read at one moment.
                let all = chunk.entries.len() == usize::from(KEYS);
                let number = |entry: &ChunkEntry| {
                    let value = entry.value.as_ref().and_then(|v| v.first_chunk());
                    value.map_or(0, |n| u64::from_le_bytes(*n))
                };
                let (a, b) = (
                    number(chunk.entries.first()?),
                    number(chunk.entries.last()?),
                );
                let (first, last) = match order {
                    Order::Ascending => (a, b),
                    Order::Descending => (b, a),
                };
                (!all || first.wrapping_sub(last) > 1).then_some((all, first, last))
            });
            stop.store(true, Ordering::Relaxed);
            assert_eq!(wrong, None, "values of {len} bytes");
        });
    }
}
