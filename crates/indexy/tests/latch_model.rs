//! The latch under every interleaving and every value that the memory model lets a load return.
//!
//! Run: `RUSTFLAGS="--cfg loom" cargo test -p indexy --test latch_model`.
//!
//! The latch's file is compiled a second time here, over loom's atomics. Taking out the
//! `fence(Acquire)` of `validate`, the comparison in it, or the `fence(Release)` after locking
//! makes `no_torn_read_is_validated` fail.
//!
//! The checker explores another order of two accesses to a word only if nothing came between them
//! on the same word, so that a load before a store hides it. Threads here therefore store without
//! loading first where they can: they upgrade a version that was taken before they started.
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
#[path = "../src/mem/latch.rs"]
mod latch;

use latch::Latch;
use loom::{sync::Arc, thread};
use sync::{AtomicU64, Ordering::Relaxed};

/// A node of two words that are always equal when no one writes.
#[derive(Default)]
struct Node {
    latch: Latch,
    words: [AtomicU64; 2],
}

impl Node {
    fn set(&self, value: u64) {
        for word in &self.words {
            word.store(value, Relaxed);
        }
    }

    fn load(&self) -> [u64; 2] {
        [self.words[0].load(Relaxed), self.words[1].load(Relaxed)]
    }

    /// Adds one by read, then upgrade, and again from the start when that fails. False if obsolete.
    fn add_one_optimistically(&self) -> bool {
        loop {
            let Some(seen) = self.latch.read() else {
                return false;
            };
            let [first, _] = self.load();
            if self.latch.try_upgrade(seen) {
                self.set(first + 1);
                self.latch.unlock();
                return true;
            }
            thread::yield_now();
        }
    }
}

/// A node, and a writer that sets its words to 1 if it is the first to lock it.
fn written_concurrently() -> (Arc<Node>, thread::JoinHandle<bool>) {
    let node = Arc::new(Node::default());
    let seen = node.latch.read().unwrap();
    let shared = Arc::clone(&node);
    let writer = thread::spawn(move || {
        let locked = shared.latch.try_upgrade(seen);
        if locked {
            shared.set(1);
            shared.latch.unlock();
        }
        locked
    });
    (node, writer)
}

#[test]
fn no_torn_read_is_validated() {
    loom::model(|| {
        let (node, writer) = written_concurrently();
        let seen = node.latch.read().unwrap();
        // The second word first: the order in which the writer's stores would be seen apart.
        let second = node.words[1].load(Relaxed);
        let first = node.words[0].load(Relaxed);
        if node.latch.validate(seen) {
            assert_eq!(first, second);
        }
        assert!(writer.join().unwrap());
        let seen = node.latch.read().unwrap();
        assert_eq!(node.load(), [1, 1]);
        assert!(node.latch.validate(seen));
    });
}

#[test]
fn a_version_shows_at_least_its_writers_words() {
    loom::model(|| {
        let before = Latch::new().read().unwrap();
        let (node, writer) = written_concurrently();
        let seen = node.latch.read().unwrap();
        let words = node.load();
        if seen != before {
            assert_eq!(words, [1, 1]);
            assert!(node.latch.validate(seen));
        }
        writer.join().unwrap();
    });
}

#[test]
fn upgrades_exclude_each_other() {
    loom::model(|| {
        let (node, writer) = written_concurrently();
        assert!(node.add_one_optimistically());
        // The writer locks version 0 only, so it was first or it wrote nothing.
        let before = u64::from(writer.join().unwrap());
        assert_eq!(node.load(), [before + 1, before + 1]);
    });
}

#[test]
fn locks_and_upgrades_exclude_each_other() {
    loom::model(|| {
        let node = Arc::new(Node::default());
        let shared = Arc::clone(&node);
        let locker = thread::spawn(move || {
            assert!(shared.latch.lock());
            let [first, second] = shared.load();
            assert_eq!(first, second);
            shared.set(first + 1);
            shared.latch.unlock();
        });
        assert!(node.add_one_optimistically());
        locker.join().unwrap();
        assert_eq!(node.load(), [2, 2]);
    });
}

#[test]
fn nobody_gets_into_an_obsolete_node() {
    loom::model(|| {
        let node = Arc::new(Node::default());
        let remover = {
            let node = Arc::clone(&node);
            thread::spawn(move || {
                assert!(node.latch.lock());
                let words = node.load();
                node.latch.unlock_obsolete();
                words[0]
            })
        };
        let written = node.add_one_optimistically();
        let seen = remover.join().unwrap();
        // Either the write came first and the remover saw it, or it found the node gone and wrote
        // nothing.
        assert_eq!(seen, u64::from(written));
        assert_eq!(node.load(), [seen, seen]);
        assert_eq!(node.latch.read(), None);
        assert!(!node.latch.lock());
    });
}
