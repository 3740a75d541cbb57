//! Garbage: blocks that left the tree and may still be read by guards entered before.
//!
//! Retired blocks are gathered in short lists, shared by the threads of a shard, and handed to the
//! collector (seize) when a list is full by number or by bytes. So the garbage that waits is
//! bounded, and [`Retired::hand_over_all`] reaches that of idle threads too. The collector's own
//! lists belong to one thread each, and stay until that thread retires more.
//!
//! The collector takes a batch only if it has an entry per active thread: small batches are
//! filled up with entries that free nothing.
//!
//! Locks: one per list, for the push of a block; the collector is called outside of it.

use super::arena::{arena_of, size_of_block};
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use seize::{Collector, Guard as _, LocalGuard};
use std::{
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicUsize,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
};

/// Blocks of a list at most.
const BLOCKS_MAX: usize = 64;
/// Blocks of a list at most, with a small budget.
const BLOCKS_SMALL: usize = 16;
/// From this budget on lists are long, in bytes.
const LONG_LISTS_FROM: usize = 64 << 20;
/// All lists together hold this part of the budget at most (but each one any single block), within
/// bounds per list.
const BYTES_DIVISOR: usize = 128;
const BYTES_PER_LIST: (usize, usize) = (8 << 10, 256 << 10);
/// A batch that has so many entries is tried at every further one: above what a list and the
/// filling come to.
const COLLECTOR_BATCH: usize = 256;
/// Threads that may come while a batch is filled up.
const NEW_THREADS: usize = 8;

/// See the module header.
pub(super) struct Retired {
    collector: Collector,
    /// Above the number of every thread that has entered, in the collector's numbering (which uses
    /// numbers again).
    threads: AtomicUsize,
    lists: Box<[CachePadded<Mutex<List>>]>,
    blocks_max: usize,
    bytes_max: usize,
}

struct List {
    blocks: [Option<NonNull<u64>>; BLOCKS_MAX],
    len: usize,
    bytes: usize,
}

// SAFETY: retired blocks are in the list's care alone; they may be freed by any thread.
unsafe impl Send for List {}

const NO_BLOCKS: List = List {
    blocks: [None; BLOCKS_MAX],
    len: 0,
    bytes: 0,
};

/// Tells when every guard is gone that was there when it was made: what was retired before is freed
/// then, or is being freed by a thread that has left its guard.
#[derive(Debug)]
pub(crate) struct Freed(Arc<AtomicBool>);

impl Freed {
    pub(crate) fn all(&self) -> bool {
        self.0.load(Acquire)
    }
}

impl Retired {
    /// `lists` (a power of two) lists, for a budget of so many bytes.
    pub(super) fn new(lists: usize, budget_bytes: usize) -> Self {
        let (least, most) = BYTES_PER_LIST;
        Self {
            collector: Collector::new().batch_size(COLLECTOR_BATCH),
            threads: AtomicUsize::new(0),
            lists: (0..lists)
                .map(|_| CachePadded::new(Mutex::new(NO_BLOCKS)))
                .collect(),
            blocks_max: if budget_bytes < LONG_LISTS_FROM {
                BLOCKS_SMALL
            } else {
                BLOCKS_MAX
            },
            bytes_max: (budget_bytes / BYTES_DIVISOR / lists).clamp(least, most),
        }
    }

    #[inline(always)]
    pub(super) fn enter(&self) -> LocalGuard<'_> {
        let guard = self.collector.enter();
        // The collector's barrier in `enter` is for loads at least as strong as its own; those of
        // nodes are relaxed. On x86 every load is strong enough, elsewhere a fence makes up for it.
        #[cfg(not(any(target_arch = "x86_64", target_arch = "x86")))]
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        if guard.thread_id() >= self.threads.load(Relaxed) {
            self.new_thread(guard.thread_id());
        }
        guard
    }

    #[cold]
    fn new_thread(&self, id: usize) {
        self.threads.fetch_max(id + 1, Relaxed);
    }

    /// Frees `block` when all guards entered so far are gone.
    ///
    /// # Safety
    /// `block` is an allocated block of an arena that outlives this value, guards entered from now
    /// on cannot reach it, and it is given up once.
    #[inline]
    pub(super) unsafe fn add(&self, block: NonNull<u64>, thread: usize) {
        // SAFETY: the block is allocated.
        let bytes = unsafe { size_of_block(block) };
        let full = {
            let mut list = self.lists[thread & (self.lists.len() - 1)].lock();
            let at = list.len;
            list.blocks[at] = Some(block);
            list.len += 1;
            list.bytes += bytes;
            if list.len < self.blocks_max && list.bytes < self.bytes_max {
                return;
            }
            std::mem::replace(&mut *list, NO_BLOCKS)
        };
        self.hand_over(&full);
    }

    /// Hands everything retired so far, by any thread, to the collector; what no guard can reach is
    /// freed before this returns.
    pub(super) fn hand_over_all(&self) {
        for list in &self.lists {
            let list = std::mem::replace(&mut *list.lock(), NO_BLOCKS);
            if list.len > 0 {
                self.hand_over(&list);
            }
        }
    }

    /// As [`Retired::hand_over_all`]; tells when the rest is freed, too.
    pub(super) fn when_freed(&self) -> Freed {
        self.hand_over_all();
        let freed = Arc::new(AtomicBool::new(false));
        let guard = self.enter();
        let told = Arc::into_raw(Arc::clone(&freed)).cast_mut();
        // SAFETY: the count of `freed` that `into_raw` kept is `tell`'s, which is called once.
        unsafe { guard.defer_retire(told, tell) };
        // Whoever is inside still, and keeps earlier batches from being freed, keeps this one.
        self.flush(&guard, 1);
        Freed(freed)
    }

    #[cold]
    fn hand_over(&self, list: &List) {
        let guard = self.enter();
        for block in list.blocks.iter().flatten() {
            // SAFETY: the caller of `add` promised that new guards cannot reach the block; its
            // unlinking happened before this by the list's lock. `reclaim` is called once, when no
            // guard can reach it.
            unsafe { guard.defer_retire(block.as_ptr(), reclaim) };
        }
        self.flush(&guard, list.len);
    }

    /// Has the collector take the batch, which has so many entries.
    fn flush(&self, guard: &LocalGuard<'_>, len: usize) {
        let entries = self.threads.load(Relaxed) + NEW_THREADS;
        for _ in len..entries {
            // SAFETY: `nothing` does not touch its argument.
            unsafe { guard.defer_retire(NonNull::<u64>::dangling().as_ptr(), nothing) };
        }
        guard.flush();
    }
}

/// # Safety
/// Called once by the collector for a block given to [`Retired::add`].
unsafe fn reclaim(block: *mut u64, _: &Collector) {
    if let Some(block) = NonNull::new(block) {
        // SAFETY: the block is allocated and its arena lives (`add`), and no guard can reach it any
        // more.
        unsafe { (*arena_of(block)).free(block) };
    }
}

/// # Safety
/// `freed` is a pointer of `Arc::into_raw`, with a count that is given up here.
unsafe fn tell(freed: *mut AtomicBool, _: &Collector) {
    // SAFETY: the caller's promise.
    let freed = unsafe { Arc::from_raw(freed) };
    // Release: pairs with the acquire load in `all`.
    freed.store(true, Release);
}

/// # Safety
/// None.
unsafe fn nothing(_: *mut u64, _: &Collector) {}
