//! Merges of private nodes that removals left sparse.
//!
//! A merge is a courtesy: the removal is done, and what prevents a merge is no error of its
//! caller. Each step looks at the path from the top, and merges the first sparse node that it can.
//!
//! P2: the merged node is written to the pool, then the parent without the right one; only then
//! may the right one's memory be used again. So whoever takes over from a compute server that died
//! finds what a parent names. If the answer to the parent's write is lost (P5, `doubt.rs`), the
//! pool's parent names the right node, or nothing but the left one for both. Either is right while
//! the left node has both halves, so the merge is done all the same; the right node's memory is not
//! used again.

use super::{
    Tree,
    attempt::{Attempt, Stop},
    bulk::SUBTREE_LEVELS,
    descend::Hop,
    owned::owns,
};
use crate::{
    address::Address,
    cache::{ROOT, frame_of},
    error::{Error, Result},
    node::{self, Image, Route, SWIZZLED, TreeKey, VERSION},
    partition::Ownership,
    remote::RemoteMemory,
};
use std::thread::yield_now;

/// Steps of one courtesy: reads of neighbours, merges and conflicts.
const STEPS: usize = 16;

impl<M: RemoteMemory, K: TreeKey> Tree<M, K> {
    /// Merges sparse nodes on the way to `key`.
    pub(super) fn tidy(&self, own: &Ownership, key: K) {
        for _ in 0..STEPS {
            match self.tidy_step(own, key) {
                Ok(true) => {}
                Err(Stop::Restart) => yield_now(),
                Err(Stop::Refresh) if self.refresh(own, key).is_ok() => {}
                // The next operation meets an error of the pool itself.
                _ => return,
            }
        }
    }

    /// `true`: something was merged. `Restart`: a neighbour was read, or there was a conflict.
    fn tidy_step(&self, own: &Ownership, key: K) -> Attempt<bool> {
        let mut at = self.look(ROOT)?;
        loop {
            let node = self.cache.frame(at.frame).node();
            if node::level(&node) == 0 || !K::covers(&node, key) {
                return Ok(false);
            }
            let route = K::route(&node, key);
            let last = K::count(&node);
            self.holds(at)?;
            if route.word & SWIZZLED == 0 {
                if let Some(claim) = self.claim(own, at, route, key)? {
                    self.admit(claim)?;
                }
                return Err(Stop::Restart);
            }
            let next = self.look(frame_of(route.word))?;
            self.holds(at)?;
            let child = self.cache.frame(next.frame).node();
            let is_sparse = K::is_sparse(&child);
            self.holds(next)?;
            if at.frame == ROOT && last == 0 && owns(own, route.low, route.high) {
                return self.lower_root(own, at, next);
            }
            if is_sparse && self.merge(own, at, route, last)? {
                return Ok(true);
            }
            at = next;
        }
    }

