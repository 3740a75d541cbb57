//! Memory: the budget, and the arena, latches and word buffers that Index X is built of.
//!
//! [`Memory`] is the arena, and the rule that says when a block may be freed. Readers are inside a
//! [`Guard`] while they follow pointers. A block that left the tree is *retired*: it is freed when
//! every guard that was entered before is gone. Until then it is charged to the budget (I7).
//!
//! Threads: any; no assumption that a thread ever exits or comes back.
//! Not here: what is released, and when (`framework/`), node layouts (`x/`).

pub(crate) mod aligned;
pub(crate) mod append_buffer;
mod arena;
pub(crate) mod budget;
pub(crate) mod frames;
pub(crate) mod latch;
mod mapping;
mod retire;
pub(crate) mod words;

use arena::Arena;
use budget::Budget;
pub(crate) use retire::Freed;
use retire::Retired;
use seize::LocalGuard;
use std::{
    cell::Cell,
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

/// After what lay in slabs was moved, they are looked at this often, this long apart, until they
/// are empty: readers may keep the old blocks for a while.
const GRACE_POLLS: u32 = 8;
const GRACE_POLL: Duration = Duration::from_micros(250);

/// Memory that belongs to its allocating caller until it is published, freed or retired.
#[derive(Debug)]
pub(crate) struct Block {
    /// Aligned to 16, and to 64 if `bytes` is a multiple of 64.
    pub ptr: NonNull<u64>,
    /// Size in bytes: what was asked for, rounded up to a size class.
    pub bytes: usize,
}

// SAFETY: it owns its memory, which is not tied to a thread.
unsafe impl Send for Block {}

/// Keeps every block that was reachable when it was entered from being freed. Stays on its thread;
/// may be nested.
pub(crate) struct Guard<'a> {
    _entered: LocalGuard<'a>,
}

/// The memory of a database's trees; see the module header.
///
/// Dropping it unmaps everything, blocks that were never freed included, and gives it back to the
/// budget.
pub(crate) struct Memory {
    // Dropped before the arena, which it frees blocks into.
    retired: Retired,
    arena: Arc<Arena>,
}

impl Memory {
    /// An empty memory. Its shape (size of slabs, number of shards, huge pages, how much garbage
    /// may wait) follows from the present limit of `budget`; see [`Memory::follow_budget`].
    pub(crate) fn new(budget: Arc<Budget>) -> Arc<Memory> {
        let limit = budget.limit();
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let arena = Arena::new(budget, threads);
        Arc::new(Memory {
            retired: Retired::new(arena.shards(), limit),
            arena,
        })
    }

    /// The limit of the budget has changed: new slabs have the size for the present one, and
    /// threads share shards accordingly, up to the number at creation. What lies in slabs of
    /// another shape is moved out by [`Memory::empty_slabs`].
    pub(crate) fn follow_budget(&self) {
        self.arena.follow_budget();
    }

