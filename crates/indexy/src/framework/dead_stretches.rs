//! Stretches of keys in which nothing lives, as scans found out: later scans pass them at once.
//!
//! The front of a queue is such a stretch: tombstones until Index Y has them, and nothing where Y
//! has to be asked. A scan that passed many dead entries *arms* a slot for its range, reads again,
//! and *settles* the slot to what it saw to be dead. A writer of a value *revives* the key: it
//! shortens the slots that hold it.
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

use crate::{key::successor, x::Order};
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use std::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
};

/// Stretches that a tree remembers.
const SLOTS: usize = 7;
/// Longer ends are not remembered: slots are not counted in the budget.
const MAX_END_BYTES: usize = 1024;

/// `[from, to)`; `None`: to the end of the key space.
type Keys = (Vec<u8>, Option<Vec<u8>>);

/// See the module header.
#[derive(Debug, Default)]
pub(crate) struct DeadStretches {
    /// What writers look at.
    seen: CachePadded<Seen>,
    slots: Mutex<Slots>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Slots in use.
    used: AtomicUsize,
    /// Odd while the heads change: a stretch may go from one slot to another.
    version: AtomicUsize,
    /// The heads of the first and of the last key that may be in a slot.
    heads: [[AtomicU64; 2]; SLOTS],
}

impl Seen {
    /// A slot may hold a key with this head.
    fn may_hold(&self, head: u64) -> bool {
        // Pairs with the release store at the end of `change`.
        let version = self.version.load(Acquire);
        let within =
            |[low, high]: &[AtomicU64; 2]| low.load(Relaxed) <= head && head <= high.load(Relaxed);
        let within = self.heads.iter().any(within);
        fence(Acquire);
        within || !version.is_multiple_of(2) || self.version.load(Relaxed) != version
    }

    /// Has `write` change the heads. The caller holds the lock of the slots.
    fn change(&self, write: impl FnOnce(&[[AtomicU64; 2]; SLOTS])) {
        let version = self.version.load(Relaxed);
        self.version.store(version.wrapping_add(1), Relaxed);
        // Pairs with the fence in `may_hold`: who reads a new head reads a new version.
        fence(Release);
        write(&self.heads);
        self.version.store(version.wrapping_add(2), Release);
    }
}

#[derive(Debug, Default)]
struct Slots {
    slots: [Option<Slot>; SLOTS],
    /// Number of the last slot that was armed.
    last: u64,
    /// Values on their way past X.
    held_off: usize,
}

#[derive(Debug)]
struct Slot {
    keys: Keys,
    number: u64,
    /// `Some`: a scan in this order is under way.
    armed: Option<Order>,
}

/// A slot that a scan is to settle; given up on drop.
pub(crate) struct Armed<'a> {
    stretches: &'a DeadStretches,
    number: u64,
    order: Order,
}

/// While it lives, nothing is armed.
pub(crate) struct HeldOff<'a>(&'a DeadStretches);

/// The first bytes of a key as a number: keys in order have heads in order.
fn head(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let len = key.len().min(8);
    bytes[..len].copy_from_slice(&key[..len]);
    u64::from_be_bytes(bytes)
}

fn holds((from, to): &Keys, key: &[u8]) -> bool {
    &from[..] <= key && to.as_ref().is_none_or(|to| key < &to[..])
}

fn is_long((from, to): &Keys) -> bool {
    from.len().max(to.as_ref().map_or(0, Vec::len)) > MAX_END_BYTES
}

fn is_empty((from, to): &Keys) -> bool {
    to.as_ref().is_some_and(|to| to <= from)
}

