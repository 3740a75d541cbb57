//! The arena: blocks of memory for the nodes, leaves and values of Index X, with exact accounts.
//!
//! Small blocks come from *slabs* of equal blocks (`slab.rs`), which *shards* allocate from
//! (`shard.rs`) and a *pool* supplies (`slab_pool.rs`); larger ones are runs of pages or mappings
//! of their own (`large.rs`). All of them are parts of aligned chunks of address space
//! (`chunk.rs`), through which a block finds its size and its arena.
//!
//! I7: what is charged to the budget (`Holder::Arena`) is what may be resident: slabs handed out
//! (their unused blocks included) and in reserve, larger blocks, and the headers of chunks. It is
//! charged by the slab, never by the block. The only thing beyond it is the unused rest of one huge
//! page.
//!
//! The size of new slabs and the number of shards in use follow the budget (`shape.rs`); the most
//! shards and the use of huge pages are those of its creation.
//! Threads: any; one at a time changes the shape.
//! Order of locks: none is taken under another.
//! Not here: when a block may be freed (`mem/mod.rs`).

mod charge;
mod chunk;
mod classes;
mod large;
mod shape;
mod shard;
mod slab;
mod slab_pool;

pub(super) use classes::block_bytes;

use super::budget::Budget;
use charge::Charge;
use chunk::{Kind, Owner, chunk_of};
use classes::{SMALL_MAX, class_bytes, class_of, stand_ins};
use crossbeam_utils::CachePadded;
use large::Large;
use shape::{SHIFTS, Shape};
use shard::Shard;
use slab::Slab;
use slab_pool::SlabPool;
use std::{
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

/// From this budget on, chunks ask for huge pages, in bytes.
const HUGE_PAGES_FROM: usize = 64 << 20;
/// See the module header.
pub(super) struct Arena {
    shards: Box<[CachePadded<Shard>]>,
    /// Threads allocate from so many of the shards, and one less is the mask of their numbers.
    in_use: AtomicUsize,
    /// Which of the pools new slabs come from.
    size: AtomicUsize,
    /// One for each size of slabs.
    pools: [SlabPool; SHIFTS.len()],
    large: Large,
    charge: Charge,
}

/// A block that was handed out.
pub(super) struct Allocated {
    pub(super) block: NonNull<u64>,
    pub(super) bytes: usize,
    /// All of its bytes are zero.
    pub(super) zeroed: bool,
}

impl Allocated {
    fn of(taken: slab::Taken, class: usize) -> Self {
        Self {
            block: taken.block,
            bytes: class_bytes(class),
            zeroed: taken.zeroed,
        }
    }
}

impl Arena {
    /// An arena shaped for the present limit of `budget` and so many `threads` at a time.
    pub(super) fn new(budget: Arc<Budget>, threads: usize) -> Arc<Self> {
        let limit = budget.limit();
        let shape = Shape::of(limit, threads);
        let huge = limit >= HUGE_PAGES_FROM;
        let arena = Self {
            shards: (0..shape.shards)
                .map(|_| CachePadded::new(Shard::new()))
                .collect(),
            in_use: AtomicUsize::new(shape.shards),
            size: AtomicUsize::new(shape.size),
            // Huge pages are for large slabs.
            pools: SHIFTS.map(|shift| SlabPool::new(shift, huge && shift == SHIFTS[1])),
            large: Large::default(),
            charge: Charge::new(budget),
        };
        arena.take_shape(shape);
        Arc::new(arena)
    }

    /// The shape for the present limit of the budget.
    fn shape(&self) -> Shape {
        Shape::of(self.charge.budget().limit(), self.shards.len())
    }

    /// Takes the shape for the present limit of the budget. Slabs in reserve go back; what lies in
    /// others stays until it is freed or moved.
    pub(super) fn follow_budget(&self) {
        self.take_shape(self.shape());
    }

    fn take_shape(&self, shape: Shape) {
        self.in_use.store(shape.shards, Relaxed);
        self.size.store(shape.size, Relaxed);
        for (size, pool) in self.pools.iter().enumerate() {
            let reserve = if size == shape.size { shape.reserve } else { 0 };
            pool.set_reserve(reserve, &self.charge);
        }
    }

    fn pool_of(&self, shift: u32) -> &SlabPool {
        &self.pools[usize::from(shift == SHIFTS[1])]
    }

    /// The shard that `thread` allocates from.
    #[inline(always)]
    fn shard_of(&self, thread: usize) -> usize {
        // The mask is below their number; `min` shows it.
        (thread & (self.in_use.load(Relaxed) - 1)).min(self.shards.len() - 1)
    }

    /// How chunks refer to it.
    fn as_owner(&self) -> Owner {
        std::ptr::from_ref(self).cast()
    }

    /// Number of shards, a power of two.
    pub(super) fn shards(&self) -> usize {
        self.shards.len()
    }

    /// A block of at least `bytes`, from the shard of `thread`.
    #[inline]
    pub(super) fn allocate(&self, bytes: usize, thread: usize) -> Allocated {
        if bytes > SMALL_MAX {
            return self.allocate_large(bytes);
        }
        let class = class_of(bytes);
        let shard = self.shard_of(thread);
        match self.shards[shard].take(class) {
            Some(taken) => Allocated::of(taken, class),
            None => self.refill(class, shard),
        }
    }

    /// A block where no slab of `class` has one free: of a new slab, or, when memory is tight, a
    /// somewhat larger one that is free already; and before the budget is exceeded, one of a slab
    /// that was to run empty.
    #[cold]
    fn refill(&self, class: usize, shard: usize) -> Allocated {
        if self.charge.budget().is_tight() {
            for class in stand_ins(class) {
                if let Some(taken) = self.shards[shard].take(class) {
                    return Allocated::of(taken, class);
                }
            }
            if self.charge.budget().is_full()
                && let Some(taken) = self.shards[shard].take_set_aside(class, self.shape())
            {
                return Allocated::of(taken, class);
            }
        }
        let pool = &self.pools[self.size.load(Relaxed).min(SHIFTS.len() - 1)];
        let handed = pool.take(&self.charge, self.as_owner());
        handed
            .slab
            .prepare(pool.shift(), class, shard, handed.zeroed);
        match self.shards[shard].adopt(handed.slab) {
            Some(taken) => Allocated::of(taken, class),
            None => unreachable!("an empty slab has a block of every class"),
        }
    }

    #[cold]
    fn allocate_large(&self, bytes: usize) -> Allocated {
        let bytes = block_bytes(bytes);
        Allocated {
            block: self.large.take(bytes, &self.charge, self.as_owner()),
            bytes,
            zeroed: true,
        }
    }

    /// Takes `block` back.
    ///
    /// # Safety
    /// `block` is an allocated block of this arena that nobody accesses any more.
    #[inline]
    pub(super) unsafe fn free(&self, block: NonNull<u64>) {
        // SAFETY: the block is allocated, so its chunk is mapped, with a header that does not
        // change.
        let header = unsafe { chunk_of(block).as_ref() };
        debug_assert!(header.arena == self.as_owner(), "block of another arena");
        match header.kind {
            Kind::Slabs { shift } => {
                // SAFETY: an allocated block of a chunk of such slabs; the slab's owner does not
                // change while a block is allocated.
                let empty = unsafe {
                    let slab = Slab::of(block, shift);
                    self.shards[slab.shard()].put(slab, block)
                };
                if let Some(slab) = empty {
                    self.pool_of(shift).give(slab, &self.charge);
                }
            }
            // SAFETY: the caller's promise.
            kind => unsafe { self.large.give(block, kind, &self.charge) },
        }
    }

    /// Sets the emptiest slabs aside until [`Arena::end_emptying`], of about `bytes` bytes: see
    /// `shard.rs`. Returns whether there are any.
    pub(super) fn begin_emptying(&self, bytes: usize) -> bool {
        let shape = self.shape();
        let each = bytes.div_ceil(self.shards.len());
        let chosen = |shard: &CachePadded<Shard>| shard.begin_emptying(each, shape);
        self.shards.iter().map(chosen).sum::<usize>() > 0
    }

    /// Notes that `block`, which the caller has, lies out of line.
    ///
    /// # Safety
    /// `block` is an allocated block of this arena.
    #[inline]
    pub(super) unsafe fn note_out_of_line(&self, block: NonNull<u64>) {
        // SAFETY: the caller's promise: the chunk is mapped, and its header does not change.
        if let Kind::Slabs { shift } = unsafe { chunk_of(block).as_ref() }.kind {
            // SAFETY: an allocated block of a chunk of such slabs.
            unsafe { Slab::of(block, shift) }.note_out_of_line();
        }
    }

    /// Among the slabs that were set aside are some with blocks that lie out of line.
    pub(super) fn empties_out_of_line(&self) -> bool {
        self.shards.iter().any(|s| s.empties_out_of_line())
    }

    /// All slabs that were set aside have run empty.
    pub(super) fn ran_empty(&self) -> bool {
        self.shards.iter().all(|s| s.ran_empty())
    }

    /// Takes slabs that did not run empty into use again.
    pub(super) fn end_emptying(&self) {
        self.shards.iter().for_each(|s| s.end_emptying());
    }

    /// Bytes of the blocks that are allocated.
    #[cfg(test)]
    pub(super) fn live_bytes(&self) -> usize {
        let small: usize = self.shards.iter().map(|s| s.live_bytes()).sum();
        small + self.large.live_bytes()
    }

    /// Bytes charged to the budget.
    #[cfg(test)]
    pub(super) fn charged_bytes(&self) -> usize {
        self.charge.bytes()
    }
}

/// Bytes of an allocated block.
///
/// # Safety
/// `block` is an allocated block of an arena that lives.
#[inline(always)]
pub(super) unsafe fn size_of_block(block: NonNull<u64>) -> usize {
    // SAFETY: the caller's promise: the chunk is mapped, its header does not change, and the kind
    // says how to read the rest.
    unsafe {
        match chunk_of(block).as_ref().kind {
            Kind::Slabs { shift } => Slab::of(block, shift).block_bytes(),
            kind => large::block_bytes(block, kind),
        }
    }
}

/// The shard of an allocated block that is to be moved because its slab is emptying; `None` for all
/// others.
///
/// # Safety
/// As [`size_of_block`].
pub(super) unsafe fn emptying_shard(block: NonNull<u64>) -> Option<usize> {
    // SAFETY: the caller's promise: the chunk is mapped, its header does not change, and the kind
    // says how to read the rest.
    let slab = unsafe {
        match chunk_of(block).as_ref().kind {
            Kind::Slabs { shift } => Slab::of(block, shift),
            _ => return None,
        }
    };
    slab.is_emptying().then(|| slab.shard())
}

/// The arena that `block` belongs to.
///
/// # Safety
/// As [`size_of_block`].
pub(super) unsafe fn arena_of(block: NonNull<u64>) -> *const Arena {
    // SAFETY: the caller's promise: the chunk is mapped and its header does not change.
    unsafe { chunk_of(block).as_ref() }.arena.cast()
}

#[cfg(test)]
mod tests;
