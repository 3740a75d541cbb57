//! A tree as an open snapshot sees it, and the images that writers leave for that.
//!
//! Keeps: I10 (a writer leaves the image before the write can be seen; a reader looks for it after
//! it has read, or before, and again where one was left meanwhile), I12 (a run, and whatever else
//! changes Y, resolves markers before Y shows it), I13.
//!
//! Threads: readers hold nothing. Who leaves an image holds the stripe of its key; for a short one
//! the latch of its leaf, too, under which nothing is waited for. Markers are resolved under the
//! run lock; where there is no room for what they stand for, it goes to disk (`spill.rs`). An image
//! that cannot be kept gives the open snapshots up: a writer never fails because of one.

#![forbid(unsafe_code)]

use super::{
    counters,
    merging::Meeting,
    scan::{MergeLimits, Merged},
    spill::{ColdReads, RunLock},
    tree::Joined,
};
use crate::{
    error::Result,
    events,
    key::{Key, Value, successor},
    versions::{Epoch, Gate, Image, ImageRef, spill::Cold},
    x::{Before, IndexX, Lookup, Order},
};

/// A writer starts again for so many snapshots that begin beside it; then they wait for it.
pub(crate) const BEGINS_AWAITED: usize = 4;
/// Entries that one chunk of a removed range keeps images of.
const KEPT: MergeLimits = MergeLimits {
    bytes: 64 << 10,
    entries: 1024,
    at_hand: 1024,
};
/// An image of so many bytes at most is left by the search of the write itself.
pub(crate) const SHORT_IMAGE_BYTES: usize = 128;
/// A larger image than this part of the budget is kept only where it can be spilled: X has no
/// larger entries, but those of batches.
const LARGEST_IMAGE_DIVISOR: usize = 8;

impl Joined {
    // --- writers ------------------------------------------------------------------

    /// What `key` is now, to be left for snapshots open at the watch `seen`; `None` when they have
    /// an image in memory already, and where it cannot be read. The caller holds the stripe. Cost:
    /// two searches in memory; see [`Joined::old`].
    pub(crate) fn image(&self, key: &[u8], seen: Epoch) -> Option<Image> {
        match self.has_image(key, seen) {
            true => None,
            false => self.old(key),
        }
    }

    /// Snapshots open at the watch `seen` have an image of `key` in memory.
    fn has_image(&self, key: &[u8], seen: Epoch) -> bool {
        self.versions.newest_in_memory(key, seen.saturating_sub(1)) >= seen
    }

    /// What `key` is now. The caller holds the stripe: while it does, this stays right. Cost: a
    /// search in memory; where the key has an operand, a read of Y, and if that fails the snapshots
    /// are given up and there is no answer.
    pub(crate) fn old(&self, key: &[u8]) -> Option<Image> {
        loop {
            return Some(match self.x.get(key, Value::new) {
                Lookup::Found(value) => Image::Value(value),
                Lookup::Deleted | Lookup::Absent => Image::Absent,
                Lookup::AskY(_) => Image::InY,
                Lookup::Operand => match self.read_merged(key, Meeting::Look) {
                    Ok(Some(value)) => value.map_or(Image::Absent, Image::Value),
                    Ok(None) => continue,
                    Err(error) => {
                        events::refused(&error);
                        self.shared.versions.give_up_all();
                        return None;
                    }
                },
            });
        }
    }

    /// An image for what cannot be read, where a commit under way is to find that the key was
    /// written. All snapshots were given up but those of such commits, which read it no more.
    pub(crate) fn mark(&self) -> Option<Image> {
        (self.shared.versions.watch() != 0).then_some(Image::Absent)
    }

    /// Bytes of the value that `key` has in memory; 0: none. Cost: a search in memory.
    pub(crate) fn len_in_memory(&self, key: &[u8]) -> usize {
        match self.x.get(key, <[u8]>::len) {
            Lookup::Found(len) => len,
            _ => 0,
        }
    }

