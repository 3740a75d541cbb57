//! `Range`: a scan that holds nothing between two calls.

#![forbid(unsafe_code)]

use super::tree::Tree;
use crate::{
    error::Result,
    framework::{
        scan::{MergeLimits, Merged},
        shared::Shared,
    },
    key::{Key, Value},
    limits::MAX_KEY_BYTES,
    mem::budget::Holder,
    x::Order,
};
use std::{collections::VecDeque, fmt};

/// An iterator over the entries of a range of keys, from both ends.
///
/// What it sees (I9): keys in order, each once at most; every key that is there during the whole scan; none that is
/// absent during the whole scan. Keys that come or go meanwhile may or may not appear. It reads ahead a bounded
/// chunk (a few KiB at first, more as it goes on) and seeks again from the last key, so that it pins nothing in X and no
/// files, however long it stays open. Of what was read ahead all open scans together hold a sixteenth of the budget at most;
/// where that is taken, further ones seek for each entry. Scans do not change what X caches.
///
/// Cost: no I/O over parts that X has completely; elsewhere reads of Index Y in key order. After an error the
/// iterator is at its end.
pub struct Range {
    tree: Tree,
    /// What neither end has fetched: `[from, to)`; `None` when both have met.
    rest: Option<(Vec<u8>, Option<Vec<u8>>)>,
    front: Buffer,
    back: Buffer,
}

/// Entries fetched at one end, in the order in which that end gives them out.
#[derive(Default)]
struct Buffer {
    entries: VecDeque<(Key, Value)>,
    /// Bytes taken from the budget for it.
    bytes: usize,
    /// Size of the next chunk.
    entries_wanted: usize,
}

/// Entries of the first chunk; it doubles from there.
const FIRST_CHUNK_ENTRIES: usize = 16;
const MAX_CHUNK_ENTRIES: usize = 4096;
/// A chunk has up to so many times the entries wanted, if Y need not read for them.
const AT_HAND: usize = 4;
/// Bytes of a chunk: this part of the budget, within bounds.
const CHUNK_BUDGET_PART: usize = 128;
const CHUNK_BYTES: (usize, usize) = (8 << 10, 256 << 10);
/// And no more than this part of the memory that is free: many scans may be open.
const CHUNK_ROOM_PART: usize = 16;
/// Unless that is less.
const TIGHT_CHUNK_BYTES: usize = 2 << 10;
/// All scans together hold this part of the budget at most, and one takes no more than this part of what is left of it.
const SCANS_BUDGET_PART: usize = 16;
const SCANS_LEFT_PART: usize = 4;
/// Memory of an entry in a chunk beside its bytes.
const ENTRY_OVERHEAD_BYTES: usize = 48;

/// Bytes that the next chunk of a scan may take; `None` when it may have nothing but the entry that is asked for.
fn chunk_bytes(shared: &Shared) -> Option<usize> {
    let (min, max) = CHUNK_BYTES;
    let limit = shared.budget.limit();
    let whole = (limit / CHUNK_BUDGET_PART).clamp(min, max);
    let left = (limit / SCANS_BUDGET_PART).saturating_sub(shared.budget.held(Holder::Scans));
    let room = (shared.room.left() / CHUNK_ROOM_PART).max(TIGHT_CHUNK_BYTES);
    let bytes = whole.min(room).min(left / SCANS_LEFT_PART);
    (bytes >= TIGHT_CHUNK_BYTES).then_some(bytes)
}

impl fmt::Debug for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Range")
            .field("tree", &self.tree)
            .field("rest", &self.rest)
            .finish_non_exhaustive()
    }
}

impl Range {
    pub(super) fn new(tree: Tree, mut from: Vec<u8>, mut to: Option<Vec<u8>>) -> Self {
        // No key lies between a longer end and its first so many bytes.
        from.truncate(MAX_KEY_BYTES + 1);
        if let Some(to) = &mut to {
            to.truncate(MAX_KEY_BYTES + 1);
        }
        let empty = to.as_ref().is_some_and(|to| from >= *to);
        let rest = if empty { None } else { Some((from, to)) };
        Self {
            tree,
            rest,
            front: Buffer::default(),
            back: Buffer::default(),
        }
    }

