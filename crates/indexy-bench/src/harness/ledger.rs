//! Which records were deleted, so that a read that finds nothing, or too much, can be judged.
//!
//! Two bits a record: one set before the delete is given to the engine (from then on the record may be absent), one set after
//! it was acknowledged (from then on it must be, if nothing writes it again).

use std::sync::atomic::{AtomicU64, Ordering};

/// The two bits of each record.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    asked: Vec<AtomicU64>,
    gone: Vec<AtomicU64>,
}

impl Ledger {
    /// For records `0..records`, none deleted.
    pub(super) fn new(records: u64) -> Self {
        let words = records.div_ceil(64) as usize;
        let bits = || (0..words).map(|_| AtomicU64::new(0)).collect();
        Self {
            asked: bits(),
            gone: bits(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.asked.is_empty()
    }

    /// A delete of `record` is about to be given to the engine.
    pub(super) fn ask(&self, record: u64) {
        set(&self.asked, record);
    }

    /// The engine acknowledged it.
    pub(super) fn acknowledge(&self, record: u64) {
        set(&self.gone, record);
    }

    /// True if a read of `record` may find nothing.
    pub(super) fn may_be_absent(&self, record: u64) -> bool {
        get(&self.asked, record)
    }

    /// True if a read of `record` that begins now must find nothing, unless something writes it again.
    pub(super) fn must_be_absent(&self, record: u64) -> bool {
        get(&self.gone, record)
    }
}

// Release pairs with the acquire in `get`: who sees the bit sees the delete done.
fn set(bits: &[AtomicU64], record: u64) {
    if let Some(word) = bits.get((record / 64) as usize) {
        word.fetch_or(1 << (record % 64), Ordering::Release);
    }
}

fn get(bits: &[AtomicU64], record: u64) -> bool {
    bits.get((record / 64) as usize)
        .is_some_and(|word| word.load(Ordering::Acquire) >> (record % 64) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_each_records_own() {
        let ledger = Ledger::new(130);
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
}
