//! Costs of the basic operations, printed when `INDEXY_BENCH=1`:
//! `INDEXY_BENCH=1 cargo test --release -p indexy --lib mem::bench -- --nocapture --test-threads 1`.

use super::{latch::Latch, words::Words, *};
use std::{hint::black_box, time::Instant};

fn wanted() -> bool {
    std::env::var_os("INDEXY_BENCH").is_some_and(|v| v == "1")
}

/// Runs `run(rounds)` many times, each shorter than a turn of the scheduler, and prints the best time of one round: the
/// machine may be busy with other things.
fn report(what: &str, rounds: usize, mut run: impl FnMut(usize)) {
    let best = (0..200)
        .map(|_| {
            let start = Instant::now();
            run(rounds);
            start.elapsed().as_nanos() as f64 / rounds as f64
        })
        .fold(f64::INFINITY, f64::min);
    println!("{what:<52} {best:8.2} ns");
}

fn memory() -> Arc<Memory> {
    Memory::new(Arc::new(Budget::new(256 << 20)))
}

fn free(memory: &Memory, block: NonNull<u64>) {
    // SAFETY: the callers free each of their own, unpublished blocks once.
    unsafe { memory.free(block) };
}

#[test]
fn arena() {
    if !wanted() {
        return;
    }
    let memory = memory();
    for bytes in [64, 1280, 4096] {
        report(
            &format!("allocate + free of an only block, {bytes} bytes"),
            1 << 12,
            |n| {
                for _ in 0..n {
                    free(&memory, black_box(memory.allocate_unzeroed(bytes)).ptr);
                }
            },
        );
        let _other = memory.allocate(bytes);
        report(&format!("allocate + free, {bytes} bytes"), 1 << 12, |n| {
            for _ in 0..n {
                free(&memory, black_box(memory.allocate_unzeroed(bytes)).ptr);
            }
        });
        report(
            &format!("allocate zeroed + free, {bytes} bytes"),
            1 << 20,
            |n| {
                for _ in 0..n {
                    free(&memory, black_box(memory.allocate(bytes)).ptr);
                }
            },
        );
    }
    let mut random = 1_u64;
    let mut blocks: Vec<_> = (0..40_000).map(|_| memory.allocate(1024).ptr).collect();
    report(
        "replace one of 40,000 blocks of 400..1400 bytes",
        1 << 20,
        |n| {
            for _ in 0..n {
                random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
                let old = &mut blocks[(random >> 40) as usize % 40_000];
                free(&memory, *old);
                *old = memory
                    .allocate_unzeroed(400 + (random >> 33) as usize % 1000)
                    .ptr;
            }
        },
    );
    println!(
        "    live {} KiB in {} KiB of slabs",
        memory.live_bytes() >> 10,
        memory.slab_bytes() >> 10
    );
    for bytes in [16 << 10, 128 << 10, 4 << 20] {
        report(&format!("allocate + free, {bytes} bytes"), 1 << 6, |n| {
            for _ in 0..n {
                free(&memory, black_box(memory.allocate(bytes)).ptr);
            }
        });
    }
}

#[test]
fn guards() {
    if !wanted() {
        return;
    }
    let memory = memory();
    report("enter and leave a guard", 1 << 14, |n| {
        for _ in 0..n {
            drop(black_box(memory.enter()));
        }
    });
    let outer = memory.enter();
    report("enter and leave a nested guard", 1 << 14, |n| {
        for _ in 0..n {
            drop(black_box(memory.enter()));
        }
    });
    drop(outer);
    report("allocate + retire, 1280 bytes", 1 << 12, |n| {
        for _ in 0..n {
            // SAFETY: the block was never published.
            unsafe { memory.retire(memory.allocate_unzeroed(1280).ptr) };
        }
    });
}

#[test]
fn latch_and_words() {
    if !wanted() {
        return;
    }
    let latch = Latch::new();
    report("latch: read and validate", 1 << 14, |n| {
        for _ in 0..n {
            let seen = black_box(&latch).read();
            assert!(seen.is_some_and(|seen| latch.validate(seen)));
        }
    });
    report("latch: lock and unlock", 1 << 14, |n| {
        for _ in 0..n {
            black_box(&latch).lock();
            latch.unlock();
        }
    });
    let memory = memory();
    let block = memory.allocate(2048);
    // SAFETY: the block was just allocated, and is accessed through this view only.
    let words = unsafe { Words::new(block.ptr, block.bytes) };
    report("words: read_u64 unaligned", 1 << 14, |n| {
        for i in 0..n {
            black_box(black_box(words).read_u64(i & 1023));
        }
    });
    let mut out = [0; 64];
    for len in [8, 20, 64] {
        report(&format!("words: copy_out {len}"), 1 << 13, |n| {
            for i in 0..n {
                words.copy_out(i & 1023, &mut black_box(&mut out)[..len]);
            }
        });
        report(&format!("words: write {len}"), 1 << 13, |n| {
            for i in 0..n {
                words.write(i & 1023, &black_box(&out)[..len]);
            }
        });
        report(&format!("words: cmp {len}"), 1 << 13, |n| {
            for i in 0..n {
                black_box(words.cmp(i & 1023, len, &black_box(&out)[..len]));
            }
        });
    }
    for (from, to) in [(16, 20), (20, 16), (16, 24)] {
        report(
            &format!("words: copy_within 128 bytes, {from} to {to}"),
            1 << 13,
            |n| {
                for _ in 0..n {
                    black_box(words).copy_within(from, to, black_box(128));
                }
            },
        );
    }
}
