//! Versions: what snapshots and transactions need to know of the past.
//!
//! Entries carry no version. X and Y hold the newest value of each key alone; beside them stands,
//! for each tree, a [`store`] of *images*: what a key was before it was written, as long as a
//! snapshot may ask for it. Where no snapshot is open, a write costs two loads more and a read
//! nothing.
//!
//! **Epochs.** Each snapshot has an epoch `s` of its own, and later ones have larger ones. An image
//! carries `until`: it is what snapshots with `s < until` see, unless an image with a smaller
//! `until > s` says otherwise. A key without such an image has not changed since `s`.
//! `until` is the *watch*: the newest open snapshot's epoch plus one, or 0 while none is open.
//!
//! **A write of one key** holds the key's stripe. It reads the watch, and applies the write under
//! its leaf's latch only if the watch has not risen since. Where the watch is not 0, it leaves an
//! image: a short one under the latch, where the write has found what the key was; others before.
//! If the watch has risen, a snapshot has begun that the image does not serve, and the write starts
//! again; after some turns it holds the gate, so that begins wait for it. A begin raises the watch
//! before its first read. Either the writer, who has latched, sees that; or the reader finds the
//! leaf latched or written, and the write comes before the snapshot ([`clock`]).
//!
//! **A batch** holds the *gate* shared from its first image until all of it is applied; a begin
//! takes it alone. So no snapshot sees a part of a batch.
//!
//! **A transaction** reads through a snapshot `s`. Its commit holds the stripes of what it writes
//! and the gate. It leaves its images first, and looks at what it read second: whatever has an
//! image with `until > s` was written since. Two commits that each read what the other one writes
//! leave their images before they look, so that one of them sees the other.
//!
//! **A sorted load** leaves one *span* instead of an image of each key: the range was absent
//! ([`spans`]). It holds all stripes and the gate.
//!
//! **A reader** of snapshot `s` reads the newest value first and the images second. If the value
//! was written after `s`, its image was there before it. An image that is there is right whatever
//! is written later: so the reader of one key looks for it first, and after it has read the newest
//! value again only if an image was left meanwhile ([`clock`]).
//!
//! **A table** of hashes tells when a key was written last ([`written`]): most keys that a snapshot
//! or a commit asks for have no image that it needs, and it says so without a search.
//!
//! **Cold keys** are overwritten without a look at Y: their image says `InY`, which means what Y
//! has. Before a run publishes over such a key, its old value is read ([`store::Store::markers`]).
//!
//! Invariants:
//! - **I10** A version that an open snapshot needs is in X, Y or among the images before its
//!   successor is visible.
//! - **I11** No snapshot begins between the first image and the last write of a batch.
//! - **I12** No run publishes over a marker that an open snapshot needs.
//! - **I13** While a snapshot is open, every write leaves its key among the images.
//!
//! Memory: images lie in the arena. From half of their limit on a background thread writes them to
//! *files* ([`spill`]); at the limit writers of single keys wait for it, as they do for memory.
//! What cannot wait goes past it, up to half of the budget. Where nothing can be spilled, or the
//! files take more than the user allows, the oldest snapshot is given up (`SnapshotTooOld`), never
//! a writer. Images go by generation or by file when no open snapshot needs any.
//!
//! **Files and markers.** A file has no markers: who writes it holds the run lock and reads what Y
//! has. The image in memory goes in the moment in which the file is shown. So a reader finds it in
//! memory or in the file. A writer does not look into files: it may leave an image that a file
//! makes superfluous, which the older file's hides from readers, and which goes when both are
//! merged. A commit looks into the files that are newer than its snapshot.
//!
//! Lock order: stripe, run lock, gate, spill of a store, list of stores, generations of a store,
//! and last the pins or a leaf latch. Who holds a leaf latch of X tries the lock of the generations
//! and does not wait for it; leaf latches of images come after those of X. Nobody who holds a run
//! lock or the gate waits for a spill by somebody else to make room.

pub(crate) mod chain;
pub(crate) mod clock;
mod disk;
mod generation;
mod generations;
mod look;
mod pins;
mod spans;
pub(crate) mod spill;
mod spilled;
pub(crate) mod store;
mod tiers;
pub(crate) mod time;
mod written;

