//! The radix cache: where Y has keys, in memory.
//!
//! Source: paper 002, and `docs/decisions/0043-the-radix-cache.md`. The tree's own X is a write
//! buffer. What it does not know is looked for in a second X, the *cache*: a radix tree of
//! locators, wholly mounted, whose entries are all clean. So loads, cuts, the second chance and
//! Algorithm 1 treat it as they treat any X, and it is one more tree to a release.
//!
//! A locator is Y's affair ([`IndexY::get_at`]): a stale one is told to be, and is replaced when it
//! is met (the paper's `update_range`, lazily). So nobody who writes touches the cache, and I3 is
//! not its concern: a locator that is loaded late is stale.
//!
//! [`RadixEntries::Keys`] has a locator for each key, as in the paper; of a large value it leads to
//! the value itself. [`RadixEntries::Leaves`] has one for each leaf of Y, under the least key in
//! it, and finds that of a key by its predecessor: a directory of leaves, some hundredth of the
//! size.
//!
//! Only `get` and what is made of it goes by locators. Reads of many keys overlap in Y.
//!
//! Threads: any number of readers. No lock.

#![forbid(unsafe_code)]

mod nothing;

use super::{
    counters,
    misses::Purpose,
    policies::RadixEntries,
    regions::sample,
    shared::Shared,
    tree::{Joined, RadixCache},
};
use crate::{
    error::Result,
    key::{Key, Value},
    mem::Memory,
    wal::Lsn,
    x::{AnyX, Chunk, IndexX, Lookup, Order, ScanLimits, art::Art},
    y::{GotAt, IndexY, Located, Locator, Reach},
};
use nothing::Nothing;
use std::sync::Arc;

/// What the id of a cache has beside that of its tree.
const CACHE_ID: u32 = 1 << 31;
/// Nothing of a cache is ever dirty: it keeps no part of the log.
const NEVER_DIRTY: Lsn = Lsn(u64::MAX);
/// A predecessor is the next entry down, in the leaf of the key or in one of those before it.
const PREDECESSOR: ScanLimits = ScanLimits {
    bytes: usize::MAX,
    entries: 1,
    leaves: 4,
    leaves_if_mounted: 4,
};

impl RadixCache {
    /// The empty cache of tree `id`.
    pub(crate) fn new(
        id: u32,
        entries: RadixEntries,
        memory: Arc<Memory>,
        shared: &Arc<Shared>,
    ) -> Self {
        let x = AnyX::Art(Art::new(memory, true));
        let y = Arc::new(Nothing);
        let cache = Joined::new(id | CACHE_ID, x, y, false, NEVER_DIRTY, Arc::clone(shared));
        Self {
            cache: Arc::new(cache.of_locators()),
            entries,
        }
    }

    /// What `y` has of `key`. Cost: where its place is known, a search in the cache and what
    /// [`IndexY::get_at`] costs; else one more in each, and a load.
    pub(super) fn get(&self, y: &dyn IndexY, key: &[u8]) -> Result<Option<Value>> {
        let counters = &self.cache.shared.counters;
        if sample::due() {
            self.cache.regions.note_accesses(key, 1);
        }
        if let Some((entry, locator)) = self.place_of(key) {
            let entry = entry.as_deref().unwrap_or(key);
            match y.get_at(key, &locator)? {
                GotAt::Found(value) => {
                    counters::add(&counters.located, 1);
                    return Ok(Some(value));
                }
                GotAt::Moved(value, locator) => {
                    counters::add(&counters.located, 1);
                    self.replace(entry, &locator);
                    return Ok(Some(value));
                }
                GotAt::NotThere => {}
                GotAt::Stale => {
                    counters::add(&counters.stale_locators, 1);
                    self.cache.x.evict(entry);
                }
            }
        }
        let reach = match self.entries {
            RadixEntries::Keys => Reach::Key,
            RadixEntries::Leaves => Reach::Place,
        };
        let Located { value, at } = y.locate(key, reach)?;
        if let Some((locator, least)) = at {
            match self.entries {
                RadixEntries::Keys => self.remember(key, &locator),
                RadixEntries::Leaves => self.remember(&least, &locator),
            }
        }
        Ok(value)
    }

    /// Where `key` should be, and the entry that says so, if that is not its own.
    fn place_of(&self, key: &[u8]) -> Option<(Option<Key>, Locator)> {
        let x = &self.cache.x;
        match self.entries {
            RadixEntries::Keys => match x.get(key, Locator::new) {
                Lookup::Found(locator) => Some((None, locator?)),
                _ => None,
            },
            RadixEntries::Leaves => {
                let behind = [key, &[0]].concat();
                let mut chunk = Chunk::default();
                x.scan(
                    &[],
                    Some(&behind),
                    Order::Descending,
                    PREDECESSOR,
                    &mut chunk,
                );
                let found = chunk.entries.into_iter().next()?;
                // Not the value that the scan has: a scan leaves no mark, and a release spares
                // marks.
                match x.get(&found.key, Locator::new) {
                    Lookup::Found(locator) => Some((Some(found.key), locator?)),
                    _ => None,
                }
            }
        }
    }

    /// Drops what it has of `[from, to)`.
    pub(super) fn forget(&self, from: &[u8], to: Option<&[u8]>) {
        self.cache.x.cut(from, to, 0, false, usize::MAX);
    }

    fn replace(&self, entry: &[u8], locator: &Locator) {
        self.cache.x.evict(entry);
        self.remember(entry, locator);
    }

    /// Loads an entry, as far as there is room.
    fn remember(&self, entry: &[u8], locator: &Locator) {
        if self.cache.discarded() {
            return;
        }
        let there = |_: &[u8]| ();
        let mut seen = self.cache.x.get(entry, there);
        if seen == Lookup::Found(()) {
            // Of a leaf that is found by another one's entry.
            self.cache.x.evict(entry);
            seen = self.cache.x.get(entry, there);
        }
        if let Lookup::AskY(stamp) = seen {
            self.cache
                .load(Purpose::Read, entry, locator.bytes(), stamp);
        }
    }
}
