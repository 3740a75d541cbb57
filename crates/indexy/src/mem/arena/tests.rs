//! Accounts, reuse and return of memory, without garbage collection.

use super::*;
use crate::mem::budget::Holder;
use chunk::CHUNK_BYTES;
use classes::{CLASSES, LARGER_DIVISOR, PAGE};
use parking_lot::Mutex;
use proptest::{collection::vec, prelude::*};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::SliceRandom};
use std::collections::BTreeMap;

const BUDGETS: [usize; 4] = [2 << 20, 15 << 20, 40 << 20, 256 << 20];

fn arena(limit: usize) -> (Arc<Budget>, Arc<Arena>) {
    let budget = Arc::new(Budget::new(limit));
    let arena = Arena::new(Arc::clone(&budget), 4);
    (budget, arena)
}

/// An allocated block filled with a pattern of its own, which must be intact when it is freed.
struct Filled {
    block: NonNull<u64>,
    bytes: usize,
    pattern: u64,
}

impl Filled {
    fn new(arena: &Arena, bytes: usize, thread: usize, pattern: u64) -> Self {
        let allocated = arena.allocate(bytes, thread);
        let asked = block_bytes(bytes);
        // Larger only where the budget is tight.
        let most = asked + asked / LARGER_DIVISOR;
        assert!((asked..=most).contains(&allocated.bytes));
        assert_eq!(allocated.block.addr().get() % 16, 0);
        if allocated.bytes.is_multiple_of(64) {
            assert_eq!(allocated.block.addr().get() % 64, 0);
        }
        // SAFETY: just allocated.
        assert_eq!(unsafe { size_of_block(allocated.block) }, allocated.bytes);
        let mut filled = Self {
            block: allocated.block,
            bytes: allocated.bytes,
            pattern,
        };
        if allocated.zeroed {
            assert!(filled.words().iter().all(|&w| w == 0), "not zero");
        }
        filled.words().fill(pattern);
        filled
    }

    fn words(&mut self) -> &mut [u64] {
        // SAFETY: the block is allocated and this value alone accesses it.
        unsafe { std::slice::from_raw_parts_mut(self.block.as_ptr(), self.bytes / 8) }
    }

    fn free(mut self, arena: &Arena) {
        let pattern = self.pattern;
        assert!(self.words().iter().all(|&w| w == pattern), "blocks overlap");
        // SAFETY: the block is allocated, and this was its only owner.
        unsafe { arena.free(self.block) };
    }
}

/// Mostly nodes and leaves, now and then a value of its own.
fn any_size(random: &mut StdRng) -> usize {
    match random.random_range(0..1000) {
        0..700 => random.random_range(0..2000),
        700..990 => random.random_range(0..=SMALL_MAX),
        990..999 => random.random_range(SMALL_MAX..100_000),
        _ => random.random_range(100_000..3 << 20),
    }
}

impl Arena {
    /// What the tables say is charged.
    fn expected_charge(&self) -> usize {
        let pools: usize = self.pools.iter().map(|p| p.expected_charge()).sum();
        pools + self.large.expected_charge()
    }

    /// The most that may be charged when nothing is allocated.
    fn resting_bytes(&self) -> usize {
        let pools: usize = self.pools.iter().map(|p| p.resting_bytes()).sum();
        pools + PAGE
    }

    /// Bytes of a new slab, headers included.
    fn slab_bytes(&self) -> usize {
        1 << SHIFTS[self.size.load(Relaxed)]
    }
}

#[test]
fn i7_the_charge_is_exact_at_every_step() {
    for limit in BUDGETS {
        let (budget, arena) = arena(limit);
        let mut random = StdRng::seed_from_u64(limit as u64);
        let mut blocks = Vec::new();
        let mut live = 0;
        for step in 0..30_000_usize {
            let grow = if step / 5_000 % 2 == 0 { 0.7 } else { 0.3 };
            if blocks.is_empty() || random.random_bool(grow) {
                let (bytes, tight) = (any_size(&mut random), budget.is_tight());
                let filled = Filled::new(&arena, bytes, step % 4, random.random());
                assert!(filled.bytes == block_bytes(bytes) || tight);
                live += filled.bytes;
                blocks.push(filled);
            } else {
                let at = random.random_range(0..blocks.len());
                let filled: Filled = blocks.swap_remove(at);
                live -= filled.bytes;
                filled.free(&arena);
            }
            if step % 500 == 0 {
                assert_eq!(arena.live_bytes(), live);
                assert_eq!(arena.charged_bytes(), arena.expected_charge());
                assert_eq!(budget.held(Holder::Arena), arena.charged_bytes());
                assert!(arena.charged_bytes() >= live);
            }
        }
        blocks.shuffle(&mut random);
        blocks.into_iter().for_each(|filled| filled.free(&arena));
        assert_eq!(arena.live_bytes(), 0);
        assert_eq!(arena.charged_bytes(), arena.expected_charge());
        assert!(arena.charged_bytes() <= arena.resting_bytes(), "{limit}");
        assert_eq!(budget.used(), arena.charged_bytes());
        drop(arena);
        assert_eq!(budget.used(), 0);
    }
}

