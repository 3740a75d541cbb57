//! The images of one tree.
//!
//! Two generations: images go to the *current* one; when no open snapshot needs the *older* one it
//! is dropped, and the current one takes its place once it has some size. So memory comes back
//! while there is always a snapshot open, as with many short transactions.
//!
//! Threads. A push holds the lock of the generations shared, and the stripe of its key. Whoever
//! drops a generation, or replaces markers, holds it alone. Readers hold nothing: they take the
//! generations as they are after they have read the newest value, so that they find the image of
//! whatever write they saw (I10). A generation is dropped only if all of its images have
//! `until <= oldest`: no open snapshot looks for them, and none that begins later.
//!
//! Keeps I10, I12 and I13 with `framework/snapshots.rs`.

#![forbid(unsafe_code)]

use super::{
    chain::{self, Image},
    clock::Epoch,
    generation::Generation,
};
use crate::{key::Key, mem::Memory, x::Order};
use arc_swap::ArcSwapOption;
use parking_lot::RwLock;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{
            AtomicU64, AtomicUsize,
            Ordering::{Relaxed, SeqCst},
        },
    },
};

/// A generation below this size is not followed by another one.
const LEAST_GENERATION_BYTES: usize = 64 << 10;

/// What the images of all trees take together.
#[derive(Debug, Default)]
pub(crate) struct Space {
    bytes: AtomicUsize,
}

impl Space {
    /// Bytes of keys and images.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }
}

struct Generations {
    older: Option<Arc<Generation>>,
    current: Arc<Generation>,
}

impl Generations {
    /// The older one first.
    fn all(&self) -> impl Iterator<Item = &Arc<Generation>> {
        self.older.iter().chain(std::iter::once(&self.current))
    }

    fn newest_of(&self, key: &[u8]) -> Epoch {
        self.all()
            .map(|generation| generation.chain(key, chain::newest))
            .max()
            .unwrap_or(0)
    }

    fn bytes(&self) -> usize {
        self.all().map(|generation| generation.bytes()).sum()
    }
}

/// See the module header.
pub(crate) struct Store {
    space: Arc<Space>,
    generations: ArcSwapOption<Generations>,
    /// See the module header.
    replacing: RwLock<()>,
    /// No image has a larger `until`.
    newest: AtomicU64,
}

/// Images of a range, as one snapshot sees them.
pub(crate) struct Seen {
    /// In the order of the scan.
    pub(crate) images: Vec<(Key, Image)>,
    /// Where the rest begins, or, descending, ends; `None`: this is all.
    pub(crate) resume: Option<Vec<u8>>,
}

impl Store {
    pub(crate) fn new(space: Arc<Space>) -> Self {
        Self {
            space,
            generations: ArcSwapOption::empty(),
            replacing: RwLock::new(()),
            newest: AtomicU64::new(0),
        }
    }

    /// Nothing was written since `epoch`. Cost: one load.
    #[inline]
    pub(crate) fn is_unchanged_since(&self, epoch: Epoch) -> bool {
        self.newest.load(SeqCst) <= epoch
    }

    /// The largest `until` of the images of `key`; 0: it has none.
    pub(crate) fn newest_of(&self, key: &[u8]) -> Epoch {
        let generations = self.generations.load();
        generations.as_ref().map_or(0, |all| all.newest_of(key))
    }

