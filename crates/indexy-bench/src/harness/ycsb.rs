//! The loops of YCSB: load and run.

use super::job::Broken;
use super::ledger::Ledger;
use super::points::share;
use super::worker::{Done, Kind, Worker};
use crate::contender::{Outcome, Session};
use crate::workload::{Client, Operation, Rng, Shared, Workload, seed_of};
use rand::Rng as _;

/// Inserts all records; returns up to which number this thread left no gap of its own.
pub(super) fn load<S: Session>(
    session: &mut S,
    worker: &mut Worker<'_>,
    workload: &Workload,
) -> Result<u64, Broken> {
    let mut number = workload.insert_start + worker.thread;
    let step = worker.threads;
    let (mut key, mut record) = (Vec::new(), Vec::new());
    worker.drive(share(workload.insert_count, worker.thread, step), |_| {
        workload.keys.write(number, &mut key);
        workload.records.fill(seed_of(&key), 0, &mut record);
        session.insert(&key, &record)?;
        number += step;
        Ok(Done::wrote(Kind::Insert, key.len() + record.len()))
    })?;
    Ok(number)
}

/// Runs the workload's operations.
pub(super) fn run<S: Session>(
    session: &mut S,
    worker: &mut Worker<'_>,
    workload: &Workload,
    shared: &Shared,
    ledger: &Ledger,
    deletes_are_final: bool,
) -> Result<(), Broken> {
    let mut run = Run {
        session,
        workload,
        shared,
        ledger,
        client: workload.client(),
        deletes_are_final,
        key: Vec::new(),
        record: Vec::new(),
        last: Vec::new(),
    };
    let mine = share(workload.operations, worker.thread, worker.threads);
    worker.drive(mine, |rng| run.step(rng))
}

struct Run<'a, S> {
    session: &'a mut S,
    workload: &'a Workload,
    shared: &'a Shared,
    ledger: &'a Ledger,
    client: Client<'a>,
    /// Nothing writes a record again that was deleted.
    deletes_are_final: bool,
    key: Vec<u8>,
    record: Vec<u8>,
    /// Last key of a scan.
    last: Vec<u8>,
}

impl<S: Session> Run<'_, S> {
    fn step(&mut self, rng: &mut Rng) -> Result<Done, Broken> {
        match self.client.operation(rng) {
            Operation::Insert => Ok(self.insert()?),
            Operation::Read => {
                let number = self.choose(rng);
                let field = (!self.workload.read_all)
                    .then(|| rng.random_range(0..self.workload.records.fields()));
                Ok(Done::one(Kind::Get, self.read(number, field, false)?))
            }
            Operation::Update => self.update(rng),
            Operation::ReadModifyWrite => self.read_modify_write(rng, Kind::ReadModifyWrite),
            Operation::Scan => self.scan(rng),
            Operation::Delete => {
                let number = self.choose(rng);
                self.ledger.ask(number);
                self.session.remove(&self.key)?;
                self.ledger.acknowledge(number);
                Ok(Done::one(Kind::Delete, false))
            }
        }
    }

    /// Draws a record and makes its key.
    fn choose(&mut self, rng: &mut Rng) -> u64 {
        let number = self.client.record(self.shared, rng);
        self.workload.keys.write(number, &mut self.key);
        number
    }

    /// Reads the record of `self.key` and checks it; with `keep`, copies it to `self.record`.
    fn read(&mut self, number: u64, field: Option<usize>, keep: bool) -> Result<bool, Broken> {
        let seed = seed_of(&self.key);
        let gone = self.deletes_are_final && self.ledger.must_be_absent(number);
        let (records, record) = (&self.workload.records, &mut self.record);
        let checked = self.session.get(&self.key, |bytes| {
            if keep {
                record.clear();
                record.extend_from_slice(bytes);
            }
            records.check(seed, bytes, field)
        })?;
        match checked {
            Some(Ok(())) if gone => Err(Broken::ghost(&self.key, "deleted")),
            Some(Ok(())) => Ok(true),
            Some(Err(mismatch)) => Err(Broken::value(&self.key, &mismatch)),
            None if self.ledger.may_be_absent(number) => Ok(false),
            None => Err(Broken::missing(&self.key)),
        }
    }

    fn insert(&mut self) -> Outcome<Done> {
        let number = self.shared.inserted.take();
        self.workload.keys.write(number, &mut self.key);
        self.workload
            .records
            .fill(seed_of(&self.key), 0, &mut self.record);
        self.session.insert(&self.key, &self.record)?;
        self.shared.inserted.acknowledge(number);
        Ok(Done::wrote(
            Kind::Insert,
            self.key.len() + self.record.len(),
        ))
    }

    fn update(&mut self, rng: &mut Rng) -> Result<Done, Broken> {
        if self.workload.records.fields() > 1 && !self.workload.write_all {
            return self.read_modify_write(rng, Kind::Update);
        }
        self.choose(rng);
        self.workload
            .records
            .fill(seed_of(&self.key), rng.random(), &mut self.record);
        self.session.insert(&self.key, &self.record)?;
        Ok(Done::wrote(
            Kind::Update,
            self.key.len() + self.record.len(),
        ))
    }

    fn read_modify_write(&mut self, rng: &mut Rng, kind: Kind) -> Result<Done, Broken> {
        let number = self.choose(rng);
        if !self.read(number, None, true)? {
            return Ok(Done::one(kind, false));
        }
        let seed = seed_of(&self.key);
        let version = rng.random();
        if self.workload.write_all {
            self.workload.records.fill(seed, version, &mut self.record);
        } else {
            let field = rng.random_range(0..self.workload.records.fields());
            self.workload
                .records
                .fill_field(seed, field, version, &mut self.record);
        }
        self.session.insert(&self.key, &self.record)?;
        let payload = (self.key.len() + self.record.len()) as u64;
        Ok(Done {
            kind,
            ops: 1,
            found: 1,
            payload,
        })
    }

    fn scan(&mut self, rng: &mut Rng) -> Result<Done, Broken> {
        let number = self.choose(rng);
        let count = self.client.scan_length(rng);
        let records = &self.workload.records;
        let (from, last) = (&self.key, &mut self.last);
        last.clear();
        let (mut seen, mut wrong) = (0usize, None);
        let returned = self.session.scan(from, count, |key, value| {
            let in_order = if seen == 0 {
                key >= from.as_slice()
            } else {
                key > last.as_slice()
            };
            if !in_order {
                wrong.get_or_insert(Broken::Wrong(format!(
                    "scan out of order after {seen} entries"
                )));
            }
            if let Err(mismatch) = records.check(seed_of(key), value, None) {
                wrong.get_or_insert(Broken::value(key, &mismatch));
            }
            last.clear();
            last.extend_from_slice(key);
            seen += 1;
        })?;
        if let Some(wrong) = wrong {
            return Err(wrong);
        }
        if returned != seen || seen > count {
            return Err(Broken::Wrong(format!(
                "scan of {count} showed {seen} entries and counted {returned}"
            )));
        }
        if seen == 0 && !self.ledger.may_be_absent(number) {
            return Err(Broken::missing(&self.key));
        }
        Ok(Done {
            kind: Kind::Scan,
            ops: 1,
            found: seen as u64,
            payload: 0,
        })
    }
}
