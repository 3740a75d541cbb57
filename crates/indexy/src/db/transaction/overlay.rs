//! A scan of a snapshot with the writes of a transaction over it, from both ends.
//!
//! The writes are looked at in each step, so that they may change between two.

#![forbid(unsafe_code)]

use super::writes::TreeWrites;
use crate::{
    db::tree::{Range, Soonest, Tree},
    error::Result,
    key::{Key, Value, successor},
    versions::time::Millis,
    x::Order,
};
use std::ops::Bound;

/// See the module header.
pub(super) struct Overlay {
    base: Range,
    /// What each end has taken from `base` and not given out yet.
    front: Option<(Key, Value)>,
    back: Option<(Key, Value)>,
    /// What neither end has passed: `[from, to)`.
    from: Vec<u8>,
    to: Option<Vec<u8>>,
}

impl Overlay {
    /// `base` gives the entries of `[from, to)`.
    pub(super) fn new(base: Range, (from, to): (Vec<u8>, Option<Vec<u8>>)) -> Self {
        Self {
            base,
            front: None,
            back: None,
            from,
            to,
        }
    }

    /// The next entry from the end that `order` says. `passed` is told what the step passed:
    /// `[from, to)`.
    ///
    /// `writes` are to `tree`, as it stores them, and are seen at `at`.
    pub(super) fn step(
        &mut self,
        order: Order,
        writes: Option<&TreeWrites>,
        tree: &Tree,
        at: Millis,
        passed: impl FnOnce(&[u8], Option<&[u8]>),
    ) -> Result<Option<(Key, Value)>> {
        // Where it began, once it has passed something.
        let mut began = None;
        loop {
            self.peek(order)?;
            let written = writes.and_then(|writes| self.written(writes, order));
            let ours = match order {
                Order::Ascending => &self.front,
                Order::Descending => &self.back,
            };
            let (key, value) = match (ours, written) {
                (None, None) => {
                    self.end(order, began, passed);
                    return Ok(None);
                }
                (Some((key, value)), None) => (key.clone(), Some(value.clone())),
                (None, Some((key, written))) => (key.clone(), tree.value_of(written, at)),
                (Some((ours, value)), Some((key, written))) => {
                    let base_first = match order {
                        Order::Ascending => ours < key,
                        Order::Descending => ours > key,
                    };
                    match base_first {
                        true => (ours.clone(), Some(value.clone())),
                        false => (key.clone(), tree.value_of(written, at)),
                    }
                }
            };
            let before = self.pass(order, &key);
            let began = began.get_or_insert(before);
            if let Some(value) = value {
                match order {
                    Order::Ascending => {
                        passed(began.as_deref().unwrap_or_default(), Some(&self.from));
                    }
                    Order::Descending => {
                        passed(self.to.as_deref().unwrap_or_default(), began.as_deref());
                    }
                }
                return Ok(Some((key, value)));
            }
        }
    }

    /// What of the entries that were read, some of them ahead, expires first.
    pub(super) fn soonest(&self) -> &Soonest {
        self.base.soonest()
    }

    /// Sees to it that the entry that comes next from the snapshot is at hand.
    fn peek(&mut self, order: Order) -> Result<()> {
        let (ours, others) = match order {
            Order::Ascending => (&mut self.front, &mut self.back),
            Order::Descending => (&mut self.back, &mut self.front),
        };
        if ours.is_none() {
            let next = match order {
                Order::Ascending => self.base.next(),
                Order::Descending => self.base.next_back(),
            };
            // When the ends have met, the last one is in the other's hand.
            *ours = match next.transpose()? {
                Some(entry) => Some(entry),
                None => others.take(),
            };
        }
        Ok(())
    }

    /// The next write.
    fn written<'w>(
        &self,
        writes: &'w TreeWrites,
        order: Order,
    ) -> Option<(&'w Key, &'w Option<Value>)> {
        if self.to.as_ref().is_some_and(|to| self.from >= *to) {
            return None;
        }
        let to = match &self.to {
            Some(to) => Bound::Excluded(&to[..]),
            None => Bound::Unbounded,
        };
        let mut range = writes.range::<[u8], _>((Bound::Included(&self.from[..]), to));
        match order {
            Order::Ascending => range.next(),
            Order::Descending => range.next_back(),
        }
    }

    /// Goes past `key`; returns where it was.
    fn pass(&mut self, order: Order, key: &Key) -> Option<Vec<u8>> {
        let (before, hand) = match order {
            Order::Ascending => (
                Some(std::mem::replace(&mut self.from, successor(key))),
                &mut self.front,
            ),
            Order::Descending => (self.to.replace(key.to_vec()), &mut self.back),
        };
        hand.take_if(|(ours, _)| ours == key);
        before
    }

    /// Nothing is left: the rest was passed.
    fn end(
        &mut self,
        order: Order,
        began: Option<Option<Vec<u8>>>,
        passed: impl FnOnce(&[u8], Option<&[u8]>),
    ) {
        let began = began.as_ref().map(|began| began.as_deref());
        match order {
            Order::Ascending => passed(began.flatten().unwrap_or(&self.from), self.to.as_deref()),
            Order::Descending => passed(&self.from, began.unwrap_or(self.to.as_deref())),
        }
        self.to = Some(self.from.clone());
    }
}
