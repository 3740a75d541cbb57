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
//! The size of slabs, the number of shards and the use of huge pages follow from the budget at
//! creation.
//! Threads: any.
//! Order of locks: none is taken under another.
//! Not here: when a block may be freed (`mem/mod.rs`).

mod charge;
mod chunk;
mod classes;
mod large;
mod shard;
mod slab;
mod slab_pool;

pub(super) use classes::block_bytes;

use super::budget::Budget;
use charge::Charge;
use chunk::{Kind, Owner, chunk_of};
use classes::{CLASSES, SMALL_MAX, class_bytes, class_of};
use crossbeam_utils::CachePadded;
use large::Large;
use shard::Shard;
use slab::Slab;
use slab_pool::SlabPool;
use std::{ptr::NonNull, sync::Arc};

/// From this budget on, slabs are large, in bytes.
const LARGE_SLABS_FROM: usize = 16 << 20;
const SMALL_SLAB_SHIFT: u32 = 14;
const LARGE_SLAB_SHIFT: u32 = 16;
/// From this budget on, chunks ask for huge pages, in bytes.
const HUGE_PAGES_FROM: usize = 64 << 20;
/// A shard per so many bytes of budget: each may keep one partly used slab per class.
const BUDGET_PER_SHARD: usize = 16 << 20;
const SHARDS_MAX: usize = 64;
/// The reserve is this part of the budget, within bounds.
const RESERVE_DIVISOR: usize = 256;
const RESERVE_SLABS: (usize, usize) = (2, 32);
/// A free block may be this part larger than what was asked for before a new slab is taken, when
/// memory is tight.
const LARGER_DIVISOR: usize = 2;

/// See the module header.
pub(super) struct Arena {
    shards: Box<[CachePadded<Shard>]>,
    slabs: SlabPool,
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
        let shift = if limit < LARGE_SLABS_FROM {
            SMALL_SLAB_SHIFT
        } else {
            LARGE_SLAB_SHIFT
        };
        let (least, most) = RESERVE_SLABS;
        let reserve = ((limit / RESERVE_DIVISOR) >> shift).clamp(least, most);
        let shards = threads.min(limit / BUDGET_PER_SHARD).clamp(1, SHARDS_MAX);
        // A power of two, so that a thread's shard is a mask away.
        let shards = 1 << shards.ilog2();
        Arc::new(Self {
            shards: (0..shards)
                .map(|_| CachePadded::new(Shard::new()))
                .collect(),
            slabs: SlabPool::new(shift, reserve, limit >= HUGE_PAGES_FROM),
            large: Large::default(),
            charge: Charge::new(budget),
        })
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
        let shard = thread & (self.shards.len() - 1);
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
            let most = class_bytes(class) + class_bytes(class) / LARGER_DIVISOR;
            let larger = (class + 1..CLASSES).take_while(|&larger| class_bytes(larger) <= most);
            for class in larger {
                if let Some(taken) = self.shards[shard].take(class) {
                    return Allocated::of(taken, class);
                }
            }
            if self.charge.budget().is_full()
                && let Some(taken) = self.shards[shard].take_set_aside(class)
            {
                return Allocated::of(taken, class);
            }
        }
        let handed = self.slabs.take(&self.charge, self.as_owner());
        handed
            .slab
            .prepare(self.slabs.shift(), class, shard, handed.zeroed);
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
                    self.slabs.give(slab, &self.charge);
                }
            }
            // SAFETY: the caller's promise.
            kind => unsafe { self.large.give(block, kind, &self.charge) },
        }
    }

    /// Sets the emptiest slabs aside until [`Arena::end_emptying`], of about `bytes` bytes: see
    /// `shard.rs`. Returns whether there are any.
    pub(super) fn begin_emptying(&self, bytes: usize) -> bool {
        let each = (bytes >> self.slabs.shift()).div_ceil(self.shards.len());
        let chosen: usize = self.shards.iter().map(|s| s.begin_emptying(each)).sum();
        chosen > 0
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
