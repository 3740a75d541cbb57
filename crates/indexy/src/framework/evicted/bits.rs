//! The bits of one part of a filter: set one by one, never cleared.
//!
//! Threads: any number set and read. Bits are set and read without order of their own. Whoever asks
//! about a key whose bits had to be set before has an order from elsewhere (`mod.rs`).

use super::room::Reserved;
use crate::y::line_filter::{LANES, LINE_BYTES, hash_of, lanes};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Fewer keys share their lines too unevenly.
const MIN_KEYS: u64 = 1024;

/// One cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Line([AtomicU64; LANES]);
const _: () = assert!(size_of::<Line>() == LINE_BYTES);

/// See the module header.
#[derive(Debug)]
pub(crate) struct Bits {
    lines: Box<[Line]>,
    /// Keys for which it was made.
    capacity: u64,
    /// Keys that set a bit: those that are in it, but for a few.
    added: AtomicU64,
    /// Keys of it that were removed since.
    removed: AtomicU64,
    /// Its bytes of the budget, until it goes.
    reserved: Reserved,
}

/// Lines for `keys` keys.
fn lines_for(keys: u64, bits_per_key: u8) -> usize {
    let bits = keys.max(MIN_KEYS).saturating_mul(u64::from(bits_per_key));
    bits.div_ceil(LINE_BYTES as u64 * 8) as usize
}

/// Bytes that `Bits` for so many keys takes.
pub(in crate::framework) fn bytes_for(keys: u64, bits_per_key: u8) -> usize {
    lines_for(keys, bits_per_key) * LINE_BYTES + size_of::<Bits>()
}

impl Bits {
    /// None set, for `keys` keys. `reserved`: [`bytes_for`] them.
    pub(in crate::framework) fn new(keys: u64, bits_per_key: u8, reserved: Reserved) -> Self {
        Self {
            lines: (0..lines_for(keys, bits_per_key))
                .map(|_| Line::default())
                .collect(),
            capacity: keys.max(MIN_KEYS),
            added: AtomicU64::new(0),
            removed: AtomicU64::new(0),
            reserved,
        }
    }

    /// What it takes.
    pub(in crate::framework) fn bytes(&self) -> usize {
        self.reserved.bytes()
    }

    fn line(&self, hash: u64) -> Option<&Line> {
        let line = ((hash >> 32) * self.lines.len() as u64) >> 32;
        self.lines.get(line as usize)
    }

    /// The key of `hash` is admitted from now on.
    pub(in crate::framework) fn add(&self, hash: u64) {
        let Some(line) = self.line(hash) else { return };
        let mut new = 0;
        for (word, lane) in line.0.iter().zip(lanes(hash)) {
            // Most keys that are written are there: their line is only read.
            if word.load(Relaxed) & lane == 0 {
                new |= !word.fetch_or(lane, Relaxed) & lane;
            }
        }
        if new != 0 {
            self.added.fetch_add(1, Relaxed);
        }
    }

    /// False: the key of `hash` was not added.
    pub(in crate::framework) fn admits(&self, hash: u64) -> bool {
        let Some(line) = self.line(hash) else {
            return true;
        };
        let mut missing = 0;
        for (word, lane) in line.0.iter().zip(lanes(hash)) {
            missing |= !word.load(Relaxed) & lane;
        }
        missing == 0
    }

    /// The key of `hash` is removed. Its bits stay.
    pub(in crate::framework) fn note_removed(&self, hash: u64) {
        if self.admits(hash) {
            self.removed.fetch_add(1, Relaxed);
        }
    }

    /// Keys that are in it, roughly.
    pub(in crate::framework) fn keys(&self) -> u64 {
        let removed = self.removed.load(Relaxed);
        self.added.load(Relaxed).saturating_sub(removed)
    }

    /// It has more keys than it was made for.
    pub(in crate::framework) fn is_overfull(&self) -> bool {
        self.added.load(Relaxed) > self.capacity
    }

    /// Most keys find their bits set: they are not counted.
    pub(in crate::framework) fn is_saturated(&self) -> bool {
        self.added.load(Relaxed) > self.capacity + self.capacity / 2
    }

    /// Half of its keys are gone.
    pub(in crate::framework) fn is_stale(&self) -> bool {
        let removed = self.removed.load(Relaxed);
        removed >= MIN_KEYS / 2 && removed * 2 > self.added.load(Relaxed)
    }

    /// The hash by which it knows `key`.
    pub(in crate::framework) fn hash_of(key: &[u8]) -> u64 {
        hash_of(key)
    }
}
