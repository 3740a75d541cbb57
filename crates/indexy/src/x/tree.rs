//! An Index X as a tree: what every kind has, and what the kinds differ in.
//!
//! A tree is a root, an arena, counters and a removal clock. How it finds a range, makes room and
//! gives memory back is its [`Structure`]: traits by subject, each implemented where the kind has
//! the subject. What both kinds do the same way is in `walk/`.

#![forbid(unsafe_code)]

use super::{
    LeafInfo, Order, Stamp, StopWalk, XStats,
    bounds::{Bounds, Passed, Probe},
    child::ChildWord,
    counters::{Counters, Delta},
    detached::Detached,
    edit::Edit,
    entry::NewEntry,
    leaf::{LeafLatched, LeafSeen},
    pending::PendingValue,
    root::Root,
};
use crate::mem::{Guard, Memory};
use std::{
    marker::PhantomData,
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Relaxed, SeqCst},
        },
    },
};

/// A tree. Dropping it frees all of its memory.
pub(crate) struct Tree<S: Structure> {
    pub(crate) root: Root,
    pub(crate) memory: Arc<Memory>,
    pub(crate) counters: Counters,
    pub(crate) detached: Detached,
    /// The removal clock: the last stamp given out. It is 0 as long as nothing was ever mounted.
    clock: AtomicU64,
    tracking: AtomicBool,
    structure: PhantomData<S>,
}

/// A range at the end of a descent.
#[derive(Clone, Copy)]
pub(crate) enum Spot<'g> {
    Leaf(LeafSeen<'g>),
    /// An empty range; mounted with this stamp, or complete.
    Empty(Option<Stamp>),
}

/// Where a descent ended.
pub(crate) trait Place<'g, S: Structure> {
    /// What is there; `None`: something changed, go down again.
    fn spot(&self) -> Option<Spot<'g>>;

    /// The bounds of the range that `probe` led to; `None` when a node on the way changed since.
    fn bounds(&self, probe: Probe<'_>) -> Option<Bounds>;

    /// The range that is here, which is dead, as one with those beside it, in the direction of
    /// `order` and under the same parent, that are dead: complete, and without a live entry. Also
    /// how many they are. `None` when a node on the way changed since.
    fn dead_row(&self, probe: Probe<'_>, order: Order) -> Option<(Bounds, usize)>;

    /// Has the processor fetch the range beside this one, in the direction of `order` and under the
    /// same parent: a scan goes there next.
    fn fetch_beside(&self, order: Order);

    /// Where the parent is in memory. Says little about which it is once the guard is gone.
    fn parent_address(&self) -> usize;

    /// Latches the parent, if it is still as it was seen. Does not wait.
    fn try_latch_parent(&self) -> Option<S::Parent<'g>>;

    /// The empty range that is here, whose bounds are `bounds`, lies within `from..to` with all
    /// that has the same mark.
    fn mark_is_within(
        &self,
        probe: Probe<'_>,
        bounds: &Bounds,
        from: &[u8],
        to: Option<&[u8]>,
    ) -> bool;
}

/// How a kind of tree is built.
pub(crate) trait Structure: Sized + Send + Sync + 'static {
    type Place<'g>: Place<'g, Self>;
    /// A latched parent of leaves.
    type Parent<'g>;

    /// Frees every block of a tree that is being dropped.
    /// `words` are those of its root and of what was detached from it.
    fn free_all(words: Vec<ChildWord>, memory: &Memory);

    /// Retires what hangs on `words`, to which nothing leads any more, until `enough_bytes` are
    /// retired; see `walk/clear.rs`. Takes out what is done, and leaves the words of the rest.
    /// Returns what was retired.
    fn take_apart(memory: &Memory, words: &mut Vec<ChildWord>, enough_bytes: usize) -> XStats;
}

/// How a kind finds a key.
pub(crate) trait Descend: Structure {
    /// Goes down to `probe`; `None` when something changed on the way.
    fn try_descend<'g>(
        root: &'g Root,
        guard: &'g Guard<'_>,
        probe: Probe<'_>,
    ) -> Option<Self::Place<'g>>;

    /// As `try_descend`; where nothing lives in the range that `probe` leads to, and the range is
    /// complete, goes on to the next ones in `order`, a few of them at most and as long as that
    /// costs little. What was passed so is added to `passed`: after it the place is that of its
    /// probe. A kind may as well stay where it is.
    fn try_descend_past<'g>(
        root: &'g Root,
        guard: &'g Guard<'_>,
        probe: Probe<'_>,
        order: Order,
        passed: &mut Passed,
    ) -> Option<Self::Place<'g>>;

    /// Goes down to `key` and remembers nothing of the way; `None` when something changed on it.
    fn try_find<'g>(root: &'g Root, guard: &'g Guard<'_>, key: &[u8]) -> Option<Spot<'g>>;
}