#[test]
fn threads_never_get_overlapping_blocks() {
    for limit in [2 << 20, 256 << 20] {
        let (budget, arena) = arena(limit);
        // What a thread has allocated, any other may free.
        let shared = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (arena, shared) = (&arena, &shared);
                scope.spawn(move || {
                    let mut random = StdRng::seed_from_u64(thread as u64);
                    let mut own = Vec::new();
                    for _ in 0..20_000 {
                        if own.len() < 300 && random.random() {
                            own.push(Filled::new(
                                arena,
                                any_size(&mut random) / 4,
                                thread,
                                random.random(),
                            ));
                        } else if let Some(filled) = own.pop() {
                            let mut shared = shared.lock();
                            shared.push(filled);
                            let at = random.random_range(0..shared.len());
                            let other: Filled = shared.swap_remove(at);
                            drop(shared);
                            other.free(arena);
                        }
                    }
                    own.into_iter().for_each(|filled| filled.free(arena));
                });
            }
        });
        shared
            .into_inner()
            .into_iter()
            .for_each(|filled| filled.free(&arena));
        assert_eq!(arena.live_bytes(), 0);
        assert_eq!(arena.charged_bytes(), arena.expected_charge());
        assert!(arena.charged_bytes() <= arena.resting_bytes());
        drop(arena);
        assert_eq!(budget.used(), 0);
    }
}

// SAFETY: it owns its block.
unsafe impl Send for Filled {}

#[test]
fn a_drained_class_serves_the_others() {
    for limit in BUDGETS {
        let (_, arena) = arena(limit);
        let fill = limit / 2;
        let mut peak = 0;
        for bytes in [64, 1024, 176, 4096, 700, 8192] {
            let count = fill / block_bytes(bytes);
            let blocks: Vec<_> = (0..count)
                .map(|i| Filled::new(&arena, bytes, 0, i as u64))
                .collect();
            peak = peak.max(arena.charged_bytes());
            blocks.into_iter().for_each(|filled| filled.free(&arena));
        }
        assert!(
            peak <= fill + fill / 5 + arena.resting_bytes(),
            "{limit}: {peak} for {fill}"
        );
    }
}

#[test]
fn the_fullest_slabs_are_used_first() {
    let (_, arena) = arena(256 << 20);
    let mut random = StdRng::seed_from_u64(7);
    let mut blocks: Vec<_> = (0..20_000)
        .map(|i| Filled::new(&arena, 1000, 0, i))
        .collect();
    let full = arena.charged_bytes();
    // Three quarters go, everywhere; then blocks come and go one by one. The live ones move
    // together.
    blocks.shuffle(&mut random);
    blocks.drain(5_000..).for_each(|filled| filled.free(&arena));
    let scattered = arena.charged_bytes();
    for i in 0..100_000 {
        let at = random.random_range(0..blocks.len());
        let new = Filled::new(&arena, 1000, 0, i);
        std::mem::replace(&mut blocks[at], new).free(&arena);
    }
    let settled = arena.charged_bytes();
    assert!(scattered > full * 9 / 10, "the test needs scattered blocks");
    assert!(settled < full * 2 / 5, "{full} {scattered} {settled}");
    blocks.into_iter().for_each(|filled| filled.free(&arena));
}

/// Blocks in slabs that are set aside: their numbers.
fn set_aside(blocks: &[Filled]) -> Vec<usize> {
    // SAFETY: the blocks are allocated.
    let aside = |filled: &Filled| unsafe { emptying_shard(filled.block) }.is_some();
    let all = blocks.iter().enumerate();
    all.filter_map(|(i, filled)| aside(filled).then_some(i))
        .collect()
}

