//! A range goes to another compute server. Source: DEX section 4, repartitioning.
//!
//! 1. The owner stops: the gate is held for writing, so no operation runs. Dirty nodes that cross
//!    the range's ends are written, for they are shared from then on (T2). Then operations on the
//!    other ranges go on.
//! 2. Dirty pages of the range are written, and its nodes leave the cache.
//! 3. The table of the next epoch names the new owner.
//! 4. The new owner sees the epoch, and reads the shared nodes over the range again before it
//!    serves (T5).
//!
//! Between 1 and 4 nobody serves the range. Who dies meanwhile is replaced: `recover.rs`.

use super::{
    Tree,
    attempt::Job,
    owned::{overlaps, owns},
};
use crate::{
    cache::{ROOT, State},
    error::{Error, Result},
    node::{self, SWIZZLED, TreeKey},
    partition::{Ownership, Table},
    remote::RemoteMemory,
};

/// How often others may change the table first.
const TABLE_ATTEMPTS: u32 = 1_000;

impl<M: RemoteMemory, K: TreeKey> Tree<M, K> {
    /// The lowest key of the leaf with `key`. A range may start there, if it is the least key with
    /// its first eight bytes.
    pub fn leaf_start(&self, key: K) -> Result<K> {
        let own = self.gate_read();
        self.leaf_fences(&own, key).map(|fences| fences.0)
    }

    fn leaf_fences(&self, own: &Ownership, key: K) -> Result<(K, K)> {
        let mut leaves = Vec::new();
        let mut job = Job::Copy {
            leaves: &mut leaves,
            most: 1,
        };
        self.run(own, key, &mut job)?;
        let fences = leaves.first().map(|leaf| (K::low(leaf), K::high(leaf)));
        fences.ok_or(Error::NoProgress { attempts: 0 })
    }

    /// The greatest number up to `number` at which a range may start: a leaf starts at the least
    /// key whose first eight bytes are that number.
    ///
    /// Cost: that of reading a leaf, once unless leaves start in the middle of such numbers.
    pub fn range_start(&self, number: u64) -> Result<u64> {
        let own = self.gate_read();
        let mut key = K::lowest(number);
        loop {
            let low = self.leaf_fences(&own, key)?.0;
            let before = low.before().filter(|_| low != K::lowest(low.prefix()));
            match before {
                Some(before) => key = before,
                None => return Ok(low.prefix()),
            }
        }
    }

    /// Gives `low..=high` to `to`, by the keys' first eight bytes as a big-endian number; returns
    /// the new epoch. `low` is where a leaf starts
    /// ([`Tree::range_start`]), and `high` where one ends.
    ///
    /// Operations on other ranges wait for those under way and for the writes of a few nodes.
    /// [`Error::Options`]: the range is not owned whole, does not end at leaves, or the table of
    /// owners tells [`MAX_SEGMENTS`](crate::partition::MAX_SEGMENTS) ranges apart already. After
    /// these, and after another error while pages are written, the range is served as
    /// before; after one while the table is changed, call [`Tree::adopt_table`]: the change may
    /// have happened.
    ///
    /// Waits for another `release` or [`Tree::adopt_table`] of this tree, which end when their
    /// verbs do.
    ///
    /// Cost: one write a dirty page, and about ten verbs.
    pub fn release(&self, low: u64, high: u64, to: u16) -> Result<u64> {
        // T7.
        let _alone = self.hand_over.lock();
        let before = self.stop_serving(low, high)?;
        if let Err(error) = self.empty(&before.without(low, high)) {
            *self.gate_write() = before;
            return Err(error);
        }
        // From here on an error leaves the range to whom the pool's table names.
        for _ in 0..TABLE_ATTEMPTS {
            let table = Table::load(&self.memory)?;
            if !Ownership::of(&table, self.options.owner).contains(low, high) {
                let what = "the table gives the range to somebody else already".into();
                return Err(Error::Options(what));
            }
            let next = match table.moved(low, high, to) {
                Ok(next) => next,
                Err(no_room) => {
                    *self.gate_write() = before;
                    return Err(no_room);
                }
            };
            if next.store(&self.memory)? {
                let mut gate = self.gate_write();
                // Ranges that came to us meanwhile are adopted by `adopt_table` alone (T5).
                *gate = gate.clone().at_epoch(next.epoch());
                return Ok(next.epoch());
            }
        }
        let attempts = TABLE_ATTEMPTS;
        Err(Error::NoProgress { attempts })
    }

