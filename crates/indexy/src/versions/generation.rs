//! Images that were left in the same stretch of time: a memory index from keys to chains.
//!
//! Keeps nothing by itself: `store.rs` says who may do what when. A generation is dropped whole.

#![forbid(unsafe_code)]

use super::{
    chain::{self, Image, ImageRef},
    clock::Epoch,
    pins::Pins,
};
use crate::{
    key::Key,
    mem::Memory,
    x::{Chunk, IndexX, Lookup, Order, ScanLimits, art::Art},
};
use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{
            AtomicU64, AtomicUsize,
            Ordering::{Relaxed, SeqCst},
        },
    },
};

/// Memory of an entry beside key and chain.
const ENTRY_BYTES: usize = 16;

/// How much one scan of a generation reads.
pub(super) const SCAN: ScanLimits = ScanLimits {
    bytes: 64 << 10,
    entries: 1024,
    leaves: 1024,
    leaves_if_mounted: 1024,
};

/// See the module header.
pub(crate) struct Generation {
    images: Art,
    /// No image has a larger `until`.
    newest: AtomicU64,
    /// Of keys and chains.
    bytes: AtomicUsize,
    /// Markers that were left and not replaced; those that were trimmed count, too.
    markers: AtomicUsize,
}

/// Generations that take no more images.
pub(crate) struct Frozen(pub(super) Vec<Arc<Generation>>);

impl Frozen {
    /// Whether there may be a marker: then the run lock is needed to spill them.
    pub(crate) fn has_markers(&self) -> bool {
        self.0.iter().any(|generation| generation.has_markers())
    }
}

/// A part of a generation.
#[derive(Default)]
pub(super) struct Part {
    /// Keys and chains, in the order of the scan.
    pub(super) entries: Vec<(Key, crate::key::Value)>,
    /// Where the rest begins, or, descending, ends.
    pub(super) resume: Option<Vec<u8>>,
}

/// How the size of a generation changed.
#[derive(Debug, Default)]
#[must_use]
pub(super) struct Resized {
    more: usize,
    less: usize,
}

impl Resized {
    /// Changes `bytes` by as much.
    pub(super) fn count(&self, bytes: &AtomicUsize) {
        if self.more > 0 {
            bytes.fetch_add(self.more, Relaxed);
        }
        if self.less > 0 {
            bytes.fetch_sub(self.less, Relaxed);
        }
    }
}

/// Raises `newest` to `until`. A line that others read is written when snapshots have begun, not
/// for every image.
#[inline]
pub(super) fn raise(newest: &AtomicU64, until: Epoch) {
    if newest.load(SeqCst) < until {
        newest.fetch_max(until, SeqCst);
    }
}

impl Generation {
    pub(super) fn new(memory: Arc<Memory>) -> Self {
        Self {
            images: Art::new(memory, false),
            newest: AtomicU64::new(0),
            bytes: AtomicUsize::new(0),
            markers: AtomicUsize::new(0),
        }
    }

    pub(super) fn memory(&self) -> &Arc<Memory> {
        &self.images.memory
    }

    pub(super) fn has_markers(&self) -> bool {
        self.markers.load(SeqCst) > 0
    }

