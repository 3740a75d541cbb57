//! Stretches of keys in which nothing lives, as scans found out: later scans pass them at once.
//!
//! The front of a queue is such a stretch: tombstones until Index Y has them, and nothing where Y
//! has to be asked. A scan that passed many dead entries *arms* a slot for its range, reads again,
//! and *settles* the slot to what it saw to be dead. A writer of a value *revives* the key: it
//! shortens the slots that hold it.
//!
//! The *front* of a tree is a slot of the same kind in which only some keys may live, those that
//! were read: who removes one first key after the other looks there, and reads again when they are
//! used up. A value that is written into it ends it.
//!
//! Keeps: I9. A settled stretch holds no live key. Suppose that it holds one: if the key lived
//! during the whole second read, that read has shown it (I9), and the slot ends before it. Else it
//! was written meanwhile. The writer holds the leaf's latch, and the key is not to be seen before
//! it gives that up. Its fence in `revive` is before or after that of `arm`. After: the writer sees
//! the slot, and shortens it. Before: the read finds the leaf latched, and waits for the entry.
//!
//! Threads: any. Writers look at the heads of the slots, without a lock, and only while there are
//! slots. Slots change under the lock, which is held for a few comparisons. A value that goes past
//! X is seen at a moment that nobody latches: meanwhile nothing is armed (`hold_off`).

#![forbid(unsafe_code)]

mod seen;
mod slots;

use crate::{key::successor, x::Order};
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use seen::{Seen, head};
use slots::{Slot, Slots, is_long};
use std::sync::atomic::{
    Ordering::{Relaxed, SeqCst},
    fence,
};

/// See the module header.
#[derive(Debug, Default)]
pub(crate) struct DeadStretches {
    /// What writers look at.
    seen: CachePadded<Seen>,
    slots: Mutex<Slots>,
}

/// A slot that a scan is to settle; given up on drop.
pub(crate) struct Armed<'a> {
    stretches: &'a DeadStretches,
    number: u64,
    order: Order,
}

/// While it lives, nothing is armed.
pub(crate) struct HeldOff<'a>(&'a DeadStretches);

/// The first key of a front.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct First {
    number: u64,
    /// The key.
    pub key: Vec<u8>,
}

impl DeadStretches {
    /// What is left of `[from, to)` for a scan in `order`, if stretches that it begins with are
    /// passed; `None`: all of it is dead. Returns the ends that changed.
    pub(crate) fn pass(&self, from: &[u8], to: Option<&[u8]>, order: Order) -> Passed {
        if self.seen.used.load(Relaxed) == 0 {
            return Passed::Nothing;
        }
        let slots = self.slots.lock();
        let Some(at) = slots.pass(from, to, order) else {
            return Passed::Nothing;
        };
        match (order, at) {
            (Order::Ascending, None) => Passed::All,
            (Order::Ascending, Some(at)) if to.is_some_and(|to| to <= at) => Passed::All,
            (Order::Descending, Some(at)) if at <= from => Passed::All,
            (Order::Descending, None) => Passed::Nothing,
            (_, Some(at)) => Passed::UpTo(at.to_vec()),
        }
    }