/// How a kind makes room.
pub(crate) trait Grow: Structure {
    /// Puts a leaf with room for the entry of `key` into the empty range at `place`, mounted as
    /// that is. `None`: go down again.
    fn fill<'g>(
        tree: &Tree<Self>,
        guard: &'g Guard<'_>,
        place: &Self::Place<'g>,
        key: &[u8],
        mount: Option<Stamp>,
        value: &mut PendingValue<'_>,
    ) -> Option<LeafLatched<'g>>;

    /// Makes room in `leaf`, which is at `place`, for what `edit` does with `entry`. Gives back a
    /// latched leaf with the same entries at the same indices; or `None` when the structure
    /// changed, or a latch was not free.
    fn make_room<'g>(
        tree: &Tree<Self>,
        guard: &'g Guard<'_>,
        place: &Self::Place<'g>,
        key: &[u8],
        leaf: LeafLatched<'g>,
        edit: Edit,
        entry: &NewEntry<'_>,
    ) -> Option<LeafLatched<'g>>;
}

/// How a kind gives memory back.
pub(crate) trait Shrink: Structure {
    /// After leaves vanished it is enough to merge once per parent, when a cut has left it.
    const MERGES_PARENTS: bool;

    /// After entries of `leaf`, which is at `place`, were dropped or written shorter: makes it fit
    /// what is left. True when that changed its size, so that merging around it may free more.
    fn tidy<'g>(
        tree: &Tree<Self>,
        guard: &'g Guard<'_>,
        place: &Self::Place<'g>,
        leaf: LeafLatched<'g>,
    ) -> bool;

    /// Replaces `leaf`, which is at `place`, by one with the entries of `keep` alone. Returns the
    /// bytes freed: negative where only a larger block was free.
    fn keep<'g>(
        tree: &Tree<Self>,
        guard: &'g Guard<'_>,
        parent: &Self::Parent<'g>,
        place: &Self::Place<'g>,
        leaf: LeafLatched<'g>,
        keep: u64,
    ) -> isize;

    /// Replaces `leaf`, which has no entries, by an empty range. Returns the bytes freed.
    fn vanish<'g>(
        tree: &Tree<Self>,
        parent: &Self::Parent<'g>,
        place: &Self::Place<'g>,
        leaf: LeafLatched<'g>,
    ) -> usize;

    /// Makes the empty range at `place` mounted, with a fresh stamp, or complete. `None` when
    /// something changed.
    fn mark_empty(tree: &Tree<Self>, place: &Self::Place<'_>, mounted: bool) -> Option<()>;

    /// Merges around `probe` as long as that should free bytes. Returns how many it freed, as
    /// [`Shrink::keep`].
    fn merge(tree: &Tree<Self>, guard: &Guard<'_>, probe: Probe<'_>) -> isize;

    /// Moves what lies in slabs that are to run empty.
    fn leave_emptying_slabs(tree: &Tree<Self>);
}

/// How a kind is looked at as a whole.
pub(crate) trait Survey: Structure {
    /// See [`IndexX::leaves`](super::IndexX::leaves).
    fn visit_leaves(
        tree: &Tree<Self>,
        from: &[u8],
        to: Option<&[u8]>,
        visit: &mut dyn FnMut(LeafInfo<'_>) -> ControlFlow<StopWalk>,
    ) -> ControlFlow<StopWalk>;

    /// Checks inner nodes and sums over all blocks; nobody else writes meanwhile.
    fn tally(tree: &Tree<Self>) -> Result<XStats, String>;
}

/// A whole kind.
pub(crate) trait Kind: Descend + Grow + Shrink + Survey {}

impl<S: Descend + Grow + Shrink + Survey> Kind for S {}

impl<S: Structure> Tree<S> {
    /// An empty tree whose whole range is mounted, or complete.
    pub(crate) fn new(memory: Arc<Memory>, mounted: bool) -> Self {
        let counters = Counters::default();
        counters.add(Delta {
            mounts: isize::from(mounted),
            ..Default::default()
        });
        Self {
            root: Root::new(mounted.then_some(0)),
            memory,
            counters,
            detached: Detached::default(),
            clock: AtomicU64::new(u64::from(mounted)),
            tracking: AtomicBool::new(false),
            structure: PhantomData,
        }
    }

    /// A fresh stamp. I3: whoever takes it holds the latch of the range that gets it, so that the
    /// order of stamps of one range is the order of its removals.
    pub(crate) fn tick(&self) -> Stamp {
        self.clock.fetch_add(1, SeqCst) + 1
    }

    /// Whether nothing was ever mounted. Whoever finds that after he has paused loads knows that no
    /// load came before the pause: it would have found a mount, which has a stamp.
    pub(crate) fn was_never_mounted(&self) -> bool {
        self.clock.load(SeqCst) == 0
    }

    /// The mount of several ranges that become one.
    pub(crate) fn union(&self, mounted: bool) -> Option<Stamp> {
        mounted.then(|| self.tick())
    }

    #[inline]
    pub(crate) fn tracks_references(&self) -> bool {
        self.tracking.load(Relaxed)
    }

    pub(crate) fn set_tracks_references(&self, on: bool) {
        self.tracking.store(on, Relaxed);
    }
}

impl<S: Structure> Drop for Tree<S> {
    fn drop(&mut self) {
        let mut words = self.detached.take();
        words.push(self.root.take());
        S::free_all(words, &self.memory);
    }
}
