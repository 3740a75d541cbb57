//! Images that were left in the same stretch of time: a memory index from keys to chains.
//!
//! Keeps nothing by itself: `store.rs` says who may do what when. A generation is dropped whole.

#![forbid(unsafe_code)]

use super::{
    chain::{self, Image},
    clock::Epoch,
};
use crate::{
    key::Key,
    mem::Memory,
    x::{Chunk, IndexX, Order, ScanLimits, bptree::BPlus},
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
    images: BPlus,
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
        bytes.fetch_add(self.more, Relaxed);
        bytes.fetch_sub(self.less, Relaxed);
    }
}

impl Generation {
    pub(super) fn new(memory: Arc<Memory>) -> Self {
        Self {
            images: BPlus::new(memory, false),
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
            crate::x::Lookup::Found(r) => r,
            _ => read(&[]),
        }
    }

    /// Adds an image to those of `key`. One thread at a time for each key. `open`: the open epochs;
    /// `None`: the key has no images. Tells what it took.
    pub(super) fn push(
        &self,
        key: &[u8],
        open: Option<&[Epoch]>,
        until: Epoch,
        image: &Image,
    ) -> Resized {
        // Before the image is there: whoever finds the newest one older does not look for it.
        self.newest.fetch_max(until, SeqCst);
        if *image == Image::InY {
            self.markers.fetch_add(1, SeqCst);
        }
        let new = key.len() + ENTRY_BYTES;
        let (before, after) = match open {
            None => chain::alone(until, image, |chain| {
                self.write(key, chain);
                (0, new + chain.len())
            }),
            Some(open) => {
                let (before, chain) =
                    self.chain(key, |old| (old.len(), chain::with(old, open, until, image)));
                self.write(key, &chain);
                let new = if before == 0 { new } else { 0 };
                (before, new + chain.len())
            }
        };
        self.resized(before, after)
    }

    /// Replaces the markers of `key`. Nobody pushes meanwhile. Tells what it took.
    pub(super) fn resolve(&self, key: &[u8], image: &Image) -> Resized {
        let (before, (chain, replaced)) =
            self.chain(key, |old| (old.len(), chain::resolved(old, image)));
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
