//! Compares the clean entries of X with Y: the check of I2 behind `verify`; and what the filter of
//! the tree denies with Y (I1).
//!
//! Threads: each chunk under the run lock, so that nothing is in flight; writers go on. An entry
//! that differs is looked at again: it may have been written meanwhile.

#![forbid(unsafe_code)]

use super::{expiry, policies::Evicted, tree::Joined};
use crate::{
    error::Result,
    key::Value,
    x::{Chunk, IndexX, Lookup, Order, ScanLimits},
};

const LIMITS: ScanLimits = ScanLimits {
    bytes: 256 << 10,
    entries: 1024,
    leaves: 1024,
    leaves_if_mounted: 1024,
};

/// Keys between two looks for the place in Y.
const FILTER_CHUNK: usize = 1024;

impl Joined {
    /// Compares every clean entry with what Y says; adds at most `limit` problems in all.
    pub(crate) fn compare_clean_with_y(
        &self,
        limit: usize,
        compared: &mut u64,
        problems: &mut Vec<String>,
    ) -> Result<()> {
        let mut chunk = Chunk::default();
        let mut from = Some(Vec::new());
        while let Some(at) = from {
            // A chunk at a time: writers may wait for the cleaner, which waits for this lock.
            let _run = self.writer.lock();
            self.x.scan(&at, None, Order::Ascending, LIMITS, &mut chunk);
            let dead_at = self.dead_at();
            let clean: Vec<_> = chunk.entries.iter().filter(|e| !e.dirty).collect();
            let keys: Vec<&[u8]> = clean.iter().map(|e| &e.key[..]).collect();
            for (entry, in_y) in clean.iter().zip(self.y.multi_get(&keys)?) {
                *compared += 1;
                if in_y.is_some()
                    && self.writer.evicted().denies(&entry.key)
                    && problems.len() < limit
                {
                    problems.push(format!(
                        "I1: the filter denies key {:?}, which is on disk",
                        entry.key.escape_ascii().to_string()
                    ));
                }
                // Y has nothing of what died (`expiry.rs`).
                let died = |value: &Value| dead_at.is_some_and(|at| expiry::is_over(value, at));
                let gone = in_y.is_none() && entry.value.as_ref().is_some_and(died);
                let differs = !gone && entry.value.as_deref() != in_y.as_deref();
                if differs
                    && self.unchanged(&entry.key, entry.value.as_deref())
                    && problems.len() < limit
                {
                    problems.push(format!(
                        "I2: the clean entry of key {:?} differs from disk",
                        entry.key.escape_ascii().to_string()
                    ));
                }
            }
            from = chunk.resume.take();
        }
        Ok(())
    }

    /// Asks the filter, if there is one, about every key of Y; adds at most `limit` problems.
    pub(crate) fn compare_filter_with_y(
        &self,
        limit: usize,
        problems: &mut Vec<String>,
    ) -> Result<()> {
        let mut from = match self.writer.evicted().chosen() {
            Evicted::Ranges => None,
            Evicted::Filter { .. } => Some(Vec::new()),
        };
        while let Some(at) = from.take() {
            for entry in self
                .y
                .range(&at, None, Order::Ascending)?
                .take(FILTER_CHUNK)
            {
                let (key, _) = entry?;
                // It may have gone meanwhile, and the filter been built anew.
                let denied = self.writer.evicted().denies(&key)
                    && self.y.get(&key)?.is_some()
                    && self.writer.evicted().denies(&key);
                if denied && problems.len() < limit {
                    problems.push(format!(
                        "I1: the filter denies key {:?}, which is on disk",
                        key.escape_ascii().to_string()
                    ));
                }
                from = Some([&key[..], &[0]].concat());
            }
        }
        Ok(())
    }

    /// The entry is still what it was, so that the difference is not a write that came in between.
    fn unchanged(&self, key: &[u8], value: Option<&[u8]>) -> bool {
        match self.x.get(key, Value::new) {
            Lookup::Found(now) => value == Some(&now[..]),
            Lookup::Deleted => value.is_none(),
            Lookup::Absent | Lookup::AskY(_) | Lookup::Operand => false,
        }
    }
}
