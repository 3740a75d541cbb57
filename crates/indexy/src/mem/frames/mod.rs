//! Frames of a buffer pool: memory for pages that never change while anybody can see them.
//!
//! A frame is free, or owned by one thread that fills it ([`OwnedFrame`]), or *published*: it holds
//! the page that its tag names, and any thread may read it. [`Frames::unlink`] takes a published
//! frame out of sight; it becomes free when no reader that may still be in it is left (`grace.rs`).
//!
//! Readers take no latch and never wait: inside a [`FrameGuard`] a frame whose tag is the wanted
//! one keeps its content until the guard is dropped. The tag does the work of a latch's version: it
//! is looked at once, because a page that is visible is never written to. The exception is the
//! words at the end of a page from the `split` on, which are atomic: hints where a child's frame
//! is.
//!
//! Threads: any.
//! Locks: the free list and the state of the grace period, each for a few instructions.
//! Not here: which page is where, which frame goes next (`y/pool/mod.rs`).

mod grace;
mod segments;

#[cfg(test)]
mod tests;

use crate::sync::point;
use grace::{Grace, Readers};
use parking_lot::Mutex;
pub(crate) use segments::{FrameView, NO_PAGE};
use segments::{Meta, Segments};
use std::sync::atomic::{
    AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};

/// Frames that one pool can have: what a hint can name.
pub(crate) const MAX_FRAMES: usize = (1 << 24) - 2;
/// Counters of readers: threads share one only when there are more of them.
const READER_SHARDS: usize = 64;
/// Bytes that a frame costs besides its page.
pub(crate) const FRAME_OVERHEAD_BYTES: usize = size_of::<Meta>() + 2 * size_of::<u32>();

/// See the module header.
pub(crate) struct Frames {
    page_bytes: usize,
    segments: Segments,
    readers: Readers,
    grace: Mutex<Grace>,
    free: Mutex<Vec<u32>>,
    /// Frames with a lower number may be in use.
    limit: AtomicUsize,
    /// Frames with a lower number were handed out once.
    fresh: AtomicUsize,
}

/// Keeps the frames that were published when it was entered from being reused. Not to be held
/// across I/O.
pub(crate) struct FrameGuard<'p> {
    frames: &'p Frames,
    ticket: grace::Ticket,
}

/// A frame that one thread fills. Dropping it makes the frame free again.
pub(crate) struct OwnedFrame<'p> {
    frames: &'p Frames,
    number: u32,
}

impl Frames {
    /// Up to `limit` frames of `page_bytes` (a multiple of 4096). Memory is taken from the system
    /// as frames are first used.
    pub(crate) fn new(page_bytes: usize, limit: usize) -> Self {
        Self::with_reader_shards(page_bytes, limit, READER_SHARDS)
    }

    fn with_reader_shards(page_bytes: usize, limit: usize, shards: usize) -> Self {
        Self {
            page_bytes,
            segments: Segments::new(page_bytes),
            readers: Readers::new(shards),
            grace: Mutex::default(),
            free: Mutex::default(),
            limit: AtomicUsize::new(limit.min(MAX_FRAMES)),
            fresh: AtomicUsize::new(0),
        }
    }

    pub(crate) fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// Frames that there may be.
    pub(crate) fn limit(&self) -> usize {
        self.limit.load(Relaxed)
    }

    /// Frames that were used once; all published ones have lower numbers.
    pub(crate) fn used_once(&self) -> usize {
        self.fresh.load(Relaxed)
    }

    /// Changes the number of frames. Those over a smaller limit go to the system as they become
    /// free: the caller unlinks the published ones.
    pub(crate) fn set_limit(&self, limit: usize) {
        let limit = limit.min(MAX_FRAMES);
        self.limit.store(limit, Relaxed);
        let over: Vec<u32> = {
            let mut free = self.free.lock();
            free.extract_if(.., |n| *n as usize >= limit).collect()
        };
        for number in over {
            self.give_back(number);
        }
        for number in self.touched_over(limit) {
            self.release(number as u32);
        }
        let back = self.grace.lock().unpark(limit);
        for number in back {
            self.release(number);
        }
    }

    /// Frames that were never used and that a huge page may have made resident, if some of them are
    /// over the limit. They are the caller's now.
    fn touched_over(&self, limit: usize) -> std::ops::Range<usize> {
        let mut end = 0;
        let taken = self.fresh.fetch_update(Relaxed, Relaxed, |fresh| {
            end = self.segments.first_untouched(fresh);
            (end > limit.max(fresh)).then_some(end)
        });
        taken.map_or(0..0, |fresh| fresh..end)
    }

