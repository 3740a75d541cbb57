//! The records of the log, for those who follow it while others append.
//!
//! Keeps: nobody is given a record that a crash can take back: only what lies below the durable LSN
//! is read.
//! Threads: one a follower, beside the log's own. It holds no lock while it reads. A segment that
//! is removed while it is read stays open; one that was removed before is `ChangesGone`.

use super::{
    Log,
    lsn::Lsn,
    reader::{GroupReader, read_head},
    record::{MAX_RECORD_BYTES, Malformed, decode_record},
    recovery::LARGEST_CHARGE_DIVISOR,
    segment::{GroupKind, SegmentInfo, segment_path},
};
use crate::{
    error::{Error, Result},
    mem::budget::{Budget, Holder},
    storage::StorageFile,
};
use std::sync::Arc;

/// A larger buffer goes when its records were given.
const KEPT_BYTES: usize = 64 << 10;

/// See the module header.
pub(crate) struct Follower {
    /// Where the next record begins.
    next: Lsn,
    reading: Option<Reading>,
    /// Whole records that were read, and how far they were given; or the beginning of a long one.
    records: Vec<u8>,
    given: usize,
    budget: Arc<Budget>,
    /// What the budget counts for the records and the window of the reader.
    charged: usize,
}

struct Reading {
    sequence: u64,
    file: Arc<dyn StorageFile>,
    reader: GroupReader,
}

impl Log {
    /// Follows the log from `from` on. Errors: `ChangesGone`.
    pub(crate) fn follow(&self, from: Lsn, budget: &Arc<Budget>) -> Result<Follower> {
        if from < self.oldest() || from > self.end() {
            return Err(self.gone(from));
        }
        Ok(Follower {
            next: from,
            reading: None,
            records: Vec::new(),
            given: 0,
            budget: budget.clone(),
            charged: 0,
        })
    }

    fn gone(&self, from: Lsn) -> Error {
        Error::ChangesGone {
            position: from.0,
            oldest: self.oldest().0,
            newest: self.end().0,
        }
    }
}

impl Follower {
    /// Where the next record begins.
    pub(crate) fn position(&self) -> Lsn {
        self.next
    }

    /// The bytes of the next record; `None`: what follows is not durable yet, or begins at or above
    /// `upto`.
    ///
    /// Cost: a read of the file for 64 KiB of log; for the first call, from the start of a segment
    /// to the position. Memory: a group of the log, or a long record. Errors: `ChangesGone`,
    /// `Corrupt`, `Io`; the next call tries again.
    pub(crate) fn next(&mut self, log: &Log, upto: Lsn) -> Result<Option<&[u8]>> {
        loop {
            while self.given == self.records.len() {
                if !self.fill(log)? {
                    return Ok(None);
                }
            }
            let rest = self.records.get(self.given..).unwrap_or_default();
            let (_, len) = decode_record(rest).map_err(|e| self.malformed(log, e))?;
            let at = Lsn(self.end_of_records().0 - rest.len() as u64);
            if at >= upto {
                return Ok(None);
            }
            let start = self.given;
            let end = Lsn(at.0 + len as u64);
            if at != self.next && end > self.next {
                let what = format!("position {} of the changes: none begins there", self.next.0);
                return Err(Error::Unsupported { what });
            }
            self.given += len;
            if at < self.next {
                continue;
            }
            self.next = end;
            return Ok(self.records.get(start..start + len));
        }
    }

    /// The next record is that at `position`, where it was before.
    pub(crate) fn go_back(&mut self, position: Lsn) {
        self.next = position;
        self.start_over();
    }

    /// Reads the next group, or all groups of a long record. False: it is not durable yet.
    fn fill(&mut self, log: &Log) -> Result<bool> {
        self.given = 0;
        self.records.clear();
        if self.records.capacity() > KEPT_BYTES {
            self.records = Vec::new();
        }
        self.charge();
        loop {
            let durable = log.durable();
            if self.records.is_empty() && self.end_of_records() >= durable {
                if let Some(reading) = &mut self.reading {
                    reading.reader.forget();
                }
                return Ok(false);
            }
            if self.reading.is_none() {
                self.reading = Some(self.open(log)?);
            }
            let whole = self.read_group();
            self.charge();
            match whole {
                Ok(Some(true)) => return Ok(true),
                Ok(Some(false)) => {}
                Ok(None) => self.go_on(log)?,
                Err(error) => {
                    self.start_over();
                    return Err(error);
                }
            }
        }
    }

