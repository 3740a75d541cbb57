//! The files and generations that the images of one tree are in, at one moment.
//!
//! Threads: it does not change once readers see it (`store.rs`); images go to `current` beside
//! them.

#![forbid(unsafe_code)]

use super::{
    chain, clock::Epoch, generation::Generation, spans::Spans, spilled::Spilled, written::Written,
};
use std::sync::Arc;

/// The oldest one first. Changed as a whole: see `store.rs`.
#[derive(Clone)]
pub(super) struct Generations {
    pub(super) files: Vec<Arc<Spilled>>,
    pub(super) frozen: Vec<Arc<Generation>>,
    pub(super) current: Arc<Generation>,
    pub(super) spans: Spans,
    pub(super) written: Arc<Written>,
}

impl Generations {
    pub(super) fn in_memory(&self) -> impl Iterator<Item = &Arc<Generation>> {
        self.frozen.iter().chain(std::iter::once(&self.current))
    }

    /// Those that may have an image above `since`. Cost: a load each.
    #[inline]
    pub(super) fn in_memory_since(&self, since: Epoch) -> impl Iterator<Item = &Arc<Generation>> {
        let newer = move |generation: &&Arc<Generation>| generation.newest() > since;
        self.in_memory().filter(newer)
    }

    /// The current generation, if there is nothing else.
    #[inline]
    pub(super) fn all_in_current(&self) -> Option<&Generation> {
        let alone = self.files.is_empty() && self.frozen.is_empty() && self.spans.is_empty();
        alone.then_some(&*self.current)
    }

    /// The largest `until` of the images of `key` in memory, if it is above `since`; if not,
    /// something up to `since`.
    pub(super) fn newest_in_memory(&self, key: &[u8], since: Epoch) -> Epoch {
        if self.written.is_unchanged_since(key, since) {
            return 0;
        }
        let newer = self.in_memory_since(since);
        let newest = newer.map(|generation| generation.chain(key, chain::newest));
        newest.max().unwrap_or(0).max(self.spans.newest_of(key))
    }

    /// The same of all but the current generation.
    #[inline]
    pub(super) fn newest_beside_current(&self, key: &[u8], since: Epoch) -> Epoch {
        if self.frozen.is_empty() && self.spans.is_empty() {
            return 0;
        }
        let newer = self.frozen.iter().filter(|frozen| frozen.newest() > since);
        let newest = newer.map(|generation| generation.chain(key, chain::newest));
        newest.max().unwrap_or(0).max(self.spans.newest_of(key))
    }

    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.in_memory().map(|generation| generation.bytes()).sum()
    }

    pub(super) fn disk_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes()).sum()
    }

    /// The current generation takes no more images.
    pub(super) fn freeze(&mut self) {
        let next = Arc::new(Generation::new(self.current.memory().clone()));
        self.frozen.push(std::mem::replace(&mut self.current, next));
    }
}
