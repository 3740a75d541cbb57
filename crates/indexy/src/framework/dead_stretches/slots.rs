//! The slots: what is known of which keys, and for whom.
//!
//! Threads: one at a time; they stand in a lock.

#![forbid(unsafe_code)]

use super::seen::{SLOTS, Seen, head};
use crate::{key::successor, x::Order};
use std::{collections::VecDeque, sync::atomic::Ordering::Relaxed};

/// Longer ends are not remembered, and of a front no more keys: slots are not counted in the
/// budget.
pub(super) const MAX_END_BYTES: usize = 1024;
/// A front has no more keys.
const MAX_AHEAD: usize = 16;
/// Removals of a first key that follow one another before a front is looked for, after one that
/// was of no use.
const WAIT: usize = 64;

/// `[from, to)`; `None`: to the end of the key space.
pub(super) type Keys = (Vec<u8>, Option<Vec<u8>>);

#[derive(Debug, Default)]
pub(super) struct Slots {
    pub(super) slots: [Option<Slot>; SLOTS],
    /// Number of the last slot that was armed.
    pub(super) last: u64,
    /// Values on their way past X.
    pub(super) held_off: usize,
    /// How far to look ahead, ascending and descending.
    paces: [Pace; 2],
}

#[derive(Debug)]
pub(super) struct Slot {
    pub(super) keys: Keys,
    pub(super) number: u64,
    /// `Some`: a scan in this order is under way.
    pub(super) armed: Option<Order>,
    /// `Some`: a front; none of its other keys lives.
    pub(super) front: Option<Live>,
}

/// The keys of a slot that may live, in this order; at least one.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) order: Order,
    pub(super) keys: VecDeque<Vec<u8>>,
}

/// How many keys a front is to have: more whenever one was used up.
#[derive(Debug, Default)]
struct Pace {
    ahead: usize,
    /// For so many removals none.
    wait: usize,
}

fn holds((from, to): &Keys, key: &[u8]) -> bool {
    &from[..] <= key && to.as_ref().is_none_or(|to| key < &to[..])
}

pub(super) fn is_long((from, to): &Keys) -> bool {
    from.len().max(to.as_ref().map_or(0, Vec::len)) > MAX_END_BYTES
}

fn is_empty((from, to): &Keys) -> bool {
    to.as_ref().is_some_and(|to| to <= from)
}

/// They overlap, or one begins where the other ends.
fn touch((from, to): &Keys, (other_from, other_to): &Keys) -> bool {
    to.as_ref().is_none_or(|to| other_from <= to)
        && other_to.as_ref().is_none_or(|other_to| from <= other_to)
}

impl Slot {
    /// Nothing in it lives.
    fn is_settled(&self) -> bool {
        self.armed.is_none() && self.front.is_none()
    }

    /// All that comes before `edge` in `order`, up to what a writer has said meanwhile.
    pub(super) fn narrow(&mut self, order: Order, edge: Option<&[u8]>) {
        match (order, edge) {
            (Order::Ascending, Some(edge)) if self.keys.1.as_deref().is_none_or(|e| edge < e) => {
                self.keys.1 = Some(edge.to_vec());
            }
            (Order::Descending, Some(edge)) if edge > &self.keys.0[..] => {
                self.keys.0 = edge.to_vec();
            }
            _ => {}
        }
    }

    /// Once it was read for a front: `keys`, in `order`, are all that may live up to the last of
    /// them. Without a key that no writer came before, nothing lives in it.
    /// False: the first one is too long to be noted, and nothing is known.
    pub(super) fn make_front<'k>(
        &mut self,
        order: Order,
        keys: impl Iterator<Item = &'k [u8]>,
    ) -> bool {
        let mut bytes = 0;
        let keys = keys.take_while(|key| {
            bytes += key.len();
            bytes <= MAX_END_BYTES
        });
        let mut keys: VecDeque<_> = keys.map(<[u8]>::to_vec).collect();
        if keys.is_empty() {
            return false;
        }
        match (keys.back(), order) {
            (Some(last), Order::Ascending) => self.narrow(order, Some(&successor(last))),
            (last, _) => self.narrow(order, last.map(|last| &last[..])),
        }
        keys.retain(|key| holds(&self.keys, key));
        self.armed = None;
        self.front = (!keys.is_empty()).then_some(Live { order, keys });
        true
    }
}

