//! Guards and garbage, zeroing, and what the system sees of it.

use super::*;
use budget::Holder;
use rand::{Rng, SeedableRng, rngs::StdRng, seq::SliceRandom};
use std::{
    process::Command,
    sync::{
        Barrier,
        atomic::{
            AtomicBool, AtomicPtr, AtomicU64,
            Ordering::{AcqRel, Acquire},
        },
        mpsc,
    },
};
use words::Words;

const BUDGETS: [usize; 3] = [2 << 20, 40 << 20, 256 << 20];

fn memory(limit: usize) -> (Arc<Budget>, Arc<Memory>) {
    let budget = Arc::new(Budget::new(limit));
    let memory = Memory::new(Arc::clone(&budget));
    (budget, memory)
}

fn words(block: &Block) -> Words<'_> {
    // SAFETY: the tests free a block only after the last use of its words, and reach it through
    // words only.
    unsafe { Words::new(block.ptr, block.bytes) }
}

fn free(memory: &Memory, block: Block) {
    // SAFETY: by value: it is not used again; the callers never published it.
    unsafe { memory.free(block.ptr) };
}

fn retire(memory: &Memory, block: Block) {
    // SAFETY: by value: it is not used again, and the callers have unlinked it.
    unsafe { memory.retire(block.ptr) };
}

fn zeroes(block: &Block) -> bool {
    (0..block.bytes / 8).all(|i| words(block).word(i) == 0)
}

#[test]
fn allocated_memory_is_zero_and_of_its_class() {
    for limit in BUDGETS {
        let (_, memory) = memory(limit);
        let mut random = StdRng::seed_from_u64(1);
        let mut blocks: Vec<Block> = Vec::new();
        for round in 0..20_000 {
            if blocks.len() > 200 || (round % 3 == 0 && !blocks.is_empty()) {
                let at = random.random_range(0..blocks.len());
                free(&memory, blocks.swap_remove(at));
            }
            let bytes = random.random_range(0..if round % 100 == 0 { 2 << 20 } else { 9000 });
            let block = memory.allocate(bytes);
            assert!(zeroes(&block), "{limit} {bytes}");
            assert_eq!(block.bytes, Memory::size_of(block.ptr));
            assert_eq!(block.bytes, Memory::size_of(block.ptr));
            for i in 0..block.bytes / 8 {
                words(&block).set_word(i, u64::MAX);
            }
            blocks.push(block);
        }
        blocks.into_iter().for_each(|block| free(&memory, block));
    }
}

#[test]
fn a_guard_keeps_what_was_reachable() {
    let (_, memory) = memory(2 << 20);
    let guard = memory.enter();
    let block = memory.allocate(1000);
    let live = memory.live_bytes();
    std::thread::scope(|scope| scope.spawn(|| retire(&memory, block)).join().unwrap());
    memory.collect();
    assert_eq!(memory.live_bytes(), live, "freed under a guard");
    drop(guard);
    memory.collect();
    assert_eq!(memory.live_bytes(), 0);
}

#[test]
fn a_later_guard_keeps_nothing() {
    let (_, memory) = memory(2 << 20);
    retire(&memory, memory.allocate(1000));
    let _guard = memory.enter();
    // Handed over before, by another thread: the guard came later. Through `collect` it may or may
    // not wait for the guard.
    std::thread::scope(|scope| scope.spawn(|| memory.collect()).join().unwrap());
    drop(_guard);
    memory.collect();
    assert_eq!(memory.live_bytes(), 0);
}

#[test]
fn garbage_of_idle_threads_is_collected() {
    let (_, memory) = memory(256 << 20);
    let (retired, idle) = (Barrier::new(9), Barrier::new(9));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let guard = memory.enter();
                retire(&memory, memory.allocate(3000));
                drop(guard);
                retired.wait();
                // Neither enters again nor exits until the check is done.
                idle.wait();
            });
        }
        retired.wait();
        memory.collect();
        let live = memory.live_bytes();
        idle.wait();
        assert_eq!(live, 0);
    });
}

#[test]
fn it_is_told_when_all_that_was_retired_is_freed() {
    for limit in BUDGETS {
        let (_, memory) = memory(limit);
        let kept = memory.allocate(100);
        let guard = memory.enter();
        retire(&memory, kept);
        let freed = memory.when_freed();
        // Later ones neither hold it up nor bring it about.
        drop(memory.enter());
        memory.collect();
        assert!(!freed.all() && memory.live_bytes() > 0, "{limit}");
        drop(guard);
        assert!(freed.all(), "{limit}");
        assert_eq!(memory.live_bytes(), 0);
        assert!(memory.when_freed().all(), "{limit}: nobody is inside");
        // One that never hears of it takes nothing with it.
        drop(memory.enter());
        let _guard = memory.enter();
        drop(memory.when_freed());
    }
}