    /// Leaves an image (I10), unless the snapshots open at the watch `seen` have one in memory. The
    /// caller has held the stripe since it read what the key was. Cost: a write in memory.
    pub(crate) fn keep(&self, key: &[u8], seen: Epoch, image: &Image) {
        let versions = &self.shared.versions;
        let bytes = image.bytes();
        if self.is_too_large(bytes) && !versions.may_overdraw(bytes) {
            if self.has_image(key, seen) {
                return;
            }
            versions.give_up_all();
            // A commit under way is to find that the key was written.
            if versions.watch() == 0 {
                return;
            }
        }
        if versions.push(&self.versions, key, seen, image) {
            self.shared.wake_spiller.notify();
        }
    }

    /// With the leaf's latch held: leaves what `key` was `before` a write, if that is short (I10).
    /// False if that needs more than a search, or a wait; then nothing was done.
    #[inline]
    pub(super) fn keep_short(&self, key: &[u8], seen: Epoch, before: &dyn Before) -> bool {
        let versions = &self.shared.versions;
        let push = |image: ImageRef<'_>| versions.try_push(&self.versions, key, seen, image);
        let mut pushed = false;
        let mut found = |old: &[u8]| {
            pushed = old.len() <= SHORT_IMAGE_BYTES && push(ImageRef::Value(old));
        };
        match before.look(&mut found) {
            Lookup::Found(()) => pushed,
            Lookup::Deleted | Lookup::Absent => push(ImageRef::Absent),
            Lookup::AskY(_) => push(ImageRef::InY),
            // Y has to be read.
            Lookup::Operand => false,
        }
    }

    /// After [`Joined::keep_short`], with the latch given up.
    #[inline]
    pub(super) fn kept_short(&self) {
        if self.shared.versions.keep_limit() {
            self.shared.wake_spiller.notify();
        }
    }

    /// There is room for the image of `key`, if that is short.
    #[inline]
    pub(crate) fn has_room_for_short(&self, key: &[u8]) -> bool {
        let bytes = key.len() + SHORT_IMAGE_BYTES;
        self.shared.versions.has_room_for(bytes)
    }

