//! Frames change hands: free to hot (`install`), hot to cooling (`cool`), cooling to hot
//! (`reheat`), cooling or hot to free (`evict`, `drop_child`).

use super::{
    Cache, ROOT,
    frame::{State, frame_of},
    latch::Latched,
    mapping::IoMark,
};
use crate::{
    address::Address,
    error::{Error, Result},
    lock_word,
    node::{self, Image, SWIZZLED, TreeKey, VERSION, Words},
    remote::RemoteMemory,
};

/// Hot pages that are sampled when no frame is free.
const SAMPLES: usize = 2;
/// Looks for a hot frame in one sample.
const LOOKS: usize = 16;
/// Buckets that are tried for a frame.
const PROBES: usize = 8;
/// Rounds of cooling and evicting before a frame is given up.
const ROUNDS: usize = 16;

/// A frame that nobody else uses. Dropped: it is free again.
pub(crate) struct Taken<'a, K: TreeKey> {
    cache: &'a Cache<K>,
    number: usize,
}

impl<K: TreeKey> Taken<'_, K> {
    fn keep(self) -> usize {
        let number = self.number;
        std::mem::forget(self);
        number
    }
}

impl<K: TreeKey> Drop for Taken<'_, K> {
    fn drop(&mut self) {
        self.cache.free.lock().push(self.number);
    }
}

/// The node's own address; the frames' are always right.
fn address(words: &impl Words) -> Result<Address> {
    let misplaced = || Error::corrupt(Address::new(0, 0), "a cached node has no address");
    node::address(words).ok_or_else(misplaced)
}

