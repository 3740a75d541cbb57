use super::*;

#[test]
fn a_freed_memory_holds_its_reserve_only() {
    let budget = Arc::new(Budget::new(2 << 20));
    let memory = Memory::new(Arc::clone(&budget));
    let blocks: Vec<_> = (0..20_000).map(|i| memory.allocate(i % 300)).collect();
    for block in blocks {
        // SAFETY: the block was never published.
        unsafe { memory.free(block.ptr) };
    }
    assert_eq!(memory.live_bytes(), 0);
    assert_eq!(budget.used(), memory.slab_bytes());
    drop(memory);
    assert_eq!(budget.used(), 0);
}
