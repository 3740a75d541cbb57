//! One attempt: from the root's frame to the leaf.

use super::{
    Tree,
    attempt::{Answer, Attempt, Job, Stop},
    owned::owns,
};
use crate::{
    cache::{ROOT, frame_of},
    node::{self, Change, Edit, Image, SWIZZLED, TreeKey},
    partition::Ownership,
    remote::RemoteMemory,
};

/// A frame, and the version that it is read under.
#[derive(Clone, Copy)]
pub(super) struct Hop {
    pub(super) frame: usize,
    pub(super) version: u64,
}

impl<M: RemoteMemory, K: TreeKey> Tree<M, K> {
    /// The frame `number` as it is. What is read from it counts when `holds` says so.
    #[inline]
    pub(super) fn look(&self, number: usize) -> Attempt<Hop> {
        // A number that was read without the latch may be anything.
        if number >= self.cache.len() {
            return Err(Stop::Restart);
        }
        let version = self.cache.frame(number).latch.read();
        let version = version.ok_or(Stop::Restart)?;
        Ok(Hop {
            frame: number,
            version,
        })
    }

    /// Nothing was written to the frame since `look`.
    #[inline]
    pub(super) fn holds(&self, hop: Hop) -> Attempt<()> {
        let latch = &self.cache.frame(hop.frame).latch;
        latch.is_at(hop.version).then_some(()).ok_or(Stop::Restart)
    }

    pub(super) fn attempt(
        &self,
        own: &Ownership,
        key: K,
        job: &mut Job<'_, K>,
    ) -> Attempt<Answer<K::Value>> {
        let mut above = None;
        let mut at = self.look(ROOT)?;
        loop {
            let node = self.cache.frame(at.frame).node();
            if !K::covers(&node, key) {
                self.holds(at)?;
                return Err(Stop::Refresh);
            }
            if node::level(&node) == 0 {
                return self.at_leaf(own, above, at, key, job);
            }
            let route = K::route(&node, key);
            let is_full = K::is_full(&node);
            self.holds(at)?;
            if is_full && matches!(job, Job::Edit(Edit::Put(_))) {
                let (low, high) = (K::low(&node), K::high(&node));
                // Full private nodes are split on the way down; shared ones when it is needed.
                if owns(own, low, high) {
                    self.split(own, above, at)?;
                    return Err(Stop::Restart);
                }
            }
            if route.word & SWIZZLED == 0 {
                return self.missing(own, at, route, key, job);
            }
            let next = self.look(frame_of(route.word))?;
            // The parent still has the child: the frame is the child's.
            self.holds(at)?;
            above = Some(at);
            at = next;
        }
    }

    /// `at` is a leaf by a guess.
    fn at_leaf(
        &self,
        own: &Ownership,
        above: Option<Hop>,
        at: Hop,
        key: K,
        job: &mut Job<'_, K>,
    ) -> Attempt<Answer<K::Value>> {
        let this = self.cache.frame(at.frame);
        let mut leaf = this.node();
        match job {
            Job::Copy { leaves, .. } => {
                let image = Image::of(&leaf);
                self.holds(at)?;
                leaves.clear();
                leaves.push(image);
                Ok(Answer::default())
            }
            Job::Edit(Edit::Get) => {
                let old = K::find(&leaf, key);
                self.holds(at)?;
                Ok(Answer {
                    old,
                    is_sparse: false,
                })
            }
            Job::Clear { to, old, next } => {
                let latched = this.latch.lock_at(at.version);
                let mut latched = latched.ok_or(Stop::Restart)?;
                latched.changes();
                let gone = K::remove_between(&mut leaf, key, *to);
                if !gone.is_empty() {
                    this.set_dirty(true);
                }
                **next = K::high(&leaf).after();
                let is_sparse = !gone.is_empty() && K::is_sparse(&leaf);
                old.extend(gone);
                Ok(Answer {
                    old: None,
                    is_sparse,
                })
            }
            Job::Edit(edit) => {
                let latched = this.latch.lock_at(at.version);
                let mut latched = latched.ok_or(Stop::Restart)?;
                if K::needs_split(&leaf, key, *edit) {
                    drop(latched);
                    self.split(own, above, at)?;
                    return Err(Stop::Restart);
                }
                latched.changes();
                let Change::Done { old, changed } = K::apply(&mut leaf, key, *edit) else {
                    return Err(Stop::Restart);
                };
                if changed {
                    this.set_dirty(true);
                }
                let is_sparse = changed && matches!(edit, Edit::Remove) && wants_merge::<K>(&leaf);
                Ok(Answer { old, is_sparse })
            }
        }
    }
}

/// A removal tries a merge now and then: a neighbour may have to be read for it.
pub(super) fn wants_merge<K: TreeKey>(leaf: &impl node::Words) -> bool {
    K::is_sparse(leaf) && K::count(leaf).is_multiple_of(4)
}