    pub(super) fn newest(&self) -> Epoch {
        self.newest.load(SeqCst)
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Bytes in the arena.
    pub(super) fn arena_bytes(&self) -> usize {
        self.images.stats().bytes
    }

    /// The chain of `key`, handed to `read`; that of a key without images is empty.
    pub(super) fn chain<R>(&self, key: &[u8], read: impl Fn(&[u8]) -> R) -> R {
        match self.images.get(key, &read) {
            Lookup::Found(r) => r,
            _ => read(&[]),
        }
    }

    /// What snapshot `epoch` sees of `key`, and up to which epoch; `None`: the generation says
    /// nothing about it.
    #[inline]
    pub(super) fn at(&self, key: &[u8], epoch: Epoch) -> Option<(Epoch, Image)> {
        match self.images.get(key, |chain| chain::at(chain, epoch)) {
            Lookup::Found(found) => found,
            _ => None,
        }
    }

    /// Adds an image to those of `key`, unless it has one with this `until` or a larger one. One
    /// thread at a time for each key. Older images that no open snapshot needs make room for it.
    /// Tells what it took. Cost: a write; with others a search and a write more.
    pub(super) fn push(
        &self,
        key: &[u8],
        until: Epoch,
        image: ImageRef<'_>,
        open: &Pins,
    ) -> Resized {
        // Before the image is there: whoever finds the newest one older does not look for it.
        raise(&self.newest, until);
        let oldest = open.oldest();
        let pushed = chain::alone(until, image, |chain| {
            let mut replaced = 0;
            let put = self.images.put_over(key, Some(chain), |before| {
                let mut newest = 0;
                let mut found = |chain: &[u8]| {
                    (newest, replaced) = (chain::newest(chain), chain.len());
                };
                match before.look(&mut found) {
                    Lookup::Found(()) if newest > oldest.min(until.saturating_sub(1)) => {
                        Err(newest)
                    }
                    _ => {
                        self.count_marker(image);
                        Ok(())
                    }
                }
            });
            put.map(|_| match replaced {
                0 => (0, key.len() + ENTRY_BYTES + chain.len()),
                before => (before, chain.len()),
            })
        });
        match pushed {
            Ok((before, after)) => self.resized(before, after),
            Err(newest) if newest >= until => Resized::default(),
            Err(_) => self.push_to_others(key, until, image, &open.epochs()),
        }
    }

    /// The same where `key` has images, which are older.
    #[inline(never)]
    fn push_to_others(
        &self,
        key: &[u8],
        until: Epoch,
        image: ImageRef<'_>,
        open: &[Epoch],
    ) -> Resized {
        self.count_marker(image);
        let (before, chain) =
            self.chain(key, |old| (old.len(), chain::with(old, open, until, image)));
        self.write(key, &chain);
        self.resized(before, chain.len())
    }

    /// Before `image` can be found.
    #[inline]
    fn count_marker(&self, image: ImageRef<'_>) {
        if image == ImageRef::InY {
            self.markers.fetch_add(1, SeqCst);
        }
    }

    /// Replaces the markers of `key`. Nobody pushes meanwhile. Tells what it took.
    pub(super) fn resolve(&self, key: &[u8], image: &Image) -> Resized {
        let (before, (chain, replaced)) = self.chain(key, |old| {
            (old.len(), chain::resolved(old, image.borrowed()))
        });
        if replaced == 0 {
            return Resized::default();
        }
        self.write(key, &chain);
        self.markers.fetch_sub(replaced, SeqCst);
        self.resized(before, chain.len())
    }

    /// A chain of `before` bytes takes `after` ones.
    fn resized(&self, before: usize, after: usize) -> Resized {
        let resized = Resized {
            more: after.saturating_sub(before),
            less: before.saturating_sub(after),
        };
        resized.count(&self.bytes);
        resized
    }

    fn write(&self, key: &[u8], chain: &[u8]) {
        let Ok(_) = self
            .images
            .put(key, Some(chain), || Ok::<(), Infallible>(()));
    }

    /// Keys and chains of `[from, to)`, a bounded part of them.
    pub(super) fn scan(&self, from: &[u8], to: Option<&[u8]>, order: Order) -> Part {
        let mut chunk = Chunk::default();
        self.images.scan(from, to, order, SCAN, &mut chunk);
        let entries = chunk.entries.into_iter();
        Part {
            entries: entries
                .filter_map(|entry| Some((entry.key, entry.value?)))
                .collect(),
            resume: chunk.resume,
        }
    }

    /// See [`IndexX::relocate`].
    pub(super) fn relocate(&self) {
        self.images.relocate();
    }
}
