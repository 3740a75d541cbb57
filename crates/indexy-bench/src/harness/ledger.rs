//! Which records were deleted, so that a read that finds nothing, or too much, can be judged.
//!
//! Two bits a record: one set before the delete is given to the engine (from then on the record may
//! be absent), one set after it was acknowledged (from then on it must be, if nothing writes it
//! again). Records beyond [`MOST_RECORDS`] have no bits: once one of them was deleted, each of them
//! may be absent.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The ledger takes at most 256 MiB.
const MOST_RECORDS: u64 = 1 << 30;

/// The two bits of each record.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    asked: Vec<AtomicU64>,
    gone: Vec<AtomicU64>,
    /// A record without bits may have been deleted.
    beyond: AtomicBool,
}

impl Ledger {
    /// Gives bits to the records of `0..records` that have none, as far as the ledger goes.
    pub(super) fn cover(&mut self, records: u64) {
        // What was deleted without bits stays unknown.
        if self.beyond.load(Ordering::Acquire) {
            return;
        }
        let words = words(records);
        for bits in [&mut self.asked, &mut self.gone] {
            if bits.len() < words {
                bits.resize_with(words, AtomicU64::default);
            }
        }
    }

    /// A delete of `record` is about to be given to the engine.
    pub(super) fn ask(&self, record: u64) {
        if !set(&self.asked, record) {
            // Release pairs with the acquire in `may_be_absent`.
            self.beyond.store(true, Ordering::Release);
        }
    }

    /// The engine acknowledged it.
    pub(super) fn acknowledge(&self, record: u64) {
        set(&self.gone, record);
    }

    /// True if a read of `record` may find nothing.
    pub(super) fn may_be_absent(&self, record: u64) -> bool {
        get(&self.asked, record).unwrap_or_else(|| self.beyond.load(Ordering::Acquire))
    }

    /// True if a read of `record` that begins now must find nothing, unless something writes it
    /// again.
    pub(super) fn must_be_absent(&self, record: u64) -> bool {
        get(&self.gone, record).unwrap_or(false)
    }
}

/// Words that the bits of `0..records` take, within the bound.
fn words(records: u64) -> usize {
    records.min(MOST_RECORDS).div_ceil(64) as usize
}

// Release pairs with the acquire in `get`: a thread that sees the bit sees the delete done. False
// if the record has no bit.
fn set(bits: &[AtomicU64], record: u64) -> bool {
    let word = bits.get((record / 64) as usize);
    word.map(|word| word.fetch_or(1 << (record % 64), Ordering::Release))
        .is_some()
}

/// None if the record has no bit.
fn get(bits: &[AtomicU64], record: u64) -> Option<bool> {
    let word = bits.get((record / 64) as usize)?;
    Some(word.load(Ordering::Acquire) >> (record % 64) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_each_records_own() {
        let mut ledger = Ledger::default();
        ledger.cover(130);
        ledger.ask(64);
        ledger.ask(129);
        ledger.acknowledge(129);
        assert!(ledger.may_be_absent(64) && !ledger.must_be_absent(64));
        assert!(
            ledger.must_be_absent(129)
                && !ledger.may_be_absent(63)
                && !ledger.may_be_absent(1 << 40)
        );
    }

    #[test]
    fn more_records_are_covered_without_forgetting() {
        let mut ledger = Ledger::default();
        ledger.cover(100);
        ledger.ask(99);
        ledger.cover(1000);
        ledger.ask(999);
        ledger.cover(10);
        assert!(ledger.may_be_absent(99) && ledger.may_be_absent(999));
        assert!(!ledger.may_be_absent(500) && !ledger.may_be_absent(5000));
    }

    #[test]
    fn a_deleted_record_without_bits_lets_all_such_be_absent() {
        let mut ledger = Ledger::default();
        ledger.cover(64);
        ledger.ask(64);
        ledger.acknowledge(64);
        ledger.cover(1000);
        assert!(ledger.may_be_absent(64) && ledger.may_be_absent(900));
        assert!(!ledger.may_be_absent(63) && !ledger.must_be_absent(64));
    }

    #[test]
    fn the_ledger_stays_within_its_bound() {
        assert_eq!(words(65), 2);
        assert_eq!(2 * words(u64::MAX) * size_of::<AtomicU64>(), 256 << 20);
    }
}
