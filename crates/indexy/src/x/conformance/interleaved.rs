//! Small worlds under a scheduler that may put any thread in at every step of a latch: what is rare
//! with real threads is common here, and a failure names the schedule that repeats it.
//!
//! Threads of the model are a few writes, reads with their loads, one run with its settling, and
//! cuts: the interleavings that the invariants are about (a write while its region is being cut, a
//! load against a write, a run in flight against both) are among the schedules. Values are numbers
//! of writes, as in `stress`.

use super::{Make, world::Map};
use crate::{
    sync::{point, while_scheduled},
    x::{IndexX, Lookup},
};
use shuttle::{scheduler::RandomScheduler, thread};
use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering::SeqCst},
    },
};

/// Schedules tried for each scenario.
const SCHEDULES: usize = 2000;
const KEYS: usize = 12;

/// Everything runs on one thread of the system, and nothing is locked across a step: locks are
/// never waited for.
struct World<X> {
    x: X,
    y: parking_lot::Mutex<Map>,
    begun: Vec<AtomicU64>,
    finished: Vec<AtomicU64>,
    /// The newest write that a reader saw: who looks later sees none older.
    observed: Vec<AtomicU64>,
    acked: AtomicU32,
}

/// Half of the keys share a leaf's prefix.
fn key(i: usize) -> Vec<u8> {
    match i % 2 {
        0 => vec![i as u8],
        _ => format!("shared/{i:02}").into_bytes(),
    }
}

fn value(i: usize, write: u64) -> Vec<u8> {
    [
        [i as u8, write as u8].as_slice(),
        &vec![i as u8; (write % 7 * 30) as usize],
    ]
    .concat()
}

fn write_of(i: usize, bytes: &[u8]) -> u64 {
    let write = u64::from(bytes[1]);
    assert_eq!(bytes, value(i, write), "a torn value");
    write
}

impl<X: IndexX> World<X> {
    fn new(x: X) -> Arc<Self> {
        Arc::new(Self {
            x,
            y: Default::default(),
            begun: (0..KEYS).map(|_| AtomicU64::new(0)).collect(),
            finished: (0..KEYS).map(|_| AtomicU64::new(0)).collect(),
            observed: (0..KEYS).map(|_| AtomicU64::new(0)).collect(),
            acked: AtomicU32::new(0),
        })
    }

    /// The next write of key `i`, a removal every third time. One thread at a time writes a key.
    fn write(&self, i: usize) {
        let write = self.begun[i].fetch_add(1, SeqCst) + 1;
        let bytes = value(i, write);
        let given = (!write.is_multiple_of(3)).then_some(&bytes[..]);
        assert!(self.x.put(&key(i), given, || Ok::<(), ()>(())).is_ok());
        point();
        self.finished[i].store(write, SeqCst);
    }

    fn read(&self, i: usize) {
        let finished = self.finished[i].load(SeqCst);
        let oldest = finished.max(self.observed[i].load(SeqCst));
        point();
        let seen = match self.x.get(&key(i), |bytes| write_of(i, bytes)) {
            Lookup::Found(write) => Some(write),
            Lookup::Operand => unreachable!("nothing is merged"),
            Lookup::Deleted | Lookup::Absent => None,
            Lookup::AskY(stamp) => {
                point();
                let bytes = self.y.lock().get(&key(i)).cloned();
                point();
                if let Some(bytes) = &bytes {
                    self.x.load(&key(i), bytes, stamp);
                }
                bytes.map(|bytes| write_of(i, &bytes))
            }
        };
        point();
        let newest = self.begun[i].load(SeqCst);
        // Absent: the first removal that it may have been (write 0 is the absence before the
        // first).
        let write = seen.unwrap_or(oldest.next_multiple_of(3));
        assert!(
            (oldest..=newest).contains(&write),
            "key {i}: read {seen:?}, between {oldest} and {newest} were possible"
        );
        self.observed[i].fetch_max(write, SeqCst);
    }