impl<K: TreeKey> Cache<K> {
    /// A frame, by cooling and evicting others if none is free. `None`: too few can be evicted
    /// at the moment. The caller holds no latch.
    pub(crate) fn take(&self, memory: &impl RemoteMemory) -> Result<Option<Taken<'_, K>>> {
        for _ in 0..ROUNDS {
            if let Some(taken) = self.take_free() {
                return Ok(Some(taken));
            }
            for _ in 0..SAMPLES {
                if let Some(frame) = self.sample() {
                    self.cool(frame, memory)?;
                }
            }
            if let Some(taken) = self.take_free() {
                return Ok(Some(taken));
            }
            let first = self.random.below(self.cooling.buckets());
            for bucket in first..first + PROBES.min(self.cooling.buckets()) {
                if let Some(frame) = self.cooling.take_oldest(bucket) {
                    self.evict(frame)?;
                    break;
                }
            }
        }
        Ok(self.take_free())
    }

    fn take_free(&self) -> Option<Taken<'_, K>> {
        let number = self.free.lock().pop()?;
        Some(Taken {
            cache: self,
            number,
        })
    }

    /// A hot frame without hot children, at the end of the path of a random one. What is read
    /// here is a guess; `cool` looks again.
    fn sample(&self) -> Option<usize> {
        let mut at = (0..LOOKS)
            .map(|_| self.random.below(self.frames.len()))
            .find(|&frame| self.frames[frame].state() == State::Hot)?;
        for _ in 0..=node::MAX_LEVEL {
            let children = self.frames[at].hot_children::<K>().count();
            if children == 0 {
                break;
            }
            let chosen = self.random.below(children);
            match self.frames[at].hot_children::<K>().nth(chosen) {
                Some(child) if child < self.frames.len() => at = child,
                _ => return None,
            }
        }
        (at != ROOT).then_some(at)
    }

    /// Writes a hot frame back, takes it out of its parent and lets it cool.
    pub(crate) fn cool(&self, frame: usize, memory: &impl RemoteMemory) -> Result<()> {
        let this = &self.frames[frame];
        let parent = &self.frames[this.parent()];
        let Some(mut above) = parent.latch.try_lock() else {
            return Ok(());
        };
        let Some(mut latched) = this.latch.try_lock() else {
            return Ok(());
        };
        let slot = K::slot_of(&parent.node(), SWIZZLED | frame as u64);
        let may = this.state() == State::Hot
            && parent.state() == State::Hot
            && node::level(&parent.node()) > 0
            && !this.is_pinned()
            && this.hot_children::<K>().next().is_none();
        let (true, Some(slot)) = (may, slot) else {
            return Ok(());
        };
        let at = address(&this.node())?;
        if this.is_dirty() {
            // C4: under the parent's latch, so that the parent stays hot until this is done.
            self.write_back(frame, memory)?;
        }
        above.changes();
        latched.changes();
        K::set_child(&mut parent.node(), slot, at.word());
        this.set_state(State::Cooling);
        let pushed_out = self.cooling.push(at, frame);
        drop((latched, above));
        match pushed_out {
            Some(oldest) => self.evict(oldest),
            None => Ok(()),
        }
    }

    /// Writes a dirty frame to the pool, children as addresses. The caller holds its latch, and
    /// its children's parents do not change.
    pub(crate) fn write_back(&self, frame: usize, memory: &impl RemoteMemory) -> Result<()> {
        let this = &self.frames[frame];
        let mut image = self.image(frame)?;
        image.0[VERSION] = lock_word::next(image.0[VERSION]);
        memory.write(address(&image)?, &image.0)?;
        // Readers of the cache do not look at this word.
        this.node().set(VERSION, image.0[VERSION]);
        self.note_written(frame);
        Ok(())
    }

    /// The node as the pool has it: children as addresses. The caller holds the latch.
    pub(crate) fn image(&self, frame: usize) -> Result<Image> {
        let mut image = Image::of(&self.frames[frame].node());
        if node::level(&image) > 0 {
            for slot in 0..=K::count(&image) {
                let word = K::child(&image, slot);
                if word & SWIZZLED != 0 {
                    // A child's address does not change while it is swizzled.
                    let child = address(&self.frames[frame_of(word)].node())?;
                    K::set_child(&mut image, slot, child.word());
                }
            }
        }
        Ok(image)
    }

    /// Frees a frame that was taken out of the cooling map, if it still cools.
    fn evict(&self, frame: usize) -> Result<()> {
        let this = &self.frames[frame];
        // The holder reheats it or drops it, and waits for nothing but the cooling map.
        let mut latched = this.latch.lock();
        if this.state() == State::Cooling {
            latched.changes();
            self.release(frame)?;
        }
        Ok(())
    }

    /// The frame's node is in the pool alone from here on. The caller holds the latch.
    fn release(&self, frame: usize) -> Result<()> {
        let this = &self.frames[frame];
        self.mapping.remove(address(&this.node())?);
        this.set_state(State::Free);
        self.note_written(frame);
        self.free.lock().push(frame);
        Ok(())
    }

    /// Swizzles a cooling frame into `parent`, whose latch is held. `false`: it is something else
    /// by now.
    pub(crate) fn reheat(
        &self,
        parent: usize,
        above: &mut Latched<'_>,
        slot: usize,
        frame: usize,
    ) -> Result<bool> {
        debug_assert!(above.is_of(&self.frames[parent].latch));
        let mut node = self.frames[parent].node();
        let wanted = K::child(&node, slot);
        let Some(this) = self.frames.get(frame) else {
            return Ok(false);
        };
        let Some(mut latched) = this.latch.try_lock() else {
            return Ok(false);
        };
        let at = address(&this.node())?;
        if this.state() != State::Cooling || at.word() != wanted {
            return Ok(false);
        }
        latched.changes();
        above.changes();
        this.set_state(State::Hot);
        this.set_parent(parent);
        K::set_child(&mut node, slot, SWIZZLED | frame as u64);
        // Who took it out before waits for the latch, and finds it hot.
        self.cooling.remove(at, frame);
        Ok(true)
    }

    /// Puts a node that was read under `mark` into a frame below `parent`, whose latch is held
    /// and whose child `slot` it is.
    pub(crate) fn install(
        &self,
        taken: Taken<'_, K>,
        image: &Image,
        dirty: bool,
        mark: IoMark<'_>,
        (parent, above, slot): (usize, &mut Latched<'_>, usize),
    ) {
        let frame = self.fill(taken, image, dirty, parent);
        mark.settle(frame);
        above.changes();
        K::set_child(
            &mut self.frames[parent].node(),
            slot,
            SWIZZLED | frame as u64,
        );
    }

    /// A new node in a frame: hot, swizzled by the caller, who holds the parent's latch.
    pub(crate) fn add(&self, taken: Taken<'_, K>, image: &Image, parent: usize) -> Result<usize> {
        let at = address(image)?;
        let frame = self.fill(taken, image, true, parent);
        self.mapping.insert(at, frame);
        Ok(frame)
    }

    fn fill(&self, taken: Taken<'_, K>, image: &Image, dirty: bool, parent: usize) -> usize {
        let frame = taken.keep();
        let this = &self.frames[frame];
        let mut latched = this.latch.lock();
        latched.changes();
        this.fill(image);
        this.set_dirty(dirty);
        this.set_parent(parent);
        this.set_state(State::Hot);
        frame
    }

    /// Frees a hot frame whose node is gone or was written back; its parent's word is the
    /// caller's. The caller holds both latches.
    pub(crate) fn discard(&self, frame: usize, latched: &mut Latched<'_>) -> Result<()> {
        debug_assert!(latched.is_of(&self.frames[frame].latch));
        latched.changes();
        self.release(frame)
    }

    /// Frees the frame of a cooling node: the pool's copy changed. The caller holds the I/O mark
    /// of an ancestor.
    pub(crate) fn forget_cooling(&self, at: Address) -> Result<()> {
        let Some(super::Place::Frame(frame)) = self.mapping.get(at) else {
            return Ok(());
        };
        let this = &self.frames[frame];
        let mut latched = this.latch.lock();
        if this.state() == State::Cooling && address(&this.node())? == at {
            latched.changes();
            self.cooling.remove(at, frame);
            self.release(frame)?;
        }
        Ok(())
    }

    /// Writes back and frees the whole subtree of child `slot` of `parent`, whose latch is held
    /// and which stays hot. `false`: a frame in it is pinned; what was freed is freed.
    pub(crate) fn drop_child(
        &self,
        parent: usize,
        above: &mut Latched<'_>,
        slot: usize,
        memory: &impl RemoteMemory,
    ) -> Result<bool> {
        let mut node = self.frames[parent].node();
        let word = K::child(&node, slot);
        if word & SWIZZLED == 0 {
            return Ok(true);
        }
        let frame = frame_of(word);
        let this = &self.frames[frame];
        // From above: the holder waits for nothing above it.
        let mut latched = this.latch.lock();
        if node::level(&this.node()) > 0 {
            for slot in 0..=K::count(&this.node()) {
                if !self.drop_child(frame, &mut latched, slot, memory)? {
                    return Ok(false);
                }
            }
        }
        if this.is_pinned() {
            return Ok(false);
        }
        if this.is_dirty() {
            self.write_back(frame, memory)?;
        }
        above.changes();
        let at = address(&this.node())?;
        K::set_child(&mut node, slot, at.word());
        self.discard(frame, &mut latched)?;
        Ok(true)
    }
}
