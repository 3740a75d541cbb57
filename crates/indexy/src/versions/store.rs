//! The images of one tree.
//!
//! By age: *files* on disk, *frozen* generations in memory, and the *current* one, to which images
//! go. What no open snapshot needs is dropped, a file or a generation as a whole. The current
//! generation is frozen once it has some size and none is, so that memory comes back while there is
//! always a snapshot open, as with many short transactions; and to be spilled.
//!
//! Threads. A push holds the lock of the generations shared, and the stripe of its key; who holds a
//! leaf latch of the tree as well takes that lock only if it is free. Whoever replaces one of them,
//! or markers, holds it alone, and for no I/O. Readers hold nothing (`look.rs`). A generation or
//! file is dropped only if all of its images have `until <= oldest`: no open snapshot looks for
//! them, and none that begins later. Nothing in a generation goes while a reader may hold it: it is
//! replaced as a whole.
//!
//! Keeps I10, I12 and I13 with `framework/snapshots.rs`.

#![forbid(unsafe_code)]

use super::{
    chain::{Image, ImageRef},
    clock::{Epoch, Left},
    generation::{Frozen, Generation, raise},
    generations::Generations,
    pins::Pins,
    spans::Spans,
    spilled::Spilled,
    written::Written,
};
use crate::{
    key::Key,
    mem::{Memory, budget::Budget},
};
use arc_swap::ArcSwapOption;
use parking_lot::{Mutex, RwLock};
use std::sync::{
    Arc,
    atomic::{
        AtomicU64, AtomicUsize,
        Ordering::{Relaxed, SeqCst},
    },
};

/// A generation below this size is not followed by another one, unless it is to be spilled.
const LEAST_GENERATION_BYTES: usize = 64 << 10;

/// What the images of all trees take together.
#[derive(Debug, Default)]
pub(crate) struct Space {
    bytes: AtomicUsize,
    /// On disk: of files that readers are shown. One that is not goes when its last reader does.
    disk: AtomicU64,
    /// Of spans.
    spans: AtomicUsize,
}

impl Space {
    /// Bytes of keys and images in memory.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Bytes on disk.
    pub(crate) fn disk_bytes(&self) -> u64 {
        self.disk.load(Relaxed)
    }

    /// Bytes of spans in memory.
    pub(crate) fn span_bytes(&self) -> usize {
        self.spans.load(Relaxed)
    }
}

/// See the module header.
pub(crate) struct Store {
    pub(super) space: Arc<Space>,
    pub(super) generations: ArcSwapOption<Generations>,
    /// The same, for who pushes and who replaces; see the module header.
    replacing: RwLock<Option<Arc<Generations>>>,
    /// Held by a spill. After the run lock, before `replacing`.
    pub(super) spilling: Mutex<()>,
    /// Held by a merge; the same. How many files there were when one failed.
    pub(super) merging: Mutex<usize>,
    /// No image has a larger `until`.
    newest: AtomicU64,
    left: Left,
    budget: Arc<Budget>,
}

impl Store {
    pub(crate) fn new(space: Arc<Space>, budget: Arc<Budget>) -> Self {
        Self {
            space,
            budget,
            generations: ArcSwapOption::empty(),
            replacing: RwLock::new(None),
            spilling: Mutex::new(()),
            merging: Mutex::new(0),
            newest: AtomicU64::new(0),
            left: Left::new(),
        }
    }

    /// See [`Left::so_far`].
    #[inline]
    pub(crate) fn left_so_far(&self) -> u64 {
        self.left.so_far()
    }

    /// Nothing was written since `epoch`. Cost: one load.
    #[inline]
    pub(crate) fn is_unchanged_since(&self, epoch: Epoch) -> bool {
        self.newest.load(SeqCst) <= epoch
    }

    /// The largest `until` of the images of `key` in memory, if it is above `since`; if not,
    /// something up to `since`. Cost: a load, or a search in each generation with a newer image.
    pub(crate) fn newest_in_memory(&self, key: &[u8], since: Epoch) -> Epoch {
        let generations = self.generations.load();
        let generations = generations.as_ref();
        generations.map_or(0, |all| all.newest_in_memory(key, since))
    }

    /// Leaves an image of `key` for the snapshots open at the watch `until`, unless it has one in
    /// memory for them. The caller holds the stripe of `key`. Cost: a write in memory, and with
    /// older images that an open snapshot may need a search and a write more. True when these are
    /// the first images of the store.
    pub(super) fn push(
        &self,
        memory: &Arc<Memory>,
        key: &[u8],
        until: Epoch,
        image: ImageRef<'_>,
        open: &Pins,
    ) -> bool {
        let mut first = false;
        loop {
            let pushing = self.replacing.read();
            if let Some(generations) = &*pushing {
                self.push_to_current(generations, key, until, image, open);
                return first;
            }
            drop(pushing);
            first |= self.begin(memory);
        }
    }