    /// Before a value of `key` goes to Y past X: keeps what it was. The caller holds the stripe and
    /// the run lock; no snapshot begins while it holds the answer.
    pub(super) fn keep_before_publish(&self, key: &[u8]) -> Gate<'_> {
        let versions = &self.shared.versions;
        let keep = |seen: Epoch| {
            if let Some(image) = self.image(key, seen) {
                self.keep(key, seen, &image);
            }
            self.resolve_markers(key, Some(&successor(key)), RunLock::Held);
        };
        let mut kept = 0;
        for _ in 0..BEGINS_AWAITED {
            let seen = versions.watch();
            if seen > kept {
                keep(seen);
                kept = seen;
            }
            let gate = versions.gate();
            if versions.watch() <= kept {
                return gate;
            }
        }
        // Snapshots begin faster than Y is read: they wait.
        let gate = versions.gate();
        let seen = versions.watch();
        if seen > kept {
            keep(seen);
        }
        gate
    }

    /// Before `[from, to)` is removed: keeps all of it. The caller holds all stripes. `admit` says
    /// whether there is room for so many bytes. Without that, and without a disk to spill to, the
    /// snapshots are given up; after a failure, too. `run_lock`: `Held` if the caller holds more
    /// than stripes.
    pub(crate) fn keep_range(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        seen: Epoch,
        admit: impl Fn(usize) -> bool,
        run_lock: RunLock,
    ) {
        let keep = || -> Result<bool> {
            let mut at = Some(from.to_vec());
            while let Some(from) = at {
                if self.shared.versions.watch() == 0 {
                    return Ok(true);
                }
                match run_lock {
                    RunLock::Free => self.await_image_room(),
                    // The spiller may want the run lock.
                    RunLock::Held if self.shared.versions.is_full() => {
                        let _ = self.spill(run_lock);
                    }
                    RunLock::Held => {}
                }
                let chunk = self.scan_chunk(&from, to, Order::Ascending, KEPT)?;
                let kept: Vec<_> = chunk
                    .entries
                    .into_iter()
                    .filter(|(key, _)| !self.has_image(key, seen))
                    .map(|(key, value)| {
                        let image = self.image_in_range(&key, value);
                        (key, image)
                    })
                    .collect();
                let bytes = |(key, image): &(Key, Image)| key.len() + image.bytes();
                let bytes = kept.iter().map(bytes).sum();
                let spilled = || match run_lock {
                    RunLock::Held => self.spill(run_lock).is_ok(),
                    RunLock::Free => self.spill_for_memory(),
                };
                let fits = admit(bytes) || spilled() && admit(bytes);
                // What has no room goes to disk at once.
                if !fits && !self.shared.versions.may_overdraw(bytes) {
                    return Ok(false);
                }
                for (key, image) in kept {
                    self.keep(&key, seen, &image);
                }
                if !fits && !spilled() {
                    return Ok(false);
                }
                at = chunk.resume;
            }
            Ok(true)
        };
        if !keep().unwrap_or(false) {
            self.shared.versions.give_up_all();
        }
        self.resolve_markers(from, to, run_lock);
    }

    /// The image of `key`, whose value was read with all stripes held: what is too large for memory
    /// is in Y alone, and goes from there to disk.
    fn image_in_range(&self, key: &[u8], value: Value) -> Image {
        let cold = || matches!(self.x.get(key, |_| ()), Lookup::AskY(_));
        match self.is_too_large(value.len()) && self.shared.versions.disk().is_some() && cold() {
            true => Image::InY,
            false => Image::Value(value),
        }
    }

    /// An image of so many bytes is not kept in memory.
    fn is_too_large(&self, bytes: usize) -> bool {
        bytes > self.shared.budget.limit() / LARGEST_IMAGE_DIVISOR
    }

    /// I12: replaces the markers of `[from, to)` by what Y has, because Y is about to change there.
    /// The caller holds the run lock, or all stripes. Where there is no room for that in memory,
    /// all images of the tree are spilled. Cost where there are no markers: a few loads.
    pub(crate) fn resolve_markers(&self, from: &[u8], to: Option<&[u8]>, run_lock: RunLock) {
        // What a spill leaves are the markers that came during it. So this ends.
        while self.resolve_some(from, to) {
            if let Err(error) = self.spill(run_lock) {
                events::refused(&error);
                if !self.shared.versions.give_up_oldest() {
                    return;
                }
            }
        }
    }

    /// True if there is no room: all images are to be spilled first.
    fn resolve_some(&self, from: &[u8], to: Option<&[u8]>) -> bool {
        let versions = &self.shared.versions;
        let keys = self.versions.markers(from, to, versions.oldest());
        let mut cold = ColdReads::new(&*self.y, &self.shared.budget);
        let mut rest = &keys[..];
        while !rest.is_empty() && versions.watch() != 0 {
            let (keys, others) = rest.split_at(cold.at_once().min(rest.len()));
            let asked: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
            let found = cold.read(&asked).unwrap_or_default();
            if found.len() < keys.len() {
                versions.give_up_all();
                return false;
            }
            let bytes = found.iter().map(Image::bytes).sum();
            let room = &self.shared.room;
            let admitted = match versions.has_room_for(bytes) {
                true => room.admit_load(bytes),
                false => None,
            };
            if versions.disk().is_some() && admitted.is_none() {
                return true;
            }
            versions.resolve(&self.versions, bytes, keys.iter().zip(found));
            rest = others;
        }
        false
    }

    // --- readers ------------------------------------------------------------------

    /// The value of `key` at `epoch`. The caller looks afterwards whether its snapshot was given
    /// up. Cost: [`Joined::get`]; where the tree was written since, a search in memory more for a
    /// key that was not.
    #[inline]
    pub(crate) fn get_at(&self, key: &[u8], epoch: Epoch) -> Result<Option<Value>> {
        if !self.versions.is_unchanged_since(epoch) {
            return self.get_beside_images(key, epoch);
        }
        // The newest value first, the image second: see `versions/`.
        let newest = self.get(key, Value::new);
        if self.versions.is_unchanged_since(epoch) {
            return newest;
        }
        self.seen(key, epoch, newest?)
    }

    /// The same where there are images. One that is there is the right one, whatever is written
    /// later: so it is looked for first, and where there is one, the newest value is not needed.
    #[inline(never)]
    fn get_beside_images(&self, key: &[u8], epoch: Epoch) -> Result<Option<Value>> {
        let left = self.versions.left_so_far();
        if let Some(image) = self.versions.at(key, epoch)? {
            self.shared.counters.hit();
            return self.value_of(key, epoch, image);
        }
        let newest = self.get(key, Value::new)?;
        if self.versions.left_so_far() == left {
            return Ok(newest);
        }
        self.seen(key, epoch, newest)
    }

    /// The values of `keys` at `epoch`; see [`Joined::get_at`].
    pub(crate) fn multi_get_at(&self, keys: &[&[u8]], epoch: Epoch) -> Result<Vec<Option<Value>>> {
        let newest = self.multi_get(keys)?;
        keys.iter()
            .zip(newest)
            .map(|(key, newest)| self.seen(key, epoch, newest))
            .collect()
    }

    /// What `epoch` sees where `newest` was read before.
    fn seen(&self, key: &[u8], epoch: Epoch, newest: Option<Value>) -> Result<Option<Value>> {
        match self.versions.at(key, epoch)? {
            None => Ok(newest),
            Some(image) => self.value_of(key, epoch, image),
        }
    }

    /// The value that `image` stands for. A marker holds as long as it is there after Y was read:
    /// it is replaced before Y changes (I12).
    fn value_of(&self, key: &[u8], epoch: Epoch, mut image: Image) -> Result<Option<Value>> {
        loop {
            match image {
                Image::Absent => return Ok(None),
                Image::Value(value) => return Ok(Some(value)),
                Image::InY => {}
            }
            counters::add(&self.shared.counters.y_reads, 1);
            let value = self.y.get(key)?;
            self.check_kept()?;
            match self.versions.at(key, epoch)? {
                // Gone altogether: the snapshot was given up, and its caller finds that out.
                None | Some(Image::InY) => return Ok(value),
                Some(resolved) => image = resolved,
            }
        }
    }

    /// As [`Joined::scan_chunk`], at `epoch`.
    pub(crate) fn scan_chunk_at(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        order: Order,
        limits: MergeLimits,
        epoch: Epoch,
    ) -> Result<Merged> {
        let newest = self.scan_chunk(from, to, order, limits)?;
        if self.versions.is_unchanged_since(epoch) {
            return Ok(newest);
        }
        let (from, to) = match (&newest.resume, order) {
            (None, _) => (from, to),
            (Some(end), Order::Ascending) => (from, Some(&end[..])),
            (Some(end), Order::Descending) => (&end[..], to),
        };
        let mut seen = self.versions.range_at(from, to, order, epoch)?;
        let mut newest = newest;
        newest.entries.retain(|(key, _)| !seen.was_absent(key));
        let (mut values, mut bytes) = (Vec::new(), 0);
        let mut images = std::mem::take(&mut seen.images).into_iter();
        while let Some((key, image)) = images.next() {
            let value = self.value_of(&key, epoch, image)?;
            bytes += value.as_ref().map_or(0, |value| value.len());
            values.push((key, value));
            // I7: markers are small, and what they stand for may be large.
            if bytes >= limits.bytes
                && let Some((next, _)) = images.next()
            {
                seen.resume = Some(match order {
                    Order::Ascending => next.to_vec(),
                    Order::Descending => successor(&next),
                });
                break;
            }
        }
        Ok(with_images(newest, values, seen.resume, order))
    }
}

/// `newest` with `images` in place of what they are images of, as far as both go.
fn with_images(
    newest: Merged,
    images: Vec<(Key, Option<Value>)>,
    resume: Option<Vec<u8>>,
    order: Order,
) -> Merged {
    let before = |a: &[u8], b: &[u8]| match order {
        Order::Ascending => a < b,
        Order::Descending => a > b,
    };
    let covered = |key: &[u8]| match (&resume, order) {
        (None, _) => true,
        (Some(end), Order::Ascending) => key < &end[..],
        (Some(end), Order::Descending) => key >= &end[..],
    };
    let mut merged = Merged::default();
    let mut images = images.into_iter().peekable();
    for (key, value) in newest.entries {
        if !covered(&key) {
            break;
        }
        while let Some((older, image)) = images.next_if(|(older, _)| before(older, &key)) {
            merged.push(older, image);
        }
        match images.next_if(|(older, _)| *older == key) {
            Some((key, image)) => merged.push(key, image),
            None => merged.push(key, Some(value)),
        }
    }
    for (key, image) in images {
        merged.push(key, image);
    }
    merged.resume = resume.or(newest.resume);
    merged
}