    /// Step 1; returns the ownership before.
    fn stop_serving(&self, low: u64, high: u64) -> Result<Ownership> {
        let mut gate = self.gate_write();
        if low > high || !gate.contains(low, high) {
            let what = format!("{low}..={high} is not owned whole");
            return Err(Error::Options(what));
        }
        let (first, last) = (K::lowest(low), K::highest(high));
        let is_at_leaves =
            self.leaf_fences(&gate, first)?.0 == first && self.leaf_fences(&gate, last)?.1 == last;
        if !is_at_leaves {
            let what = format!("{low}..={high} does not end at leaves");
            return Err(Error::Options(what));
        }
        let rest = gate.without(low, high);
        for frame in 0..self.cache.len() {
            let node = self.cache.frame(frame).node();
            let (first, last) = (K::low(&node).prefix(), K::high(&node).prefix());
            let overlaps = first <= high && low <= last;
            let crosses = overlaps && !(low <= first && last <= high);
            if crosses || frame == ROOT {
                self.flush_frame(frame)?;
            }
        }
        Ok(std::mem::replace(&mut *gate, rest))
    }

    /// Step 2: what `rest` does not overlap is written and leaves the cache. No operation has
    /// business there.
    fn empty(&self, rest: &Ownership) -> Result<()> {
        let is_rest = |frame: usize| {
            let node = self.cache.frame(frame).node();
            overlaps(rest, K::low(&node), K::high(&node))
        };
        // Page by page first: the parents' latches are not held while the pool is written.
        for frame in 0..self.cache.len() {
            if !is_rest(frame) {
                self.flush_frame(frame)?;
            }
        }
        for frame in 0..self.cache.len() {
            let this = self.cache.frame(frame);
            let mut latched = this.latch.lock();
            let is_parent = this.state() == State::Hot && (frame == ROOT || is_rest(frame));
            if !is_parent || node::level(&this.node()) == 0 {
                continue;
            }
            for slot in 0..=K::count(&this.node()) {
                let route = K::at_slot(&this.node(), slot);
                if route.word & SWIZZLED == 0 || overlaps(rest, route.low, route.high) {
                    continue;
                }
                if !self
                    .cache
                    .drop_child(frame, &mut latched, slot, &self.memory)?
                {
                    return Err(Error::NoProgress { attempts: 0 });
                }
            }
        }
        self.forget_cooling(|low, high| !overlaps(rest, low, high))
    }

    /// Drops cooling nodes whose fences `which` accepts.
    pub(super) fn forget_cooling(&self, which: impl Fn(K, K) -> bool) -> Result<()> {
        for frame in 0..self.cache.len() {
            let this = self.cache.frame(frame);
            let latched = this.latch.lock();
            let node = this.node();
            let is_meant = this.state() == State::Cooling && which(K::low(&node), K::high(&node));
            let at = is_meant.then(|| self.address_of(frame)).transpose()?;
            drop(latched);
            if let Some(at) = at {
                self.cache.forget_cooling(at)?;
            }
        }
        Ok(())
    }

    /// Serves what the pool's table gives to this owner; returns the table. Ranges that the table
    /// gives to others must have been released before.
    ///
    /// Cost: three reads, and three for each cached shared node over the new ranges.
    pub fn adopt_table(&self) -> Result<Table> {
        self.unlocking(|| self.adopt_new_ranges())
    }

    fn adopt_new_ranges(&self) -> Result<Table> {
        // T7.
        let _alone = self.hand_over.lock();
        let mut gate = self.gate_write();
        let table = Table::load(&self.memory)?;
        let next = Ownership::of(&table, self.options.owner);
        let lost = gate
            .ranges()
            .iter()
            .any(|range| !next.contains(range.0, range.1));
        if lost {
            let what = "the table gives a range to others that was not released".into();
            return Err(Error::Options(what));
        }
        let is_new = |low: K, high: K| {
            // Shared until now, and over keys that are new.
            !owns(&gate, low, high) && overlaps(&next, low, high)
        };
        // T5. No operation runs, so nothing is pinned.
        let mut todo = vec![ROOT];
        while let Some(frame) = todo.pop() {
            let this = self.cache.frame(frame);
            let mut latched = this.latch.lock();
            let node = this.node();
            if !is_new(K::low(&node), K::high(&node)) {
                continue;
            }
            if !self.renew(frame, &mut latched, true)? {
                return Err(Error::NoProgress { attempts: 0 });
            }
            let children = this.hot_children::<K>();
            todo.extend(children);
        }
        self.forget_cooling(is_new)?;
        // T6.
        self.memory.check_session()?;
        *gate = next;
        Ok(table)
    }
}