    /// LSN behind what was read.
    fn end_of_records(&self) -> Lsn {
        self.reading.as_ref().map_or(self.next, |r| r.reader.end())
    }

    /// Appends the next group to `records`; returns whether these are whole records then. `None`:
    /// the segment has no more.
    fn read_group(&mut self) -> Result<Option<bool>> {
        let Some(reading) = &mut self.reading else {
            return Ok(None);
        };
        let offset = reading.reader.offset();
        // The window may be of a time when the group was not written.
        for fresh in [false, true] {
            if fresh {
                reading.reader.forget();
            }
            let Some((header, payload)) = reading.reader.next_group()? else {
                continue;
            };
            let goes_on = matches!(header.kind, GroupKind::Middle | GroupKind::Last);
            let fits = goes_on != self.records.is_empty()
                && self.records.len() + payload.len() <= MAX_RECORD_BYTES;
            if !fits {
                let what = "groups of the log that do not follow each other";
                return Err(Error::corrupt(reading.file.path(), offset, what));
            }
            self.records.extend_from_slice(payload);
            return Ok(Some(matches!(
                header.kind,
                GroupKind::Whole | GroupKind::Last
            )));
        }
        Ok(None)
    }

    /// Goes on in the next segment.
    fn go_on(&mut self, log: &Log) -> Result<()> {
        let Some(reading) = &self.reading else {
            return Ok(());
        };
        let end = reading.reader.end();
        let next = log.shared.segments.after(reading.sequence);
        match next.filter(|next| next.first_lsn == end && self.records.is_empty()) {
            Some(next) => {
                let opened = open(log, &next).map_err(|error| match log.oldest() > end {
                    // It was removed meanwhile.
                    true => log.gone(end),
                    false => error,
                });
                self.reading = Some(opened?);
                Ok(())
            }
            None if log.oldest() > end => Err(log.gone(end)),
            None => {
                let what = format!(
                    "damaged group: the segment ends at LSN {}, the log was durable up to {}",
                    end.0,
                    log.durable().0
                );
                let error = Error::corrupt(reading.file.path(), reading.reader.offset(), what);
                self.start_over();
                Err(error)
            }
        }
    }

    /// The segment that the next record is in.
    fn open(&self, log: &Log) -> Result<Reading> {
        let segments = &log.shared.segments;
        let Some(info) = segments.at(self.next) else {
            return Err(log.gone(self.next));
        };
        open(log, &info).map_err(|error| match segments.at(self.next) {
            // It was removed meanwhile.
            None => log.gone(self.next),
            Some(_) => error,
        })
    }

    /// The next call reads from the segment's start again.
    fn start_over(&mut self) {
        self.reading = None;
        self.records.clear();
        self.given = 0;
        self.charge();
    }

    fn charge(&mut self) {
        let window = self.reading.as_ref().map_or(0, |r| r.reader.window_bytes());
        // What is over a part of the budget counts for nothing, as in recovery: a record may be
        // larger than the budget is by now.
        let most = self.budget.limit() / LARGEST_CHARGE_DIVISOR;
        let bytes = (self.records.capacity() + window).min(most);
        if bytes != self.charged {
            self.budget.give(Holder::Log, self.charged);
            self.budget.take(Holder::Log, bytes);
            self.charged = bytes;
        }
    }

    fn malformed(&self, log: &Log, why: Malformed) -> Error {
        let what = match why {
            Malformed::Incomplete => "a record ends in the middle",
            Malformed::Invalid(what) => what,
        };
        let path = self.reading.as_ref().map(|r| r.file.path());
        Error::corrupt(path.unwrap_or(&log.dir), 0, what)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.budget.give(Holder::Log, self.charged);
    }
}

fn open(log: &Log, info: &SegmentInfo) -> Result<Reading> {
    let path = segment_path(&log.dir, info.sequence);
    let file = log.storage.open(&path, false)?;
    let (header, identity) = read_head(&*file)?;
    if header.first_lsn != info.first_lsn {
        return Err(Error::corrupt(path, 40, "another segment's header"));
    }
    Ok(Reading {
        sequence: info.sequence,
        reader: GroupReader::new(file.clone(), &header, identity).small(),
        file,
    })
}
