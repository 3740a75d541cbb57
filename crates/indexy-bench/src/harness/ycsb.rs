//! The loops of YCSB: load and run.

use super::job::Broken;
use super::ledger::Ledger;
use super::points::share;
use super::versions::Versions;
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
    past: &Past<'_>,
) -> Result<(), Broken> {
    let mut run = Run {
        session,
        workload,
        past,
        client: workload.client(),
        key: Vec::new(),
        record: Vec::new(),
        last: Vec::new(),
    };
    let mine = share(workload.operations, worker.thread, worker.threads);
    worker.drive(mine, |rng| run.step(rng))
}

/// What is known of the records, shared by the threads of a run.
#[derive(Debug)]
pub(super) struct Past<'a> {
    pub shared: &'a Shared,
    pub ledger: &'a Ledger,
    pub versions: &'a Versions,
    /// Nothing writes a record again that was deleted.
    pub deletes_are_final: bool,
}

struct Run<'a, S> {
    session: &'a mut S,
    workload: &'a Workload,
    past: &'a Past<'a>,
    client: Client<'a>,
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
                self.past.ledger.ask(number);
                self.session.remove(&self.key)?;
                self.past.ledger.acknowledge(number);
                Ok(Done::one(Kind::Delete, false))
            }
        }
    }

    /// Draws a record and makes its key.
    fn choose(&mut self, rng: &mut Rng) -> u64 {
        let number = self.client.record(self.past.shared, rng);
        self.workload.keys.write(number, &mut self.key);
        number
    }

    /// Reads the record of `self.key` and checks it; with `keep`, copies it to `self.record`.
    fn read(&mut self, number: u64, field: Option<usize>, keep: bool) -> Result<bool, Broken> {
        let seed = seed_of(&self.key);
        let gone = self.past.deletes_are_final && self.past.ledger.must_be_absent(number);
        let floor = self.past.versions.floor(number);
        let (records, record) = (&self.workload.records, &mut self.record);
        let checked = self.session.get(&self.key, |bytes| {
            if keep {
                record.clear();
                record.extend_from_slice(bytes);
            }
            let checked = records.check(seed, bytes, field);
            checked.map(|()| records.version(seed, bytes).unwrap_or(0))
        })?;
        match checked {
            Some(Ok(_)) if gone => Err(Broken::ghost(&self.key, "deleted")),
            Some(Ok(version)) if !self.past.versions.allows(number, floor, version) => {
                Err(Broken::stale(&self.key, floor, version))
            }
            Some(Ok(_)) => Ok(true),
            Some(Err(mismatch)) => Err(Broken::value(&self.key, &mismatch)),
            None if self.past.ledger.may_be_absent(number) => Ok(false),
            None => Err(Broken::missing(&self.key)),
        }
    }

    fn insert(&mut self) -> Outcome<Done> {
        let number = self.past.shared.inserted.take();
        self.workload.keys.write(number, &mut self.key);
        self.workload
            .records
            .fill(seed_of(&self.key), 0, &mut self.record);
        self.session.insert(&self.key, &self.record)?;
        self.past.shared.inserted.acknowledge(number);
        Ok(Done::wrote(
            Kind::Insert,
            self.key.len() + self.record.len(),
        ))
    }

    fn update(&mut self, rng: &mut Rng) -> Result<Done, Broken> {
        if !self.workload.writes_whole_records() {
            return self.read_modify_write(rng, Kind::Update);
        }
        let number = self.choose(rng);
        self.write_whole(number, rng)?;
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
        if self.workload.writes_whole_records() {
            self.write_whole(number, rng)?;
        } else {
            let field = rng.random_range(0..self.workload.records.fields());
            let seed = seed_of(&self.key);
            self.workload
                .records
                .fill_field(seed, field, rng.random(), &mut self.record);
            self.session.insert(&self.key, &self.record)?;
        }
        let payload = (self.key.len() + self.record.len()) as u64;
        Ok(Done {
            kind,
            ops: 1,
            found: 1,
            payload,
        })
    }

    /// Writes a new version of all of record `number`, whose key is in `self.key`.
    fn write_whole(&mut self, number: u64, rng: &mut Rng) -> Outcome<()> {
        let watched = self.past.versions.begin_write(number);
        let version = watched.unwrap_or_else(|| rng.random());
        self.workload
            .records
            .fill(seed_of(&self.key), version, &mut self.record);
        self.session.insert(&self.key, &self.record)?;
        if let Some(version) = watched {
            self.past.versions.end_write(number, version);
        }
        Ok(())
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
        if seen == 0 && !self.past.ledger.may_be_absent(number) {
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