#[test]
fn nothing_is_taken_from_slabs_that_are_set_aside_and_the_empty_ones_go_back() {
    for limit in [8 << 20, 64 << 20] {
        let (_, arena) = arena(limit);
        let mut random = StdRng::seed_from_u64(8);
        let mut blocks: Vec<_> = (0..4_000)
            .map(|i| Filled::new(&arena, 1000, i as usize % 4, i))
            .collect();
        blocks.shuffle(&mut random);
        blocks.drain(1_000..).for_each(|filled| filled.free(&arena));
        let scattered = arena.charged_bytes();
        assert!(arena.begin_emptying(1 << 20), "{limit}");
        let aside = set_aside(&blocks);
        assert!(!aside.is_empty() && aside.len() < 500, "{}", aside.len());
        for &i in &aside {
            // SAFETY: the block is allocated.
            let shard = unsafe { emptying_shard(blocks[i].block) }.unwrap();
            let new = Filled::new(&arena, 1000, shard, i as u64);
            // SAFETY: as above.
            assert_eq!(unsafe { emptying_shard(new.block) }, None);
            std::mem::replace(&mut blocks[i], new).free(&arena);
        }
        assert!(set_aside(&blocks).is_empty());
        arena.end_emptying();
        let freed = scattered - arena.charged_bytes();
        assert!(freed >= 8 * arena.slab_bytes(), "{limit}: {freed}");
        assert_eq!(arena.charged_bytes(), arena.expected_charge());
        blocks.into_iter().for_each(|filled| filled.free(&arena));
        assert!(arena.charged_bytes() <= arena.resting_bytes());
    }
}

/// Slabs that stay because nobody moves what they hold are the emptiest, and must not be chosen for
/// ever.
#[test]
fn what_nobody_moves_does_not_keep_other_slabs_from_running_empty() {
    const LASTING: usize = 1000;
    const MOVED: usize = 200;
    let (_, arena) = arena(8 << 20);
    let mut random = StdRng::seed_from_u64(10);
    let mut scatter = |bytes, all: u64, left| {
        let mut blocks: Vec<_> = (0..all).map(|i| Filled::new(&arena, bytes, 0, i)).collect();
        blocks.shuffle(&mut random);
        blocks.drain(left..).for_each(|filled| filled.free(&arena));
        blocks
    };
    let lasting = scatter(LASTING, 2_000, 200);
    let mut blocks = scatter(MOVED, 10_000, 3_000);
    let scattered = arena.charged_bytes();
    for _ in 0..32 {
        arena.begin_emptying(8 * arena.slab_bytes());
        for i in set_aside(&blocks) {
            let new = Filled::new(&arena, MOVED, 0, i as u64);
            std::mem::replace(&mut blocks[i], new).free(&arena);
        }
        arena.end_emptying();
    }
    let freed = scattered - arena.charged_bytes();
    assert!(freed >= 32 * arena.slab_bytes(), "{freed}");
    let all = lasting.into_iter().chain(blocks);
    all.for_each(|filled| filled.free(&arena));
    assert!(arena.charged_bytes() <= arena.resting_bytes());
}

/// I7: who may not be refused (relocation itself, among others) does not go over the budget while
/// slabs that are set aside have room.
#[test]
fn slabs_that_are_set_aside_are_used_before_the_budget_is_exceeded() {
    let (budget, arena) = arena(8 << 20);
    let mut blocks: Vec<_> = (0..4_000)
        .map(|i| Filled::new(&arena, 1000, 0, i))
        .collect();
    blocks.shuffle(&mut StdRng::seed_from_u64(11));
    blocks.drain(1_000..).for_each(|filled| filled.free(&arena));
    let scattered = arena.charged_bytes();
    assert!(arena.begin_emptying(usize::MAX / 2));
    // All that is left of the budget is taken by others.
    let others = budget.limit() - budget.used();
    budget.take(Holder::Scans, others);
    blocks.extend((0..2_500).map(|i| Filled::new(&arena, 1000, 0, i)));
    assert_eq!(arena.charged_bytes(), scattered);
    budget.give(Holder::Scans, others);
    arena.end_emptying();
    assert!(set_aside(&blocks).is_empty());
    blocks.into_iter().for_each(|filled| filled.free(&arena));
    assert!(arena.charged_bytes() <= arena.resting_bytes());
}

