//! A shard: the partly used slabs of every class that one group of threads allocates from.
//!
//! A block is taken from the fullest slab of its class, so that the emptier ones run empty and go
//! back to the pool. A block is given back to the shard of its slab, whoever frees it.
//!
//! Now and then the emptiest slabs are set aside (*emptying*): nothing is taken from them any more,
//! unless the budget is full (I7), so that whoever has blocks there can move them elsewhere and the
//! slabs go back. A slab that did not run empty holds what nobody moves: it is left alone for a
//! while, or it would be chosen again and again in place of others. The misfits of a shape
//! (`shape.rs`) run empty even where no other slab has room for what they hold. Where that is not
//! enough, what the last slab of a class holds goes to blocks that are somewhat larger: a small
//! budget has no room for a slab in part of every class.
//!
//! Locks: one per shard, for tens of nanoseconds, some tens of microseconds where slabs are set
//! aside; no other lock and no system call under it.
//! Not here: where slabs come from (`slab_pool.rs`).

use super::{
    classes::{CLASSES, stand_ins},
    shape::Shape,
    slab::{BINS, EMPTYING, Slab, SlabHeader, Taken},
};
use parking_lot::Mutex;
use std::{
    ptr::{NonNull, null_mut},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

/// See the module header.
pub(super) struct Shard {
    lists: Mutex<Lists>,
    /// Bytes of its allocated blocks; written under the lock.
    live: AtomicUsize,
}

/// First slab of each list, the last of them for those that are emptying; empty and full slabs are
/// in none.
struct Lists([[*mut SlabHeader; BINS + 1]; CLASSES]);

/// So many slabs of a class are looked at, from the emptiest on, when some are set aside.
const LOOKED_AT: usize = 16;
/// So often one that did not run empty is passed over.
const LEFT_ALONE: u8 = 64;

/// Slabs of a class.
struct Found {
    /// They are to run empty.
    chosen: Vec<Slab>,
    /// The rest of those that were looked at, the emptiest first,
    others: Vec<Slab>,
    /// and how many of their free blocks nothing is to be moved to yet.
    room: usize,
}

// SAFETY: the pointers are slabs that this shard owns; their headers are atomics, used under the
// shard's lock.
unsafe impl Send for Lists {}

impl Shard {
    pub(super) fn new() -> Self {
        Self {
            lists: Mutex::new(Lists([[null_mut(); BINS + 1]; CLASSES])),
            live: AtomicUsize::new(0),
        }
    }

    /// A block of `class`, if a slab of it has one free.
    #[inline]
    pub(super) fn take(&self, class: usize) -> Option<Taken> {
        let mut lists = self.lists.lock();
        let slab = lists.fullest(class)?;
        self.take_from(&mut lists, slab)
    }

    /// A block of `class` of a slab that was set aside, which then does not run empty. Not of a
    /// misfit, or what is moved out of it came back.
    pub(super) fn take_set_aside(&self, class: usize, shape: Shape) -> Option<Taken> {
        let mut lists = self.lists.lock();
        let mut at = lists.0[class][EMPTYING];
        // SAFETY: slabs in a list are owned by this shard, so their chunks are mapped.
        while let Some(slab) = unsafe { Slab::from_ptr(at) } {
            if slab.fill().1 > 0 && !shape.is_misfit(slab) {
                return self.take_from(&mut lists, slab);
            }
            at = slab.header().next.load(Relaxed);
        }
        None
    }

    /// Adopts a prepared, empty slab and takes its first block.
    pub(super) fn adopt(&self, slab: Slab) -> Option<Taken> {
        let mut lists = self.lists.lock();
        lists.push(slab);
        self.take_from(&mut lists, slab)
    }

    #[inline(always)]
    fn take_from(&self, lists: &mut Lists, slab: Slab) -> Option<Taken> {
        let before = slab.bin();
        let taken = slab.take()?;
        lists.moved(slab, before);
        self.live
            .store(self.live.load(Relaxed) + slab.block_bytes(), Relaxed);
        Some(taken)
    }

    /// Takes `block` back into `slab`, which this shard owns. Returns the slab if it is empty now:
    /// then the caller alone has it.
    ///
    /// # Safety
    /// As [`Slab::put`].
    #[inline]
    pub(super) unsafe fn put(&self, slab: Slab, block: NonNull<u64>) -> Option<Slab> {
        let mut lists = self.lists.lock();
        let before = slab.bin();
        // SAFETY: the caller's promise; the lock is held.
        unsafe { slab.put(block) };
        self.live
            .store(self.live.load(Relaxed) - slab.block_bytes(), Relaxed);
        if slab.is_empty() {
            if let Some(bin) = before {
                lists.remove(slab, bin);
            }
            return Some(slab);
        }
        lists.moved(slab, before);
        None
    }

    /// Sets the emptiest slabs aside, of about `bytes` bytes: misfits of `shape`, and only as many
    /// of the rest as others have room for. Returns how many.
    pub(super) fn begin_emptying(&self, bytes: usize, shape: Shape) -> usize {
        let mut lists = self.lists.lock();
        let mut found: Vec<Found> = (0..CLASSES).map(|c| lists.sparse(c, shape)).collect();
        let mut chosen: Vec<Slab> = found
            .iter_mut()
            .flat_map(|f| std::mem::take(&mut f.chosen))
            .collect();
        if bytes_of(&chosen) < bytes {
            chosen.extend(into_larger(&mut found));
        }
        // Stable, so that of one class the emptiest still come first.
        chosen.sort_by(|a, b| {
            let (a, b) = (a.fill(), b.fill());
            (a.0 * (b.0 + b.1)).cmp(&(b.0 * (a.0 + a.1)))
        });
        let mut sum = 0;
        let within = chosen.iter().take_while(|slab| {
            let enough = sum >= bytes;
            sum += 1 << slab.shift();
            !enough
        });
        let within = within.count();
        chosen.truncate(within);
        for &slab in &chosen {
            if let Some(bin) = slab.bin() {
                lists.remove(slab, bin);
                slab.set_emptying(true);
                lists.push(slab);
            }
        }
        chosen.len()
    }

    /// No slab that was set aside is left.
    pub(super) fn ran_empty(&self) -> bool {
        let lists = self.lists.lock();
        lists.0.iter().all(|bins| bins[EMPTYING].is_null())
    }

    /// One of the slabs that were set aside has, or had, blocks that lie out of line.
    pub(super) fn empties_out_of_line(&self) -> bool {
        let lists = self.lists.lock();
        lists.0.iter().any(|bins| {
            let mut at = bins[EMPTYING];
            // SAFETY: slabs in a list are owned by this shard, so their chunks are mapped.
            while let Some(slab) = unsafe { Slab::from_ptr(at) } {
                if slab.has_out_of_line() {
                    return true;
                }
                at = slab.header().next.load(Relaxed);
            }
            false
        })
    }

    /// Puts what did not run empty back where it can be used.
    pub(super) fn end_emptying(&self) {
        let mut lists = self.lists.lock();
        for class in 0..CLASSES {
            // SAFETY: a slab in a list is owned by this shard, so its chunk is mapped.
            while let Some(slab) = unsafe { Slab::from_ptr(lists.0[class][EMPTYING]) } {
                lists.remove(slab, EMPTYING);
                slab.set_emptying(false);
                slab.leave_alone(LEFT_ALONE);
                lists.push(slab);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn live_bytes(&self) -> usize {
        self.live.load(Relaxed)
    }
}

impl Lists {
    #[inline(always)]
    fn fullest(&self, class: usize) -> Option<Slab> {
        let bins = self.0[class][..BINS].iter();
        let first = bins.rev().find(|first| !first.is_null())?;
        // SAFETY: a slab in a list is owned by this shard, so its chunk is mapped.
        unsafe { Slab::from_ptr(*first) }
    }

    /// The emptiest slabs of `class`: misfits of `shape`, and those whose blocks the next ones
    /// could take, in that order.
    fn sparse(&self, class: usize, shape: Shape) -> Found {
        let mut found: Vec<Slab> = Vec::new();
        for &first in &self.0[class][..BINS] {
            let mut at = first;
            while found.len() < LOOKED_AT {
                // SAFETY: slabs in a list are owned by this shard, so their chunks are mapped.
                let Some(slab) = (unsafe { Slab::from_ptr(at) }) else {
                    break;
                };
                found.push(slab);
                at = slab.header().next.load(Relaxed);
            }
        }
        found.retain(|slab| slab.may_be_chosen());
        found.sort_by_key(|slab| slab.fill().0);
        let (mut chosen, mut others): (Vec<Slab>, Vec<Slab>) =
            found.into_iter().partition(|&slab| shape.is_misfit(slab));
        chosen.retain(|slab| slab.is_worthwhile());
        let mut room: usize = others.iter().map(|slab| slab.fill().1).sum();
        let mut moved = 0;
        let roomy = others.iter().take_while(|slab| {
            let (used, free) = slab.fill();
            if moved + used + free > room || !slab.is_worthwhile() {
                return false;
            }
            moved += used;
            room -= free;
            true
        });
        let n = roomy.count();
        chosen.extend(others.drain(..n));
        Found {
            chosen,
            others,
            room: room - moved,
        }
    }

    /// Puts `slab` into the list it belongs in, after a change; `before`: the one it is in.
    #[inline(always)]
    fn moved(&mut self, slab: Slab, before: Option<usize>) {
        let now = slab.bin();
        if now == before {
            return;
        }
        if let Some(bin) = before {
            self.remove(slab, bin);
        }
        if now.is_some() {
            self.push(slab);
        }
    }

    fn push(&mut self, slab: Slab) {
        let Some(bin) = slab.bin() else {
            return;
        };
        let first = &mut self.0[slab.class()][bin];
        let header = slab.header();
        header.previous.store(null_mut(), Relaxed);
        header.next.store(*first, Relaxed);
        // SAFETY: a slab in a list is owned by this shard, so its chunk is mapped.
        if let Some(second) = unsafe { Slab::from_ptr(*first) } {
            second.header().previous.store(slab.as_ptr(), Relaxed);
        }
        *first = slab.as_ptr();
    }

    fn remove(&mut self, slab: Slab, bin: usize) {
        let header = slab.header();
        let (previous, next) = (header.previous.load(Relaxed), header.next.load(Relaxed));
        // SAFETY: neighbours in a list are owned by this shard, so their chunks are mapped.
        let neighbours = unsafe { (Slab::from_ptr(previous), Slab::from_ptr(next)) };
        match neighbours.0 {
            Some(slab) => slab.header().next.store(next, Relaxed),
            None => self.0[slab.class()][bin] = next,
        }
        if let Some(slab) = neighbours.1 {
            slab.header().previous.store(previous, Relaxed);
        }
    }
}

/// Of the slabs in `found`, by class, those whose blocks others of somewhat larger classes could
/// take.
fn into_larger(found: &mut [Found]) -> Vec<Slab> {
    let mut chosen = Vec::new();
    for class in 0..CLASSES {
        while let Some(&slab) = found[class].others.first() {
            let (used, free) = slab.fill();
            let room: usize = found[stand_ins(class)].iter().map(|f| f.room).sum();
            // Its own blocks that are free may be meant for what is moved out of others.
            if used > room || free > found[class].room || !slab.is_worthwhile() {
                break;
            }
            let mut left = used;
            for larger in &mut found[stand_ins(class)] {
                let taken = left.min(larger.room);
                larger.room -= taken;
                left -= taken;
            }
            found[class].room -= free;
            chosen.push(found[class].others.remove(0));
        }
    }
    chosen
}

fn bytes_of(slabs: &[Slab]) -> usize {
    slabs.iter().map(|slab| 1 << slab.shift()).sum()
}
