//! The begin of a snapshot, and its reads, against a write, under every interleaving and every
//! value that the memory model lets a load return.
//!
//! Run: `RUSTFLAGS="--cfg loom" cargo test -p indexy --test snapshot_model`.
//!
//! The files of the clock and of the latch are compiled a second time here, over loom's atomics.
//! Without the fence in `has_risen`, or the one in `raise`, the first test fails. The second one
//! fails where the image is counted before it is there, or where `count` and `so_far` are relaxed.
#![cfg(loom)]

mod sync {
    pub(crate) use loom::{
        hint::spin_loop,
        sync::atomic::{AtomicU64, Ordering, fence},
        thread::yield_now,
    };

    /// The checker needs no hints where threads may change.
    pub(crate) fn point() {}
}
#[allow(dead_code, reason = "not every operation is modelled")]
#[path = "../src/versions/clock.rs"]
mod clock;
#[allow(dead_code, reason = "not every operation is modelled")]
#[path = "../src/mem/latch.rs"]
mod latch;

use clock::{Clock, Left};
use latch::{Latch, Version};
use loom::{sync::Arc, thread};
use sync::{AtomicU64, Ordering::Relaxed};

struct Node {
    clock: Clock,
    latch: Latch,
    value: AtomicU64,
}

impl Node {
    /// One optimistic attempt to read.
    fn try_read(&self) -> Option<u64> {
        let seen = self.latch.read()?;
        let value = self.value.load(Relaxed);
        self.latch.validate(seen).then_some(value)
    }
}

/// A writer that found no snapshot leaves no image. So every read of a snapshot finds what it
/// wrote.
#[test]
fn i10_a_write_without_an_image_is_seen_by_every_read_of_the_snapshot() {
    loom::model(|| {
        let node = Arc::new(Node {
            clock: Clock::new(),
            latch: Latch::new(),
            value: AtomicU64::new(0),
        });
        let unlatched: Version = node.latch.read().unwrap();
        let writer = {
            let node = node.clone();
            thread::spawn(move || {
                assert!(node.latch.try_upgrade(unlatched));
                let written = !node.clock.has_risen(0);
                if written {
                    node.value.store(1, Relaxed);
                }
                node.latch.unlock();
                written
            })
        };
        node.clock.raise(2);
        let read = node.try_read();
        let written = writer.join().unwrap();
        assert!(
            !written || read != Some(0),
            "the snapshot would see it come"
        );
    });
}

/// A reader looks for the image first and reads the newest value second. It takes that for what the
/// snapshot sees only if no image was left meanwhile.
#[test]
fn i10_an_image_that_is_left_after_the_look_for_it_is_not_missed() {
    loom::model(|| {
        let (left, image) = (Arc::new(Left::new()), Arc::new(AtomicU64::new(0)));
        let node = Arc::new(Node {
            clock: Clock::new(),
            latch: Latch::new(),
            value: AtomicU64::new(0),
        });
        let writer = {
            let (left, image, node) = (left.clone(), image.clone(), node.clone());
            thread::spawn(move || {
                let unlatched: Version = node.latch.read().unwrap();
                assert!(node.latch.try_upgrade(unlatched));
                image.store(1, Relaxed);
                left.count();
                node.value.store(1, Relaxed);
                node.latch.unlock();
            })
        };
        let before = left.so_far();
        let found = image.load(Relaxed) == 1;
        let newest = node.try_read();
        if !found && left.so_far() == before {
            assert_ne!(newest, Some(1), "the snapshot saw what was written later");
        }
        writer.join().unwrap();
    });
}
