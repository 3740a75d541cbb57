//! Writes on their way into one transaction, for engines with a single writer.
//!
//! A commit of such an engine costs as much as thousands of inserts elsewhere. While a phase only
//! writes and durability is not asked for, a session collects [`BATCH`] entries, sorts them (a B+
//! tree likes that) and commits them together; in every other case a batch is one entry.

use indexy_bench::contender::{Durability, Focus};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Entries of a batch; a random batch dirties about as many pages, which must fit the memory limit.
const BATCH: usize = 4096;

/// The focus of the phase, shared by the sessions of an engine.
#[derive(Debug, Default)]
pub struct SharedFocus(AtomicU8);

impl SharedFocus {
    pub fn set(&self, focus: Focus) {
        self.0.store(focus as u8, Relaxed);
    }

    /// Entries that a write transaction should have.
    pub fn batch(&self, durability: Durability) -> usize {
        let writes_only = self.0.load(Relaxed) == Focus::Writes as u8;
        if writes_only && durability != Durability::Sync {
            BATCH
        } else {
            1
        }
    }

    /// True if nothing is written in this phase, so that a read transaction may stay open.
    pub fn reads_only(&self) -> bool {
        self.0.load(Relaxed) == Focus::Reads as u8
    }
}

/// Entries not yet given to the engine.
#[derive(Debug, Default)]
pub struct Pending {
    bytes: Vec<u8>,
    entries: Vec<Span>,
}

#[derive(Debug, Clone, Copy)]
struct Span {
    key: usize,
    value: usize,
    end: usize,
}

impl Pending {
    pub fn push(&mut self, key: &[u8], value: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.entries.push(Span {
            key: start,
            value: start + key.len(),
            end: self.bytes.len(),
        });
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries in key order, those of one key in the order they were pushed.
    pub fn sorted(&mut self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let bytes = &self.bytes;
        self.entries
            .sort_by(|a, b| bytes[a.key..a.value].cmp(&bytes[b.key..b.value]));
        self.entries
            .iter()
            .map(|s| (&bytes[s.key..s.value], &bytes[s.value..s.end]))
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_by_key_and_keeps_the_order_of_equals() {
        let mut pending = Pending::default();
        for (k, v) in [("b", "1"), ("a", "2"), ("b", "3")] {
            pending.push(k.as_bytes(), v.as_bytes());
        }
        let sorted: Vec<_> = pending
            .sorted()
            .map(|(k, v)| (k.to_vec(), v.to_vec()))
            .collect();
        let expected: Vec<_> = [("a", "2"), ("b", "1"), ("b", "3")]
            .map(|(k, v)| (k.into(), v.into()))
            .to_vec();
        assert_eq!(sorted, expected);
    }
}
