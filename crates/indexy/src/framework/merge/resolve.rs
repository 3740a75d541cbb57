//! Resolving operands: an operand and what Y has become the value that both make.
//!
//! Nothing that readers see changes. Keeps: the first rule of the module header of the folder (the
//! record of the value is logged under the latch under which the entry changes, and not between
//! the record of a batch and its apply), I3 by the stamp, I7 (what values take beyond their
//! operands is bounded by whoever asks).
//!
//! Threads: any; no stripe and no run lock is needed, for what was found is compared under the
//! latch. It may wait for room in the log and for batches that are being applied, which wait for
//! neither. What loses against a writer starts again: the key has no operand any more, or another
//! one.

#![forbid(unsafe_code)]

use crate::{
    error::{Error, Result},
    events,
    framework::{
        counters,
        journal::BetweenBatches,
        operators::{MAX_MERGED_BYTES, Outcome},
        regions::key_range::KeyRange,
        tree::Joined,
    },
    key::Value,
    wal::RecordRef,
    x::{IndexX, Waiting},
};
use std::time::Duration;

/// What values take beyond their operands, of one run, or one look: this part of the budget.
const GROWTH_DIVISOR: usize = 32;
/// Bytes of a record beside key and value.
const RECORD_OVERHEAD_BYTES: usize = 32;
/// Operands take at most this part of the budget, in eighths: beyond, whoever merges resolves some.
const MOST_EIGHTHS: usize = 4;
/// From this part on the cleaner is asked to.
const CLEANED_EIGHTHS: usize = 3;
/// Whoever merges looks once in so many merges,
const LOOK_EACH: u64 = 64;
/// and resolves so many: more than came meanwhile.
const RESOLVED_AT_LOOK: usize = 256;

/// A read of Y that fails before a run is tried again so often,
const READS_AGAIN: u32 = 3;
/// after so long, with the run lock held.
const PAUSE: Duration = Duration::from_millis(20);

/// What a resolution of many may still do.
pub(in crate::framework) struct Allowance {
    operands: usize,
    growth: usize,
    /// Something was resolved: the first one is always allowed, or nothing would get on.
    begun: bool,
}

impl Joined {
    /// What a run may resolve.
    pub(in crate::framework) fn allowance(&self) -> Allowance {
        Allowance {
            operands: usize::MAX,
            growth: self.shared.budget.limit() / GROWTH_DIVISOR,
            begun: false,
        }
    }

    /// Some key of the range has an operand.
    pub(crate) fn has_operand(&self, (from, to): KeyRange<'_>) -> bool {
        let mut found = Vec::new();
        if self.merging.operator.get().is_some() {
            self.x.operands(from, to, 1, &mut found);
        }
        !found.is_empty()
    }

    /// Resolves the operands of `[from, to)` in ascending order, as far as `allowance` goes.
    /// Returns the key at which it stopped. What comes meanwhile may stay.
    pub(in crate::framework) fn resolve_range(
        &self,
        (from, to): KeyRange<'_>,
        allowance: &mut Allowance,
    ) -> Result<Option<Vec<u8>>> {
        if self.merging.operator.get().is_none() {
            return Ok(None);
        }
        let mut waiting = Vec::new();
        let mut at = Some(from.to_vec());
        while let Some(from) = at {
            if allowance.operands == 0 {
                return Ok(Some(from));
            }
            at = self
                .x
                .operands(&from, to, self.merging.at_once.now(), &mut waiting);
            // The last leaf may have had more.
            while let Some(first) = waiting.first() {
                if allowance.operands == 0 {
                    return Ok(Some(first.key.to_vec()));
                }
                let now = self.merging.at_once.now().min(allowance.operands);
                let now = now.min(waiting.len());
                let later = waiting.split_off(now);
                let stopped = self.resolve_batch(&mut waiting, allowance)?;
                if stopped.is_some() {
                    return Ok(stopped);
                }
                waiting = later;
            }
        }
        Ok(None)
    }

    /// As [`Joined::resolve_range`]. A read that fails is tried again: the run has not begun, and
    /// Y was not written to, so that nothing is in doubt.
    pub(in crate::framework) fn resolve_patiently(
        &self,
        range: KeyRange<'_>,
        allowance: &mut Allowance,
    ) -> Result<Option<Vec<u8>>> {
        for _ in 0..READS_AGAIN {
            match self.resolve_range(range, allowance) {
                Err(error @ Error::Io { .. }) => events::refused(&error),
                resolved => return resolved,
            }
            std::thread::sleep(PAUSE);
        }
        self.resolve_range(range, allowance)
    }

    /// Resolves all of `waiting`, which ascend. Returns the key at which the allowance was used up.
    fn resolve_batch(
        &self,
        waiting: &mut Vec<Waiting>,
        allowance: &mut Allowance,
    ) -> Result<Option<Vec<u8>>> {
        while !waiting.is_empty() {
            let keys: Vec<&[u8]> = waiting.iter().map(|w| &w.key[..]).collect();
            counters::add(&self.shared.counters.y_reads, keys.len() as u64);
            let bases = self.y.multi_get(&keys)?;
            self.check_kept()?;
            let bytes = |(one, base): (&Waiting, &Option<Value>)| {
                one.key.len() + one.operand.len() + base.as_ref().map_or(0, |base| base.len())
            };
            let largest = waiting.iter().zip(&bases).map(bytes).max();
            self.have_read(waiting.len(), largest.unwrap_or(0));
            let mut again = Vec::new();
            for (one, base) in waiting.drain(..).zip(bases) {
                if let Some(moved) = self.resolve(one, base.as_ref(), allowance)? {
                    match moved {
                        Left::Moved(one) => again.push(one),
                        Left::NotAllowed(key) => return Ok(Some(key)),
                    }
                }
            }
            *waiting = again;
        }
        Ok(None)
    }