    /// Leaves an image of `key` for the snapshots open at the watch `until`; the newest one it has
    /// is older. The caller holds the stripe of `key`. `open`: the open epochs; `None`: the key has
    /// no images. Cost: a write in memory, and with other images a search. True when these are the
    /// first images of the store.
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
            older: None,
            current: Arc::new(Generation::new(memory.clone())),
        })));
        true
    }

    /// What snapshot `epoch` sees under `key`; `None`: what is there now. To be called after the
    /// newest value was read.
    pub(crate) fn at(&self, key: &[u8], epoch: Epoch) -> Option<Image> {
        if self.is_unchanged_since(epoch) {
            return None;
        }
        let generations = self.generations.load();
        let generations = generations.as_ref()?;
        generations
            .all()
            .find_map(|generation| generation.chain(key, |chain| chain::at(chain, epoch)))
    }

    /// The same for the keys of `[from, to)`, a bounded part of them.
    pub(crate) fn range_at(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        order: Order,
        epoch: Epoch,
    ) -> Seen {
        let mut seen = Seen {
            images: Vec::new(),
            resume: None,
        };
        if self.is_unchanged_since(epoch) {
            return seen;
        }
        let generations = self.generations.load_full();
        let Some(generations) = generations else {
            return seen;
        };
        let parts: Vec<_> = generations
            .all()
            .map(|generation| generation.scan(from, to, order))
            .collect();
        // As far as all of them went.
        let ends = parts.iter().filter_map(|part| part.resume.as_ref());
        seen.resume = match order {
            Order::Ascending => ends.min().cloned(),
            Order::Descending => ends.max().cloned(),
        };
        let covered = |key: &[u8]| match (&seen.resume, order) {
            (None, _) => true,
            (Some(end), Order::Ascending) => key < &end[..],
            (Some(end), Order::Descending) => key >= &end[..],
        };
        let mut images = BTreeMap::new();
        // The older one first: of two images the one with the smaller `until` is seen.
        for (key, chain) in parts.iter().flat_map(|part| &part.entries) {
            if covered(key)
                && let Some(image) = chain::at(chain, epoch)
            {
                images.entry(key.clone()).or_insert(image);
            }
        }
        seen.images = match order {
            Order::Ascending => images.into_iter().collect(),
            Order::Descending => images.into_iter().rev().collect(),
        };
        seen
    }

    /// The first key of `[from, to)` that was written since `epoch` and is not one of those to
    /// `skip`.
    pub(crate) fn written_in(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        epoch: Epoch,
        skip: impl Fn(&[u8]) -> bool,
    ) -> Option<Key> {
        if self.is_unchanged_since(epoch) {
            return None;
        }
        let generations = self.generations.load_full()?;
        generations.all().find_map(|generation| {
            walk(generation, from, to, |key, chain| {
                (chain::newest(chain) > epoch && !skip(key)).then(|| key.clone())
            })
        })
    }

    /// Keys of `[from, to)` with a marker that a snapshot after `oldest` may need. Cost: a
    /// few loads where there is none at all; else a walk over the images of the range.
    pub(crate) fn markers(&self, from: &[u8], to: Option<&[u8]>, oldest: Epoch) -> Vec<Key> {
        let mut keys = Vec::new();
        if let Some(generations) = self.generations.load_full() {
            for generation in generations.all().filter(|g| g.has_markers()) {
                walk(generation, from, to, |key, chain| {
                    if chain::has_marker(chain, oldest) {
                        keys.push(key.clone());
                    }
                    None::<()>
                });
            }
        }
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Replaces the markers of these keys by what Y had.
    pub(crate) fn resolve<'a>(&self, found: impl Iterator<Item = (&'a Key, Image)>) {
        let _alone = self.replacing.write();
        if let Some(generations) = self.generations.load_full() {
            for (key, image) in found {
                for generation in generations.all() {
                    generation.resolve(key, &image).count(&self.space.bytes);
                }
            }
        }
    }

    /// Drops the images that no snapshot from `oldest` on needs. True when none are left.
    pub(crate) fn collect(&self, oldest: Epoch) -> bool {
        let alone = self.replacing.write();
        let Some(generations) = self.generations.load_full() else {
            return true;
        };
        let done = |generation: &Generation| generation.newest() <= oldest;
        let before = generations.bytes();
        let older = generations.older.as_ref().filter(|older| !done(older));
        let next = if older.is_none() && done(&generations.current) {
            None
        } else if older.is_none() && generations.current.bytes() > LEAST_GENERATION_BYTES {
            let memory = generations.current.memory().clone();
            Some(Generations {
                older: Some(generations.current.clone()),
                current: Arc::new(Generation::new(memory)),
            })
        } else {
            Some(Generations {
                older: older.cloned(),
                current: generations.current.clone(),
            })
        };
        let after = next.as_ref().map_or(0, Generations::bytes);
        let empty = next.is_none();
        self.generations.store(next.map(Arc::new));
        self.space.bytes.fetch_sub(before - after, Relaxed);
        // Freeing may take a while.
        drop(alone);
        empty
    }

    /// Bytes in the arena.
    pub(crate) fn arena_bytes(&self) -> usize {
        let generations = self.generations.load();
        let all = generations.iter().flat_map(|generations| generations.all());
        all.map(|generation| generation.arena_bytes()).sum()
    }

    /// See [`IndexX::relocate`](crate::x::IndexX::relocate).
    pub(crate) fn relocate(&self) {
        if let Some(generations) = self.generations.load_full() {
            generations
                .all()
                .for_each(|generation| generation.relocate());
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let generations = self.generations.load();
        let bytes = generations.as_ref().map_or(0, |all| all.bytes());
        self.space.bytes.fetch_sub(bytes, Relaxed);
    }
}

/// Hands the keys and chains of `[from, to)` to `visit`, until it returns something.
fn walk<R>(
    generation: &Generation,
    from: &[u8],
    to: Option<&[u8]>,
    mut visit: impl FnMut(&Key, &[u8]) -> Option<R>,
) -> Option<R> {
    let mut at = Some(from.to_vec());
    while let Some(from) = at {
        let part = generation.scan(&from, to, Order::Ascending);
        for (key, chain) in &part.entries {
            if let Some(found) = visit(key, chain) {
                return Some(found);
            }
        }
        at = part.resume;
    }
    None
}
