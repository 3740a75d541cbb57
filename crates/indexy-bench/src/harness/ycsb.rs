//! The loops of YCSB: load and run.

use super::aside::{Aside, Asked};
use super::job::Broken;
use super::ledger::Ledger;
use super::points::share;
use super::versions::Versions;
use super::worker::{Done, Kind, Worker};
use crate::contender::{Outcome, Session};
use crate::workload::{Client, Mismatch, Operation, Records, Rng, Shared, Workload, seed_of};
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

/// Runs the workload's operations. Up to `aside` reads of this thread are put aside while they wait
/// for the disk (abort and restart); with 0 it waits with them.
pub(super) fn run<S: Session>(
    session: &mut S,
    worker: &mut Worker<'_>,
    workload: &Workload,
    past: &Past<'_>,
    aside: usize,
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
    if aside == 0 {
        return worker.drive(mine, |rng| run.step(rng));
    }
    let mut aside = Aside::new(aside);
    worker.drive(mine, |rng| run.step_aside(rng, &mut aside))
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

/// The version of the record of the key with `seed`, if `bytes` are one.
fn version_of(
    records: &Records,
    seed: u64,
    bytes: &[u8],
    field: Option<usize>,
) -> Result<u32, Mismatch> {
    let checked = records.check(seed, bytes, field);
    checked.map(|()| records.version(seed, bytes).unwrap_or(0))
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
        let operation = self.client.operation(rng);
        self.act(operation, rng)
    }

    fn act(&mut self, operation: Operation, rng: &mut Rng) -> Result<Done, Broken> {
        match operation {
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

    /// The next operation that is done: one that was put aside and has its value by now, or else a
    /// new one that need not wait. Where as many as may be are aside, the oldest is waited for.
    ///
    /// Differs from the paper: a request goes on with the value that was read. Nothing is executed
    /// twice, and a value that is not admitted is not read again.
    fn step_aside(&mut self, rng: &mut Rng, aside: &mut Aside) -> Result<Done, Broken> {
        loop {
            if let Some(found) = self.fetched(aside)? {
                return Ok(Done::one(Kind::Get, found));
            }
            let operation = self.client.operation(rng);
            if operation != Operation::Read {
                return self.act(operation, rng);
            }
            let number = self.choose(rng);
            let asked = self.ask(number);
            let full = || Broken::Wrong("a read that was put aside has no end".to_owned());
            let token = aside.begin(asked).ok_or_else(full)?;
            let (seed, records) = (seed_of(&self.key), &self.workload.records);
            let look = |bytes: &[u8]| version_of(records, seed, bytes, None);
            if let Some(checked) = self.session.get_or_begin(&self.key, token, look)? {
                aside.end(token);
                return Ok(Done::one(Kind::Get, self.judge(asked, checked)?));
            }
        }
    }

    /// Whether the oldest read that was put aside found its record; none if there is none, or if it
    /// need not be waited for.
    fn fetched(&mut self, aside: &mut Aside) -> Result<Option<bool>, Broken> {
        let (key, workload, wait) = (&mut self.key, self.workload, aside.is_full());
        let seen = self.session.fetched(wait, |token, bytes| {
            let asked = aside.end(token)?;
            workload.keys.write(asked.number, key);
            let seed = seed_of(key);
            let checked = bytes.map(|bytes| version_of(&workload.records, seed, bytes, None));
            Some((asked, checked))
        })?;
        match seen {
            None => Ok(None),
            Some(None) => Err(Broken::Wrong("a read that nobody began".to_owned())),
            Some(Some((asked, checked))) => self.judge(asked, checked).map(Some),
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
        let asked = self.ask(number);
        let seed = seed_of(&self.key);
        let (records, record) = (&self.workload.records, &mut self.record);
        let checked = self.session.get(&self.key, |bytes| {
            if keep {
                record.clear();
                record.extend_from_slice(bytes);
            }
            version_of(records, seed, bytes, field)
        })?;
        self.judge(asked, checked)
    }

    /// What a read of record `number` that begins now may see.
    fn ask(&self, number: u64) -> Asked {
        Asked {
            number,
            floor: self.past.versions.floor(number),
            gone: self.past.deletes_are_final && self.past.ledger.must_be_absent(number),
        }
    }

    /// Whether the read of the record of `self.key` found it; wrong if it may not have seen what it
    /// saw.
    fn judge(&self, asked: Asked, checked: Option<Result<u32, Mismatch>>) -> Result<bool, Broken> {
        let Asked {
            number,
            floor,
            gone,
        } = asked;
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