#[test]
fn few_blocks_are_collected_beside_many_guards() {
    let (_, memory) = memory(2 << 20);
    let (entered, collected) = (Barrier::new(41), Barrier::new(41));
    std::thread::scope(|scope| {
        for _ in 0..40 {
            scope.spawn(|| {
                let guard = memory.enter();
                entered.wait();
                collected.wait();
                drop(guard);
            });
        }
        entered.wait();
        // One block beside 40 active threads: fewer entries than guards. The collector must take it
        // now; it is not offered again.
        let block = memory.allocate(100);
        retire(&memory, block);
        memory.collect();
        collected.wait();
    });
    assert_eq!(memory.live_bytes(), 0);
}

#[test]
fn i7_garbage_is_bounded_without_collecting() {
    for limit in BUDGETS {
        let (_, memory) = memory(limit);
        let mut most = 0;
        for i in 0..20_000 {
            retire(
                &memory,
                memory.allocate(if i % 10 == 0 { 60_000 } else { 1500 }),
            );
            most = most.max(memory.live_bytes());
        }
        assert!(
            most <= limit / 64 + 64_000,
            "{most} bytes of garbage of {limit}"
        );
    }
}

/// A block whose words are all equal; readers check it while writers replace it.
fn replaceable(memory: &Memory, random: &mut StdRng) -> Block {
    let block = memory.allocate(random.random_range(16..3000));
    let value = random.random();
    for i in 0..block.bytes / 8 {
        words(&block).set_word(i, value);
    }
    block
}

#[test]
fn readers_never_see_a_reused_block() {
    const SLOTS: usize = 8;
    for limit in [2 << 20, 256 << 20] {
        let (budget, memory) = memory(limit);
        let mut random = StdRng::seed_from_u64(3);
        let slots: Vec<AtomicPtr<u64>> = (0..SLOTS)
            .map(|_| AtomicPtr::new(replaceable(&memory, &mut random).ptr.as_ptr()))
            .collect();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..2)
                .map(|seed| {
                    let (memory, slots) = (&memory, &slots);
                    scope.spawn(move || {
                        let mut random = StdRng::seed_from_u64(seed);
                        for _ in 0..30_000 {
                            let new = replaceable(memory, &mut random).ptr.as_ptr();
                            // Release: the reader's Acquire sees the words. Acquire: so does the
                            // next writer.
                            let old = slots[random.random_range(0..SLOTS)].swap(new, AcqRel);
                            // SAFETY: only the thread that swapped it out retires it, once.
                            unsafe { memory.retire(NonNull::new(old).unwrap()) };
                        }
                    })
                })
                .collect();
            for seed in 0..2 {
                let (memory, slots, done) = (&memory, &slots, &done);
                scope.spawn(move || {
                    let mut random = StdRng::seed_from_u64(100 + seed);
                    while !done.load(Relaxed) {
                        let _guard = memory.enter();
                        let ptr = NonNull::new(slots[random.random_range(0..SLOTS)].load(Acquire))
                            .unwrap();
                        let block = Block {
                            ptr,
                            bytes: Memory::size_of(ptr),
                        };
                        let first = words(&block).word(0);
                        if random.random_range(0..50) == 0 {
                            std::thread::yield_now();
                        }
                        assert!((0..block.bytes / 8).all(|i| words(&block).word(i) == first));
                    }
                });
            }
            let results: Vec<_> = writers.into_iter().map(|w| w.join()).collect();
            done.store(true, Relaxed);
            assert!(results.iter().all(Result::is_ok));
        });
        memory.collect();
        let kept: usize = slots
            .iter()
            .map(|slot| Memory::size_of(NonNull::new(slot.load(Acquire)).unwrap()))
            .sum();
        assert_eq!(memory.live_bytes(), kept);
        assert_eq!(budget.held(Holder::Arena), memory.slab_bytes());
        drop(memory);
        assert_eq!(budget.used(), 0);
    }
}

#[test]
fn dropping_needs_no_other_thread() {
    let (budget, memory) = memory(2 << 20);
    let (send, receive) = mpsc::channel::<()>();
    let ready = Arc::new(Barrier::new(2));
    let other = {
        let (memory, ready) = (Arc::clone(&memory), Arc::clone(&ready));
        std::thread::spawn(move || {
            drop(memory.enter());
            retire(&memory, memory.allocate(5000));
            drop(memory);
            ready.wait();
            // Lives on, with its place in the collector, until after the drop.
            let _ = receive.recv();
        })
    };
    ready.wait();
    let _leaked = (
        memory.allocate(100),
        memory.allocate(20_000),
        memory.allocate(3 << 20),
    );
    retire(&memory, memory.allocate(100));
    assert_eq!(Arc::strong_count(&memory), 1);
    drop(memory);
    assert_eq!(budget.used(), 0);
    send.send(()).unwrap();
    other.join().unwrap();
}

