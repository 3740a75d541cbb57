//! Splits of private nodes. Source: DEX section 7: full nodes are split on the way down.
//!
//! P1: the new node is written to the pool, then the parent that names it, and later, when it is
//! evicted, the old node without its upper half. So whoever takes over from a compute server that
//! died finds every node that a parent names. (The paper leaves the parent dirty, and loses the
//! upper half if the old node is written before the parent.) P5: `doubt.rs`.

use super::{
    Tree,
    attempt::{Attempt, Stop},
    descend::Hop,
    owned::owns,
};
use crate::{
    address::Address,
    cache::{Latched, ROOT, Taken},
    error::{Error, Result},
    lock_word,
    node::{self, Image, MAX_LEVEL, SWIZZLED, TreeKey, VERSION, Words},
    partition::Ownership,
    remote::RemoteMemory,
};

impl<M: RemoteMemory, K: TreeKey> Tree<M, K> {
    /// Splits the full private node `at` below `above`.
    ///
    /// The new node lies on the server of the old one: a subtree stays together.
    pub(super) fn split(&self, own: &Ownership, above: Option<Hop>, at: Hop) -> Attempt<()> {
        self.settle_doubts()?;
        let Some(above) = above else {
            return self.split_root(own, at);
        };
        let taken = self.cache.take(&self.memory)?.ok_or(Stop::Restart)?;
        let server = self.address_of(at.frame)?.server();
        let right = self.nodes.take(&self.memory, server)?;
        let (parent, this) = (self.cache.frame(above.frame), self.cache.frame(at.frame));
        let up = parent.latch.lock_at(above.version);
        let mut up = up.ok_or(Stop::Restart)?;
        let latched = this.latch.lock_at(at.version);
        let mut latched = latched.ok_or(Stop::Restart)?;
        self.has_no_doubts()?;
        if this.is_pinned() || !K::may_split(&this.node()) {
            return Err(Stop::Restart);
        }
        let (low, high) = (K::low(&parent.node()), K::high(&parent.node()));
        let is_private = owns(own, low, high);
        if is_private && K::is_full(&parent.node()) {
            // The next attempt splits it on its way.
            return Err(Stop::Restart);
        }
        let mut rest = self.cache.image(at.frame)?;
        let right_at = right.at();
        let (separator, upper) = K::split(&mut rest, right_at);
        self.memory.write(right_at, &upper.0)?;
        if is_private {
            let mut named = self.cache.image(above.frame)?;
            K::insert_child(&mut named, separator, right_at.word());
            // From here on the parent may name it.
            right.keep();
            self.write_private(above.frame, &mut named)?;
            up.changes();
            let (separator, frame) =
                self.halve(at.frame, &mut latched, right_at, taken, above.frame)?;
            let word = SWIZZLED | frame as u64;
            K::insert_child(&mut parent.node(), separator, word);
            return Ok(());
        }
        // T2: the pool's copy first, from which the cached one follows.
        let named = self.update_shared(above.frame, &mut up, |fresh| {
            if K::is_full(fresh) {
                return Err(Stop::Grow);
            }
            K::insert_child(fresh, separator, right_at.word());
            Ok(())
        });
        if matches!(named, Err(Stop::Failed(Error::Lost { .. }))) {
            // The parent may name it.
            right.keep();
            return named;
        }
        named?;
        right.keep();
        let word = right_at.word();
        let (_, frame) = self.halve(at.frame, &mut latched, right_at, taken, above.frame)?;
        let mut node = parent.node();
        if let Some(slot) = K::slot_of(&node, word) {
            K::set_child(&mut node, slot, SWIZZLED | frame as u64);
        }
        Ok(())
    }

    /// Writes what a private node becomes to the pool; the cached one must follow. The caller
    /// holds its latch.
    pub(super) fn write_private(&self, frame: usize, image: &mut Image) -> Result<()> {
        let this = self.cache.frame(frame);
        image.0[VERSION] = lock_word::next(image.0[VERSION]);
        let done = self.memory.write(self.address_of(frame)?, &image.0);
        match done {
            Ok(()) => {
                self.cache.note_written(frame);
                // Readers of the cache do not look at this word.
                this.node().set(VERSION, image.0[VERSION]);
            }
            // The pool gets the cached one later.
            Err(Error::Lost { .. }) => self.cache.doubt(frame),
            Err(_) => this.set_dirty(true),
        }
        done
    }

