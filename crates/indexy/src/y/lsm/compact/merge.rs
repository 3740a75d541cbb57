//! The merge: sorted inputs into one sorted output; of each key the newest entry.
//!
//! A tree of losers: each inner node has the input that lost there, so that the next entry costs
//! one comparison a level. The first eight bytes of a key, behind what all keys begin with, are
//! compared as a number; the rest only where that is equal.
//! Threads: one; any thread may cancel.

#![forbid(unsafe_code)]

use crate::error::Result;
use std::{
    cmp::Ordering,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

/// Entries, and KiB of values, between two looks at the flag that cancels.
const CHECK_EVERY: u64 = 1024;

/// Sorted entries, one at a time. Keys ascend strictly.
pub(crate) trait MergeInput {
    /// The present key; `None` at the end.
    fn key(&self) -> Option<&[u8]>;
    /// Makes the present value ready, if it is not: a long one is read only if it is written.
    fn load(&mut self) -> Result<()> {
        Ok(())
    }
    /// The present value, which was loaded; `None`: a delete.
    fn value(&self) -> Option<&[u8]>;
    /// Goes to the next entry.
    fn advance(&mut self) -> Result<()>;
}

/// Where a merge writes.
pub(crate) trait MergeOutput {
    fn add(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()>;
}

/// What becomes of deletes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deletes {
    /// Something older may be below.
    Keep,
    /// Nothing is below.
    Drop,
}

/// How a merge ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Merged {
    Done {
        /// Entries of the inputs.
        read: u64,
        /// Deletes that hid nothing any more, and what they hid, are not written.
        written: u64,
    },
    /// The output is incomplete.
    Cancelled,
}

/// Merges `inputs`, newest first, into `output`.
///
/// `prefix`: all keys of all inputs begin with the same so many bytes; 0 is always right.
/// Errors: those of the inputs and of the output.
pub(crate) fn merge<I: MergeInput>(
    inputs: &mut [I],
    output: &mut impl MergeOutput,
    deletes: Deletes,
    prefix: usize,
    cancel: &AtomicBool,
) -> Result<Merged> {
    let mut tree = Losers::new(inputs, prefix);
    let (mut read, mut written) = (0u64, 0);
    // Entries and KiB of values since the flag was looked at.
    let mut unchecked = 0;
    // The last key, to know older entries of it; a single input has none.
    let several = inputs.len() > 1;
    let mut last: Option<u64> = None;
    let mut last_key = Vec::new();
    loop {
        if unchecked >= CHECK_EVERY || read == 0 {
            unchecked = 0;
            if cancel.load(Relaxed) {
                return Ok(Merged::Cancelled);
            }
        }
        let winner = tree.winner;
        let Some(input) = inputs.get_mut(winner) else {
            break;
        };
        let Some(key) = input.key() else {
            break;
        };
        let head = tree.head(winner);
        read += 1;
        unchecked += 1;
        if last != Some(head) || *key != *last_key {
            input.load()?;
            let (Some(key), value) = (input.key(), input.value()) else {
                break;
            };
            unchecked += value.map_or(0, |value| value.len() as u64 >> 10);
            if value.is_some() || deletes == Deletes::Keep {
                output.add(key, value)?;
                written += 1;
            }
            if several {
                last = Some(head);
                last_key.clear();
                last_key.extend_from_slice(key);
            }
        }
        input.advance()?;
        tree.replay(inputs);
    }
    Ok(Merged::Done { read, written })
}

/// The first eight bytes behind the prefix, in the order of keys.
#[inline]
fn head(key: Option<&[u8]>, prefix: usize) -> u64 {
    let Some(key) = key else {
        return u64::MAX;
    };
    let key = key.get(prefix..).unwrap_or_default();
    if let Some(eight) = key.first_chunk::<8>() {
        return u64::from_be_bytes(*eight);
    }
    let mut bytes = [0; 8];
    for (to, byte) in bytes.iter_mut().zip(key) {
        *to = *byte;
    }
    u64::from_be_bytes(bytes)
}

/// See the module header. Node 1 is the root; the leaves, which are not stored, are the nodes from
/// the number of inputs on.
struct Losers {
    losers: Vec<usize>,
    heads: Vec<u64>,
    winner: usize,
    prefix: usize,
}

impl Losers {
    fn new<I: MergeInput>(inputs: &[I], prefix: usize) -> Self {
        let mut tree = Self {
            losers: vec![0; inputs.len()],
            heads: inputs.iter().map(|i| head(i.key(), prefix)).collect(),
            winner: 0,
            prefix,
        };
        if inputs.len() > 1 {
            tree.winner = tree.build(1, inputs);
        }
        tree
    }

    /// Fills the nodes below `node`; returns the winner among them.
    fn build<I: MergeInput>(&mut self, node: usize, inputs: &[I]) -> usize {
        if node >= inputs.len() {
            return node - inputs.len();
        }
        let (left, right) = (
            self.build(2 * node, inputs),
            self.build(2 * node + 1, inputs),
        );
        let (winner, loser) = if self.beats(left, right, inputs) {
            (left, right)
        } else {
            (right, left)
        };
        if let Some(slot) = self.losers.get_mut(node) {
            *slot = loser;
        }
        winner
    }

    #[inline]
    fn head(&self, input: usize) -> u64 {
        self.heads.get(input).copied().unwrap_or(u64::MAX)
    }

    /// Whether the entry of `one` comes before that of `other`: a lower key, or a newer input.
    #[inline]
    fn beats<I: MergeInput>(&self, one: usize, other: usize, inputs: &[I]) -> bool {
        let (a, b) = (self.head(one), self.head(other));
        if a != b {
            return a < b;
        }
        let key = |input: usize| inputs.get(input).and_then(I::key);
        let order = match (key(one), key(other)) {
            (Some(a), Some(b)) => a.cmp(b),
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (None, None) => Ordering::Equal,
        };
        order.then(one.cmp(&other)).is_lt()
    }

    /// Finds the winner after the last one has advanced.
    #[inline]
    fn replay<I: MergeInput>(&mut self, inputs: &[I]) {
        let mut winner = self.winner;
        if let (Some(slot), Some(input)) = (self.heads.get_mut(winner), inputs.get(winner)) {
            *slot = head(input.key(), self.prefix);
        }
        let mut node = (winner + inputs.len()) / 2;
        while node > 0 {
            let loser = self.losers.get(node).copied().unwrap_or(winner);
            if self.beats(loser, winner, inputs) {
                if let Some(slot) = self.losers.get_mut(node) {
                    *slot = winner;
                }
                winner = loser;
            }
            node /= 2;
        }
        self.winner = winner;
    }
}