impl DeadStretches {
    /// What is left of `[from, to)` for a scan in `order`, if stretches that it begins with are
    /// passed; `None`: all of it is dead. Returns the ends that changed.
    pub(crate) fn pass(&self, from: &[u8], to: Option<&[u8]>, order: Order) -> Passed {
        if self.seen.used.load(Relaxed) == 0 {
            return Passed::Nothing;
        }
        let mut at: Option<Option<Vec<u8>>> = None;
        let slots = self.slots.lock();
        // Each turn passes a slot, and none is met twice.
        for _ in 0..SLOTS {
            let next = slots.settled().find_map(|(start, end)| match order {
                Order::Ascending => {
                    let from = at.as_ref().map_or(Some(from), |at| at.as_deref())?;
                    let within = &start[..] <= from && end.as_ref().is_none_or(|e| from < &e[..]);
                    within.then(|| end.clone())
                }
                Order::Descending => {
                    let to = at.as_ref().map_or(to, |at| at.as_deref());
                    let within = match (to, end) {
                        (None, end) => end.is_none(),
                        (Some(to), end) => {
                            &start[..] < to && end.as_ref().is_none_or(|end| to <= &end[..])
                        }
                    };
                    within.then(|| Some(start.clone()))
                }
            });
            let Some(next) = next else { break };
            let ended = match (order, &next) {
                (Order::Ascending, None) => true,
                (Order::Ascending, Some(next)) => to.is_some_and(|to| to <= &next[..]),
                (Order::Descending, next) => next.as_ref().is_some_and(|next| &next[..] <= from),
            };
            if ended {
                return Passed::All;
            }
            at = Some(next);
        }
        match at.flatten() {
            Some(at) => Passed::UpTo(at),
            None => Passed::Nothing,
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
        for at in 0..SLOTS {
            let Some(slot) = slots.slots[at].as_mut().filter(|s| holds(&s.keys, key)) else {
                continue;
            };
            let above = (successor(key), slot.keys.1.clone());
            if slot.armed == Some(Order::Descending) {
                slot.keys = above;
                continue;
            }
            slot.keys.1 = Some(key.to_vec());
            if slot.armed.is_none() {
                slots.last += 1;
                let number = slots.last;
                let rest = Slot {
                    keys: above,
                    number,
                    armed: None,
                };
                if let Some(free) = slots.slots.iter().position(Option::is_none) {
                    slots.slots[free] = Some(rest);
                }
            }
        }
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
        let Some(mut slot) = slots.slots[at].take() else {
            return;
        };
        match (self.order, edge) {
            (Order::Ascending, Some(edge)) if slot.keys.1.as_deref().is_none_or(|e| edge < e) => {
                slot.keys.1 = Some(edge.to_vec());
            }
            (Order::Descending, Some(edge)) if edge > &slot.keys.0[..] => {
                slot.keys.0 = edge.to_vec();
            }
            _ => {}
        }
        slot.armed = None;
        // What it touches becomes one with it.
        for other in &mut slots.slots {
            let Some((from, to)) = other
                .as_ref()
                .filter(|o| o.armed.is_none())
                .map(|o| &o.keys)
            else {
                continue;
            };
            let (own_from, own_to) = &slot.keys;
            let touches = to.as_ref().is_none_or(|to| own_from <= to)
                && own_to.as_ref().is_none_or(|own_to| from <= own_to);
            if touches && !is_empty(&slot.keys) {
                let end = match (to, own_to) {
                    (Some(a), Some(b)) => Some(a.max(b).clone()),
                    _ => None,
                };
                slot.keys = (from.min(own_from).clone(), end);
                *other = None;
            }
        }
        slots.slots[at] = Some(slot);
        slots.show(&self.stretches.seen);
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

impl Slots {
    fn settled(&self) -> impl Iterator<Item = &Keys> {
        let slots = self.slots.iter().flatten();
        slots.filter(|s| s.armed.is_none()).map(|s| &s.keys)
    }

    fn position(&self, number: u64) -> Option<usize> {
        let is = |slot: &Option<Slot>| slot.as_ref().is_some_and(|s| s.number == number);
        self.slots.iter().position(is)
    }

    /// A slot to use: one that is free, or the oldest.
    fn free(&self) -> usize {
        let number = |at: &usize| self.slots[*at].as_ref().map_or(0, |s| s.number);
        (0..SLOTS).min_by_key(number).unwrap_or(0)
    }

    /// Tells writers, and drops slots that hold nothing.
    fn show(&mut self, seen: &Seen) {
        for slot in &mut self.slots {
            slot.take_if(|s| is_empty(&s.keys) || is_long(&s.keys));
        }
        seen.change(|all| {
            for (slot, heads) in self.slots.iter().zip(all) {
                let (low, high) = match slot {
                    Some(Slot { keys, .. }) => {
                        (head(&keys.0), keys.1.as_deref().map_or(u64::MAX, head))
                    }
                    None => (u64::MAX, 0),
                };
                heads[0].store(low, Relaxed);
                heads[1].store(high, Relaxed);
            }
        });
        let used = self.slots.iter().flatten().count();
        seen.used.store(used, Relaxed);
    }
}

#[cfg(test)]
mod tests;
