//! The turns of pages under every interleaving and every value that the memory model lets a load
//! return.
//!
//! Run: `RUSTFLAGS="--cfg loom" cargo test -p indexy --test turns_model`.
//!
//! The file is compiled a second time here, over loom's atomics. The checker explores another order
//! of two accesses to a word only if nothing came between them on the same word: the writer stores
//! without loading first. A tree of one key: version `n` has it in page `n`, with the value `n`.
//! `a_note_is_never_of_an_older_version` fails when `change` shows the version before it counts
//! (rule 1), when `at` does not look whether a version was shown (rule 2), or when a reader
//! compares before it takes its version (rule 3: the other order in `read`).
#![cfg(loom)]

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};
}
#[allow(dead_code, reason = "not every operation is modelled")]
#[path = "../src/y/paged/turns.rs"]
mod turns;

use loom::{
    sync::{
        Arc,
        atomic::{
            AtomicU64,
            Ordering::{Acquire, Release},
        },
    },
    thread,
};
use turns::Turns;

struct Tree {
    turns: Turns,
    version: AtomicU64,
}

/// A page, and its turn.
type Note = (u64, u32);

impl Tree {
    fn new(turns: usize) -> Self {
        Self {
            turns: Turns::new((0..turns).map(|_| sync::AtomicU64::new(0)).collect()),
            version: AtomicU64::new(0),
        }
    }

    /// A run after version `version`: the key moves to the next page.
    fn run(&self, version: u64) {
        self.turns.change(std::iter::once(version), || {
            self.version.store(version + 1, Release);
        });
    }

    fn note(&self) -> Option<Note> {
        let begin = self.turns.begin()?;
        let page = self.version.load(Acquire);
        Some((page, self.turns.at(begin, page)?))
    }

    /// What a read by `note` finds in the version that it takes.
    fn read(&self, (page, turn): Note) {
        let held = self.version.load(Acquire);
        if self.turns.of(page) == turn {
            assert!(page >= held, "page {page} is not in version {held}");
        }
    }
}

fn check(turns: usize, runs: u64) {
    loom::model(move || {
        let tree = Arc::new(Tree::new(turns));
        let reader = {
            let tree = tree.clone();
            thread::spawn(move || {
                let note = tree.note();
                if let Some(note) = note {
                    tree.read(note);
                }
                note
            })
        };
        (0..runs).for_each(|version| tree.run(version));
        if let Some(note) = reader.join().unwrap() {
            // By now every version was shown.
            tree.read(note);
        }
    });
}

#[test]
fn a_note_is_never_of_an_older_version() {
    check(4, 1);
    check(4, 2);
}

#[test]
fn pages_that_share_a_turn_are_only_gone_too_early() {
    check(1, 2);
}