/// Each class of each shard keeps a slab that is nearly empty. In a budget that becomes small,
/// these slabs alone would be more than it.
#[test]
fn slabs_of_a_large_budget_make_way_in_a_small_one() {
    for (large, threads, small) in [(16 << 20, 1, 2 << 20), (1 << 30, 64, 12 << 20)] {
        let budget = Arc::new(Budget::new(large));
        let arena = Arena::new(Arc::clone(&budget), threads);
        let of_all_classes = |thread| (0..CLASSES).map(move |class| (class_bytes(class), thread));
        let mut blocks: Vec<_> = (0..threads)
            .flat_map(of_all_classes)
            .map(|(bytes, thread)| Filled::new(&arena, bytes, thread, bytes as u64))
            .collect();
        let scattered = arena.charged_bytes();
        assert!(scattered > small, "the test needs slabs that hold little");
        budget.set_limit(small);
        arena.follow_budget();
        for _ in 0..scattered / small * 8 {
            arena.begin_emptying(small / 2);
            for i in set_aside(&blocks) {
                // SAFETY: the block is allocated.
                let shard = unsafe { emptying_shard(blocks[i].block) }.unwrap();
                let new = Filled::new(&arena, blocks[i].bytes, shard, i as u64);
                std::mem::replace(&mut blocks[i], new).free(&arena);
            }
            arena.end_emptying();
            assert!(arena.charged_bytes() <= scattered + small / 4);
            assert_eq!(arena.charged_bytes(), arena.expected_charge());
        }
        // A slab in part for each class, and what is behind the last block of each slab.
        let live = arena.live_bytes();
        let most = live + live / 4 + CLASSES * arena.slab_bytes() + arena.resting_bytes();
        let charged = arena.charged_bytes();
        assert!(charged <= most, "{charged} > {most} for {live}");
        // And back.
        budget.set_limit(large);
        arena.follow_budget();
        blocks.extend((0..threads).map(|thread| Filled::new(&arena, 1000, thread, 0)));
        blocks.into_iter().for_each(|filled| filled.free(&arena));
        assert!(arena.charged_bytes() <= arena.resting_bytes());
    }
}

/// In the smallest budget, a slab in part for each class would be half of it.
#[test]
fn the_last_slab_of_a_class_runs_empty_into_larger_blocks() {
    let (budget, arena) = arena(2 << 20);
    let mut blocks: Vec<_> = (0..CLASSES)
        .flat_map(|class| (0..2).map(move |i| (class_bytes(class), i)))
        .map(|(bytes, i)| Filled::new(&arena, bytes, 0, i))
        .collect();
    let all = arena.charged_bytes();
    let fill_up = || budget.take(Holder::Scans, budget.limit() / 10 * 9 - budget.used());
    fill_up();
    assert!(budget.is_tight() && !budget.is_full());
    for _ in 0..8 {
        arena.begin_emptying(256 << 10);
        for i in set_aside(&blocks) {
            fill_up();
            let new = Filled::new(&arena, blocks[i].bytes, 0, i as u64);
            std::mem::replace(&mut blocks[i], new).free(&arena);
        }
        assert!(set_aside(&blocks).is_empty());
        arena.end_emptying();
    }
    let left = arena.charged_bytes();
    assert!(left < all / 2, "{left} of {all} for {}", arena.live_bytes());
    budget.give(Holder::Scans, budget.held(Holder::Scans));
    blocks.into_iter().for_each(|filled| filled.free(&arena));
    assert!(arena.charged_bytes() <= arena.resting_bytes());
}

/// I7: what is kept for the next slabs is kept by the present budget.
#[test]
fn the_reserve_follows_the_budget() {
    let (budget, arena) = arena(1 << 30);
    let blocks: Vec<_> = (0..8_000)
        .map(|i| Filled::new(&arena, 1000, 0, i))
        .collect();
    blocks.into_iter().for_each(|filled| filled.free(&arena));
    let kept = arena.charged_bytes();
    assert!(kept > 1 << 20, "the test needs a reserve");
    budget.set_limit(2 << 20);
    arena.follow_budget();
    assert!(
        arena.charged_bytes() < kept / 8,
        "{}",
        arena.charged_bytes()
    );
    assert_eq!(arena.charged_bytes(), arena.expected_charge());
}

