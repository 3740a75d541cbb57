//! What a record of the version log says: how a version differs from the one before.
//!
//! | bytes | field |
//! |---|---|
//! | 4 | new tables |
//! | | their facts (`facts.rs`) |
//! | 4 | hunks |
//! | | each: index of a partition (4), how many are replaced (4), by how many (4), and those |
//! | | what reads have paid in the new version (`paid.rs`), or nothing |
//!
//! A partition is its lowest key (length 4, bytes), the numbers of the tables of its base (4, and 8
//! each) and of its layers. Hunks ascend; indices are those of the version before. A table that no
//! partition has is no longer of the version. What reads have paid is what the last record says of
//! it: after one that says nothing, nothing is known.

#![forbid(unsafe_code)]

use crate::{
    limits::MAX_KEY_BYTES,
    y::lsm::version::{
        codec::{Reader, Wrong, put_bytes, put_u32, put_u64},
        facts::{self, Facts},
        paid::Paid,
    },
};
use std::collections::{BTreeMap, BTreeSet};

/// A partition, with its tables' numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::y::lsm::version) struct Placed {
    pub(in crate::y::lsm::version) from: Box<[u8]>,
    pub(in crate::y::lsm::version) base: Vec<u64>,
    pub(in crate::y::lsm::version) layers: Vec<u64>,
}

/// Partitions that take the place of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::y::lsm::version) struct Hunk {
    pub(in crate::y::lsm::version) at: usize,
    pub(in crate::y::lsm::version) removed: usize,
    pub(in crate::y::lsm::version) inserted: Vec<Placed>,
}

/// See the module header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::y::lsm::version) struct Change {
    pub(in crate::y::lsm::version) tables: Vec<Facts>,
    pub(in crate::y::lsm::version) hunks: Vec<Hunk>,
    pub(in crate::y::lsm::version) paid: Paid,
}

/// A version as the log has it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::y::lsm::version) struct Listing {
    pub(in crate::y::lsm::version) tables: BTreeMap<u64, Facts>,
    pub(in crate::y::lsm::version) partitions: Vec<Placed>,
    pub(in crate::y::lsm::version) paid: Paid,
}

/// A lowest key's length and two counts.
const LEAST_PLACED: usize = 3 * 4;
const LEAST_HUNK: usize = 3 * 4;

impl Placed {
    fn encode(&self, to: &mut Vec<u8>) {
        put_bytes(to, &self.from);
        for numbers in [&self.base, &self.layers] {
            put_u32(to, numbers.len());
            for number in numbers {
                put_u64(to, *number);
            }
        }
    }

    fn decode(from: &mut Reader<'_>) -> Result<Self, Wrong> {
        let key = from.bytes(MAX_KEY_BYTES + 1)?;
        let mut numbers = || -> Result<Vec<u64>, Wrong> {
            let count = from.count(8)?;
            (0..count).map(|_| from.u64()).collect()
        };
        Ok(Self {
            from: key,
            base: numbers()?,
            layers: numbers()?,
        })
    }

    fn tables(&self) -> impl Iterator<Item = &u64> {
        self.base.iter().chain(&self.layers)
    }
}

impl Change {
    pub(in crate::y::lsm::version) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_u32(&mut bytes, self.tables.len());
        for table in &self.tables {
            table.encode(&mut bytes);
        }
        put_u32(&mut bytes, self.hunks.len());
        for hunk in &self.hunks {
            put_u32(&mut bytes, hunk.at);
            put_u32(&mut bytes, hunk.removed);
            put_u32(&mut bytes, hunk.inserted.len());
            for partition in &hunk.inserted {
                partition.encode(&mut bytes);
            }
        }
        self.paid.encode(&mut bytes);
        bytes
    }

    pub(in crate::y::lsm::version) fn decode(bytes: &[u8]) -> Result<Self, Wrong> {
        let mut from = Reader(bytes);
        let tables = from.count(facts::LEAST_BYTES)?;
        let tables: Result<_, _> = (0..tables).map(|_| Facts::decode(&mut from)).collect();
        let tables = tables?;
        let hunks = from.count(LEAST_HUNK)?;
        let mut hunk = || -> Result<Hunk, Wrong> {
            let (at, removed) = (from.u32()?, from.u32()?);
            let inserted = from.count(LEAST_PLACED)?;
            let inserted: Result<_, _> = (0..inserted).map(|_| Placed::decode(&mut from)).collect();
            Ok(Hunk {
                at,
                removed,
                inserted: inserted?,
            })
        };
        let hunks: Result<_, _> = (0..hunks).map(|_| hunk()).collect();
        let hunks = hunks?;
        let paid = Paid::decode(&mut from)?;
        match from.0 {
            [] => Ok(Self {
                tables,
                hunks,
                paid,
            }),
            _ => Err("bytes behind the end"),
        }
    }
}

impl Listing {
    /// Makes `change`; on an error nothing is promised of what is left.
    pub(in crate::y::lsm::version) fn apply(&mut self, change: Change) -> Result<(), Wrong> {
        for table in change.tables {
            if self.tables.insert(table.number, table).is_some() {
                return Err("a table is new for the second time");
            }
        }
        let mut old = std::mem::take(&mut self.partitions).into_iter();
        let mut at = 0;
        for hunk in change.hunks {
            let kept = hunk.at.checked_sub(at).ok_or("hunks do not ascend")?;
            if kept + hunk.removed > old.len() {
                return Err("a hunk of partitions that are not there");
            }
            self.partitions.extend(old.by_ref().take(kept));
            old.by_ref().take(hunk.removed).for_each(drop);
            at = hunk.at + hunk.removed;
            self.partitions.extend(hunk.inserted);
        }
        self.partitions.extend(old);
        if !change.paid.fits(self.partitions.len()) {
            return Err("reads paid in a partition that is not there");
        }
        self.paid = change.paid;
        let used: BTreeSet<u64> = self
            .partitions
            .iter()
            .flat_map(Placed::tables)
            .copied()
            .collect();
        if used.iter().any(|number| !self.tables.contains_key(number)) {
            return Err("a partition of an unknown table");
        }
        self.tables.retain(|number, _| used.contains(number));
        Ok(())
    }
}
