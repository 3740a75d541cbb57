//! Warming: the keys of a file are looked up in Index Y, some at a time, and what is found goes
//! into Index X, until that is as full as a release leaves it.
//!
//! The hottest keys come first, tier by tier; of each tier in the order of the file.
//!
//! Keeps: I7 (what is on its way is taken from the budget, and nothing begins for which there is no
//! room below the low mark).
//! Threads: one. It waits for Y in one read of at most [`MOST_KEYS`] keys, and for nothing else:
//! `stopped` is asked before each. A tree that was dropped meanwhile has no keys.

#![forbid(unsafe_code)]

use super::{
    file::Reader,
    format::{BlockHeader, Keys, Kind, LONGEST_KEY_BYTES},
    save::Taken,
};
use crate::{
    error::Result,
    events,
    framework::{counters::add, host::Host, hot::TIERS, shared::Shared, tree::Joined},
};
use std::{
    ops::Range,
    sync::{Arc, atomic::AtomicU64},
};

/// Keys that are looked up together, at most.
const MOST_KEYS: usize = 256;
/// Their values, as long as they were, take this part of the budget at most, or are one.
const VALUES_DIVISOR: usize = 512;
/// Reads of a disk index that may fail one after the other before warming gives up.
const MOST_FAILURES: u32 = 8;

/// Memory that warming takes in a budget of `limit` bytes, beside keys and values that are looked
/// up. Whoever keeps a hot set has taken it beforehand.
pub(super) fn bytes(limit: usize) -> usize {
    // Keys of a batch are a part of what is expected of it.
    let keys = (limit / VALUES_DIVISOR + LONGEST_KEY_BYTES).min(MOST_KEYS * LONGEST_KEY_BYTES);
    Reader::BYTES + keys + MOST_KEYS * size_of::<Range<usize>>()
}

/// How warming ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// All keys were looked up.
    All,
    /// Memory is as full as warming makes it.
    Full,
    /// It was told to stop.
    Stopped,
    /// Too many reads failed.
    Failed,
    /// For want of something that comes back the file could not be read.
    NotRead,
}

/// Warming under way.
pub(super) struct Warmer<'a> {
    pub shared: &'a Shared,
    pub host: &'a dyn Host,
    /// Counts the keys that were brought into memory.
    pub warmed: &'a AtomicU64,
    pub stopped: &'a dyn Fn() -> bool,
    batch: Batch,
    failures: u32,
}

/// Keys of one tree to be looked up together.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    keys: Vec<Range<usize>>,
    /// Of keys and values, as the file says.
    expected: usize,
    /// How many keys the next one may have: few, until values are seen to be as long as expected.
    at_once: usize,
}

impl Batch {
    fn clear(&mut self) {
        self.bytes.clear();
        self.keys.clear();
        self.expected = 0;
    }

    /// Learns from what was read.
    fn adapt(&mut self, read: usize) {
        self.at_once = match read > self.expected.saturating_mul(2) {
            true => (self.at_once / 8).max(1),
            false => (self.at_once * 2).min(MOST_KEYS),
        };
    }
}

impl<'a> Warmer<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        host: &'a dyn Host,
        warmed: &'a AtomicU64,
        stopped: &'a dyn Fn() -> bool,
    ) -> Self {
        let batch = Batch {
            at_once: 1,
            ..Batch::default()
        };
        Self {
            shared,
            host,
            warmed,
            stopped,
            batch,
            failures: 0,
        }
    }

    /// Brings the keys of `file` into memory. Errors: damage that the file got since it was opened;
    /// `Closed` where the reader was stopped.
    pub(super) fn run(&mut self, file: &mut Reader<'_>) -> Result<Ended> {
        for kind in (0..TIERS).map(Kind::Tier) {
            file.rewind();
            while let Some(block) = file.next(|block| block.kind == kind)? {
                if let Some(ended) = self.block(&block, file)? {
                    return Ok(ended);
                }
            }
        }
        Ok(Ended::All)
    }

    /// Of keys and values of a batch.
    fn most_bytes(&self) -> usize {
        self.shared.budget.limit() / VALUES_DIVISOR
    }

    /// Looks the keys of one block up; the end of it all, if this is it.
    fn block(&mut self, block: &BlockHeader, file: &Reader<'_>) -> Result<Option<Ended>> {
        let trees = self.host.trees();
        let Some(tree) = trees.iter().find(|tree| tree.id == block.tree) else {
            return Ok(None);
        };
        let most_bytes = self.most_bytes();
        let mut keys = Keys::new(block, file.payload());
        while let Some((key, value_bytes)) = keys.next().map_err(|what| file.corrupt(what))? {
            let bytes = key.len() + value_bytes;
            if tree.too_large_for_x(bytes) {
                continue;
            }
            let full = self.batch.keys.len() >= self.batch.at_once
                || self.batch.expected.saturating_add(bytes) > most_bytes;
            if full && let Some(ended) = self.look_up(tree) {
                return Ok(Some(ended));
            }
            let start = self.batch.bytes.len();
            self.batch.bytes.extend_from_slice(key);
            self.batch.keys.push(start..self.batch.bytes.len());
            self.batch.expected = self.batch.expected.saturating_add(bytes);
        }
        Ok(self.look_up(tree))
    }

    /// Looks the batch up.
    fn look_up(&mut self, tree: &Arc<Joined>) -> Option<Ended> {
        if (self.stopped)() {
            return Some(Ended::Stopped);
        }
        if self.batch.keys.is_empty() {
            return None;
        }
        let expected = self.batch.expected;
        // As values on their way, and as entries.
        if !self.shared.room.has_spare(expected.saturating_mul(2)) {
            return Some(Ended::Full);
        }
        let taken = Taken::new(&self.shared.budget, expected);
        let keys: Vec<&[u8]> = (self.batch.keys.iter())
            .filter_map(|at| self.batch.bytes.get(at.clone()))
            .collect();
        let warmed = tree.warm(&keys);
        drop(taken);
        let ended = match warmed {
            Ok(warmed) => {
                self.failures = 0;
                add(self.warmed, warmed.keys);
                self.batch.adapt(warmed.bytes);
                warmed.full.then_some(Ended::Full)
            }
            Err(_) if tree.discarded() => None,
            Err(error) => {
                events::not_warmed(tree.id, &error);
                self.failures += 1;
                (self.failures >= MOST_FAILURES).then_some(Ended::Failed)
            }
        };
        self.batch.clear();
        ended
    }
}
