//! A release by hand: what is clean in a range of keys goes, whatever the policy says of it.
//!
//! Like the releaser it claims nothing and takes no run lock: a cut leaves what is dirty or in
//! flight (I4), and gives what it empties a fresh stamp, so that a read of Y from before is not
//! loaded (I3).
//!
//! Threads: any, one at a time in a database, beside the releaser. A cut copies what it leaves
//! before it frees the rest, so several at once could pass the budget (I7). Not here: the cleaning
//! that comes before (`clean/run.rs`).

#![forbid(unsafe_code)]

use crate::{
    events,
    framework::{
        counters,
        regions::{
            key_range::{self, KeyRange},
            sample,
        },
        tree::Joined,
    },
    x::IndexX,
};
use std::time::{Duration, Instant};

/// A release by hand waits no longer than this for readers.
const READERS_LIMIT: Duration = Duration::from_secs(1);

/// Cuts what is clean in `within`, which is not empty, out of X; returns the bytes that it freed.
/// Entries that were read lately have no second chance. Cost: a visit of each leaf.
pub(crate) fn release_range(tree: &Joined, within: KeyRange<'_>) -> u64 {
    let shared = &tree.shared;
    let _alone = shared.releasing.lock();
    let readers_deadline = Instant::now() + READERS_LIMIT;
    let table = tree.regions.table();
    let counters = &shared.counters;
    let mut freed = 0;
    for i in table.overlapped(within.0, within.1) {
        // I7: what is dirty is copied, and what it was copied from may have to wait for readers.
        shared.room.wait_for_readers(readers_deadline);
        let (from, to) = key_range::part(within, table.bounds(i));
        let cut = tree.x.cut(from, to, tree.settled(), false, usize::MAX);
        shared.room.announce_room();
        table.set_changed(i, true);
        if key_range::contains(within, table.bounds(i)) {
            table.set_cut(i, sample::now());
        }
        freed += cut.freed_bytes as u64;
        counters::add(&counters.released_regions, u64::from(cut.dropped > 0));
        counters::add(&counters.released_keys, cut.dropped as u64);
    }
    counters::add(&counters.releases, u64::from(freed > 0));
    counters::add(&counters.released_bytes, freed);
    events::released(freed, freed);
    freed
}
