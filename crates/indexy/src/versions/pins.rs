//! Which snapshots are open.
//!
//! Keeps I11: a begin takes the gate alone, a batch shares it. Threads: any. The list's lock is
//! held for a few loads and stores; the gate by a begin no longer than that, and by a batch, or a
//! write that many begins have come before, while it is applied. Nobody waits for memory or a
//! device with the gate held, but a batch that removes ranges and a value that goes past X, which
//! wait for Y, and a commit that looks into files of images that are newer than its snapshot.
//!
//! Each pin has a time, taken under the list's lock. The *horizon* is the time of the oldest pin,
//! or of now; it is read under the same lock. Time does not go back (`time.rs`), so neither does
//! the horizon, and no snapshot begins before it.
//!
//! A pin is *expired* when its snapshot was given up. That is set before the images that
//! it needed may go, so that a reader who looks for it after its reads has read nothing wrong.
//!
//! A pin is *spared* while its transaction commits, with the gate held: the images that the commit
//! itself leaves must not give it up, or it could never succeed. It waits for no memory meanwhile.

#![forbid(unsafe_code)]

use super::{
    clock::{Clock, Epoch},
    time::{Millis, Time},
};
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::{
    collections::BTreeMap,
    hint::spin_loop,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

/// Looks at a gate that is taken before a begin goes to sleep, and pauses of the processor before
/// each one: some 10 us in all.
const GATE_LOOKS: usize = 32;
const GATE_PAUSES: usize = 16;

/// An open snapshot.
#[derive(Debug)]
pub(crate) struct Pin {
    epoch: Epoch,
    /// When it began: entries that expired by then are absent for it.
    time: Millis,
    expired: AtomicBool,
    /// Written under the list's lock, or by the commit that ends.
    spared: AtomicBool,
}

impl Pin {
    #[inline]
    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub(crate) fn time(&self) -> Millis {
        self.time
    }

    /// To be asked after a read: what was read is right if this is false.
    #[inline]
    pub(crate) fn is_expired(&self) -> bool {
        self.expired.load(Ordering::Acquire)
    }
}

/// While it lives its snapshot is not given up.
pub(crate) struct Spared<'a>(&'a Pin);

impl Drop for Spared<'_> {
    fn drop(&mut self) {
        self.0.spared.store(false, Ordering::Release);
    }
}

/// While it lives no snapshot begins.
pub(crate) type Gate<'a> = RwLockReadGuard<'a, ()>;

/// See the module header.
#[derive(Debug)]
pub(super) struct Pins {
    pub(super) clock: Clock,
    time: Time,
    gate: RwLock<()>,
    open: Mutex<Open>,
    /// The oldest open epoch; where none is open, that of the next one. It never falls, so that
    /// what was read of it holds although snapshots begin.
    oldest: AtomicU64,
}

#[derive(Debug)]
struct Open {
    /// The epoch of the next snapshot.
    next: Epoch,
    pins: BTreeMap<Epoch, Arc<Pin>>,
}

impl Pins {
    pub(super) fn new() -> Self {
        Self {
            clock: Clock::new(),
            time: Time::default(),
            gate: RwLock::new(()),
            open: Mutex::new(Open {
                next: 1,
                pins: BTreeMap::new(),
            }),
            oldest: AtomicU64::new(1),
        }
    }

    pub(super) fn set_time(&mut self, time: Time) {
        self.time = time;
    }

    pub(super) fn time(&self) -> &Time {
        &self.time
    }

    /// See the module header.
    pub(super) fn horizon(&self) -> Millis {
        self.time.now();
        let open = self.open.lock();
        let oldest = open.pins.first_key_value().map(|(_, pin)| pin.time);
        oldest.unwrap_or_else(|| self.time.seen())
    }

    /// Keeps snapshots from beginning.
    pub(super) fn gate(&self) -> Gate<'_> {
        self.gate.read()
    }

    pub(super) fn begin(&self) -> Arc<Pin> {
        // The clock is the user's: it is asked before any lock. What it said is taken inside.
        self.time.now();
        let _no_batch = self.between_batches();
        let mut open = self.open.lock();
        let epoch = open.next;
        open.next += 1;
        let pin = Arc::new(Pin {
            epoch,
            time: self.time.seen(),
            expired: AtomicBool::new(false),
            spared: AtomicBool::new(false),
        });
        open.pins.insert(epoch, pin.clone());
        self.clock.raise(epoch + 1);
        pin
    }

    /// The gate, taken alone. A batch holds it for some 10 us as a rule: to go to sleep and to be
    /// woken takes longer.
    fn between_batches(&self) -> RwLockWriteGuard<'_, ()> {
        for _ in 0..GATE_LOOKS {
            if let Some(alone) = self.gate.try_write() {
                return alone;
            }
            (0..GATE_PAUSES).for_each(|_| spin_loop());
        }
        self.gate.write()
    }

    /// True when that was the oldest one: images may go.
    pub(super) fn end(&self, pin: &Pin) -> bool {
        let mut open = self.open.lock();
        open.pins.remove(&pin.epoch);
        self.update(&open)
    }

    /// Spares a snapshot; `None`: it was given up.
    pub(super) fn spare<'a>(&self, pin: &'a Pin) -> Option<Spared<'a>> {
        let open = self.open.lock();
        open.pins.contains_key(&pin.epoch).then(|| {
            pin.spared.store(true, Ordering::Release);
            Spared(pin)
        })
    }

    /// Gives up the oldest snapshot that is not spared; false if there is none.
    pub(super) fn expire_oldest(&self) -> bool {
        let mut open = self.open.lock();
        let spared = |pin: &Pin| pin.spared.load(Ordering::Acquire);
        let oldest = open.pins.iter().find(|(_, pin)| !spared(pin));
        let oldest = oldest.map(|(epoch, _)| *epoch);
        let Some(pin) = oldest.and_then(|epoch| open.pins.remove(&epoch)) else {
            return false;
        };
        pin.expired.store(true, Ordering::Release);
        // The oldest one may be another one, which is spared.
        self.update(&open);
        true
    }

    fn update(&self, open: &Open) -> bool {
        let newest = open.pins.last_key_value().map(|(epoch, _)| *epoch);
        self.clock.lower(newest.map_or(0, |epoch| epoch + 1));
        let oldest = open.pins.first_key_value().map(|(epoch, _)| *epoch);
        let oldest = oldest.unwrap_or(open.next);
        self.oldest.swap(oldest, Ordering::AcqRel) != oldest
    }

    /// No snapshot that is open, or begins later, has an epoch below this one.
    pub(super) fn oldest(&self) -> Epoch {
        self.oldest.load(Ordering::Acquire)
    }

    /// The open epochs, ascending.
    pub(super) fn epochs(&self) -> Vec<Epoch> {
        self.open.lock().pins.keys().copied().collect()
    }
}