pub(crate) use chain::{Image, ImageRef};
pub(crate) use clock::Epoch;
pub(crate) use disk::Disk;
pub(crate) use pins::{Gate, Pin, Spared};

use crate::mem::{Memory, budget::Budget};
use parking_lot::Mutex;
use pins::Pins;
use std::sync::{
    Arc, OnceLock, Weak,
    atomic::{AtomicUsize, Ordering::Relaxed},
};
use store::{Space, Store};
use time::{Clock, Millis, Time};

/// Images take this part of the budget at most, unless the user says otherwise.
const LIMIT_DIVISOR: usize = 4;
/// And this part, whatever the user says. Where images are spilled, those that cannot wait may take
/// as much: a small limit makes writers wait more often, and gives up no snapshot.
const LARGEST_LIMIT_DIVISOR: usize = 2;
/// They are looked at each time that they have grown by this part of the limit.
const LOOKS_DIVISOR: usize = 8;
/// Spans may take this part of it; then the oldest snapshots are given up.
const SPANS_DIVISOR: usize = 2;
/// From this part of the limit on they are spilled.
const SPILL_DIVISOR: usize = 2;
/// Below this part of the limit no image is worth a look whether it may go.
const WORTHWHILE_DIVISOR: usize = 64;

/// The versions of all trees of a database.
pub(crate) struct Versions {
    pins: Pins,
    space: Arc<Space>,
    budget: Arc<Budget>,
    /// What images are made of.
    memory: OnceLock<Arc<Memory>>,
    /// Limit of the images in memory in bytes; 0: a part of the budget.
    limit: AtomicUsize,
    /// Where they are spilled, if they are.
    disk: OnceLock<Disk>,
    /// More bytes than this call for a look at what may go.
    look_at: AtomicUsize,
    /// Bytes that batches are about to leave.
    promised: AtomicUsize,
    /// Those that have images.
    stores: Mutex<Vec<Weak<Store>>>,
}

/// See [`Versions::promise`].
pub(crate) struct Promise<'a> {
    promised: &'a AtomicUsize,
    bytes: usize,
}

impl Drop for Promise<'_> {
    fn drop(&mut self) {
        self.promised.fetch_sub(self.bytes, Relaxed);
    }
}

impl Versions {
    pub(crate) fn new(budget: Arc<Budget>) -> Self {
        Self {
            pins: Pins::new(),
            space: Arc::default(),
            budget,
            memory: OnceLock::new(),
            limit: AtomicUsize::new(0),
            disk: OnceLock::new(),
            look_at: AtomicUsize::new(0),
            promised: AtomicUsize::new(0),
            stores: Mutex::default(),
        }
    }

    /// Images lie in `memory`. To be called before the first write.
    pub(crate) fn set_memory(&self, memory: Arc<Memory>) {
        let _ = self.memory.set(memory);
    }

    #[inline]
    fn memory(&self) -> &Arc<Memory> {
        self.memory.get_or_init(|| Memory::new(self.budget.clone()))
    }

    /// Images may take `bytes`.
    pub(crate) fn set_limit(&self, bytes: usize) {
        self.limit.store(bytes, Relaxed);
    }

    /// Images are spilled to `disk`. To be called before the first write.
    pub(crate) fn set_disk(&self, disk: Disk) {
        let _ = self.disk.set(disk);
    }

    #[inline]
    fn limit(&self) -> usize {
        let budget = self.budget.limit();
        match self.limit.load(Relaxed) {
            0 => budget / LIMIT_DIVISOR,
            // The budget may have become smaller.
            bytes => bytes.min(budget / LARGEST_LIMIT_DIVISOR),
        }
    }

    /// The store of a tree.
    pub(crate) fn new_store(&self) -> Arc<Store> {
        Arc::new(Store::new(self.space.clone(), self.budget.clone()))
    }

    /// See [`Clock::watch`](clock::Clock::watch).
    #[inline]
    pub(crate) fn watch(&self) -> Epoch {
        self.pins.clock.watch()
    }

    /// See [`Clock::has_risen`](clock::Clock::has_risen).
    #[inline]
    pub(crate) fn has_risen(&self, seen: Epoch) -> bool {
        self.pins.clock.has_risen(seen)
    }

