//! Merges on their way into X, and operands that go because what they wait for goes.
//!
//! Keeps: I8 (the LSN is taken under the leaf's latch; the caller holds the key's stripe), I10 (as
//! a write), I4 (an operand stays until it is resolved, or its key is written).
//! Threads: whoever holds the stripe of the key.

#![forbid(unsafe_code)]

use crate::{
    error::{Error, Result},
    framework::{
        operators::Outcome,
        tree::{Joined, Written},
    },
    key::Value,
    versions::Epoch,
    wal::RecordRef,
    x::{IndexX, Lookup},
};
use std::convert::Infallible;

/// An operand that waits takes at most so many bytes: beyond, its value is read.
const MOST_WAITING_BYTES: usize = 4 << 10;
/// Operands that are buried at once.
const BURIED: usize = 1024;
/// Operands that are replayed take at most this part of the budget, in quarters.
const REPLAYED_QUARTERS: usize = 3;

/// What a merge comes to.
pub(crate) enum Merged {
    /// The value is known: this is what it becomes.
    Known(Outcome),
    /// It waits for a value that Y may have: `waiting` is written in place of the operand `over`.
    Waits {
        over: Option<Value>,
        waiting: Vec<u8>,
    },
    /// It would wait, and takes too much for that: the value is to be read.
    TooLong,
}

/// An operand to be written.
#[derive(Clone, Copy)]
pub(crate) struct NewOperand<'a> {
    /// For the log.
    pub operand: &'a [u8],
    /// In X, together with what waits already.
    pub waiting: &'a [u8],
    /// What waits already.
    pub over: Option<&'a [u8]>,
}

impl Joined {
    /// What `waiting`, an operand as it waits, makes of `key`. The caller holds the stripe. No I/O.
    pub(crate) fn merged(&self, key: &[u8], waiting: &[u8]) -> Result<Merged> {
        let operator = self.operator()?;
        let known = |base: Option<&[u8]>| {
            let outcome = operator.merge(key, base, waiting, self.longest_merged());
            Ok(Merged::Known(outcome))
        };
        loop {
            let over = match self.x.get(key, Value::new) {
                Lookup::Found(value) => return known(Some(&value)),
                Lookup::Deleted | Lookup::Absent => return known(None),
                Lookup::AskY(_) => None,
                Lookup::Operand => match self.x.operand(key) {
                    Some((operand, _)) => Some(operand),
                    None => continue,
                },
            };
            let waiting = match &over {
                None => waiting.to_vec(),
                Some(earlier) => operator.combine(key, earlier, waiting),
            };
            return Ok(match waiting.len() > MOST_WAITING_BYTES {
                true => Merged::TooLong,
                false => Merged::Waits { over, waiting },
            });
        }
    }

    /// What `waiting` makes of `base`.
    pub(crate) fn merge_into(
        &self,
        key: &[u8],
        base: Option<&[u8]>,
        waiting: &[u8],
    ) -> Result<Outcome> {
        let operator = self.operator()?;
        Ok(operator.merge(key, base, waiting, self.longest_merged()))
    }

    /// Writes an operand as [`Joined::put`] writes a value. [`Written::Changed`]: X has something
    /// else than `new` says, and nothing was done.
    pub(crate) fn put_operand(
        &self,
        key: &[u8],
        new: &NewOperand<'_>,
        seen: Epoch,
    ) -> Result<Written> {
        let log = self.shared.log.get();
        let mut end = None;
        let put = self.x.put_operand(key, new.waiting, new.over, || {
            // I10, as in `put`.
            if self.shared.versions.has_risen(seen) {
                return Err(None);
            }
            self.before_visible(key);
            if let Some(log) = log {
                let (tree, operand) = (self.id, new.operand);
                let record = RecordRef::Merge { tree, key, operand };
                end = Some(log.append(record).map_err(Some)?);
            }
            Ok(())
        });
        match put {
            Ok(true) => self.wrote(key),
            Ok(false) => return Ok(Written::Changed),
            Err(None) => return Ok(Written::NeedsImage),
            Err(Some(error)) => return Err(error),
        }
        Ok(Written::Done(end))
    }

