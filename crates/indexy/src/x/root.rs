//! The root of a tree: one child word that covers every key, under a latch of its own.

#![forbid(unsafe_code)]

use super::{Stamp, child::ChildWord};
use crate::{
    mem::{
        Guard,
        latch::{Latch, Version},
    },
    sync::{
        AtomicU64,
        Ordering::{Acquire, Release},
    },
};

/// The root of a tree, on a cache line of its own.
#[repr(align(64))]
pub(crate) struct Root {
    latch: Latch,
    word: AtomicU64,
}

impl Root {
    pub(crate) fn new(mount: Option<Stamp>) -> Self {
        Self {
            latch: Latch::new(),
            word: AtomicU64::new(ChildWord::empty(mount).raw()),
        }
    }

    #[inline]
    fn load(&self) -> ChildWord {
        // Acquire: pairs with the release store of whoever published the child.
        ChildWord::from_raw(self.word.load(Acquire))
    }

    /// The root as it is now. It is never obsolete. `guard` keeps what is reached from here.
    #[inline]
    pub(crate) fn see<'g>(&'g self, _guard: &'g Guard<'_>) -> RootSeen<'g> {
        let version = loop {
            if let Some(version) = self.latch.read() {
                break version;
            }
        };
        RootSeen {
            root: self,
            version,
        }
    }

    /// Empties the root of a tree that is being dropped; what hung on it is the caller's.
    pub(crate) fn take(&mut self) -> ChildWord {
        ChildWord::from_raw(std::mem::replace(self.word.get_mut(), 0))
    }
}

/// The root as it was at a version.
#[derive(Clone, Copy)]
pub(crate) struct RootSeen<'g> {
    root: &'g Root,
    version: Version,
}

impl<'g> RootSeen<'g> {
    /// The tree's only child; `None` when it changed.
    #[inline]
    pub(crate) fn word(&self) -> Option<ChildWord> {
        let word = self.root.load();
        self.root.latch.validate(self.version).then_some(word)
    }

    /// Latches the root, if it is still as it was seen. Does not wait.
    pub(crate) fn try_latch(self) -> Option<RootLatched<'g>> {
        let latched = self.root.latch.try_upgrade(self.version);
        // Not `then_some`: one made in vain would unlock when it is dropped.
        latched.then(|| RootLatched { root: self.root })
    }
}

/// The root, latched; given up on drop.
pub(crate) struct RootLatched<'g> {
    root: &'g Root,
}

impl RootLatched<'_> {
    #[inline]
    pub(crate) fn word(&self) -> ChildWord {
        self.root.load()
    }

    pub(crate) fn set(&self, word: ChildWord) {
        // Release: pairs with the acquire load of `load`.
        self.root.word.store(word.raw(), Release);
    }
}

impl Drop for RootLatched<'_> {
    fn drop(&mut self) {
        self.root.latch.unlock();
    }
}
