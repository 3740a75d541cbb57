//! How many rows there are, the driver's locks, and what it knows of the counts.

use crate::{application::TableId, workload::Pick};
use serde::{Deserialize, Serialize};
use std::{
    ops::Range,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// A row is a count and zeros behind it.
pub const LEAST_VALUE_BYTES: u32 = 8;
/// Most rows that a transaction writes.
pub const MOST_ROWS_AT_ONCE: u8 = 64;
const KEY_BYTES: u64 = 8;
const STRIPES: u64 = 4096;
/// Ranges of keys whose sums are known.
pub(super) const PARTS: usize = 16;

/// How large the table is, and what is done with it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// Rows of the table, at least [`MOST_ROWS_AT_ONCE`] times 2.
    pub rows: u64,
    /// Bytes of a value, at least [`LEAST_VALUE_BYTES`].
    pub value_bytes: u32,
    /// Rows that a transaction reads and writes, at most [`MOST_ROWS_AT_ONCE`].
    pub at_once: u8,
    /// Of 100 transactions, those that read one row.
    pub reads: u8,
    /// The exponent, where rows are drawn by Zipf; none: each as often as any other.
    pub zipf: Option<f64>,
}

impl Config {
    /// Rows of the loaded database.
    pub fn entries(&self) -> u64 {
        self.rows
    }

    /// Bytes of keys and values.
    pub fn bytes(&self) -> u64 {
        self.rows * (KEY_BYTES + u64::from(self.value_bytes))
    }

    pub(super) fn draws(&self) -> Pick {
        let keys = self.rows;
        match self.zipf {
            None => Pick::Uniform { keys },
            Some(exponent) => Pick::Zipf {
                keys,
                exponent,
                scattered: true,
                rotate: 0,
            },
        }
    }
}

/// The one table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table;

impl TableId for Table {
    fn index(self) -> usize {
        0
    }

    fn name(self) -> &'static str {
        "counters"
    }
}

/// The count of a row.
pub(super) fn count(row: &[u8]) -> Option<u64> {
    let (count, zeros) = row.split_first_chunk()?;
    let zeros = zeros.iter().all(|byte| *byte == 0);
    zeros.then_some(u64::from_le_bytes(*count))
}

/// Makes `row` one of `bytes` with this count.
pub(super) fn write(row: &mut Vec<u8>, count: u64, bytes: u32) {
    row.clear();
    row.extend_from_slice(&count.to_le_bytes());
    row.resize(bytes as usize, 0);
}

/// The table, as its driver knows it.
#[derive(Debug)]
pub struct Counters {
    pub(super) config: Config,
    stripes: Vec<Mutex<()>>,
    /// By how much the counts of each part were raised; by clients that finished.
    raised: Vec<AtomicU64>,
}

impl Counters {
    /// One that is not loaded yet.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            stripes: (0..STRIPES).map(|_| Mutex::default()).collect(),
            raised: (0..PARTS).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Locks the stripes of `keys`.
    pub(super) fn lock(&self, keys: &[u64]) -> Vec<MutexGuard<'_, ()>> {
        let mut stripes: Vec<u64> = keys.iter().map(|key| key % STRIPES).collect();
        stripes.sort_unstable();
        stripes.dedup();
        let lock = |stripe: u64| {
            let stripe = &self.stripes[stripe as usize];
            stripe.lock().unwrap_or_else(PoisonError::into_inner)
        };
        stripes.into_iter().map(lock).collect()
    }

    fn keys_a_part(&self) -> u64 {
        self.config.rows.div_ceil(PARTS as u64)
    }

    /// The part that `key` is in.
    pub(super) fn part(&self, key: u64) -> usize {
        (key / self.keys_a_part()) as usize
    }

    pub(super) fn keys_of(&self, part: usize) -> Range<u64> {
        let (rows, from) = (self.config.rows, part as u64 * self.keys_a_part());
        from.min(rows)..(from + self.keys_a_part()).min(rows)
    }

    pub(super) fn raised(&self, part: usize) -> u64 {
        self.raised[part].load(Relaxed)
    }

    /// Adds what a client that finished has raised, by part.
    pub(super) fn raise(&self, by: &[u64]) {
        for (sum, by) in self.raised.iter().zip(by) {
            sum.fetch_add(*by, Relaxed);
        }
    }
}