    /// Enters a guard. Cost: a few nanoseconds, no shared cache line. Dropping it may free what
    /// others retired meanwhile.
    #[inline(always)]
    pub(crate) fn enter(&self) -> Guard<'_> {
        Guard {
            _entered: self.retired.enter(),
        }
    }

    /// A block of `bytes`, rounded up to a size class; all of its bytes are zero.
    ///
    /// Cost: one uncontended lock and the zeroing, which is left out for memory fresh from the
    /// system. Never refuses for the budget (admission is asked for before); ends the process if
    /// the system has no memory.
    #[inline]
    pub(crate) fn allocate(&self, bytes: usize) -> Block {
        let allocated = self.arena.allocate(bytes, thread_number());
        if !allocated.zeroed {
            // SAFETY: the block was just taken: it has `bytes` bytes that nobody else accesses.
            unsafe { allocated.block.cast::<u8>().write_bytes(0, allocated.bytes) };
        }
        Block {
            ptr: allocated.block,
            bytes: allocated.bytes,
        }
    }

    /// As [`Memory::allocate`], a block that *lies out of line*: an entry or a separator leads to
    /// it, not a child word. Its bytes are arbitrary.
    #[inline]
    pub(crate) fn allocate_out_of_line(&self, bytes: usize) -> Block {
        let allocated = self.arena.allocate(bytes, thread_number());
        // SAFETY: the block was just taken.
        unsafe { self.arena.note_out_of_line(allocated.block) };
        Block {
            ptr: allocated.block,
            bytes: allocated.bytes,
        }
    }

    /// Frees a block at once. Cost: one lock; the last block of a slab may cost a system call.
    ///
    /// # Safety
    /// `block` came from this memory's `allocate`, was neither freed nor retired, and nobody can
    /// reach it: it was never published, or its grace period is over.
    #[inline]
    pub(crate) unsafe fn free(&self, block: NonNull<u64>) {
        // SAFETY: the caller's promise.
        unsafe { self.arena.free(block) };
    }

    /// Frees a block when every guard entered so far is gone. Cost: one lock, and now and then a
    /// barrier over all processors and the freeing of a batch.
    ///
    /// # Safety
    /// `block` came from this memory's `allocate`, was neither freed nor retired, and no guard
    /// that is entered after this call can reach it.
    #[inline]
    pub(crate) unsafe fn retire(&self, block: NonNull<u64>) {
        // SAFETY: the caller's promise; the arena is dropped after `retired`.
        unsafe { self.retired.add(block, thread_number()) };
    }

    /// Size in bytes of an allocated block: the `bytes` of its [`Block`]. Cost: two loads.
    ///
    /// `block` is one that came from some memory's `allocate` and is still allocated. The node
    /// files, the only callers, have no other pointers of this type.
    #[inline(always)]
    pub(crate) fn size_of(block: NonNull<u64>) -> usize {
        // SAFETY: an allocated block, as said above.
        unsafe { arena::size_of_block(block) }
    }

    /// Size in bytes of the block that [`Memory::allocate`] hands out for `bytes`.
    #[inline]
    pub(crate) fn class_size(bytes: usize) -> usize {
        arena::block_bytes(bytes)
    }

    /// Chooses slabs that are nearly empty, about `bytes` bytes in all. None of their blocks is
    /// given out while `relocate` moves what lies there ([`Memory::is_in_the_way`]). Those that are
    /// empty afterwards go back. One caller at a time.
    ///
    /// Cost beside `relocate`: some tens of microseconds, and what [`Memory::collect`] costs.
    pub(crate) fn empty_slabs(&self, bytes: usize, relocate: impl FnOnce()) {
        struct End<'a>(&'a Arena);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                self.0.end_emptying();
            }
        }
        if self.arena.begin_emptying(bytes) {
            let _end = End(&self.arena);
            relocate();
            for _ in 0..GRACE_POLLS {
                self.collect();
                if self.arena.ran_empty() {
                    break;
                }
                std::thread::sleep(GRACE_POLL);
            }
        }
    }

    /// Whether `block`, an allocated one as for [`Memory::size_of`], is in the way of a slab that
    /// is to run empty. Then it should be replaced by a copy that is made within
    /// [`Memory::moving`]. Cost: three loads.
    #[inline]
    pub(crate) fn is_in_the_way(block: NonNull<u64>) -> bool {
        #[cfg(test)]
        if EVERYTHING_IS_IN_THE_WAY.get() {
            return true;
        }
        // SAFETY: an allocated block, as said above.
        unsafe { arena::emptying_shard(block) }.is_some()
    }

    /// Blocks that [lie out of line](Memory::allocate_out_of_line) may be in the way: to find them
    /// costs a look at the entries of leaves. Within `relocate` of [`Memory::empty_slabs`]. Cost: a
    /// lock, and a load per slab that is to run empty.
    pub(crate) fn out_of_line_is_in_the_way(&self) -> bool {
        #[cfg(test)]
        if EVERYTHING_IS_IN_THE_WAY.get() {
            return true;
        }
        self.arena.empties_out_of_line()
    }

    /// Does `work`, which replaces `block`. What it allocates comes from the shard of `block`.
    pub(crate) fn moving<R>(block: NonNull<u64>, work: impl FnOnce() -> R) -> R {
        struct Back(usize);
        impl Drop for Back {
            fn drop(&mut self) {
                THREAD_NUMBER.set(self.0);
            }
        }
        // SAFETY: an allocated block, as for `is_in_the_way`.
        let shard = unsafe { arena::emptying_shard(block) };
        let mine = thread_number();
        let _back = Back(mine);
        THREAD_NUMBER.set(shard.unwrap_or(mine));
        work()
    }

    /// Hands over what any thread has retired so far. What no guard can reach is freed before this
    /// returns; the rest is freed by the last guard that can reach it.
    pub(crate) fn collect(&self) {
        self.retired.hand_over_all();
    }

    /// As [`Memory::collect`]. The result tells when no guard is left that was entered before: then
    /// what was retired before is freed, or about to be.
    pub(crate) fn when_freed(&self) -> Freed {
        self.retired.when_freed()
    }

    /// Bytes of the allocated blocks, retired ones that are not freed yet included.
    #[cfg(test)]
    pub(crate) fn live_bytes(&self) -> usize {
        self.arena.live_bytes()
    }

    /// Bytes taken from the system and charged to the budget: slabs and their unused blocks, the
    /// reserve, headers.
    #[cfg(test)]
    pub(crate) fn slab_bytes(&self) -> usize {
        self.arena.charged_bytes()
    }
}

static NEXT_THREAD: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static THREAD_NUMBER: Cell<usize> = Cell::new(NEXT_THREAD.fetch_add(1, Relaxed));
}

#[cfg(test)]
thread_local! {
    /// A thread of a test moves whatever can be moved.
    pub(crate) static EVERYTHING_IS_IN_THE_WAY: Cell<bool> = const { Cell::new(false) };
}

/// The number of this thread: threads are numbered round robin, for the choice of a shard.
#[inline]
pub(crate) fn thread_number() -> usize {
    THREAD_NUMBER.get()
}

#[cfg(test)]
mod tests;
