//! Whether a page is still what it was when somebody noted that a key is there.
//!
//! A run takes pages out of the tree, and later ones use their places again. A page's *turn* is
//! counted up when a version is about to be shown that does not have the page any more. So whoever
//! holds a version, and finds the turn that was noted, has that page in it. Three rules:
//!
//! 1. Whoever shows a version counts up the turns of what it takes out *before* it shows it
//!    ([`Turns::change`]).
//! 2. Whoever notes a page looks at its turn while nothing is being shown: from before it took its
//!    version to after it read the turn ([`Turns::begin`], [`Turns::at`]). Else it might note the
//!    turn that a page gets when it goes.
//! 3. Whoever reads by a note takes a version first, and compares turns afterwards ([`Turns::of`]).
//!    It holds the version until it is done: pages of a version that is held are not used again.
//!
//! By 2 the page was in the newest version when it was noted; by 1 and 3, with an equal turn, it is
//! in the version that is held. Pages share turns, also with those of other trees: one that another
//! page has counted up is told to be gone, which costs a search.
//!
//! Threads: any; one shows a version at a time. `tests/turns_model.rs` checks each rule.

use crate::sync::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};
use std::sync::Arc;

/// See the module header. A page is named by its tag in the pool, which no page of another tree
/// has.
pub(crate) struct Turns {
    /// Odd while a version is being shown.
    changes: AtomicU64,
    /// Of all pages, of other trees too, that have the same place in it.
    turns: Arc<[AtomicU64]>,
}

/// No version was being shown then.
#[derive(Clone, Copy)]
pub(crate) struct Moment(u64);

impl Turns {
    /// Those of a tree among `turns`, which are not none.
    pub(crate) fn new(turns: Arc<[AtomicU64]>) -> Self {
        Self {
            changes: AtomicU64::new(0),
            turns,
        }
    }

    /// Before a version is taken to search in; `None`: one is being shown.
    pub(crate) fn begin(&self) -> Option<Moment> {
        let changes = self.changes.load(Acquire);
        changes.is_multiple_of(2).then_some(Moment(changes))
    }

    /// The turn of `page`, which was found in the version; `None`: another version was shown since
    /// `begin`.
    pub(crate) fn at(&self, begin: Moment, page: u64) -> Option<u32> {
        let turn = self.of(page);
        fence(Acquire);
        (self.changes.load(Relaxed) == begin.0).then_some(turn)
    }

    /// The turn of `page` now.
    pub(crate) fn of(&self, page: u64) -> u32 {
        self.turn(page).map_or(0, |turn| turn.load(Relaxed) as u32)
    }

    /// Shows, by `show`, a version that does not have `pages` any more. One at a time.
    pub(crate) fn change(&self, pages: impl Iterator<Item = u64>, show: impl FnOnce()) {
        self.changes.fetch_add(1, Relaxed);
        fence(Release);
        for turn in pages.filter_map(|page| self.turn(page)) {
            turn.fetch_add(1, Relaxed);
        }
        show();
        self.changes.fetch_add(1, Release);
    }

    fn turn(&self, page: u64) -> Option<&AtomicU64> {
        let spread = page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.turns.get((spread % self.turns.len() as u64) as usize)
    }
}