/// Runs the body of the test `name` in a process of its own, where nothing else allocates.
fn alone(name: &str, body: impl FnOnce()) {
    const ALONE: &str = "INDEXY_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return body();
    }
    let test = format!("{}::{name}", module_path!().split_once("::").unwrap().1);
    let output = Command::new(std::env::current_exe().unwrap())
        .args([&test, "--exact", "--nocapture"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(said.contains("1 passed"), "no test {test}: {said}");
}

/// Resident and mapped bytes of this process.
#[cfg(target_os = "linux")]
fn process_bytes() -> (usize, usize) {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let mut pages = statm
        .split(' ')
        .map(|n| n.parse::<usize>().unwrap() * rustix::param::page_size());
    let mapped = pages.next().unwrap();
    (pages.next().unwrap(), mapped)
}

#[test]
#[cfg(target_os = "linux")]
fn i7_resident_memory_follows_the_charge() {
    alone("i7_resident_memory_follows_the_charge", || {
        // The tables of the test itself are made resident before.
        let mut blocks: Vec<Option<Block>> = Vec::with_capacity(200_000);
        blocks.resize_with(200_000, || None);
        for limit in [12 << 20, 40 << 20, 200 << 20] {
            let (budget, memory) = memory(limit);
            let (before, _) = process_bytes();
            let check = |when: &str| {
                let resident = process_bytes().0.saturating_sub(before);
                let charged = budget.held(Holder::Arena);
                // One huge page, and what the test itself and the collector allocate.
                let allowed = charged + charged / 50 + (3 << 20);
                assert!(
                    resident <= allowed,
                    "{when}: {resident} resident, {charged} charged of {limit}"
                );
                println!(
                    "{limit} {when}: {resident} resident, {charged} charged, {} live",
                    memory.live_bytes()
                );
            };
            let mut random = StdRng::seed_from_u64(5);
            for round in 0..3 {
                let mut at = 0;
                while memory.slab_bytes() < limit {
                    while blocks[at].is_some() {
                        at += 1;
                    }
                    let bytes = match at % 1000 {
                        0 => 50_000,
                        1 if round == 1 => 1_500_000,
                        _ => random.random_range(100..2500),
                    };
                    let block = memory.allocate(bytes);
                    (0..block.bytes / 8).for_each(|i| words(&block).set_word(i, 1));
                    blocks[at] = Some(block);
                }
                check("full");
                let mut order: Vec<usize> = (0..=at).collect();
                order.shuffle(&mut random);
                for (i, &at) in order.iter().enumerate() {
                    blocks[at]
                        .take()
                        .into_iter()
                        .for_each(|block| free(&memory, block));
                    if i == order.len() * 9 / 10 {
                        check("a tenth left, anywhere");
                    }
                }
                check("empty");
                assert!(budget.used() <= limit / 32 + (256 << 10));
            }
        }
    });
}

#[test]
#[cfg(target_os = "linux")]
fn dropping_unmaps_leaked_blocks() {
    alone("dropping_unmaps_leaked_blocks", || {
        drop(memory(256 << 20));
        let (_, before) = process_bytes();
        let (_, memory) = memory(256 << 20);
        for _ in 0..50_000 {
            let _leaked = memory.allocate(1500);
        }
        let _leaked = (memory.allocate(500_000), memory.allocate(9 << 20));
        retire(&memory, memory.allocate(700_000));
        assert!(process_bytes().1 > before + (70 << 20));
        drop(memory);
        assert!(process_bytes().1 < before + (1 << 20));
    });
}

#[test]
fn a_torn_read_is_detected() {
    const WORDS: usize = 24;
    /// Reads that meet a writer; each one would be wrong if it were believed.
    const MEETINGS: u64 = 60;
    let (_, memory) = memory(2 << 20);
    let block = memory.allocate((WORDS + 1) * 8);
    let node = words(&block);
    let latch = || latch::Latch::of(node.atomic(0));
    let (torn, met, written) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut rounds = 0;
                while met.load(Relaxed) < MEETINGS {
                    assert!(latch().lock());
                    let next = node.word(1) + 1;
                    (1..=WORDS).for_each(|i| node.set_word(i, next));
                    latch().unlock();
                    rounds += 1;
                }
                written.fetch_add(rounds, Relaxed);
            });
        }
        scope.spawn(|| {
            let mut turn = 0_u64;
            while met.load(Relaxed) < MEETINGS {
                turn += 1;
                let seen = latch().read().unwrap();
                let first = node.word(WORDS);
                if turn.is_multiple_of(8) {
                    // Writers go on even if there is one processor for all.
                    std::thread::yield_now();
                }
                // Downwards, against the writers.
                let equal = (1..WORDS).rev().all(|i| node.word(i) == first);
                if latch().validate(seen) {
                    torn.fetch_add(u64::from(!equal), Relaxed);
                } else {
                    met.fetch_add(u64::from(!equal), Relaxed);
                }
            }
        });
    });
    assert_eq!(torn.load(Relaxed), 0);
    assert_eq!(
        node.word(1),
        written.load(Relaxed),
        "two writers were inside together"
    );
    free(&memory, block);
}