    /// The same by another clock than the system's.
    pub(crate) fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.pins.set_time(Time::new(clock));
        self
    }

    /// The time by which entries expire.
    pub(crate) fn time(&self) -> &Time {
        self.pins.time()
    }

    /// What has expired by then is absent for every snapshot that is open or begins later, and for
    /// who reads what is newest. Never goes back. Cost: the clock and a short lock.
    pub(crate) fn horizon(&self) -> Millis {
        self.pins.horizon()
    }

    /// I11: no snapshot begins while the answer lives. Waits for a begin, which is short.
    pub(crate) fn gate(&self) -> Gate<'_> {
        self.pins.gate()
    }

    /// Begins a snapshot. Waits for the batches that are being applied.
    pub(crate) fn begin(&self) -> Arc<Pin> {
        self.pins.begin()
    }

    /// For a commit that holds the gate; `None`: the snapshot was given up.
    pub(crate) fn spare<'a>(&self, pin: &'a Pin) -> Option<Spared<'a>> {
        self.pins.spare(pin)
    }

    /// Ends a snapshot.
    pub(crate) fn end(&self, pin: &Pin) {
        let worthwhile = || {
            let bytes = self.space.bytes();
            bytes > self.limit() / WORTHWHILE_DIVISOR || self.space.disk_bytes() > 0
        };
        if self.pins.end(pin) && worthwhile() {
            self.collect();
            self.look_at.store(0, Relaxed);
        }
    }

    /// No snapshot that is open, or begins later, has an epoch below this one.
    pub(crate) fn oldest(&self) -> Epoch {
        self.pins.oldest()
    }

    /// Leaves an image of `key` in `store`; see [`Store::push`]. Where images pass what they may
    /// take, the oldest snapshots are given up. True when it is time to spill.
    pub(crate) fn push(&self, store: &Arc<Store>, key: &[u8], until: Epoch, image: &Image) -> bool {
        if store.push(self.memory(), key, until, image.borrowed(), &self.pins) {
            self.stores.lock().push(Arc::downgrade(store));
        }
        self.keep_limit()
    }

    /// The same for who holds the leaf latch of `key`; see [`Store::try_push`]. The caller calls
    /// [`Versions::keep_limit`] when it has given the latch up.
    pub(crate) fn try_push(
        &self,
        store: &Store,
        key: &[u8],
        until: Epoch,
        image: ImageRef<'_>,
    ) -> bool {
        store.try_push(key, until, image, &self.pins)
    }

    /// Leaves in `store` that all keys of `[from, to)` are absent; see [`Store::push_span`]. Where
    /// spans pass what they may take, the oldest snapshots are given up.
    pub(crate) fn push_span(&self, store: &Arc<Store>, from: &[u8], to: &[u8]) {
        let watch = self.watch();
        if watch != 0 && store.push_span(self.memory(), from, to, watch, self.oldest()) {
            self.stores.lock().push(Arc::downgrade(store));
        }
        let most = self.limit() / SPANS_DIVISOR;
        if self.space.span_bytes() > most {
            self.collect();
        }
        while self.space.span_bytes() > most && self.give_up_oldest() {}
    }

    /// Replaces markers by images of `bytes`; see [`Store::resolve`]. The oldest snapshots are
    /// given up before that many would pass what images may take. Whoever can spill instead asks
    /// [`Versions::has_room_for`] first; writers may use that room up meanwhile.
    pub(crate) fn resolve<'a>(
        &self,
        store: &Store,
        bytes: usize,
        found: impl Iterator<Item = (&'a crate::key::Key, Image)>,
    ) {
        let most = self.most();
        if self.space.bytes() + bytes > most {
            self.collect();
        }
        while self.space.bytes() + bytes > most && self.give_up_oldest() {}
        if self.watch() != 0 {
            store.resolve(found);
        }
        self.keep_limit();
    }

    /// Looks at the images each time that they have grown by a part of their limit; gives up the
    /// oldest snapshots while they are past what they may take. True when it is time to spill.
    #[inline]
    pub(crate) fn keep_limit(&self) -> bool {
        self.space.bytes() > self.look_at.load(Relaxed) && self.make_room()
    }

    /// The limit of the budget has changed: images keep to the one that follows from it. True when
    /// it is time to spill; where nothing is spilled, the oldest snapshots are given up.
    pub(crate) fn follow_budget(&self) -> bool {
        match self.disk() {
            Some(_) => self.is_crowded(),
            None => {
                self.look_at.store(0, Relaxed);
                self.keep_limit()
            }
        }
    }

    #[cold]
    fn make_room(&self) -> bool {
        let (limit, most) = (self.limit(), self.most());
        self.collect();
        while self.space.bytes() > most && self.give_up_oldest() {}
        let look_at = self.space.bytes() + limit / LOOKS_DIVISOR;
        self.look_at.store(look_at.min(most), Relaxed);
        self.is_crowded()
    }

    /// What images may take in memory before the oldest snapshot is given up.
    fn most(&self) -> usize {
        match self.disk().is_some() {
            true => self.budget.limit() / LARGEST_LIMIT_DIVISOR,
            false => self.limit(),
        }
    }

    /// Room for `bytes` of images that are left together, if they can be spilled. Who leaves them
    /// keeps the answer until then: so batches of several threads do not pass together what each
    /// of them would not pass.
    pub(crate) fn promise(&self, bytes: usize) -> Option<Promise<'_>> {
        let promised = self.promised.fetch_add(bytes, Relaxed) + bytes;
        let promise = Promise {
            promised: &self.promised,
            bytes,
        };
        self.may_overdraw(promised).then_some(promise)
    }

    /// An image of so many bytes may be left, because it can be spilled.
    pub(crate) fn may_overdraw(&self, bytes: usize) -> bool {
        self.disk().is_some() && self.space.bytes() + bytes <= self.most()
    }

    // --- spilling ---------------------------------------------------------------------

    /// Where images are spilled.
    pub(crate) fn disk(&self) -> Option<&Disk> {
        self.disk.get().filter(|disk| disk.limit > 0)
    }

    /// So many are in memory that some are to be spilled.
    pub(crate) fn is_crowded(&self) -> bool {
        self.disk().is_some() && self.space.bytes() > self.limit() / SPILL_DIVISOR
    }

    /// So many are in memory that writers wait.
    pub(crate) fn is_full(&self) -> bool {
        !self.has_room_for(0) && self.disk().is_some()
    }

    /// Images of so many bytes more stay below the limit.
    #[inline]
    pub(crate) fn has_room_for(&self, bytes: usize) -> bool {
        self.space.bytes() + bytes <= self.limit()
    }

    /// The open epochs, ascending.
    pub(crate) fn epochs(&self) -> Vec<Epoch> {
        self.pins.epochs()
    }

    /// Something was spilled: gives up the oldest snapshots while the files take more than they
    /// may.
    pub(crate) fn spilled(&self) {
        self.look_at.store(0, Relaxed);
        let limit = self.disk().map_or(0, |disk| disk.limit);
        while self.space.disk_bytes() > limit && self.give_up_oldest() {}
    }

    /// What files may still take on disk.
    pub(crate) fn disk_room(&self) -> u64 {
        let limit = self.disk().map_or(0, |disk| disk.limit);
        limit.saturating_sub(self.space.disk_bytes())
    }

    /// Gives up the oldest snapshot that is not spared, and drops what only it needed; false if
    /// there is none.
    pub(crate) fn give_up_oldest(&self) -> bool {
        let any = self.pins.expire_oldest();
        if any {
            self.collect();
        }
        any
    }

    /// Bytes of spans in memory.
    pub(crate) fn span_bytes(&self) -> usize {
        self.space.span_bytes()
    }

    /// Bytes of images in memory, and on disk.
    pub(crate) fn bytes(&self) -> (usize, u64) {
        (self.space.bytes(), self.space.disk_bytes())
    }

    /// Gives every snapshot up, but those that are spared: writers need the memory, or an image
    /// cannot be kept. True if there was one.
    pub(crate) fn give_up_all(&self) -> bool {
        let mut any = false;
        while self.pins.expire_oldest() {
            any = true;
        }
        let kept = self.space.bytes() > 0 || self.space.disk_bytes() > 0;
        self.collect();
        any || kept
    }

    /// Drops what no open snapshot needs.
    pub(crate) fn collect(&self) {
        let mut stores = self.stores.lock();
        let oldest = self.oldest();
        stores.retain(|store| store.upgrade().is_some_and(|store| !store.collect(oldest)));
    }
}

#[cfg(test)]
mod tests;