    /// As [`Store::push`], for who holds a leaf's latch of the tree: waits for nobody. False where
    /// it had to, and where the store has no images yet; then nothing was done.
    #[inline]
    pub(super) fn try_push(
        &self,
        key: &[u8],
        until: Epoch,
        image: ImageRef<'_>,
        open: &Pins,
    ) -> bool {
        match self.replacing.try_read().as_deref() {
            Some(Some(generations)) => {
                self.push_to_current(generations, key, until, image, open);
                true
            }
            _ => false,
        }
    }

    /// The caller shares the lock of the generations.
    #[inline]
    fn push_to_current(
        &self,
        generations: &Generations,
        key: &[u8],
        until: Epoch,
        image: ImageRef<'_>,
        open: &Pins,
    ) {
        if generations.newest_beside_current(key, until.saturating_sub(1)) >= until {
            return;
        }
        // Before the image is there, and so before the write: a reader who sees the write looks for
        // the image.
        raise(&self.newest, until);
        generations.written.raise(key, until);
        let resized = generations.current.push(key, until, image, open);
        resized.count(&self.space.bytes);
        self.left.count();
    }

    /// Makes the first generation, if there is none.
    fn begin(&self, memory: &Arc<Memory>) -> bool {
        let mut replacing = self.replacing.write();
        if replacing.is_some() {
            return false;
        }
        self.show(
            &mut replacing,
            Some(Generations {
                files: Vec::new(),
                frozen: Vec::new(),
                current: Arc::new(Generation::new(memory.clone())),
                spans: Spans::default(),
                written: Arc::new(Written::new(self.budget.clone())),
            }),
        );
        true
    }

    /// From here on these are the generations.
    fn show(&self, replacing: &mut Option<Arc<Generations>>, next: Option<Generations>) {
        *replacing = next.map(Arc::new);
        self.generations.store(replacing.clone());
    }

    /// All keys of `[from, to)` are absent, for the snapshots open at the watch `watch`. The caller
    /// holds all stripes and the gate. Spans that no snapshot from `oldest` on needs go: nothing
    /// else may come by that counts them. True when these are the first images of the store.
    pub(crate) fn push_span(
        &self,
        memory: &Arc<Memory>,
        from: &[u8],
        to: &[u8],
        watch: Epoch,
        oldest: Epoch,
    ) -> bool {
        // The watch falls when snapshots end. No snapshot is open, or begins, in between.
        let until = self.newest.fetch_max(watch, SeqCst).max(watch);
        let (mut first, mut left) = (false, false);
        // What is begun may be dropped at once: it has no images.
        while !left {
            first |= self.begin(memory);
            self.replace(|mut next| {
                left = true;
                next.written.raise_all(until);
                next.spans.collect(oldest);
                next.spans.push(&self.budget, from, to, until);
                Some(next)
            });
        }
        self.left.count();
        first
    }

    #[cfg(test)]
    pub(super) fn spans(&self) -> usize {
        let mut spans = 0;
        self.replace(|next| {
            spans = next.spans.len();
            Some(next)
        });
        spans
    }