    /// The log is about to be replayed, perhaps not for the first time. A first replay may have
    /// written to Y what it merged itself, so what Y has tells nothing about what it had when a
    /// merge was logged: X says of no key that it is absent before the log does.
    pub(crate) fn begin_replay(&self) {
        if self.merging.operator.get().is_some() {
            self.x.mount(&[], None);
        }
    }

    /// The log was replayed, and operands may be resolved. Errors: those of Y.
    pub(crate) fn end_replay(&self) -> Result<()> {
        match self.merging.operator.get() {
            Some(_) => self.clear_mounts_if_y_is_empty(),
            None => Ok(()),
        }
    }

    /// Replays a merge. See the module header of the folder: it is never resolved here, but where
    /// replay itself has written the value.
    pub(crate) fn replay_merge(&self, key: &[u8], operand: &[u8]) -> Result<()> {
        let waiting = self.operator()?.waiting(key, operand)?;
        match self.merged_in_replay(key, &waiting)? {
            Merged::Known(Outcome::Value(value)) => self.apply(key, Some(&value)),
            Merged::Known(Outcome::Same | Outcome::Refused(_)) | Merged::TooLong => {}
            Merged::Waits { over, waiting } => {
                let limit = self.shared.budget.limit();
                let minimum_bytes = self.operand_bytes() + key.len() + waiting.len();
                if minimum_bytes > limit / 4 * REPLAYED_QUARTERS {
                    return Err(Error::BudgetTooSmall {
                        budget_bytes: limit,
                        minimum_bytes: minimum_bytes.saturating_mul(4) / REPLAYED_QUARTERS,
                    });
                }
                let Ok(put) = self.x.put_operand(key, &waiting, over.as_deref(), || {
                    self.before_visible(key);
                    Ok::<(), Infallible>(())
                });
                debug_assert!(put, "nobody else writes");
                self.wrote(key);
            }
        }
        Ok(())
    }

    /// As `merged`; what waits here has waited before, so it is not too long. Of an older version's
    /// log it may be longer as parts.
    fn merged_in_replay(&self, key: &[u8], waiting: &[u8]) -> Result<Merged> {
        Ok(match self.merged(key, waiting)? {
            Merged::TooLong => {
                let over = self.x.operand(key).map(|(operand, _)| operand);
                let operator = self.operator()?;
                let waiting = match &over {
                    None => waiting.to_vec(),
                    Some(earlier) => operator.combine(key, earlier, waiting),
                };
                let waiting = operator.compacted(key, waiting);
                Merged::Waits { over, waiting }
            }
            merged => merged,
        })
    }

    /// Replays that the operands of `key` so far made no difference.
    pub(crate) fn replay_unmerged(&self, key: &[u8]) {
        while let Some((operand, stamp)) = self.x.operand(key) {
            let done = self
                .x
                .resolve(key, &operand, stamp, None, || Ok::<(), Infallible>(()));
            if done == Ok(true) {
                break;
            }
        }
    }

    /// Operands of `[from, to)` become removals: what they wait for is about to go from Y, and
    /// readers must not merge them into nothing. The caller holds the stripes of all keys, or
    /// nobody reads the tree any more.
    pub(crate) fn bury_operands(&self, from: &[u8], to: Option<&[u8]>) {
        // Who waits is kept out by the caller: there are no more than these.
        if self.merging.operator.get().is_none() || self.x.stats().operands == 0 {
            return;
        }
        let mut at = Some(from.to_vec());
        let mut waiting = Vec::new();
        while let Some(from) = at {
            waiting.clear();
            at = self.x.operands(&from, to, BURIED, &mut waiting);
            for one in &waiting {
                self.apply(&one.key, None);
            }
        }
    }
}