#[test]
fn slabs_that_did_not_run_empty_are_used_again() {
    let (_, arena) = arena(256 << 20);
    let mut random = StdRng::seed_from_u64(9);
    let mut blocks: Vec<_> = (0..4_000)
        .map(|i| Filled::new(&arena, 1000, 0, i))
        .collect();
    let full = arena.charged_bytes();
    blocks.shuffle(&mut random);
    blocks.drain(1_000..).for_each(|filled| filled.free(&arena));
    assert!(arena.begin_emptying(usize::MAX / 2));
    // Some come free meanwhile, of slabs set aside and others.
    blocks.drain(..300).for_each(|filled| filled.free(&arena));
    arena.end_emptying();
    assert!(set_aside(&blocks).is_empty());
    blocks.extend((0..3_300).map(|i| Filled::new(&arena, 1000, 0, i)));
    assert!(arena.charged_bytes() <= full, "{}", arena.charged_bytes());
    blocks.into_iter().for_each(|filled| filled.free(&arena));
    assert!(arena.charged_bytes() <= arena.resting_bytes());
}

#[test]
fn every_block_finds_its_arena() {
    let (_, first) = arena(2 << 20);
    let (_, second) = arena(256 << 20);
    for arena in [&first, &second] {
        for bytes in [1, 4096, 8192, 8193, 1 << 20, (1 << 20) + 1, 5 << 20] {
            let filled = Filled::new(arena, bytes, 0, 1);
            // SAFETY: the block is allocated.
            let owner = unsafe { arena_of(filled.block) };
            assert!(std::ptr::eq(owner, Arc::as_ptr(arena)));
            filled.free(arena);
        }
    }
}

#[test]
#[cfg(debug_assertions)]
fn a_write_after_the_free_is_found() {
    let (_, arena) = arena(2 << 20);
    let _other = Filled::new(&arena, 100, 0, 1);
    let filled = Filled::new(&arena, 100, 0, 1);
    let stale = filled.block;
    filled.free(&arena);
    // SAFETY: the memory is mapped as long as the arena lives, and no other thread uses it.
    unsafe { stale.add(3).write(5) };
    let reused = std::panic::AssertUnwindSafe(|| arena.allocate(100, 0).block);
    assert!(std::panic::catch_unwind(reused).is_err());
}

#[test]
#[cfg(debug_assertions)]
fn a_second_free_is_found() {
    let (_, arena) = arena(2 << 20);
    let _other = Filled::new(&arena, 100, 0, 1);
    let block = Filled::new(&arena, 100, 0, 1).block;
    // SAFETY: the block is allocated. The second time it is not, which the arena is to find out
    // before anything is harmed.
    let free = || unsafe { arena.free(block) };
    let panics = || std::panic::catch_unwind(std::panic::AssertUnwindSafe(free)).is_err();
    assert!(!panics());
    assert!(panics());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn large_blocks_are_where_no_other_is(sizes in vec((1..300_usize, any::<bool>()), 1..200)) {
        let (budget, arena) = arena(2 << 20);
        let mut blocks: BTreeMap<usize, Filled> = BTreeMap::new();
        for (i, (pages, free)) in sizes.into_iter().enumerate() {
            if free && !blocks.is_empty() {
                let key = *blocks.keys().nth(i % blocks.len()).unwrap();
                blocks.remove(&key).unwrap().free(&arena);
                continue;
            }
            let bytes = SMALL_MAX + pages * PAGE - i % PAGE;
            let filled = Filled::new(&arena, bytes, 0, i as u64);
            let start = filled.block.addr().get();
            let before = blocks.range(..=start).next_back();
            prop_assert!(before.is_none_or(|(at, b)| at + b.bytes <= start));
            let after = blocks.range(start..).next();
            prop_assert!(after.is_none_or(|(at, _)| start + filled.bytes <= *at));
            blocks.insert(start, filled);
        }
        let live: usize = blocks.values().map(|b| b.bytes).sum();
        prop_assert_eq!(arena.live_bytes(), live);
        prop_assert_eq!(arena.charged_bytes(), arena.expected_charge());
        prop_assert!(arena.charged_bytes() <= live + (blocks.len() + 2) * PAGE);
        blocks.into_values().for_each(|filled| filled.free(&arena));
        prop_assert!(budget.used() <= arena.resting_bytes());
        prop_assert!(budget.used() < CHUNK_BYTES);
    }
}
