//! The images of one tree.
//!
//! By age: *files* on disk, *frozen* generations in memory, and the *current* one, to which images
//! go. What no open snapshot needs is dropped, a file or a generation as a whole. The current
//! generation is frozen once it has some size and none is, so that memory comes back while there is
//! always a snapshot open, as with many short transactions; and to be spilled.
//!
//! Threads. A push holds the lock of the generations shared, and the stripe of its key. Whoever
//! replaces one of them, or markers, holds it alone, and for no I/O. Readers hold nothing
//! (`look.rs`). A generation or file is dropped only if all of its images have `until <= oldest`:
//! no open snapshot looks for them, and none that begins later. Nothing in a generation goes while
//! a reader may hold it: it is replaced as a whole.
//!
//! Keeps I10, I12 and I13 with `framework/snapshots.rs`.

#![forbid(unsafe_code)]

use super::{
    chain::{self, Image},
    clock::Epoch,
    generation::{Frozen, Generation},
    spans::{Span, Spans},
    spilled::Spilled,
};
use crate::{key::Key, mem::Memory};
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
}

impl Space {
    /// Bytes of keys and images in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Bytes on disk.
    pub(crate) fn disk_bytes(&self) -> u64 {
        self.disk.load(Relaxed)
    }
}

/// The oldest one first.
#[derive(Clone)]
pub(super) struct Generations {
    pub(super) files: Vec<Arc<Spilled>>,
    frozen: Vec<Arc<Generation>>,
    current: Arc<Generation>,
    pub(super) spans: Spans,
}

impl Generations {
    pub(super) fn in_memory(&self) -> impl Iterator<Item = &Arc<Generation>> {
        self.frozen.iter().chain(std::iter::once(&self.current))
    }

    pub(super) fn newest_in_memory(&self, key: &[u8]) -> Epoch {
        self.in_memory()
            .map(|generation| generation.chain(key, chain::newest))
            .max()
            .unwrap_or(0)
            .max(self.spans.newest_of(key))
    }

    fn bytes(&self) -> usize {
        self.in_memory().map(|generation| generation.bytes()).sum()
    }

    fn disk_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes()).sum()
    }

    /// The current generation takes no more images.
    fn freeze(&mut self) {
        let next = Arc::new(Generation::new(self.current.memory().clone()));
        self.frozen.push(std::mem::replace(&mut self.current, next));
    }
}

/// See the module header.
pub(crate) struct Store {
    pub(super) space: Arc<Space>,
    pub(super) generations: ArcSwapOption<Generations>,
    /// See the module header.
    replacing: RwLock<()>,
    /// Held by a spill. After the run lock, before `replacing`.
    pub(super) spilling: Mutex<()>,
    /// Held by a merge; the same. How many files there were when one failed.
    pub(super) merging: Mutex<usize>,
    /// No image has a larger `until`.
    newest: AtomicU64,
}

impl Store {
    pub(crate) fn new(space: Arc<Space>) -> Self {
        Self {
            space,
            generations: ArcSwapOption::empty(),
            replacing: RwLock::new(()),
            spilling: Mutex::new(()),
            merging: Mutex::new(0),
            newest: AtomicU64::new(0),
        }
    }

    /// Nothing was written since `epoch`. Cost: one load.
    #[inline]
    pub(crate) fn is_unchanged_since(&self, epoch: Epoch) -> bool {
        self.newest.load(SeqCst) <= epoch
    }

    /// The largest `until` of the images of `key` in memory; 0: it has none there.
    pub(crate) fn newest_in_memory(&self, key: &[u8]) -> Epoch {
        let generations = self.generations.load();
        let generations = generations.as_ref();
        generations.map_or(0, |all| all.newest_in_memory(key))
    }

    /// Leaves an image of `key` for the snapshots open at the watch `until`; the newest one it has
    /// in memory is older. The caller holds the stripe of `key`. `open`: the open epochs; `None`:
    /// the key has no images in memory. Cost: a write in memory, and with other images a search.
    /// True when these are the first images of the store.
    pub(crate) fn push(
        &self,
        memory: &Arc<Memory>,
        key: &[u8],
        open: Option<&[Epoch]>,
        until: Epoch,
        image: &Image,
    ) -> bool {
        let mut first = false;
        loop {
            let pushing = self.replacing.read();
            if let Some(generations) = &*self.generations.load() {
                // Before the image is there, and so before the write: a reader who sees the write
                // looks for the image.
                self.newest.fetch_max(until, SeqCst);
                let resized = generations.current.push(key, open, until, image);
                resized.count(&self.space.bytes);
                return first;
            }
            drop(pushing);
            first |= self.begin(memory);
        }
    }

    /// Makes the first generation, if there is none.
    fn begin(&self, memory: &Arc<Memory>) -> bool {
        let _alone = self.replacing.write();
        if self.generations.load().is_some() {
            return false;
        }
        self.generations.store(Some(Arc::new(Generations {
            files: Vec::new(),
            frozen: Vec::new(),
            current: Arc::new(Generation::new(memory.clone())),
            spans: Spans::default(),
        })));
        true
    }

    /// All keys of `[from, to)` are absent, for the snapshots open at the watch `watch`. The caller
    /// holds all stripes and the gate. True when these are the first images of the store.
    pub(crate) fn push_span(
        &self,
        memory: &Arc<Memory>,
        from: &[u8],
        to: &[u8],
        watch: Epoch,
    ) -> bool {
        // The watch falls when snapshots end. No snapshot is open, or begins, in between.
        let until = self.newest.fetch_max(watch, SeqCst).max(watch);
        let (from, to) = (from.into(), to.into());
        let span = Span { from, to, until };
        let (mut first, mut left) = (false, false);
        // What is begun may be dropped at once: it has no images.
        while !left {
            first |= self.begin(memory);
            self.replace(|mut next| {
                left = true;
                next.spans.push(span.clone());
                Some(next)
            });
        }
        first
    }

    /// Replaces the markers of these keys by what Y had.
    pub(crate) fn resolve<'a>(&self, found: impl Iterator<Item = (&'a Key, Image)>) {
        let _alone = self.replacing.write();
        if let Some(generations) = self.generations.load_full() {
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
        let alone = self.replacing.write();
        let Some(generations) = self.generations.load_full() else {
            return true;
        };
        let (before, disk_before) = (generations.bytes(), generations.disk_bytes());
        let next = step(Generations::clone(&generations));
        let after = next.as_ref().map_or(0, Generations::bytes);
        let disk_after = next.as_ref().map_or(0, Generations::disk_bytes);
        let empty = next.is_none();
        self.generations.store(next.map(Arc::new));
        self.space.bytes.fetch_sub(before - after, Relaxed);
        self.space.disk.fetch_add(disk_after, Relaxed);
        self.space.disk.fetch_sub(disk_before, Relaxed);
        // Freeing may take a while.
        drop(alone);
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
