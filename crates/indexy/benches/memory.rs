//! What the arena, guards, latches and word buffers cost.
//!
//! Run: `cargo bench -p indexy --bench memory`.
//!
//! The files are compiled a second time here, so that the library need not show them.
#![allow(
    dead_code,
    unused_imports,
    missing_docs,
    reason = "compiled for measurements only"
)]

#[path = "../src/mem/mod.rs"]
mod mem;
#[path = "../src/sync.rs"]
mod sync;

use divan::{Bencher, black_box};
use mem::{Memory, budget::Budget, latch::Latch, words::Words};
use std::{ptr::NonNull, sync::Arc};

fn main() {
    divan::main();
}

fn memory() -> Arc<Memory> {
    Memory::new(Arc::new(Budget::new(256 << 20)))
}

fn free(memory: &Memory, block: NonNull<u64>) {
    // SAFETY: each caller frees blocks of its own, that were never published, once.
    unsafe { memory.free(block) };
}

/// Beside another block of the size, so that the slab stays.
#[divan::bench(args = [64, 1280, 4096, 16 << 10, 128 << 10, 4 << 20])]
fn allocate_and_free(bencher: Bencher<'_, '_>, bytes: usize) {
    let memory = memory();
    let _other = memory.allocate(bytes);
    bencher.bench_local(|| free(&memory, black_box(memory.allocate(bytes)).ptr));
}

/// The only block of its size: its slab comes and goes.
#[divan::bench(args = [64, 1280, 4096])]
fn allocate_and_free_an_only_block(bencher: Bencher<'_, '_>, bytes: usize) {
    let memory = memory();
    bencher.bench_local(|| free(&memory, black_box(memory.allocate(bytes)).ptr));
}

#[divan::bench(args = [64, 1280, 4096])]
fn allocate_zeroed_and_free(bencher: Bencher<'_, '_>, bytes: usize) {
    let memory = memory();
    let _other = memory.allocate(bytes);
    bencher.bench_local(|| free(&memory, black_box(memory.allocate(bytes)).ptr));
}

/// One of 40,000 blocks of 400 to 1400 bytes.
#[divan::bench]
fn replace_a_block_of_many(bencher: Bencher<'_, '_>) {
    const BLOCKS: usize = 40_000;
    let memory = memory();
    let mut random = 1_u64;
    let mut blocks: Vec<_> = (0..BLOCKS).map(|_| memory.allocate(1024).ptr).collect();
    bencher.bench_local(|| {
        random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        let old = &mut blocks[(random >> 40) as usize % BLOCKS];
        free(&memory, *old);
        let bytes = 400 + (random >> 33) as usize % 1000;
        *old = memory.allocate(bytes).ptr;
    });
}

#[divan::bench]
fn allocate_and_retire(bencher: Bencher<'_, '_>) {
    let memory = memory();
    bencher.bench_local(|| {
        // SAFETY: the block was never published.
        unsafe { memory.retire(memory.allocate(1280).ptr) };
    });
}

#[divan::bench]
fn enter_a_guard(bencher: Bencher<'_, '_>) {
    let memory = memory();
    bencher.bench_local(|| drop(black_box(memory.enter())));
}

#[divan::bench]
fn enter_a_nested_guard(bencher: Bencher<'_, '_>) {
    let memory = memory();
    let _outer = memory.enter();
    bencher.bench_local(|| drop(black_box(memory.enter())));
}

#[divan::bench]
fn latch_read_and_validate(bencher: Bencher<'_, '_>) {
    let latch = Latch::new();
    bencher.bench_local(|| {
        let seen = black_box(&latch).read();
        assert!(seen.is_some_and(|seen| latch.validate(seen)));
    });
}

#[divan::bench]
fn latch_lock_and_unlock(bencher: Bencher<'_, '_>) {
    let latch = Latch::new();
    bencher.bench_local(|| {
        black_box(&latch).lock();
        latch.unlock();
    });
}

/// Calls `run` with the words of a block and an offset that changes.
fn with_words<R>(bencher: Bencher<'_, '_>, mut run: impl FnMut(Words<'_>, usize) -> R) {
    let memory = memory();
    let block = memory.allocate(2048);
    // SAFETY: the block was just allocated, and is accessed through this view only.
    let words = unsafe { Words::new(block.ptr, block.bytes) };
    let mut at = 0;
    bencher.bench_local(|| {
        at = (at + 1) & 1023;
        run(black_box(words), at)
    });
}

#[divan::bench]
fn words_read_u64(bencher: Bencher<'_, '_>) {
    with_words(bencher, |words, at| words.read_u64(at));
}

#[divan::bench(args = [8, 20, 64])]
fn words_copy_out(bencher: Bencher<'_, '_>, len: usize) {
    let mut out = [0; 64];
    with_words(bencher, |words, at| {
        words.copy_out(at, &mut black_box(&mut out)[..len]);
    });
}

#[divan::bench(args = [8, 20, 64])]
fn words_write(bencher: Bencher<'_, '_>, len: usize) {
    let bytes = [0; 64];
    with_words(bencher, |words, at| {
        words.write(at, &black_box(&bytes)[..len])
    });
}

#[divan::bench(args = [8, 20, 64])]
fn words_compare(bencher: Bencher<'_, '_>, len: usize) {
    let bytes = [0; 64];
    with_words(bencher, |words, at| {
        words.cmp(at, len, &black_box(&bytes)[..len])
    });
}

/// Whole words (16 to 24) and others, up and down.
#[divan::bench(args = [(16, 20), (20, 16), (16, 24)])]
fn words_copy_128_bytes_within(bencher: Bencher<'_, '_>, (from, to): (usize, usize)) {
    with_words(bencher, |words, _| {
        words.copy_within(from, to, black_box(128))
    });
}