    /// Moves the upper half of a frame to a new one, which the pool has already; returns the
    /// separator and the new frame. The caller holds both latches above.
    fn halve(
        &self,
        frame: usize,
        latched: &mut Latched<'_>,
        right_at: Address,
        taken: Taken<'_, K>,
        parent: usize,
    ) -> Attempt<(K, usize)> {
        latched.changes();
        let this = self.cache.frame(frame);
        let (separator, right) = K::split(&mut this.node(), right_at);
        this.set_dirty(true);
        let right_frame = self.cache.add(taken, &right, parent)?;
        self.cache.frame(right_frame).set_dirty(false);
        self.adopt_children(right_frame);
        Ok((separator, right_frame))
    }

    /// The hot children of `frame` have it for a parent. The caller holds its latch, or nobody
    /// else knows it.
    pub(super) fn adopt_children(&self, frame: usize) {
        for child in self.cache.frame(frame).hot_children::<K>() {
            self.cache.frame(child).set_parent(frame);
        }
    }

    /// The server of the children of the root; `None` if it is a leaf.
    fn server_below(&self, root: Hop) -> Attempt<Option<u16>> {
        let latched = self.cache.frame(ROOT).latch.lock_at(root.version);
        let latched = latched.ok_or(Stop::Restart)?;
        let image = self.cache.image(ROOT)?;
        drop(latched);
        Ok(server_of_children::<K>(&image))
    }

    /// Two new nodes take over what the root has; the root's address stays.
    fn split_root(&self, own: &Ownership, at: Hop) -> Attempt<()> {
        let root_at = self.address_of(ROOT)?;
        let taken = || -> Attempt<_> {
            let taken = self.cache.take(&self.memory)?;
            taken.ok_or(Stop::Restart)
        };
        let frames = [taken()?, taken()?];
        let root = self.cache.frame(ROOT);
        let server = self.server_below(at)?.unwrap_or(root_at.server());
        let node = || self.nodes.take(&self.memory, server);
        let (left_at, right_at) = (node()?, node()?);
        let latched = root.latch.lock_at(at.version);
        let mut latched = latched.ok_or(Stop::Restart)?;
        self.has_no_doubts()?;
        let mut left = Image::of(&root.node());
        let (low, high) = (K::low(&left), K::high(&left));
        if root.is_pinned() || !K::may_split(&left) || !owns(own, low, high) {
            return Err(Stop::Restart);
        }
        let level = node::level(&left) + 1;
        if level > MAX_LEVEL {
            let what = "the tree has too many levels";
            return Err(Error::corrupt(root_at, what).into());
        }
        let version = left.0[VERSION];
        let mut lower = self.cache.image(ROOT)?;
        node::reset(&mut lower, left_at.at());
        let (separator, upper) = K::split(&mut lower, right_at.at());
        self.memory.write(left_at.at(), &lower.0)?;
        self.memory.write(right_at.at(), &upper.0)?;
        let words = [left_at.at().word(), right_at.at().word()];
        let children = [(low, words[0]), (separator, words[1])];
        let mut named = K::new_inner(root_at, level, &children, high);
        named.0[VERSION] = version;
        let places = [left_at.at(), right_at.at()];
        left_at.keep();
        right_at.keep();
        self.write_private(ROOT, &mut named)?;
        latched.changes();
        node::reset(&mut left, places[0]);
        let (_, right) = K::split(&mut left, places[1]);
        let [left_taken, right_taken] = frames;
        let left_frame = self.cache.add(left_taken, &left, ROOT)?;
        let right_frame = self.cache.add(right_taken, &right, ROOT)?;
        for frame in [left_frame, right_frame] {
            self.cache.frame(frame).set_dirty(false);
        }
        self.adopt_children(left_frame);
        self.adopt_children(right_frame);
        let words = [left_frame, right_frame].map(|frame| SWIZZLED | frame as u64);
        let children = [(low, words[0]), (separator, words[1])];
        let mut fresh = K::new_inner(root_at, level, &children, high);
        fresh.0[VERSION] = named.0[VERSION];
        root.fill(&fresh);
        Ok(())
    }
}

/// The server of an inner node's first child: where a new node between the two belongs, so that a
/// subtree stays on one server.
pub(super) fn server_of_children<K: TreeKey>(node: &Image) -> Option<u16> {
    let first = Address::from_word(K::child(node, 0));
    first.filter(|_| node::level(node) > 0).map(Address::server)
}