    /// Merges the child that `route` leads to with one of its neighbours.
    fn merge(&self, own: &Ownership, parent: Hop, route: Route<K>, last: usize) -> Attempt<bool> {
        let node = self.cache.frame(parent.frame).node();
        let before = route.slot.checked_sub(1);
        let after = (route.slot < last).then_some(route.slot + 1);
        for slot in [after, before].into_iter().flatten() {
            let sibling = K::at_slot(&node, slot);
            self.holds(parent)?;
            // T4: both are private.
            let is_private = owns(own, sibling.low, sibling.high);
            if !is_private || !owns(own, route.low, route.high) {
                continue;
            }
            if sibling.word & SWIZZLED == 0 {
                if let Some(claim) = self.claim(own, parent, sibling, sibling.low)? {
                    self.admit(claim)?;
                }
                return Err(Stop::Restart);
            }
            if self.merge_pair(own, parent, slot.min(route.slot))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Merges children `slot` and `slot + 1`, both hot and private. `false`: they do not fit, or
    /// somebody works below one of them.
    fn merge_pair(&self, own: &Ownership, above: Hop, slot: usize) -> Attempt<bool> {
        self.settle_doubts()?;
        let parent = self.cache.frame(above.frame);
        let up = parent.latch.lock_at(above.version);
        let mut up = up.ok_or(Stop::Restart)?;
        let mut node = parent.node();
        let frames = [slot, slot + 1].map(|slot| frame_of(K::child(&node, slot)));
        let [left, right] = frames.map(|frame| self.cache.frame(frame));
        let mut latched = left.latch.try_lock().ok_or(Stop::Restart)?;
        let mut gone = right.latch.try_lock().ok_or(Stop::Restart)?;
        self.has_no_doubts()?;
        let mut merged = Image::of(&left.node());
        if left.is_pinned() || right.is_pinned() || !K::merge(&mut merged, &right.node()) {
            return Ok(false);
        }
        let (left_at, right_at) = (self.address_of(frames[0])?, self.address_of(frames[1])?);
        let in_subtree = node::level(&merged) < SUBTREE_LEVELS;
        if in_subtree && left_at.server() != right_at.server() {
            // A subtree stays on one server.
            return Ok(false);
        }
        // P2. Children of both halves as addresses.
        let mut whole = self.cache.image(frames[0])?;
        if !K::merge(&mut whole, &self.cache.image(frames[1])?) {
            return Ok(false);
        }
        self.write_private(frames[0], &mut whole)?;
        left.set_dirty(true);
        let mut written = Ok(());
        if owns(own, K::low(&node), K::high(&node)) {
            let mut named = self.cache.image(above.frame)?;
            K::remove_child(&mut named, slot + 1);
            written = self.write_unless_lost(above.frame, &mut named)?;
            up.changes();
            K::remove_child(&mut node, slot + 1);
        } else {
            // What the pool has must not name the right node, nor may the cached copy then.
            let frame = frames[1] as u64;
            up.changes();
            K::set_child(&mut node, slot + 1, right_at.word());
            let done = self.update_shared(above.frame, &mut up, |fresh| {
                let slot = K::slot_of(fresh, right_at.word());
                let slot = slot.filter(|slot| *slot > 0).ok_or(Stop::Refresh)?;
                K::remove_child(fresh, slot);
                Ok(())
            });
            if let Err(stop) = done {
                K::set_child(&mut node, slot + 1, SWIZZLED | frame);
                return Err(stop);
            }
        }
        latched.changes();
        merged.0[VERSION] = whole.0[VERSION];
        left.fill(&merged);
        left.set_dirty(false);
        self.adopt_children(frames[0]);
        self.cache.discard(frames[1], &mut gone)?;
        self.reuse(right_at, written)
    }

    /// The root has one child: it takes over what the child has.
    fn lower_root(&self, own: &Ownership, at: Hop, below: Hop) -> Attempt<bool> {
        self.settle_doubts()?;
        let (root, child) = (self.cache.frame(ROOT), self.cache.frame(below.frame));
        let latched = root.latch.lock_at(at.version);
        let mut latched = latched.ok_or(Stop::Restart)?;
        let gone = child.latch.lock_at(below.version);
        let mut gone = gone.ok_or(Stop::Restart)?;
        self.has_no_doubts()?;
        let (low, high) = (K::low(&root.node()), K::high(&root.node()));
        if root.is_pinned() || child.is_pinned() || !owns(own, low, high) {
            return Ok(false);
        }
        let (root_at, child_at) = (self.address_of(ROOT)?, self.address_of(below.frame)?);
        let version = Image::of(&root.node()).0[VERSION];
        let take_place = |mut image: Image| {
            node::reset(&mut image, root_at);
            image.0[VERSION] = version;
            image
        };
        // P2: the child's memory may be used again when the pool's root does not name it.
        let mut named = take_place(self.cache.image(below.frame)?);
        let written = self.write_unless_lost(ROOT, &mut named)?;
        let mut fresh = take_place(Image::of(&child.node()));
        fresh.0[VERSION] = named.0[VERSION];
        latched.changes();
        root.fill(&fresh);
        self.adopt_children(ROOT);
        self.cache.discard(below.frame, &mut gone)?;
        self.reuse(child_at, written)
    }

    /// Writes a private node that names one node less. `Ok(Err)`: the pool may have it or not, and
    /// the cached one must follow, dirty as it is.
    fn write_unless_lost(&self, frame: usize, image: &mut Image) -> Result<Result<()>> {
        match self.write_private(frame, image) {
            lost @ Err(Error::Lost { .. }) => Ok(lost),
            done => done.map(Ok),
        }
    }

    /// A merge is done: the node at `gone` is free, if the pool does not name it.
    fn reuse(&self, gone: Address, written: Result<()>) -> Attempt<bool> {
        written?;
        self.nodes.give(gone);
        Ok(true)
    }
}