    fn run(&self, run: u32, fails: bool) {
        let mut entries = vec![];
        let flow = self.x.clean(&[], None, run, &mut |key, value, _| {
            entries.push((key.to_vec(), value.map(<[u8]>::to_vec)));
            ControlFlow::Continue(())
        });
        assert!(flow.is_continue());
        for (n, (key, value)) in entries.iter().enumerate() {
            point();
            if fails && n >= entries.len() / 2 {
                break;
            }
            let mut y = self.y.lock();
            match value {
                Some(value) => y.insert(key.clone(), value.clone()),
                None => y.remove(key),
            };
        }
        point();
        if fails {
            self.x.redirty(&[], None, run);
            self.acked.store(run, SeqCst);
        } else {
            self.acked.store(run, SeqCst);
            point();
            self.x.settle(&[], None, run);
        }
    }

    fn cut(&self, spare: bool) {
        let acked = self.acked.load(SeqCst);
        point();
        self.x.cut(&[], None, acked, spare, usize::MAX);
    }

    /// Everything is as it was written, and again when Y has it all.
    fn check(&self) {
        assert_eq!(self.x.verify(true), Ok(()));
        (0..KEYS).for_each(|i| self.read(i));
        self.run(100, false);
        self.cut(false);
        assert_eq!(self.x.verify(true), Ok(()));
        (0..KEYS).for_each(|i| self.read(i));
    }
}

/// One thread of a scenario.
type Act<X> = Box<dyn Fn(&World<X>) + Send + Sync>;

/// Runs `before` alone, then all of `acts` under many schedules.
fn explore<X: IndexX + 'static>(make: Make<X>, before: fn(&World<X>), acts: fn() -> Vec<Act<X>>) {
    let runner = shuttle::Runner::new(RandomScheduler::new(SCHEDULES), shuttle::Config::default());
    while_scheduled(|| {
        runner.run(move || {
            let world = World::new(make(false));
            before(&world);
            let threads: Vec<_> = acts()
                .into_iter()
                .map(|act| {
                    let world = Arc::clone(&world);
                    thread::spawn(move || act(&world))
                })
                .collect();
            threads
                .into_iter()
                .for_each(|thread| thread.join().expect("a thread of the model fails"));
            world.check();
        });
    });
}

/// All keys were written and are in Y, and half of them in X.
fn half_in_x<X: IndexX>(world: &World<X>) {
    (0..KEYS).for_each(|i| world.write(i));
    world.run(1, false);
    world.cut(false);
    (0..KEYS).step_by(2).for_each(|i| world.read(i));
}

pub(super) fn i4_a_cut_against_writes<X: IndexX + 'static>(make: Make<X>) {
    explore(make, half_in_x, || {
        vec![
            Box::new(|w| (0..3).for_each(|_| w.write(0))),
            Box::new(|w| [1, 3, 1].into_iter().for_each(|i| w.write(i))),
            Box::new(|w| [false, true].into_iter().for_each(|spare| w.cut(spare))),
            Box::new(|w| [0, 1, 3].into_iter().for_each(|i| w.read(i))),
        ]
    });
}

pub(super) fn i3_loads_against_writes<X: IndexX + 'static>(make: Make<X>) {
    explore(make, half_in_x, || {
        vec![
            Box::new(|w| [1, 1, 5].into_iter().for_each(|i| w.write(i))),
            Box::new(|w| [1, 5, 1].into_iter().for_each(|i| w.read(i))),
            Box::new(|w| {
                w.run(2, false);
                w.cut(false);
            }),
            Box::new(|w| [1, 5, 7].into_iter().for_each(|i| w.read(i))),
        ]
    });
}

pub(super) fn i2_runs_against_writes<X: IndexX + 'static>(make: Make<X>) {
    explore(make, half_in_x, || {
        vec![
            Box::new(|w| [0, 1, 0, 1].into_iter().for_each(|i| w.write(i))),
            Box::new(|w| {
                w.run(2, true);
                w.run(3, false);
            }),
            Box::new(|w| [false, false].into_iter().for_each(|spare| w.cut(spare))),
            Box::new(|w| [0, 1, 2].into_iter().for_each(|i| w.read(i))),
        ]
    });
}