    /// Resolves one operand, whose value in Y was `base` when its range had the stamp. Combined
    /// with others it may be meanwhile.
    fn resolve(
        &self,
        mut one: Waiting,
        base: Option<&Value>,
        allowance: &mut Allowance,
    ) -> Result<Option<Left>> {
        loop {
            let most = self.longest_merged();
            let operator = self.operator()?;
            let made = match operator.merge(&one.key, base.map(|v| &v[..]), &one.operand, most) {
                Outcome::Value(value) => Some(value),
                Outcome::Same | Outcome::Refused(_) => None,
            };
            let len = made.as_ref().map_or(0, Vec::len);
            let growth = len.saturating_sub(one.operand.len());
            if allowance.begun && growth > allowance.growth {
                return Ok(Some(Left::NotAllowed(one.key.to_vec())));
            }
            let log = self.shared.log.get();
            let record = one.key.len() + len + RECORD_OVERHEAD_BYTES;
            let _room = log.map(|log| log.admit(record)).transpose()?;
            let alone = self.shared.log.between_batches();
            if self.log_resolved(&alone, &one, made.as_deref())? {
                allowance.begun = true;
                allowance.growth = allowance.growth.saturating_sub(growth);
                allowance.operands = allowance.operands.saturating_sub(1);
                return Ok(None);
            }
            drop(alone);
            match self.x.operand(&one.key) {
                None => return Ok(None),
                // I3: nothing was removed, so Y has what it had.
                Some((operand, stamp)) if stamp == one.stamp => one.operand = operand,
                Some((operand, stamp)) => {
                    let key = one.key;
                    return Ok(Some(Left::Moved(Waiting {
                        key,
                        operand,
                        stamp,
                    })));
                }
            }
        }
    }

    /// The same where it waits for nothing; else the operand stays.
    pub(super) fn resolve_at_once(&self, one: &Waiting, value: Option<&[u8]>) {
        if !self.shared.log.may_resolve() {
            return;
        }
        let log = self.shared.log.get();
        let bytes = one.key.len() + value.map_or(0, <[u8]>::len);
        let room = match log {
            Some(log) => log.try_admit(bytes + RECORD_OVERHEAD_BYTES).map(Some),
            None => Some(None),
        };
        let Some(_room) = room else { return };
        let Some(_admitted) = self.shared.room.admit_load(bytes) else {
            return;
        };
        if let Some(alone) = self.shared.log.try_between_batches() {
            // A log that refuses is heard of by whoever writes.
            let _ = self.log_resolved(&alone, one, value);
        }
    }

    /// The entry and the record of a resolution, at one moment. The caller has room in the log.
    fn log_resolved(
        &self,
        _alone: &BetweenBatches<'_>,
        one: &Waiting,
        value: Option<&[u8]>,
    ) -> Result<bool> {
        let (tree, key) = (self.id, &one.key[..]);
        let log = self.shared.log.get();
        self.x.resolve(key, &one.operand, one.stamp, value, || {
            let record = RecordRef::Resolved { tree, key, value };
            log.map_or(Ok(()), |log| log.append(record).map(drop))
        })
    }

    /// Resolves the operand of `key`, if it has one. The caller holds the stripe, and no room in
    /// the log.
    pub(in crate::framework) fn resolve_key(&self, key: &[u8]) -> Result<()> {
        let to = crate::key::successor(key);
        let mut allowance = self.allowance();
        while self
            .resolve_range((key, Some(&to)), &mut allowance)?
            .is_some()
        {}
        Ok(())
    }

    /// For whoever is about to leave an operand, and has no room in the log: keeps operands within
    /// their part of the budget (I7).
    pub(crate) fn make_room_for_operands(&self) -> Result<()> {
        let merging = &self.merging;
        let ticks = &merging.ticks;
        if !ticks
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed)
            .is_multiple_of(LOOK_EACH)
        {
            return Ok(());
        }
        let eighth = self.shared.budget.limit() / 8;
        let bytes = self.operand_bytes();
        if bytes > CLEANED_EIGHTHS * eighth {
            self.shared.clean_request.ask();
            self.shared.wake_cleaner.notify();
        }
        if bytes <= MOST_EIGHTHS * eighth {
            return Ok(());
        }
        let growth = (self.shared.budget.limit() / GROWTH_DIVISOR).max(MAX_MERGED_BYTES);
        // Any number of writers may come here. Without room it is left to the cleaner.
        let Some(_admitted) = self.shared.room.admit_load(growth) else {
            return Ok(());
        };
        let mut allowance = Allowance {
            operands: RESOLVED_AT_LOOK,
            growth,
            begun: true,
        };
        // Round and round, so that neighbours are read together. Others take other stretches.
        let from = std::mem::take(&mut *merging.cursor.lock());
        let stopped = self.resolve_range((&from, None), &mut allowance)?;
        *merging.cursor.lock() = stopped.unwrap_or_default();
        Ok(())
    }

    /// What operands take in X, about.
    pub(crate) fn operand_bytes(&self) -> usize {
        self.x.stats().operand_bytes()
    }
}

/// An operand that was not resolved.
enum Left {
    /// Its range lost something: Y has to be asked again.
    Moved(Waiting),
    /// There is no room for its value. Its key.
    NotAllowed(Vec<u8>),
}
