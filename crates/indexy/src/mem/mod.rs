//! Memory: the budget, and the arena, latches and word buffers that Index X is built of.

pub(crate) mod append_buffer;
pub(crate) mod budget;
pub(crate) mod latch;
pub(crate) mod words;

use budget::{Budget, Holder};
use seize::{Collector, LocalGuard};
use std::{
    alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error},
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

/// Memory that is zeroed and belongs to who allocated it.
pub(crate) struct Block {
    pub ptr: NonNull<u64>,
    pub bytes: usize,
}

/// Keeps what was reachable when it was entered from being freed.
pub(crate) struct Guard<'a>(#[allow(dead_code, reason = "held for its drop")] LocalGuard<'a>);

pub(crate) struct Memory {
    collector: Collector,
    budget: Arc<Budget>,
    live: AtomicUsize,
}

const HEADER: usize = 16;

impl Memory {
    pub(crate) fn new(budget: Arc<Budget>) -> Arc<Memory> {
        Arc::new(Memory {
            collector: Collector::new().batch_size(32),
            budget,
            live: AtomicUsize::new(0),
        })
    }

    #[inline(always)]
    pub(crate) fn enter(&self) -> Guard<'_> {
        Guard(self.collector.enter())
    }

    pub(crate) fn class_size(bytes: usize) -> usize {
        bytes.max(16).next_multiple_of(16)
    }

    pub(crate) fn allocate(&self, bytes: usize) -> Block {
        let bytes = Self::class_size(bytes);
        let layout = layout(bytes);
        // SAFETY: the layout is not empty.
        let Some(base) = NonNull::new(unsafe { alloc_zeroed(layout) }) else {
            handle_alloc_error(layout)
        };
        let header: NonNull<usize> = base.cast();
        // SAFETY: the header's 16 bytes are the start of the allocation.
        let ptr = unsafe {
            header.write(bytes);
            header
                .add(1)
                .write(std::ptr::from_ref(self).expose_provenance());
            base.add(HEADER)
        };
        self.live.fetch_add(bytes, Relaxed);
        self.budget.take(Holder::Arena, bytes);
        Block {
            ptr: ptr.cast(),
            bytes,
        }
    }

    /// # Safety
    /// `block` came from `allocate` of this memory, was not freed yet, and nobody can reach it.
    pub(crate) unsafe fn free(&self, block: NonNull<u64>) {
        let bytes = Self::size_of(block);
        self.live.fetch_sub(bytes, Relaxed);
        self.budget.give(Holder::Arena, bytes);
        // SAFETY: `allocate` made it with this layout, 16 bytes before the block.
        unsafe { dealloc(block.as_ptr().cast::<u8>().sub(HEADER), layout(bytes)) };
    }

    /// # Safety
    /// As [`Memory::free`], but guards entered before this call may still reach it.
    pub(crate) unsafe fn retire(&self, block: NonNull<u64>) {
        // SAFETY: the caller's promise; `reclaim` runs once, when no guard can reach the block.
        unsafe { self.collector.retire(block.as_ptr(), reclaim) };
    }

    pub(crate) fn size_of(block: NonNull<u64>) -> usize {
        // SAFETY: `allocate` wrote the size 16 bytes before the block.
        unsafe { block.cast::<usize>().sub(2).read() }
    }

    pub(crate) fn collect(&self) {
        use seize::Guard as _;
        self.collector.enter().flush();
    }

    pub(crate) fn live_bytes(&self) -> usize {
        self.live.load(Relaxed)
    }

    pub(crate) fn slab_bytes(&self) -> usize {
        self.live.load(Relaxed)
    }
}

/// # Safety
/// Called once by the collector for a block given to [`Memory::retire`].
unsafe fn reclaim(block: *mut u64, _: &Collector) {
    if let Some(block) = NonNull::new(block) {
        // SAFETY: `allocate` wrote the address of its memory 8 bytes before the block; it outlives its collector.
        unsafe {
            let memory = block.cast::<usize>().sub(1).read();
            (*std::ptr::with_exposed_provenance::<Memory>(memory)).free(block);
        }
    }
}

fn layout(bytes: usize) -> Layout {
    match Layout::from_size_align(bytes + HEADER, 64) {
        Ok(layout) => layout,
        Err(_) => unreachable!("{bytes} bytes in one block"),
    }
}