impl Live {
    /// What comes before the first of its keys, and before `key`, is still dead.
    fn narrow(&self, slot: &mut Slot, key: &[u8]) {
        let first = self.keys.front().map_or(key, |first| &first[..]);
        match self.order {
            Order::Ascending => slot.keys.1 = Some(first.min(key).to_vec()),
            Order::Descending => slot.keys.0 = successor(first.max(key)),
        }
    }
}

impl Slots {
    pub(super) fn settled(&self) -> impl Iterator<Item = &Keys> {
        let slots = self.slots.iter().flatten();
        slots.filter(|s| s.is_settled()).map(|s| &s.keys)
    }

    pub(super) fn position(&self, number: u64) -> Option<usize> {
        let is = |slot: &Option<Slot>| slot.as_ref().is_some_and(|s| s.number == number);
        self.slots.iter().position(is)
    }

    /// A slot to use: one that is free, or the oldest.
    pub(super) fn free(&self) -> usize {
        let number = |at: &usize| self.slots[*at].as_ref().map_or(0, |s| s.number);
        (0..SLOTS).min_by_key(number).unwrap_or(0)
    }

    /// What a settled slot touches becomes one with it.
    pub(super) fn join(&mut self, at: usize) {
        let Some(mut slot) = self.slots[at].take() else {
            return;
        };
        for other in &mut self.slots {
            let Some(keys) = other.as_ref().filter(|o| o.is_settled()).map(|o| &o.keys) else {
                continue;
            };
            if touch(keys, &slot.keys) && !is_empty(&slot.keys) {
                let end = match (&keys.1, &slot.keys.1) {
                    (Some(a), Some(b)) => Some(a.max(b).clone()),
                    _ => None,
                };
                slot.keys = ((&keys.0).min(&slot.keys.0).clone(), end);
                *other = None;
            }
        }
        self.slots[at] = Some(slot);
    }

