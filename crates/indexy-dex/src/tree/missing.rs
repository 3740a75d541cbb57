//! A child that is not hot: reheat it, ask the memory server, or read it.

use super::{
    Tree,
    attempt::{Answer, Attempt, Job, Stop},
    bulk::SUBTREE_LEVELS,
    descend::{Hop, wants_merge},
    owned::owns,
};
use crate::{
    address::Address,
    cache::{IoMark, Pin, Place, Taken},
    error::Error,
    lock_word,
    node::{self, Change, Edit, Image, Route, TreeKey, VERSION},
    offload::{self, Request},
    partition::Ownership,
    remote::RemoteMemory,
};

/// A missing node that this thread alone works on. C3: the mark goes before the pin.
pub(super) struct Claim<'a, K> {
    mark: IoMark<'a>,
    _pin: Pin<'a>,
    pub(super) at: Address,
    /// The parent's frame, which stays hot and whole.
    pub(super) parent: usize,
    pub(super) level: u8,
    /// A key that the child covers.
    pub(super) key: K,
    /// What its parent says that it covers.
    fences: (K, K),
    /// The child is private, by its parent.
    is_private: bool,
    /// The parent is private, and its children's subtrees lie on one server each.
    may_offload: bool,
    parent_is_private: bool,
}

impl<M: RemoteMemory, K: TreeKey> Tree<M, K> {
    /// Claims the child that `route` leads to, unless it is in a frame already. `None`: it is hot
    /// from here on, or another thread works on it.
    pub(super) fn claim(
        &self,
        own: &Ownership,
        parent: Hop,
        route: Route<K>,
        key: K,
    ) -> Attempt<Option<Claim<'_, K>>> {
        let at = Address::from_word(route.word).ok_or(Stop::Restart)?;
        let this = self.cache.frame(parent.frame);
        let above = this.latch.lock_at(parent.version);
        let mut above = above.ok_or(Stop::Restart)?;
        if let Some(place) = self.cache.mapping().get(at) {
            if let Place::Frame(frame) = place {
                let parent = parent.frame;
                self.cache.reheat(parent, &mut above, route.slot, frame)?;
            }
            return Ok(None);
        }
        let Some(mark) = self.cache.mapping().mark(at) else {
            return Ok(None);
        };
        let pin = this.pin();
        let node = this.node();
        let level = node::level(&node).checked_sub(1).ok_or(Stop::Restart)?;
        let parent_is_private = owns(own, K::low(&node), K::high(&node));
        Ok(Some(Claim {
            mark,
            _pin: pin,
            at,
            parent: parent.frame,
            level,
            key,
            fences: (route.low, route.high),
            is_private: owns(own, route.low, route.high),
            may_offload: parent_is_private && (1..SUBTREE_LEVELS).contains(&level),
            parent_is_private,
        }))
    }

    pub(super) fn missing(
        &self,
        own: &Ownership,
        parent: Hop,
        route: Route<K>,
        key: K,
        job: &mut Job<'_, K>,
    ) -> Attempt<Answer<K::Value>> {
        let claim = self.claim(own, parent, route, key)?;
        let claim = claim.ok_or(Stop::Restart)?;
        if claim.level > 0 {
            if let Job::Edit(edit) = job
                && claim.may_offload
                && let Some(answer) = self.offload(&claim, *edit)?
            {
                return Ok(answer);
            }
            self.admit(claim)?;
            return Err(Stop::Restart);
        }
        match job {
            Job::Edit(edit) => self.edit_missing(claim, *edit),
            Job::Clear { to, old, next } => {
                let (gone, after, is_sparse) = self.clear_missing(claim, *to)?;
                old.extend(gone);
                **next = after;
                Ok(Answer {
                    old: None,
                    is_sparse,
                })
            }
            Job::Copy { leaves, most } => {
                self.copy_missing(own, claim, leaves, *most)?;
                Ok(Answer::default())
            }
        }
    }

    /// `None`: it does not pay, or the memory server refused.
    fn offload(
        &self,
        claim: &Claim<'_, K>,
        edit: Edit<K::Value>,
    ) -> Attempt<Option<Answer<K::Value>>> {
        let random = self.cache.random().word() as f64 / u64::MAX as f64;
        if !self.policy.offloads(claim.level + 1, random) {
            return Ok(None);
        }
        let request = Request {
            edit,
            root_offset: claim.at.offset(),
            key: claim.key,
        };
        let server = claim.at.server();
        let started = self.memory.now_ns();
        let called = self.memory.call(server, &request.words());
        self.policy
            .note_call(self.memory.now_ns().saturating_sub(started));
        let answer = called.map(|words| offload::Answer::<K::Value>::from_words::<K>(&words));
        let failed = match answer {
            Ok(offload::Answer::Done {
                old,
                changed,
                leaf_offset,
            }) => {
                if changed && leaf_offset >> 48 == 0 {
                    // A copy that cools is older than the pool's.
                    let leaf = Address::new(server, leaf_offset);
                    self.cache.forget_cooling(leaf)?;
                }
                let is_sparse = false;
                return Ok(Some(Answer { old, is_sparse }));
            }
            Ok(offload::Answer::Refused) => return Ok(None),
            Ok(offload::Answer::Damaged) => {
                let what = "the memory server found a damaged subtree";
                Error::corrupt(claim.at, what)
            }
            Ok(offload::Answer::NotUnderstood) => {
                let what = "the request is not understood";
                Error::Refused { server, what }
            }
            Err(error) => error,
        };
        // Nobody knows whether it was done: a copy that cools may be older than the pool's.
        self.forget_cooling(|low, high| low <= claim.key && claim.key <= high)?;
        Err(failed.into())
    }

    /// Reads a claimed node and checks that it is the child that the parent means. `true`: it was
    /// cut down to what its parent says (P1, P2), and differs from the pool's.
    pub(super) fn fetch(&self, claim: &Claim<'_, K>) -> Attempt<(Image, bool)> {
        let mut image = if claim.is_private {
            let mut image = Image::zero();
            let started = self.memory.now_ns();
            self.memory.read(claim.at, &mut image.0)?;
            self.policy
                .note_read(self.memory.now_ns().saturating_sub(started));
            K::check(&image, claim.at)?;
            image
        } else {
            self.read_shared(claim.at)?
        };
        let is_trimmed = self.is_meant(claim, &mut image)?;
        Ok((image, is_trimmed))
    }

    /// The image is the child on the way to the claim's key. `true`: it was cut down.
    fn is_meant(&self, claim: &Claim<'_, K>, image: &mut Image) -> Attempt<bool> {
        let (low, high) = claim.fences;
        let covers = K::covers(image, low) && K::covers(image, high);
        if node::level(image) == claim.level && claim.is_private && covers {
            return Ok(K::trim(image, low, high));
        }
        let is_shared = !claim.is_private || !claim.parent_is_private;
        if node::level(image) == claim.level && is_shared && K::covers(image, claim.key) {
            return Ok(false);
        }
        if claim.parent_is_private {
            let what = "the node is not what its parent says";
            return Err(Error::corrupt(claim.at, what).into());
        }
        Err(Stop::Refresh)
    }

    fn take_frame(&self) -> Attempt<Taken<'_, K>> {
        let taken = self.cache.take(&self.memory)?;
        taken.ok_or(Stop::Restart)
    }

    /// Reads a claimed node into the cache.
    pub(super) fn admit(&self, claim: Claim<'_, K>) -> Attempt<()> {
        let taken = self.take_frame()?;
        let (image, is_trimmed) = self.fetch(&claim)?;
        self.place(claim, taken, &image, is_trimmed)
    }

    /// A claimed node goes into a frame below its parent.
    pub(super) fn place(
        &self,
        claim: Claim<'_, K>,
        taken: Taken<'_, K>,
        image: &Image,
        dirty: bool,
    ) -> Attempt<()> {
        let Claim { _pin, mark, .. } = claim;
        let parent = self.cache.frame(claim.parent);
        let mut above = parent.latch.lock();
        // C3: the parent was neither split nor merged, so the child is where its key leads.
        let route = K::route(&parent.node(), claim.key);
        if route.word != claim.at.word() {
            let what = "a pinned parent lost its child";
            return Err(Error::corrupt(claim.at, what).into());
        }
        let place = (claim.parent, &mut above, route.slot);
        self.cache.install(taken, image, dirty, mark, place);
        Ok(())
    }

    /// An operation on a leaf that is read for it; lazy admission.
    fn edit_missing(&self, claim: Claim<'_, K>, edit: Edit<K::Value>) -> Attempt<Answer<K::Value>> {
        let probability = match (edit, self.options.write_admission) {
            (Edit::Put(_) | Edit::Remove, Some(probability)) => probability,
            _ => self.options.leaf_admission,
        };
        let admits = self.cache.random().chance(probability);
        let taken = match admits {
            true => self.cache.take(&self.memory)?,
            false => None,
        };
        let (mut leaf, is_trimmed) = self.fetch(&claim)?;
        let Change::Done { old, changed } = K::apply(&mut leaf, claim.key, edit) else {
            // A split needs the leaf in the cache.
            let taken = match taken {
                Some(taken) => taken,
                None => self.take_frame()?,
            };
            self.place(claim, taken, &leaf, is_trimmed)?;
            return Err(Stop::Restart);
        };
        match taken {
            Some(taken) => self.place(claim, taken, &leaf, changed || is_trimmed)?,
            None if changed => {
                leaf.0[VERSION] = lock_word::next(leaf.0[VERSION]);
                self.memory.write(claim.at, &leaf.0)?;
            }
            None => {}
        }
        let is_sparse = changed && matches!(edit, Edit::Remove) && wants_merge::<K>(&leaf);
        Ok(Answer { old, is_sparse })
    }

    /// Reads a claimed leaf for a scan, and those after it that are in the pool alone: one batch.
    fn copy_missing(
        &self,
        own: &Ownership,
        first: Claim<'_, K>,
        leaves: &mut Vec<Image>,
        most: usize,
    ) -> Attempt<()> {
        leaves.clear();
        let claims = self.claim_following(own, first, most);
        let mut images = vec![Image::zero(); claims.len()];
        let places = claims.iter().map(|claim| claim.at);
        let words = images.iter_mut().map(|image| &mut image.0[..]);
        let mut parts: Vec<_> = places.zip(words).collect();
        self.memory.read_many(&mut parts)?;
        for (claim, mut image) in claims.into_iter().zip(images) {
            K::check(&image, claim.at)?;
            let is_trimmed = self.is_meant(&claim, &mut image)?;
            if self.cache.random().chance(self.options.leaf_admission)
                && let Some(taken) = self.cache.take(&self.memory)?
            {
                self.place(claim, taken, &image, is_trimmed)?;
            }
            leaves.push(image);
        }
        Ok(())
    }

    /// `first`, and claims on the private leaves after it below the same parent, without a gap.
    fn claim_following<'a>(
        &'a self,
        own: &Ownership,
        first: Claim<'a, K>,
        most: usize,
    ) -> Vec<Claim<'a, K>> {
        let parent = self.cache.frame(first.parent);
        let (parent_number, level) = (first.parent, first.level);
        let parent_is_private = first.parent_is_private;
        let above = parent.latch.lock();
        let node = parent.node();
        let slot = K::route(&node, first.key).slot;
        let mut claims = vec![first];
        for slot in slot + 1..=K::count(&node) {
            let route = K::at_slot(&node, slot);
            let Some(at) = Address::from_word(route.word) else {
                break;
            };
            if claims.len() >= most || !owns(own, route.low, route.high) {
                break;
            }
            let Some(mark) = self.cache.mapping().mark(at) else {
                break;
            };
            claims.push(Claim {
                mark,
                _pin: parent.pin(),
                at,
                parent: parent_number,
                level,
                key: route.low,
                fences: (route.low, route.high),
                is_private: true,
                may_offload: false,
                parent_is_private,
            });
        }
        drop(above);
        claims
    }
}