    /// Writers of values in `[from, to)` are heard of from here on. `None` while a value is on its
    /// way past X.
    pub(crate) fn arm(&self, from: &[u8], to: Option<&[u8]>, order: Order) -> Option<Armed<'_>> {
        let keys = (from.to_vec(), to.map(<[u8]>::to_vec));
        let mut slots = self.slots.lock();
        if slots.held_off > 0 || is_long(&keys) {
            return None;
        }
        let at = slots.free();
        slots.last += 1;
        let number = slots.last;
        slots.slots[at] = Some(Slot {
            keys,
            number,
            armed: Some(order),
            front: None,
        });
        slots.show(&self.seen);
        // Pairs with the fence in `revive`; see the module header.
        fence(SeqCst);
        Some(Armed {
            stretches: self,
            number,
            order,
        })
    }

    /// As `arm`, of all keys, if a slot is free: what is known to be dead is worth more.
    pub(crate) fn watch(&self, order: Order) -> Option<Armed<'_>> {
        let has_free = self.slots.lock().slots.iter().any(Option::is_none);
        has_free.then(|| self.arm(&[], None, order)).flatten()
    }

    /// `key` is about to have a value. The caller holds its leaf's latch, or has held off.
    #[inline]
    pub(crate) fn revive(&self, key: &[u8]) {
        // Pairs with the fence in `arm`. On x86-64 the latch, or the lock of `hold_off`, was taken
        // by a locked instruction, which is such a fence.
        if cfg!(not(target_arch = "x86_64")) {
            fence(SeqCst);
        }
        if self.seen.used.load(Relaxed) == 0 {
            return;
        }
        if self.seen.may_hold(head(key)) {
            self.shorten(key);
        }
    }

    #[cold]
    fn shorten(&self, key: &[u8]) {
        let mut slots = self.slots.lock();
        slots.shorten(key);
        slots.show(&self.seen);
    }

    /// For a write of `key` that latches no leaf.
    pub(crate) fn hold_off(&self, key: &[u8]) -> HeldOff<'_> {
        self.slots.lock().held_off += 1;
        self.revive(key);
        HeldOff(self)
    }

    /// For many keys that appear without a latch: nothing is known to be dead.
    pub(crate) fn hold_off_all(&self) -> HeldOff<'_> {
        let mut slots = self.slots.lock();
        slots.held_off += 1;
        slots.slots = Default::default();
        slots.show(&self.seen);
        HeldOff(self)
    }

    /// The first key in `order`, if a front knows it.
    pub(crate) fn first(&self, order: Order) -> Option<First> {
        let slots = self.slots.lock();
        let (number, key) = slots.front(order)?;
        Some(First {
            number,
            key: key.to_vec(),
        })
    }

    /// A first key was removed, or found to be absent.
    pub(crate) fn pass_first(&self, first: &First) {
        let mut slots = self.slots.lock();
        slots.pass_first(first.number, &first.key, &self.seen);
    }

    /// How many keys to read for a new front in `order`; `None`: none, for now.
    pub(crate) fn ahead(&self, order: Order) -> Option<usize> {
        self.slots.lock().ahead(order)
    }

    /// A front in `order` would be of no use: for a while there is to be none.
    pub(crate) fn give_up(&self, order: Order) {
        self.slots.lock().give_up(order);
    }
}

/// What [`DeadStretches::pass`] found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Passed {
    Nothing,
    /// The range is dead up to here: ascending a new `from`, descending a new `to`.
    UpTo(Vec<u8>),
    All,
}

impl Armed<'_> {
    /// All that comes before `edge` in the order of the scan was dead: ascending, keys below it;
    /// descending, keys from it on. `None`: the whole range.
    pub(crate) fn settle(self, edge: Option<&[u8]>) {
        let mut slots = self.stretches.slots.lock();
        let Some(at) = slots.position(self.number) else {
            return;
        };
        if let Some(slot) = &mut slots.slots[at] {
            slot.narrow(self.order, edge);
            slot.armed = None;
        }
        slots.join(at);
        slots.show(&self.stretches.seen);
    }

    /// Of a scan over all keys: whether a writer of a value came before `key` in its order since it
    /// was armed, or anywhere where it found none. As far as that is known: the slot may be
    /// another's by now.
    pub(crate) fn was_overtaken(&self, key: Option<&[u8]>) -> bool {
        let slots = self.stretches.slots.lock();
        let at = slots.position(self.number);
        let slot = at.and_then(|at| slots.slots[at].as_ref());
        slot.is_some_and(|slot| match (self.order, key) {
            (Order::Ascending, Some(key)) => slot.keys.1.as_ref().is_some_and(|to| &to[..] < key),
            (Order::Ascending, None) => slot.keys.1.is_some(),
            (Order::Descending, Some(key)) => slot.keys.0 > successor(key),
            (Order::Descending, None) => !slot.keys.0.is_empty(),
        })
    }

    /// Up to the last of `keys`, which are in the order of the scan, nothing else lived. Returns
    /// the first of them, unless a writer of a value came before it.
    pub(crate) fn settle_front<'k>(self, keys: impl Iterator<Item = &'k [u8]>) -> Option<First> {
        let mut slots = self.stretches.slots.lock();
        let there = slots.settle_front(self.number, self.order, keys);
        slots.show(&self.stretches.seen);
        let (number, key) = slots.front(self.order).filter(|_| there)?;
        Some(First {
            number,
            key: key.to_vec(),
        })
    }
}

impl Drop for Armed<'_> {
    fn drop(&mut self) {
        let mut slots = self.stretches.slots.lock();
        // After `settle` it is no longer armed, and stays.
        if let Some(at) = slots.position(self.number)
            && slots.slots[at].as_ref().is_some_and(|s| s.armed.is_some())
        {
            slots.slots[at] = None;
            slots.show(&self.stretches.seen);
        }
    }
}

impl Drop for HeldOff<'_> {
    fn drop(&mut self) {
        self.0.slots.lock().held_off -= 1;
    }
}

#[cfg(test)]
mod tests;
