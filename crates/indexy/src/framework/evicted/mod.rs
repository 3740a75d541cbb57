//! What is known of the keys that left memory: a filter over Index Y, for each tree that asks for
//! one.
//!
//! Source: *Larger-than-Memory Data Management on Modern Storage Hardware* (Ma et al.), section
//! 3.2; as Project Siberia has it. A key that X does not know and that the filter denies is absent,
//! and costs no read of Y.
//!
//! Keeps I1: the filter denies no key that Y may show to whoever asks now.
//! 1. Before Y is given a key, its bits are set, in the part that answers and in the one that is
//!    being built. Y shows a run, and X lets go of its entries (I4), later than that, and whoever
//!    sees either sees the bits.
//! 2. A part that is built enters the table under the run lock, so that no run is in flight that
//!    does not know it. The scan of Y begins afterwards: a key that it does not find was written
//!    later, by a run that knows the part.
//! 3. The part answers when the scan has passed all of its range. What answered before goes on
//!    getting the keys of runs until it is replaced.
//! 4. What comes to Y past runs (a load) is forgotten about before Y shows it, the part that is
//!    built included.
//! 5. Whoever looks asks X first and takes the table afterwards. If Y had the key when X was asked,
//!    the table has it by 1 to 4; else the key was absent at that moment.
//!
//! Bits are not cleared: removals make a part stale, and it is built anew. Nothing is stored; after
//! an open nothing is known, and Y is asked as ever until a part is built.
//!
//! Threads: any may ask. Runs note keys under the run lock. One thread builds
//! (`filter_builder.rs`). The lock of `changes` is held for moments, and comes last. No lock, and
//! no allocation, for whoever asks; hits do not ask.

#![forbid(unsafe_code)]

pub(super) mod bits;
pub(crate) mod room;
pub(super) mod table;
#[cfg(test)]
mod tests;

use super::policies::Evicted;
use arc_swap::ArcSwapOption;
use bits::Bits;
use parking_lot::Mutex;
use std::sync::Arc;
use table::{Plan, Table};

/// Keys for which a part is built at most.
const MOST_KEYS: u64 = 48 << 10;

/// The filter of a tree, if it has one.
#[derive(Debug, Default)]
pub(crate) struct EvictedKeys {
    table: ArcSwapOption<Table>,
    /// Held while the table is replaced.
    changes: Mutex<()>,
}

/// What a run tells of its keys.
pub(super) struct Noted(Option<Arc<Table>>);

impl Noted {
    /// Y is about to get `key`, or its removal (`None`).
    pub(super) fn note(&self, key: &[u8], value: Option<&[u8]>) {
        if let Some(table) = &self.0 {
            table.note(key, value.is_none());
        }
    }
}

/// Bytes that a filter of `keys` keys takes, roughly.
pub(crate) fn bytes_for(keys: u64, bits_per_key: u8) -> usize {
    bits::bytes_for(table::with_spare(keys), bits_per_key)
}

impl EvictedKeys {
    /// What was chosen.
    pub(crate) fn chosen(&self) -> Evicted {
        match &*self.table.load() {
            None => Evicted::Ranges,
            Some(table) => Evicted::Filter {
                bits_per_key: table.bits_per_key,
            },
        }
    }

    /// What its filter takes.
    pub(crate) fn bytes(&self) -> usize {
        let table = self.table.load();
        table.as_deref().map_or(0, Table::bytes)
    }

    /// From now on `evicted` holds, if that is something else. Under the run lock (2).
    pub(crate) fn choose(&self, evicted: Evicted) {
        self.choose_with_parts(evicted, MOST_KEYS);
    }

    /// The same, with parts of so many keys at most.
    pub(super) fn choose_with_parts(&self, evicted: Evicted, most_keys: u64) {
        let _one = self.changes.lock();
        if evicted == self.chosen() {
            return;
        }
        self.table.store(match evicted {
            Evicted::Ranges => None,
            Evicted::Filter { bits_per_key } => Some(Arc::new(Table::new(bits_per_key, most_keys))),
        });
    }

    /// Y does not have `key`. The caller has asked X before (5).
    pub(crate) fn denies(&self, key: &[u8]) -> bool {
        let table = self.table.load();
        table.as_deref().is_some_and(|table| table.denies(key))
    }

    /// There is a filter that does not know all keys yet, or too many for its size.
    pub(crate) fn is_incomplete(&self) -> bool {
        let table = self.table.load();
        table.as_deref().is_some_and(|table| !table.is_whole())
    }

    /// For a run, which holds the run lock from here to its end (2).
    pub(super) fn for_run(&self) -> Noted {
        Noted(self.table.load_full())
    }

    /// Y is about to show in `[from, to)` what no run has noted: nothing is known of it any more
    /// (4). Under the run lock.
    pub(super) fn forget(&self, from: &[u8], to: Option<&[u8]>) {
        self.change(|table| Some(table.forgotten(from, to)));
    }

    /// Y is about to lose `[from, to)`: parts that have no other key are built anew.
    pub(super) fn forget_removed(&self, from: &[u8], to: Option<&[u8]>) {
        self.change(|table| table.without(from, to));
    }

    /// What is to be built, and with how many bits a key.
    pub(super) fn next(&self, keys: u64) -> Option<(Plan, u8)> {
        let table = self.table.load();
        let table = table.as_deref()?;
        Some((table.next(keys)?, table.bits_per_key))
    }

    /// `bits` are built from now on. Under the run lock (2). False: the table has changed.
    pub(super) fn begin(&self, plan: &Plan, bits: &Arc<Bits>) -> bool {
        self.change(|table| table.building(plan, bits))
    }

    /// The scan for `bits` has passed every key below `end` (3).
    pub(super) fn finish(&self, bits: &Arc<Bits>, end: Option<&[u8]>) -> bool {
        self.change(|table| table.built(bits, end))
    }

    pub(super) fn abandon(&self, bits: &Arc<Bits>) {
        self.change(|table| table.abandoned(bits));
    }

    /// Gives a part up, because there is no room for it. False: there is none.
    pub(super) fn shed(&self) -> bool {
        self.change(Table::smaller)
    }

    /// Replaces the table, unless there is none, or `change` says no.
    fn change(&self, change: impl FnOnce(&Table) -> Option<Table>) -> bool {
        let _one = self.changes.lock();
        let next = self.table.load().as_deref().and_then(change);
        let changed = next.is_some();
        if let Some(next) = next {
            self.table.store(Some(Arc::new(next)));
        }
        changed
    }
}