    /// Where `[from, to)` begins in `order`, after stretches that it begins with: ascending a new
    /// `from`, descending a new `to`; inside `None`: the end of the key space. `None`: it begins
    /// with none.
    pub(super) fn pass<'a>(
        &'a self,
        from: &'a [u8],
        to: Option<&'a [u8]>,
        order: Order,
    ) -> Option<Option<&'a [u8]>> {
        let mut at = None;
        // Each turn passes a slot, and none is met twice.
        for _ in 0..SLOTS {
            let next = self.settled().find_map(|(start, end)| {
                let end = end.as_deref();
                match order {
                    Order::Ascending => {
                        let from = at.unwrap_or(Some(from))?;
                        let within = &start[..] <= from && end.is_none_or(|end| from < end);
                        within.then_some(end)
                    }
                    Order::Descending => {
                        let within = match at.unwrap_or(to) {
                            None => end.is_none(),
                            Some(to) => &start[..] < to && end.is_none_or(|end| to <= end),
                        };
                        within.then_some(Some(&start[..]))
                    }
                }
            });
            match next {
                Some(next) => at = Some(next),
                None => break,
            }
        }
        at
    }

    /// `key` is about to have a value.
    pub(super) fn shorten(&mut self, key: &[u8]) {
        let mut ended = Vec::new();
        for at in 0..SLOTS {
            let Some(slot) = self.slots[at].as_mut().filter(|s| holds(&s.keys, key)) else {
                continue;
            };
            if let Some(live) = slot.front.take() {
                live.narrow(slot, key);
                self.give_up(live.order);
                ended.push(at);
                continue;
            }
            let above = (successor(key), slot.keys.1.clone());
            if slot.armed == Some(Order::Descending) {
                slot.keys = above;
                continue;
            }
            slot.keys.1 = Some(key.to_vec());
            if slot.armed.is_none() {
                self.last += 1;
                let rest = Slot {
                    keys: above,
                    number: self.last,
                    armed: None,
                    front: None,
                };
                if let Some(free) = self.slots.iter().position(Option::is_none) {
                    self.slots[free] = Some(rest);
                }
            }
        }
        // None that holds the key is left.
        ended.into_iter().for_each(|at| self.join(at));
    }

    /// Tells writers, and drops slots that hold nothing. One that is armed stays: it says what a
    /// writer came before.
    pub(super) fn show(&mut self, seen: &Seen) {
        for slot in &mut self.slots {
            slot.take_if(|s| s.armed.is_none() && (is_empty(&s.keys) || is_long(&s.keys)));
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

    /// Settles slot `number` for a front; another in this order goes. Returns whether there is one.
    pub(super) fn settle_front<'k>(
        &mut self,
        number: u64,
        order: Order,
        keys: impl Iterator<Item = &'k [u8]>,
    ) -> bool {
        let Some(at) = self.position(number) else {
            return false;
        };
        for slot in &mut self.slots {
            slot.take_if(|slot| slot.front.as_ref().is_some_and(|live| live.order == order));
        }
        if let Some(slot) = &mut self.slots[at] {
            if !slot.make_front(order, keys) {
                self.slots[at] = None;
                self.give_up(order);
                return false;
            }
            if slot.front.is_some() {
                return true;
            }
        }
        self.join(at);
        self.give_up(order);
        false
    }

    /// The number and the first key of the front in `order`, if nothing before it lives.
    pub(super) fn front(&self, order: Order) -> Option<(u64, &[u8])> {
        let mut slots = self.slots.iter().flatten();
        let (slot, key) = slots.find_map(|slot| {
            let live = slot.front.as_ref().filter(|live| live.order == order)?;
            Some((slot, live.keys.front()?))
        })?;
        let (from, to) = (&slot.keys.0[..], slot.keys.1.as_deref());
        let is_first = match (order, self.pass(&[], None, order)) {
            (Order::Ascending, None) => from.is_empty(),
            (Order::Ascending, Some(at)) => at.is_some_and(|at| from <= at),
            (Order::Descending, None) => to.is_none(),
            (Order::Descending, Some(at)) => at.is_some_and(|at| to.is_none_or(|to| at <= to)),
        };
        is_first.then_some((slot.number, key))
    }

    /// The first key of a front, `key`, does not live any more.
    pub(super) fn pass_first(&mut self, number: u64, key: &[u8], seen: &Seen) {
        let Some(at) = self.position(number) else {
            return;
        };
        let Some(live) = self.slots[at].as_mut().and_then(|slot| slot.front.as_mut()) else {
            return;
        };
        if live.keys.front().is_some_and(|first| first == key) {
            live.keys.pop_front();
        }
        if !live.keys.is_empty() {
            return;
        }
        let pace = &mut self.paces[live.order as usize];
        pace.ahead = (2 * pace.ahead).min(MAX_AHEAD);
        if let Some(slot) = &mut self.slots[at] {
            slot.front = None;
        }
        self.join(at);
        self.show(seen);
    }

    /// How many keys a front in `order` may have; `None`: not now.
    pub(super) fn ahead(&mut self, order: Order) -> Option<usize> {
        let pace = &mut self.paces[order as usize];
        if pace.wait > 0 {
            pace.wait -= 1;
            return None;
        }
        if pace.ahead == 0 {
            // One removal may be the only one.
            pace.ahead = 2;
            return None;
        }
        Some(pace.ahead)
    }

    /// A front in `order` is of no use for now.
    pub(super) fn give_up(&mut self, order: Order) {
        self.paces[order as usize] = Pace {
            ahead: 2,
            wait: WAIT,
        };
    }
}
