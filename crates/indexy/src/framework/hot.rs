//! What of a tree was worth its memory, and bringing it back: what a hot set needs of a tree.
//!
//! Source: the offline identification of hot keys of the IndeXY paper. Differs: what is in X was
//! chosen by release already; sampled accesses (`heat.rs`) and reference bits say in which order it
//! is worth bringing back.
//!
//! Keeps: I3 (a warmed value enters X as what a miss loads: by the stamp of a search that came
//! before the read of Y), I7 (it enters below the low mark alone, so that nothing is released for
//! it and no writer waits).
//!
//! Threads: any; no latch is held across I/O or a callback. Not here: files and threads
//! (`db/hot_set/`).

#![forbid(unsafe_code)]

use super::{
    regions::{Table, key_range::KeyRange, survey::Precision},
    tree::Joined,
};
use crate::{
    error::Result,
    x::{IndexX, KeySeen, Load, Lookup, StopWalk},
};
use std::{ops::ControlFlow, sync::Arc};

/// Keys go by warmth to so many tiers.
pub(crate) const TIERS: usize = 5;

/// A key that lives in X.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HotKey<'a> {
    pub key: &'a [u8],
    pub value_bytes: usize,
    /// 0: the hottest; below [`TIERS`].
    pub tier: usize,
}

/// The tier of a key of which so many reads were sampled lately. A few hot keys have most of the
/// hits, so the upper tiers are small.
fn tier(sampled: u8, referenced: bool) -> usize {
    match sampled {
        4.. => 0,
        2..=3 => 1,
        1 => 2,
        0 => 3 + usize::from(!referenced),
    }
}

/// A part of X.
pub(crate) struct HotRange {
    table: Arc<Table>,
    region: usize,
    /// Sampled accesses a byte; infinite where X holds all that it was asked for.
    pub density: f64,
    /// Reference bits say something.
    tracked: bool,
}

impl HotRange {
    fn bounds(&self) -> KeyRange<'_> {
        self.table.bounds(self.region)
    }
}

/// What a few keys came to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Warmed {
    /// Keys that were brought into X.
    pub keys: u64,
    /// Bytes of keys and values that were read.
    pub bytes: usize,
    /// Memory is as full as warming makes it.
    pub full: bool,
}

impl Joined {
    /// The regions of X. Empty for a tree that keeps nothing that it reads. Cost: where regions are
    /// not measured, a visit of each leaf.
    pub(crate) fn hot_ranges(&self) -> Vec<HotRange> {
        if self.buffer_only || self.has_locators || self.discarded() {
            return Vec::new();
        }
        let tracked = self.regions.monitored();
        if !tracked {
            let table = self.regions.table();
            let density = f64::INFINITY;
            return (0..table.len())
                .map(|region| HotRange {
                    table: Arc::clone(&table),
                    region,
                    density,
                    tracked,
                })
                .collect();
        }
        let (table, stats) = self.survey(Precision::Rough);
        let density = |(region, bytes): (usize, u64)| match self.resident {
            true => f64::INFINITY,
            false => table.accesses(region) as f64 / bytes.max(1) as f64,
        };
        let bytes = stats.iter().map(|stats| stats.bytes).enumerate();
        bytes
            .map(|(region, bytes)| HotRange {
                density: density((region, bytes)),
                table: Arc::clone(&table),
                region,
                tracked,
            })
            .collect()
    }

    /// Visits the keys of `range` that live in X, up to `longest` bytes long, in order. Where
    /// nothing was released yet, all count as referenced.
    pub(crate) fn hot_keys(
        &self,
        range: &HotRange,
        longest: usize,
        visit: &mut dyn FnMut(HotKey<'_>) -> ControlFlow<StopWalk>,
    ) -> ControlFlow<StopWalk> {
        let (from, to) = range.bounds();
        let heat = self.shared.heat.as_ref();
        self.x.keys(from, to, longest, &mut |entry: KeySeen<'_>| {
            let sampled = heat.map_or(0, |heat| heat.of(self.id, entry.key));
            visit(HotKey {
                key: entry.key,
                value_bytes: entry.value_bytes,
                tier: tier(sampled, entry.referenced || !range.tracked),
            })
        })
    }

    /// Brings those of `keys` (ascending) into X that are in Y alone, as far as there is room; the
    /// reads of Y overlap. Admission is not asked: it let them in before. Nothing is counted as a
    /// read.
    pub(crate) fn warm(&self, keys: &[&[u8]]) -> Result<Warmed> {
        let mut warmed = Warmed::default();
        if self.buffer_only || self.has_locators || self.discarded() {
            return Ok(warmed);
        }
        let asked = keys.iter().filter_map(|key| match self.x.get(key, |_| ()) {
            Lookup::AskY(stamp) => Some((*key, stamp)),
            Lookup::Found(()) | Lookup::Deleted | Lookup::Absent | Lookup::Operand => None,
        });
        let (cold, stamps): (Vec<&[u8]>, Vec<_>) = asked.unzip();
        if cold.is_empty() {
            return Ok(warmed);
        }
        let values = self.y.multi_get(&cold)?;
        if self.discarded() {
            return Ok(warmed);
        }
        for ((key, stamp), value) in cold.iter().zip(stamps).zip(values) {
            let Some(value) = value else { continue };
            let bytes = key.len() + value.len();
            warmed.bytes += bytes;
            if self.too_large_for_x(bytes) {
                continue;
            }
            if !self.shared.room.has_spare(bytes) {
                warmed.full = true;
                break;
            }
            // I3: not if something may have changed since the search.
            let loading = self.load_pause.pass(&self.shared.loads);
            let loaded =
                loading.is_some_and(|_loading| self.x.load(key, &value, stamp) == Load::Loaded);
            warmed.keys += u64::from(loaded);
        }
        Ok(warmed)
    }
}