    /// Fetches chunks at one end until there is an entry or nothing is left.
    fn fill(&mut self, order: Order) -> Result<()> {
        loop {
            let empty = match order {
                Order::Ascending => self.front.entries.is_empty(),
                Order::Descending => self.back.entries.is_empty(),
            };
            let Some((from, to)) = self.rest.take_if(|_| empty) else {
                return Ok(());
            };
            let (_, tree) = self.tree.parts();
            tree.live()?;
            let (handle, _) = self.tree.parts();
            let shared = handle.core.shared.clone();
            let buffer = match order {
                Order::Ascending => &mut self.front,
                Order::Descending => &mut self.back,
            };
            buffer.give_back(&shared);
            let room = chunk_bytes(&shared);
            let limits = match room {
                Some(bytes) => {
                    let most = (bytes / ENTRY_OVERHEAD_BYTES).max(FIRST_CHUNK_ENTRIES);
                    let entries = buffer.entries_wanted.max(FIRST_CHUNK_ENTRIES).min(most);
                    buffer.entries_wanted = (entries * 2).min(MAX_CHUNK_ENTRIES);
                    MergeLimits {
                        bytes,
                        entries,
                        at_hand: most.min(entries * AT_HAND),
                    }
                }
                None => MergeLimits {
                    bytes: TIGHT_CHUNK_BYTES,
                    entries: 1,
                    at_hand: 1,
                },
            };
            let tree = &self.tree;
            let chunk = tree
                .joined()
                .scan_chunk(&from, to.as_deref(), order, limits);
            let mut merged = tree.alive(chunk)?;
            if room.is_none() {
                merged.keep_first(order);
            }
            // A single entry is the caller's at once.
            if merged.entries.len() > 1 {
                let taken = merged.bytes + merged.entries.len() * ENTRY_OVERHEAD_BYTES;
                shared.budget.take(Holder::Scans, taken);
                shared.room.ask_for_release();
                buffer.bytes = taken;
            }
            let Merged {
                entries, resume, ..
            } = merged;
            buffer.entries = entries.into();
            self.rest = resume.and_then(|at| match order {
                Order::Ascending => {
                    Some((at, to)).filter(|(from, to)| to.as_ref().is_none_or(|to| from < to))
                }
                Order::Descending => Some((from, Some(at)))
                    .filter(|(from, to)| to.as_ref().is_none_or(|to| from < to)),
            });
        }
    }

    fn step(&mut self, order: Order) -> Option<Result<(Key, Value)>> {
        if let Err(error) = self.fill(order) {
            self.rest = None;
            let (handle, _) = self.tree.parts();
            for buffer in [&mut self.front, &mut self.back] {
                buffer.give_back(&handle.core.shared);
            }
            return Some(Err(error));
        }
        // When the ends have met, the rest lies in the other end's buffer, in its order.
        let entry = match order {
            Order::Ascending => self
                .front
                .entries
                .pop_front()
                .or_else(|| self.back.entries.pop_back()),
            Order::Descending => self
                .back
                .entries
                .pop_front()
                .or_else(|| self.front.entries.pop_back()),
        };
        let (handle, _) = self.tree.parts();
        for buffer in [&mut self.front, &mut self.back] {
            if buffer.entries.is_empty() {
                buffer.give_back(&handle.core.shared);
            }
        }
        entry.map(Ok)
    }
}

impl Buffer {
    /// Nothing is in it any more, or is to be.
    fn give_back(&mut self, shared: &Shared) {
        if self.bytes > 0 {
            shared.budget.give(Holder::Scans, self.bytes);
            self.bytes = 0;
        }
        if self.entries.capacity() > 0 {
            self.entries = VecDeque::new();
        }
    }
}

impl Iterator for Range {
    type Item = Result<(Key, Value)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(Order::Ascending)
    }
}

impl DoubleEndedIterator for Range {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(Order::Descending)
    }
}

impl std::iter::FusedIterator for Range {}

impl Drop for Range {
    fn drop(&mut self) {
        let (handle, _) = self.tree.parts();
        handle
            .core
            .budget
            .give(Holder::Scans, self.front.bytes + self.back.bytes);
    }
}
