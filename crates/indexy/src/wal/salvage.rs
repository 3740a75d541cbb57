//! Reading what is left of a damaged log: every whole record, in order, and between them what was
//! lost.
//!
//! Recovery stops at the first damage that is no torn tail. This goes on at the next whole group.
//! Threads: one. Nothing is written.

use super::{
    lsn::Lsn,
    reader::{GroupReader, read_head},
    record::{MAX_RECORD_BYTES, RecordRef, decode_record},
    segment::{FileKind, GroupKind, classify, segment_path},
};
use crate::{
    error::{Error, Result},
    storage::Storage,
};
use std::path::Path;

/// One thing that was read.
#[derive(Debug)]
pub(crate) enum Piece<'a> {
    Record(Lsn, RecordRef<'a>),
    /// Records may be missing here.
    Lost(Error),
}

/// Takes what is read. An error ends the reading.
pub(crate) type Visit<'a> = dyn FnMut(Piece<'_>) -> Result<()> + 'a;

/// What is known of the log beside its files.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Known {
    pub(crate) database_id: Option<u128>,
    /// Records below do not matter. `None`: where it began is not known.
    pub(crate) from: Option<Lsn>,
    /// It was durable up to here.
    pub(crate) durable: Lsn,
}

/// The database that the first readable segment in `dir` is of.
pub(crate) fn database_id(storage: &dyn Storage, dir: &Path) -> Option<u128> {
    let paths = segments(storage, dir).unwrap_or_default().into_iter();
    let mut paths = paths.map(|sequence| segment_path(dir, sequence));
    paths.find_map(|path| {
        let file = storage.open(&path, false).ok()?;
        let (header, _) = read_head(&*file).ok()?;
        Some(header.database_id)
    })
}

/// Where segment `sequence` begins; `None`: it does not say.
fn first_lsn(storage: &dyn Storage, dir: &Path, sequence: u64) -> Result<Option<Lsn>> {
    let file = storage.open(&segment_path(dir, sequence), false);
    match file.and_then(|file| read_head(&*file)) {
        Ok((header, _)) => Ok(Some(header.first_lsn)),
        Err(error) if !error.is_no_damage() => Ok(None),
        Err(error) => Err(error),
    }
}

fn segments(storage: &dyn Storage, dir: &Path) -> Result<Vec<u64>> {
    let sequence = |name: std::path::PathBuf| match classify(&name) {
        FileKind::Segment(sequence) => Some(sequence),
        FileKind::Unfinished | FileKind::Foreign => None,
    };
    let names = storage.list(dir)?.into_iter();
    let mut sequences: Vec<u64> = names.filter_map(sequence).collect();
    sequences.sort_unstable();
    Ok(sequences)
}

/// Reads the log in `dir`. Errors: those of `visit`, and what is no damage.
pub(crate) fn salvage(
    storage: &dyn Storage,
    dir: &Path,
    known: Known,
    visit: &mut Visit<'_>,
) -> Result<()> {
    let mut reading = Reading {
        known,
        end: None,
        pending: None,
        visit,
    };
    let sequences = match segments(storage, dir) {
        Err(error) if !error.is_no_damage() => {
            // A database without a log has a folder for it.
            (reading.visit)(Piece::Lost(error))?;
            Vec::new()
        }
        listed => listed?,
    };
    for (i, sequence) in sequences.iter().enumerate() {
        let path = segment_path(dir, *sequence);
        let next = match sequences.get(i + 1) {
            Some(next) => first_lsn(storage, dir, *next)?,
            None => None,
        };
        if known
            .from
            .is_some_and(|from| next.is_some_and(|next| next <= from))
        {
            // Recovery does not need it.
            continue;
        }
        match reading.segment(storage, &path) {
            Err(Failed::Read(error)) if !error.is_no_damage() => {
                (reading.visit)(Piece::Lost(error))?
            }
            Err(Failed::Read(error) | Failed::Visit(error)) => return Err(error),
            Ok(()) => {}
        }
    }
    let end = reading.end.unwrap_or(Lsn(0));
    let durable = known.durable.max(known.from.unwrap_or_default());
    if end < durable {
        let what = format!(
            "the log was durable up to LSN {}, it ends at {}",
            durable.0, end.0
        );
        (reading.visit)(Piece::Lost(Error::corrupt(dir, 0, what)))?;
    }
    Ok(())
}

