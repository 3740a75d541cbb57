//! The loops of the micro benchmarks: keys of 8 bytes that a number determines.
//!
//! Every value read is compared with what was written; a key that was inserted must be found, one
//! that was not must not.

use super::job::Broken;
use super::worker::{Done, Kind, Worker};
use crate::contender::{End, Outcome, Session};
use crate::workload::{Keys, Pick, SmallKey, Values, seed_of};
use std::{
    cmp::Ordering,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// Numbers that [`mixed`] inserts start here, above any load and below the absent ones.
const NEW_FROM: u64 = 1 << 40;

/// What all loops need.
#[derive(Debug, Clone, Copy)]
pub(super) struct Points {
    pub keys: Keys,
    pub values: Values,
}

/// How many of `total` fall to `thread`, when they are dealt one by one.
pub(super) fn share(total: u64, thread: u64, threads: u64) -> u64 {
    total / threads + u64::from(thread < total % threads)
}

/// Takes `ops` records from both ends, in turns; what comes from the first end ascends, what comes
/// from the last one descends.
pub(super) fn pop<S: Session>(
    session: &mut S,
    worker: &mut Worker<'_>,
    ops: u64,
) -> Result<(), Broken> {
    let mut last: [Option<Vec<u8>>; 2] = [None, None];
    let mut turn = 0;
    worker.drive(ops, |_| {
        let (at, end, wrong) = [
            (0, End::First, Ordering::Greater),
            (1, End::Last, Ordering::Less),
        ][turn % 2];
        turn += 1;
        let mut in_order = true;
        let there = session.pop(end, |key| match &mut last[at] {
            Some(before) => {
                in_order = (*before).as_slice().cmp(key) == wrong.reverse();
                before.clear();
                before.extend_from_slice(key);
            }
            none => *none = Some(key.to_vec()),
        })?;
        match (there, in_order) {
            (true, true) => Ok(Done::one(Kind::Pop, true)),
            (true, false) => Err(Broken::Wrong("records popped out of order".to_owned())),
            (false, _) => Err(Broken::Wrong("nothing is left to be popped".to_owned())),
        }
    })
}

impl Points {
    /// Reads `number` and checks what comes back.
    #[inline]
    fn read<S: Session>(&self, session: &mut S, number: u64, absent: bool) -> Result<bool, Broken> {
        let key = self.keys.key(number);
        let seed = seed_of(&key);
        match session.get(&key, |value| self.values.check(seed, value))? {
            Some(Ok(_)) if absent => Err(Broken::ghost(&key, "never inserted")),
            Some(Ok(_)) => Ok(true),
            Some(Err(mismatch)) => Err(Broken::value(&key, &mismatch)),
            None if absent => Ok(false),
            None => Err(Broken::missing(&key)),
        }
    }

    #[inline]
    fn write<S: Session>(&self, session: &mut S, number: u64, value: &mut [u8]) -> Outcome<Done> {
        let key = self.keys.key(number);
        Values::fill(seed_of(&key), 0, value);
        session.insert(&key, value)?;
        Ok(Done::wrote(Kind::Insert, key.len() + value.len()))
    }

    /// Inserts `from..from + count`; returns up to which number this thread left no gap of its own.
    pub(super) fn load<S: Session>(
        &self,
        session: &mut S,
        worker: &mut Worker<'_>,
        from: u64,
        count: u64,
    ) -> Result<u64, Broken> {
        let mut value = vec![0; self.values.bytes()];
        let mut number = from + worker.thread;
        let step = worker.threads;
        worker.drive(share(count, worker.thread, step), |_| {
            let done = self.write(session, number, &mut value)?;
            number += step;
            Ok(done)
        })?;
        Ok(number)
    }

    /// Reads each key of `pick` once.
    pub(super) fn touch<S: Session>(
        &self,
        session: &mut S,
        worker: &mut Worker<'_>,
        pick: &Pick,
    ) -> Result<(), Broken> {
        let mut index = worker.thread;
        let step = worker.threads;
        worker.drive(share(pick.distinct(), worker.thread, step), |_| {
            let found = self.read(session, pick.nth(index), *pick == Pick::Absent)?;
            index += step;
            Ok(Done::one(Kind::Get, found))
        })
    }

    /// Reads `ops` keys, `unit` neighbours by number at a time.
    pub(super) fn reads<S: Session>(
        &self,
        session: &mut S,
        worker: &mut Worker<'_>,
        pick: &Pick,
        ops: u64,
        unit: u64,
    ) -> Result<(), Broken> {
        let chooser = pick.chooser();
        let absent = *pick == Pick::Absent;
        let mine = share(ops, worker.thread, worker.threads);
        if unit <= 1 {
            return worker.drive(mine, |rng| {
                let found = self.read(session, chooser.next(rng), absent)?;
                Ok(Done::one(Kind::Get, found))
            });
        }
        let limit = pick.distinct();
        worker.drive(mine, |rng| {
            let first = chooser.next(rng).min(limit.saturating_sub(unit));
            let mut found = 0;
            for number in first..(first + unit).min(limit) {
                found += u64::from(self.read(session, number, absent)?);
            }
            Ok(Done {
                kind: Kind::Get,
                ops: unit,
                found,
                payload: 0,
            })
        })
    }

    /// Reads `ops` keys in batches of `batch`.
    pub(super) fn multi_reads<S: Session>(
        &self,
        session: &mut S,
        worker: &mut Worker<'_>,
        pick: &Pick,
        ops: u64,
        batch: usize,
    ) -> Result<(), Broken> {
        let chooser = pick.chooser();
        let absent = *pick == Pick::Absent;
        let mut keys: Vec<SmallKey> = vec![SmallKey::default(); batch];
        let mine = share(ops, worker.thread, worker.threads);
        worker.drive(mine, |rng| {
            for key in &mut keys {
                *key = self.keys.key(chooser.next(rng));
            }
            let slices: Vec<&[u8]> = keys.iter().map(|k| k.as_slice()).collect();
            let (mut found, mut shown, mut wrong) = (0, 0, None);
            session.multi_get(&slices, |index, value| {
                shown += 1;
                let key = slices[index];
                match value.map(|v| self.values.check(seed_of(key), v)) {
                    Some(Ok(_)) if !absent => found += 1,
                    None if absent => {}
                    Some(Ok(_)) => wrong = Some(Broken::ghost(key, "never inserted")),
                    Some(Err(mismatch)) => wrong = Some(Broken::value(key, &mismatch)),
                    None => wrong = Some(Broken::missing(key)),
                }
            })?;
            if let Some(wrong) = wrong {
                return Err(wrong);
            }
            if shown != slices.len() {
                return Err(Broken::Wrong(format!(
                    "{shown} answers to {} keys",
                    slices.len()
                )));
            }
            Ok(Done {
                kind: Kind::MultiGet,
                ops: batch as u64,
                found,
                payload: 0,
            })
        })
    }

    /// Reads old keys and inserts new ones; `next_new` is shared by the threads and by the phases
    /// of a job.
    pub(super) fn mixed<S: Session>(
        &self,
        session: &mut S,
        worker: &mut Worker<'_>,
        pick: &Pick,
        ops: u64,
        insert_share: f64,
        next_new: &AtomicU64,
    ) -> Result<(), Broken> {
        use rand::Rng as _;
        let chooser = pick.chooser();
        let mut value = vec![0; self.values.bytes()];
        let mine = share(ops, worker.thread, worker.threads);
        worker.drive(mine, |rng| {
            if rng.random::<f64>() < insert_share {
                let number = NEW_FROM + next_new.fetch_add(1, Relaxed);
                Ok(self.write(session, number, &mut value)?)
            } else {
                let found = self.read(session, chooser.next(rng), false)?;
                Ok(Done::one(Kind::Get, found))
            }
        })
    }
}