    /// Enters a guard. Cost: one uncontended read-modify-write.
    #[inline]
    pub(crate) fn enter(&self) -> FrameGuard<'_> {
        FrameGuard {
            frames: self,
            ticket: self.readers.enter(),
        }
    }

    /// A frame to fill, or `None` if none is free now.
    pub(crate) fn take(&self) -> Option<OwnedFrame<'_>> {
        let reused = self.free.lock().pop();
        let number = match reused {
            Some(number) => number,
            None => self.take_fresh()?,
        };
        Some(OwnedFrame {
            frames: self,
            number,
        })
    }

    /// Free frames now, those never used included.
    pub(crate) fn free_frames(&self) -> usize {
        self.free.lock().len() + self.limit().saturating_sub(self.used_once())
    }

    fn take_fresh(&self) -> Option<u32> {
        let limit = self.limit();
        let taken = self
            .fresh
            .fetch_update(Relaxed, Relaxed, |n| (n < limit).then_some(n + 1));
        let number = taken.ok()?;
        self.segments.map(number, limit);
        u32::try_from(number).ok()
    }

    /// Takes the page `tag` in frame `number` out of sight; false if the frame does not hold it
    /// (any more).
    pub(crate) fn unlink(&self, number: u32, tag: u64) -> bool {
        let Some(meta) = self.segments.meta(number) else {
            return false;
        };
        let gone = tag != NO_PAGE
            && meta
                .tag
                .compare_exchange(tag, NO_PAGE, SeqCst, Relaxed)
                .is_ok();
        if gone {
            point();
            self.grace.lock().add(number);
        }
        gone
    }

    /// Frees what was unlinked and is read by nobody any more. Never waits; returns how many became
    /// free.
    pub(crate) fn reclaim(&self) -> usize {
        let Some(mut grace) = self.grace.try_lock() else {
            return 0;
        };
        let unread = grace.step(&self.readers);
        drop(grace);
        let freed = unread.len();
        for number in unread {
            self.release(number);
        }
        freed
    }

    /// Whether the frame holds a page, and which.
    pub(crate) fn tag(&self, number: u32) -> u64 {
        self.segments
            .meta(number)
            .map_or(NO_PAGE, |m| m.tag.load(Relaxed))
    }

    /// Takes a round from what the frame stays; false: it has none left.
    pub(crate) fn pass_over(&self, number: u32) -> bool {
        self.segments.meta(number).is_some_and(|m| {
            // A use that comes between the two may be lost, and is of the last moment.
            let rounds = m.rounds.load(Relaxed);
            if rounds > 0 {
                m.rounds.store(rounds - 1, Relaxed);
            }
            rounds > 0
        })
    }

    /// Bytes of the tables around the frames, the frames themselves excluded.
    pub(crate) fn fixed_bytes(&self) -> usize {
        size_of::<Self>() + self.readers.bytes()
    }

    /// Nobody can see the frame: it is free, or above the limit.
    fn release(&self, number: u32) {
        {
            let mut free = self.free.lock();
            // Looked at under the lock: `set_limit` changes the limit before it takes the lock, so
            // that it finds this frame, or this finds the limit.
            if (number as usize) < self.limit() {
                free.push(number);
                return;
            }
        }
        self.give_back(number);
    }

    /// The frame's memory goes to the system; the frame waits for a higher limit.
    fn give_back(&self, number: u32) {
        // SAFETY: nobody can see the frame, and its number is in no list.
        unsafe { self.segments.discard(number) };
        {
            let mut grace = self.grace.lock();
            // Under the lock, as in `release`: no raised limit may leave the frame behind.
            if number as usize >= self.limit() {
                grace.park(number);
                return;
            }
        }
        self.release(number);
    }
}

impl<'p> FrameGuard<'p> {
    /// The content of frame `number` if it holds the page `tag`. [`Frames::pass_over`] passes over
    /// it `rounds` times from now on, at least.
    #[inline]
    pub(crate) fn find(&self, number: u32, tag: u64, rounds: u8) -> Option<FrameView<'_>> {
        let meta = self.frames.segments.meta(number)?;
        point();
        // Partner: the compare-and-exchange in `unlink`. This guard's count was raised before, by a
        // SeqCst operation: either we see the frame unlinked, or `grace.rs` sees the count.
        if tag == NO_PAGE || meta.tag.load(SeqCst) != tag {
            return None;
        }
        if meta.rounds.load(Relaxed) < rounds {
            meta.rounds.store(rounds, Relaxed);
        }
        let split = meta.split.load(Relaxed) as usize;
        // SAFETY: the tag was stored by `publish`, after which nobody writes to the bytes below the
        // split and to the words above it only atomically, until the frame is free again; it cannot
        // become free while this guard lives (`grace.rs`), and the view borrows the guard.
        Some(unsafe { self.frames.segments.view(number, split) })
    }
}

impl Drop for FrameGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.frames.readers.exit(self.ticket);
    }
}

impl OwnedFrame<'_> {
    /// The whole frame; its content is arbitrary.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: an owned frame is not free and not published, and its number is in one
        // `OwnedFrame` only.
        unsafe { self.frames.segments.bytes_mut(self.number) }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: as above; the borrow of `self` excludes `bytes_mut`.
        let view = unsafe {
            self.frames
                .segments
                .view(self.number, self.frames.page_bytes)
        };
        view.bytes
    }

    /// Shows the frame as page `tag` (not [`NO_PAGE`]); `split` is where its words start, a
    /// multiple of 8. Returns its number.
    pub(crate) fn publish(self, tag: u64, split: usize) -> u32 {
        let number = self.number;
        let frames = self.frames;
        std::mem::forget(self);
        let split = split.min(frames.page_bytes) & !7;
        if let Some(meta) = frames.segments.meta(number) {
            meta.split.store(u32::try_from(split).unwrap_or(0), Relaxed);
            // Its first use was the read that brought it; only the next one keeps it longer.
            meta.rounds.store(0, Relaxed);
            // Partner: the load of the tag in `find`. What was written to the frame is visible
            // before it.
            meta.tag.store(tag, SeqCst);
        }
        number
    }
}

impl Drop for OwnedFrame<'_> {
    fn drop(&mut self) {
        self.frames.release(self.number);
    }
}