    /// Replaces the markers of these keys by what Y had.
    pub(crate) fn resolve<'a>(&self, found: impl Iterator<Item = (&'a Key, Image)>) {
        let alone = self.replacing.write();
        if let Some(generations) = &*alone {
            for (key, image) in found {
                for generation in generations.in_memory() {
                    generation.resolve(key, &image).count(&self.space.bytes);
                }
            }
        }
    }

    /// Drops the images that no snapshot from `oldest` on needs. True when none are left.
    pub(crate) fn collect(&self, oldest: Epoch) -> bool {
        let done = |newest: Epoch| newest <= oldest;
        self.replace(|mut next| {
            next.files.retain(|file| !done(file.newest()));
            next.frozen.retain(|frozen| !done(frozen.newest()));
            next.spans.collect(oldest);
            let none_older = next.frozen.is_empty();
            let nothing_else = none_older && next.files.is_empty() && next.spans.is_empty();
            if nothing_else && done(next.current.newest()) {
                return None;
            }
            if none_older && next.current.bytes() > LEAST_GENERATION_BYTES {
                next.freeze();
            }
            Some(next)
        })
    }

    /// Drops all images: nobody will ask for them.
    pub(crate) fn clear(&self) {
        self.replace(|_| None);
    }

    /// Replaces the generations by what `step` makes of them; true when none are left.
    fn replace(&self, step: impl FnOnce(Generations) -> Option<Generations>) -> bool {
        let mut replacing = self.replacing.write();
        let Some(generations) = replacing.clone() else {
            return true;
        };
        let (before, disk_before) = (generations.bytes(), generations.disk_bytes());
        let spans_before = generations.spans.bytes();
        let next = step(Generations::clone(&generations));
        let after = next.as_ref().map_or(0, Generations::bytes);
        let disk_after = next.as_ref().map_or(0, Generations::disk_bytes);
        let spans_after = next.as_ref().map_or(0, |next| next.spans.bytes());
        let empty = next.is_none();
        self.show(&mut replacing, next);
        self.space.bytes.fetch_sub(before - after, Relaxed);
        self.space.disk.fetch_add(disk_after, Relaxed);
        self.space.disk.fetch_sub(disk_before, Relaxed);
        self.space.spans.fetch_add(spans_after, Relaxed);
        self.space.spans.fetch_sub(spans_before, Relaxed);
        // Freeing may take a while.
        drop(replacing);
        empty
    }

    // --- for spills and merges --------------------------------------------------------

    /// Images from here on go to a generation of their own; the others are returned.
    pub(crate) fn freeze(&self) -> Frozen {
        let mut frozen = Vec::new();
        self.replace(|mut next| {
            if next.current.bytes() > 0 {
                next.freeze();
            }
            frozen.clone_from(&next.frozen);
            Some(next)
        });
        Frozen(frozen)
    }

    /// Those of `frozen` that are still there.
    pub(super) fn still_frozen(&self, frozen: &Frozen) -> Vec<Arc<Generation>> {
        let generations = self.generations.load();
        let Some(generations) = generations.as_ref() else {
            return Vec::new();
        };
        let asked = |one: &&Arc<Generation>| frozen.0.iter().any(|f| Arc::ptr_eq(f, one));
        generations.frozen.iter().filter(asked).cloned().collect()
    }

    /// `file` takes the place of `spilled`, as far as these are still there.
    pub(super) fn show_spilled(&self, spilled: &[Arc<Generation>], file: Option<Arc<Spilled>>) {
        self.replace(|mut next| {
            let before = next.frozen.len();
            let is_in = |one: &Arc<Generation>| spilled.iter().any(|s| Arc::ptr_eq(s, one));
            next.frozen.retain(|frozen| !is_in(frozen));
            if next.frozen.len() < before {
                next.files.extend(file);
            }
            Some(next)
        });
    }

    /// The files, the oldest one first.
    pub(super) fn files(&self) -> Vec<Arc<Spilled>> {
        let generations = self.generations.load();
        let generations = generations.as_ref();
        generations.map_or_else(Vec::new, |all| all.files.clone())
    }

    /// `file` takes the place of `merged`, which are neighbours, as far as these are still there.
    pub(super) fn show_merged(&self, merged: &[Arc<Spilled>], file: Option<Arc<Spilled>>) {
        self.replace(|mut next| {
            let is_in = |one: &Arc<Spilled>| merged.iter().any(|m| Arc::ptr_eq(m, one));
            let first = next.files.iter().position(is_in);
            next.files.retain(|file| !is_in(file));
            if let (Some(at), Some(file)) = (first, file) {
                next.files.insert(at, file);
            }
            Some(next)
        });
    }

    // --- figures ----------------------------------------------------------------------

    /// Bytes of keys and images in memory.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        let generations = self.generations.load();
        generations.as_ref().map_or(0, |all| all.bytes())
    }

    /// Bytes in the arena.
    pub(crate) fn arena_bytes(&self) -> usize {
        let generations = self.generations.load();
        let all = generations
            .iter()
            .flat_map(|generations| generations.in_memory());
        all.map(|generation| generation.arena_bytes()).sum()
    }

    /// Bytes of memory that the open files take.
    pub(crate) fn file_memory_bytes(&self) -> usize {
        let generations = self.generations.load();
        let files = generations.iter().flat_map(|all| &all.files);
        files.map(|file| file.memory_bytes()).sum()
    }

    /// See [`IndexX::relocate`](crate::x::IndexX::relocate).
    pub(crate) fn relocate(&self) {
        if let Some(generations) = self.generations.load_full() {
            generations
                .in_memory()
                .for_each(|generation| generation.relocate());
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let generations = self.generations.load();
        let (bytes, disk) = generations
            .as_ref()
            .map_or((0, 0), |all| (all.bytes(), all.disk_bytes()));
        self.space.bytes.fetch_sub(bytes, Relaxed);
        self.space.disk.fetch_sub(disk, Relaxed);
    }
}