enum Failed {
    Read(Error),
    Visit(Error),
}

struct Reading<'v, 'f> {
    known: Known,
    /// Behind the last group that was read.
    end: Option<Lsn>,
    /// A record in several groups: where it begins, and its bytes so far.
    pending: Option<(Lsn, Vec<u8>)>,
    visit: &'v mut Visit<'f>,
}

impl Reading<'_, '_> {
    fn segment(&mut self, storage: &dyn Storage, path: &Path) -> Result<(), Failed> {
        let file = storage.open(path, false).map_err(Failed::Read)?;
        let (header, identity) = read_head(&*file).map_err(Failed::Read)?;
        if self
            .known
            .database_id
            .is_some_and(|id| id != header.database_id)
        {
            let what = "the segment belongs to another database";
            return Err(Failed::Read(Error::corrupt(path, 16, what)));
        }
        self.gap(path, 0, header.first_lsn)?;
        let mut reader = GroupReader::new(file, &header, identity);
        loop {
            let offset = reader.offset();
            match reader.next_group().map_err(Failed::Read)? {
                Some((group, payload)) => {
                    let (kind, first) = (group.kind, group.first_lsn);
                    let end = group.end_lsn();
                    let taken = self.group(path, offset, kind, first, payload);
                    self.end = Some(end);
                    taken?;
                }
                None => {
                    let Some(next) = reader.skip_damage().map_err(Failed::Read)? else {
                        return Ok(());
                    };
                    self.gap(path, offset, next)?;
                }
            }
        }
    }

    /// The records go on at `next`.
    fn gap(&mut self, path: &Path, offset: u64, next: Lsn) -> Result<(), Failed> {
        let from = self.known.from.unwrap_or_default();
        let Some(end) = self.end.or(self.known.from) else {
            return Ok(());
        };
        if next > end && next > from {
            self.pending = None;
            let what = format!("the records from LSN {} to {} are lost", end.0, next.0);
            self.lost(path, offset, &what)?;
        }
        Ok(())
    }

    fn lost(&mut self, path: &Path, offset: u64, what: &str) -> Result<(), Failed> {
        let error = Error::corrupt(path, offset, what);
        (self.visit)(Piece::Lost(error)).map_err(Failed::Visit)
    }

    fn group(
        &mut self,
        path: &Path,
        offset: u64,
        kind: GroupKind,
        first: Lsn,
        payload: &[u8],
    ) -> Result<(), Failed> {
        match (kind, self.pending.take()) {
            (GroupKind::Whole, None) => self.records(path, offset, first, payload),
            (GroupKind::First, None) => {
                self.pending = Some((first, payload.to_vec()));
                Ok(())
            }
            (GroupKind::Middle | GroupKind::Last, Some((start, mut bytes)))
                if bytes.len() + payload.len() <= MAX_RECORD_BYTES =>
            {
                bytes.extend_from_slice(payload);
                if kind == GroupKind::Last {
                    return self.records(path, offset, start, &bytes);
                }
                self.pending = Some((start, bytes));
                Ok(())
            }
            (GroupKind::Middle | GroupKind::Last, _) => {
                self.lost(path, offset, "the beginning of a long record is lost")
            }
            (GroupKind::Whole | GroupKind::First, Some(_)) => {
                self.lost(path, offset, "the end of a long record is lost")?;
                self.group(path, offset, kind, first, payload)
            }
        }
    }

    fn records(
        &mut self,
        path: &Path,
        offset: u64,
        first: Lsn,
        payload: &[u8],
    ) -> Result<(), Failed> {
        let mut rest = payload;
        while !rest.is_empty() {
            let lsn = Lsn(first.0 + (payload.len() - rest.len()) as u64);
            let Ok((record, len)) = decode_record(rest) else {
                return self.lost(path, offset, "a record that makes no sense");
            };
            if self.known.from.is_none_or(|from| lsn >= from) {
                (self.visit)(Piece::Record(lsn, record)).map_err(Failed::Visit)?;
            }
            rest = rest.get(len..).unwrap_or_default();
        }
        Ok(())
    }
}
