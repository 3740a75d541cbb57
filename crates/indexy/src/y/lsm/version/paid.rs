//! What reads have paid towards merges that nobody has made yet, as the version log keeps it from
//! one process to the next.
//!
//! | bytes | field | rule |
//! |---|---|---|
//! | 4 | partitions that follow | at least 1 |
//! | 4 | index of the partition | they ascend |
//! | 8 | blocks looked into in vain | at most 2^48 |
//! | 8 | deletes passed over | at most 2^48; not both are 0 |

#![forbid(unsafe_code)]

use super::{
    codec::{Reader, Wrong, put_u32, put_u64},
    contents::Version,
    facts::TableFile,
    partition::Reads,
};
use std::collections::BTreeMap;

/// More is not remembered: it is more than any merge costs.
const MOST: u64 = 1 << 48;
const BYTES_EACH: usize = 4 + 8 + 8;
/// Deletes that are passed over in the time of one block.
const DELETES_A_BLOCK: u64 = 1000;
/// Fewer blocks are not worth a sync at each close.
const WORTH_A_SYNC: u64 = 64;

/// By the index of a partition: blocks that reads have looked into in vain, and deletes that they
/// have passed over. Partitions of which nobody has paid anything are missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Paid(BTreeMap<usize, (u64, u64)>);

impl Paid {
    /// What is paid in `version` now.
    pub(super) fn of<T: TableFile>(version: &Version<T>) -> Self {
        let of = |reads: &Reads| (reads.wasted().min(MOST), reads.skipped().min(MOST));
        let all = version.partitions().iter().map(|p| of(p.reads()));
        Self(
            all.enumerate()
                .filter(|(_, paid)| *paid != (0, 0))
                .collect(),
        )
    }

    #[cfg(any(test, feature = "testing"))]
    pub(super) fn in_one(index: usize, wasted: u64, skipped: u64) -> Self {
        Self(BTreeMap::from([(index, (wasted, skipped))]))
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is paid in partition `index`: blocks and deletes.
    pub(super) fn in_partition(&self, index: usize) -> (u64, u64) {
        self.0.get(&index).copied().unwrap_or_default()
    }

    /// Whether this should be told, if so many blocks were told last.
    pub(super) fn is_worth_telling(&self, blocks: u64) -> bool {
        self.blocks() >= blocks.saturating_add(WORTH_A_SYNC)
    }

    /// All of it, in blocks.
    pub(super) fn blocks(&self) -> u64 {
        let blocks = self
            .0
            .values()
            .map(|(wasted, skipped)| wasted + skipped / DELETES_A_BLOCK);
        blocks.fold(0, u64::saturating_add)
    }

    /// Whether all of it belongs to the first `partitions`.
    pub(super) fn fits(&self, partitions: usize) -> bool {
        self.0
            .last_key_value()
            .is_none_or(|(last, _)| *last < partitions)
    }

    /// Nothing is written if nothing was paid.
    pub(super) fn encode(&self, to: &mut Vec<u8>) {
        if self.is_empty() {
            return;
        }
        put_u32(to, self.0.len());
        for (index, (wasted, skipped)) in &self.0 {
            put_u32(to, *index);
            put_u64(to, *wasted);
            put_u64(to, *skipped);
        }
    }

    /// All that is left of `from`; nothing left: nothing was paid.
    pub(super) fn decode(from: &mut Reader<'_>) -> Result<Self, Wrong> {
        let mut paid = BTreeMap::new();
        if from.0.is_empty() {
            return Ok(Self(paid));
        }
        for _ in 0..from.count(BYTES_EACH)? {
            let (index, wasted, skipped) = (from.u32()?, from.u64()?, from.u64()?);
            if paid
                .last_key_value()
                .is_some_and(|(last, _)| *last >= index)
            {
                return Err("what reads paid does not ascend");
            }
            if wasted > MOST || skipped > MOST || (wasted, skipped) == (0, 0) {
                return Err("how much reads paid");
            }
            paid.insert(index, (wasted, skipped));
        }
        match paid.is_empty() {
            true => Err("nobody has paid"),
            false => Ok(Self(paid)),
        }
    }
}
