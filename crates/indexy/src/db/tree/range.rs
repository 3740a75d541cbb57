//! `Range`: a scan that holds nothing between two calls.

#![forbid(unsafe_code)]

use super::{
    bounds,
    reference::{Soonest, TreeRef, View},
};
use crate::{
    error::{Error, Result},
    framework::{
        scan::{MergeLimits, Merged},
        shared::Shared,
    },
    key::{Key, Value},
    mem::budget::Holder,
    x::Order,
};
use std::{collections::VecDeque, fmt};

/// An iterator over the entries of a range of keys, from both ends.
///
/// What it sees: keys in order, each once at most; every key that is there during the whole scan;
/// none that is absent during the whole scan. Keys that come or go meanwhile may or may not appear.
///
/// It reads ahead a bounded chunk (a few KiB at first, more as it goes on) and seeks again from the
/// last key, so that it pins no memory and no files, however long it stays open. All open scans
/// together read ahead a sixteenth of the memory budget at most; where that is taken, further ones
/// seek for each entry. Scans do not change what the memory index caches.
///
/// Cost: no I/O over parts that are completely in memory; elsewhere reads of the disk index in key
/// order. After an error the iterator is at its end.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
/// # let tree = db.tree("t")?;
/// for i in 0..100u32 {
///     tree.insert(i.to_be_bytes(), "")?;
/// }
/// let newest: Vec<_> = tree.iter().rev().take(3).collect::<Result<_, _>>()?;
/// assert_eq!(newest[0].0, 99u32.to_be_bytes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Range {
    tree: TreeRef,
    /// What it sees.
    view: View,
    /// Of the entries fetched so far.
    soonest: Soonest,
    /// Given out first.
    mistake: Option<Error>,
    /// What neither end has fetched: `[from, to)`; `None` when both have met.
    rest: Option<(Vec<u8>, Option<Vec<u8>>)>,
    front: Buffer,
    back: Buffer,
}

/// Entries fetched at one end, in the order in which that end gives them out.
struct Buffer {
    entries: VecDeque<(Key, Value)>,
    /// Bytes taken from the budget for it.
    bytes: usize,
    /// Size of the next chunk.
    entries_wanted: usize,
}

impl Default for Buffer {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            bytes: 0,
            entries_wanted: FIRST_CHUNK_ENTRIES,
        }
    }
}

/// Entries of the first chunk: a page of a list, as most short scans want. It doubles from there.
const FIRST_CHUNK_ENTRIES: usize = 10;
const MAX_CHUNK_ENTRIES: usize = 4096;
/// A chunk has up to so many times the entries wanted, if Y need not read for them.
const AT_HAND: usize = 4;
/// Bytes of a chunk: this part of the budget, within bounds.
const CHUNK_DIVISOR: usize = 128;
const CHUNK_BYTES: (usize, usize) = (8 << 10, 256 << 10);
/// A chunk is no more than this part of the free memory: many scans may be open.
const CHUNK_ROOM_DIVISOR: usize = 16;
/// Where little is free a chunk has this many bytes.
const TIGHT_CHUNK_BYTES: usize = 2 << 10;
/// All scans together hold this part of the budget at most; a chunk is asked for no more than so
/// large a part of what is left of that, and keeps no more than twice as much of what it is given:
/// the last entry may be large.
const SCANS_DIVISOR: usize = 16;
const SCANS_LEFT_DIVISOR: usize = 4;
const SCANS_KEPT_DIVISOR: usize = SCANS_LEFT_DIVISOR / 2;
/// Memory of an entry in a chunk beside its bytes.
const ENTRY_OVERHEAD_BYTES: usize = 48;

/// What the next chunk of a scan may take.
struct ChunkRoom {
    /// Bytes to ask for.
    asked: usize,
    /// Bytes of entries to keep. They stay until the caller asks for them, and writers wait for
    /// memory meanwhile.
    kept: usize,
}

/// `None` when the next chunk may have nothing but the entry that is asked for.
fn chunk_room(shared: &Shared) -> Option<ChunkRoom> {
    let (min, max) = CHUNK_BYTES;
    let limit = shared.budget.limit();
    let whole = (limit / CHUNK_DIVISOR).clamp(min, max);
    let left = (limit / SCANS_DIVISOR).saturating_sub(shared.budget.held(Holder::Scans));
    let room = (shared.room.left() / CHUNK_ROOM_DIVISOR).max(TIGHT_CHUNK_BYTES);
    let bytes = whole.min(room).min(left / SCANS_LEFT_DIVISOR);
    (bytes >= TIGHT_CHUNK_BYTES).then_some(ChunkRoom {
        asked: bytes,
        kept: left / SCANS_KEPT_DIVISOR,
    })
}

impl fmt::Debug for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Range")
            .field("tree", &self.tree.tree.entry.name)
            .field("rest", &self.rest)
            .finish_non_exhaustive()
    }
}

impl Range {
    pub(super) fn new(tree: TreeRef, from: Vec<u8>, to: Option<Vec<u8>>) -> Self {
        let (from, to) = bounds::cut_to_length((from, to));
        let empty = to.as_ref().is_some_and(|to| from >= *to);
        let rest = if empty { None } else { Some((from, to)) };
        Self {
            tree,
            view: View::Newest,
            soonest: None,
            mistake: None,
            rest,
            front: Buffer::default(),
            back: Buffer::default(),
        }
    }

    /// A range that gives `error` and nothing else.
    pub(in crate::db) fn failed(mut self, error: Error) -> Self {
        self.mistake = Some(error);
        self
    }

    /// The same range as `view` sees it; nothing was fetched yet.
    pub(in crate::db) fn seen_by(mut self, view: View) -> Self {
        self.view = view;
        self
    }

    /// The first of the entries fetched so far to expire.
    pub(in crate::db) fn soonest(&self) -> &Soonest {
        &self.soonest
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
            self.tree.live()?;
            let shared = &self.tree.core().shared;
            let buffer = match order {
                Order::Ascending => &mut self.front,
                Order::Descending => &mut self.back,
            };
            buffer.give_back(shared);
            let room = chunk_room(shared);
            let limits = match room {
                Some(ChunkRoom { asked: bytes, .. }) => {
                    let most = (bytes / ENTRY_OVERHEAD_BYTES).max(FIRST_CHUNK_ENTRIES);
                    let entries = buffer.entries_wanted.min(most);
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
            let (end, soonest) = (to.as_deref(), &mut self.soonest);
            let mut merged = self
                .tree
                .chunk(&self.view, &from, end, order, limits, soonest)?;
            merged.keep(room.map_or(0, |room| room.kept), order);
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
        let filled = match self.mistake.take() {
            Some(mistake) => Err(mistake),
            None => self.fill(order),
        };
        if let Err(error) = filled {
            self.rest = None;
            for buffer in [&mut self.front, &mut self.back] {
                buffer.give_back(&self.tree.core().shared);
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
        for buffer in [&mut self.front, &mut self.back] {
            if buffer.entries.is_empty() {
                buffer.give_back(&self.tree.core().shared);
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
        self.tree
            .core()
            .budget
            .give(Holder::Scans, self.front.bytes + self.back.bytes);
    }
}
