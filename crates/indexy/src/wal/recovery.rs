//! Opening: finds the segments, replays their records, tells a torn tail from damage.
//!
//! The rules, which `docs/formats/wal.md` has too:
//! 1. The newest segment that begins at or below `from`, and all after it, are needed, without a
//!    gap. Older ones are leftovers of a truncation.
//! 2. A segment that has a successor was durable before it: it must reach exactly the successor's
//!    first LSN.
//! 3. In the newest segment the first bad group ends the log, unless something proves that the log
//!    was durable beyond it: the header of a later group, or the manifest (`from`, `durable_hint`).
//!    Then it is corruption. So is a segment without a whole header, anywhere: no crash leaves one.
//! 4. A record in several groups of which the last is missing was never whole: the log ends before
//!    it.
//!
//! What the newest segment has is made durable before the first record is replayed (`secure.rs`).
//! What ends the log is cut off and the cut made durable before anything is appended; appending
//! goes on in a new segment, whose random number keeps it apart from any bytes lost here.
//! Keeps: I8 (the state after a crash is a prefix). Threads: one. Read-only: writes nothing.

use super::{
    lsn::Lsn,
    reader::{GroupReader, read_head},
    record::{MAX_RECORD_BYTES, Malformed, RecordRef, decode_record},
    secure::secure,
    segment::{
        FileKind, GroupHeader, GroupKind, SegmentHeader, SegmentIdentity, SegmentInfo, classify,
        segment_path,
    },
    truncation::Lists,
};
use crate::{
    error::{Error, Result},
    events,
    mem::budget::{Budget, Holder},
    storage::{Storage, StorageFile},
};
use std::{collections::VecDeque, path::Path, sync::Arc};

/// What [`recover`] is asked.
pub(super) struct Request<'a> {
    pub storage: &'a dyn Storage,
    pub dir: &'a Path,
    pub database_id: u128,
    pub from: Lsn,
    pub durable_hint: Lsn,
    pub read_only: bool,
    /// See [`LogOptions`](super::LogOptions).
    pub keep_bytes: u64,
    pub budget: &'a Budget,
}

/// The state of the log after replay.
pub(super) struct Recovered {
    pub segments: Lists,
    pub end: Lsn,
    pub next_sequence: u64,
}

struct Found {
    file: Arc<dyn StorageFile>,
    header: SegmentHeader,
    identity: SegmentIdentity,
}

impl Found {
    fn info(&self) -> Result<SegmentInfo> {
        Ok(SegmentInfo {
            sequence: self.header.sequence,
            first_lsn: self.header.first_lsn,
            bytes: self.file.len()?,
        })
    }
}

/// Replays through `visit` the intact records from `request.from` on. See the module header.
pub(super) fn recover(
    request: &Request<'_>,
    visit: &mut dyn FnMut(Lsn, RecordRef<'_>) -> Result<()>,
) -> Result<Recovered> {
    let (found, kept) = find_segments(request)?;
    let must_reach = request.from.max(request.durable_hint);
    let Some(oldest) = found.first() else {
        if request.durable_hint > Lsn(0) {
            let what = format!(
                "the log is missing; it was durable up to LSN {}",
                request.durable_hint.0
            );
            return Err(Error::corrupt(request.dir, 0, what));
        }
        return Ok(Recovered {
            segments: Lists::default(),
            end: request.from,
            next_sequence: 1,
        });
    };
    if oldest.header.first_lsn > request.from {
        let what = format!(
            "the log begins at LSN {}, records from LSN {} on are missing",
            oldest.header.first_lsn.0, request.from.0
        );
        return Err(Error::corrupt(oldest.file.path(), 0, what));
    }
    if let (Some(newest), false) = (found.last(), request.read_only) {
        // I5: what is replayed may reach Y at once. If the process died and the system did not, it
        // may be in the page cache only; older segments were durable before their successors began.
        secure(&newest.file, &newest.header, newest.identity, must_reach)?;
    }
    let mut replay = Replay {
        from: request.from,
        budget: request.budget,
        pending: None,
        charged: 0,
        visit,
    };
    let mut needed = VecDeque::with_capacity(found.len());
    let mut end = oldest.header.first_lsn;
    for (i, segment) in found.iter().enumerate() {
        let mut reader = GroupReader::new(segment.file.clone(), &segment.header, segment.identity);
        replay.segment(&segment.file, &mut reader)?;
        let (stop, stop_offset) = replay
            .drop_incomplete()
            .unwrap_or((reader.end(), reader.offset()));
        match found.get(i + 1) {
            // Rule 2.
            Some(next) if next.header.first_lsn != stop => {
                let what = format!(
                    "damaged group: the segment ends at LSN {} of {}",
                    stop.0, next.header.first_lsn.0
                );
                return Err(Error::corrupt(segment.file.path(), stop_offset, what));
            }
            Some(_) => {}
            None => end_log(request, segment, &mut reader, stop, stop_offset, must_reach)?,
        }
        needed.push_back(segment.info()?);
        end = stop;
    }
    let next_sequence = found.last().map_or(1, |s| s.header.sequence + 1);
    Ok(Recovered {
        segments: Lists { kept, needed },
        end,
        next_sequence,
    })
}

/// A record of a load: see [`RecordRef::Load`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoadAt {
    pub lsn: Lsn,
    pub tree: u32,
    pub from: Vec<u8>,
    pub to: Option<Vec<u8>>,
}

/// The records of loads that [`recover`] is going to come to, in their order. Writes nothing.
/// Damage ends it early: whoever recovers says where it is.
pub(super) fn loads(request: &Request<'_>) -> Result<Vec<LoadAt>> {
    let mut loads = Vec::new();
    let mut visit = |lsn: Lsn, record: RecordRef<'_>| {
        if let RecordRef::Load { tree, from, to } = record {
            loads.push(LoadAt {
                lsn,
                tree,
                from: from.to_vec(),
                to: to.map(<[u8]>::to_vec),
            });
        }
        Ok(())
    };
    let mut replay = Replay {
        from: request.from,
        budget: request.budget,
        pending: None,
        charged: 0,
        visit: &mut visit,
    };
    for segment in find_segments(request)?.0 {
        let mut reader = GroupReader::new(segment.file.clone(), &segment.header, segment.identity);
        let read = replay.segment(&segment.file, &mut reader);
        replay.drop_incomplete();
        match read {
            Err(Error::Corrupt { .. }) => break,
            read => read?,
        }
    }
    Ok(loads)
}

/// Rule 3: decides about what follows `stop` in the newest segment, and cuts it off.
fn end_log(
    request: &Request<'_>,
    segment: &Found,
    reader: &mut GroupReader,
    stop: Lsn,
    stop_offset: u64,
    must_reach: Lsn,
) -> Result<()> {
    let path = segment.file.path();
    if must_reach > stop {
        let what = format!(
            "damaged group: the log was durable up to LSN {}, it ends at {}",
            must_reach.0, stop.0
        );
        return Err(Error::corrupt(path, stop_offset, what));
    }
    if let Some((durable, at)) = reader.later_durable()?
        && durable > stop
    {
        let what = format!(
            "damaged group: the one at byte {at} says that LSN {} was durable",
            durable.0
        );
        return Err(Error::corrupt(path, stop_offset, what));
    }
    if request.read_only {
        return Ok(());
    }
    if segment.file.len()? > stop_offset {
        events::log_cut(path, stop_offset);
        segment.file.set_len(stop_offset)?;
        segment.file.sync()?;
    }
    Ok(())
}

/// Looks whether this build knows the format of the newest segment in `dir`, before anything is
/// changed. Errors: `FormatVersion`; what else is wrong is found by the recovery.
pub(crate) fn check_format(storage: &dyn Storage, dir: &Path) -> Result<()> {
    let names = storage.list(dir).unwrap_or_default();
    let numbers = names.iter().filter_map(|name| match classify(name) {
        FileKind::Segment(sequence) => Some(sequence),
        _ => None,
    });
    let head = |newest| read_head(&*storage.open(&segment_path(dir, newest), false)?);
    match numbers.max().map(head) {
        Some(Err(unknown @ Error::FormatVersion { .. })) => Err(unknown),
        _ => Ok(()),
    }
}

/// The needed segments, oldest first (rule 1), and those kept for followers; makes their names
/// durable and removes leftovers.
fn find_segments(request: &Request<'_>) -> Result<(Vec<Found>, VecDeque<SegmentInfo>)> {
    let mut sequences = Vec::new();
    let mut leftovers = Vec::new();
    if !request.read_only {
        // The newest segment may have its name from a process that died before that was durable.
        // Those before it go when this one is enough.
        request.storage.sync_dir(request.dir)?;
    }
    for name in request.storage.list(request.dir)? {
        match classify(&name) {
            FileKind::Segment(sequence) => sequences.push(sequence),
            FileKind::Unfinished => leftovers.push(request.dir.join(name)),
            FileKind::Foreign => {}
        }
    }
    sequences.sort_unstable();
    let mut found: Vec<Found> = Vec::new();
    while let Some(sequence) = sequences.pop() {
        let path = segment_path(request.dir, sequence);
        let file = request.storage.open(&path, !request.read_only)?;
        let (header, identity) = read_head(&*file)?;
        check_header(request, &header, sequence, found.last(), &path)?;
        found.push(Found {
            file,
            header,
            identity,
        });
        if header.first_lsn <= request.from {
            break;
        }
    }
    let kept = find_kept(request, &mut sequences, found.last())?;
    leftovers.extend(sequences.into_iter().map(|s| segment_path(request.dir, s)));
    if !request.read_only && !leftovers.is_empty() {
        for path in &leftovers {
            request.storage.remove(path)?;
        }
        request.storage.sync_dir(request.dir)?;
    }
    found.reverse();
    Ok((found, kept))
}

/// Takes from the end of `sequences` those that `oldest` follows without a gap, as many as are to
/// be kept. Damage is no error here: recovery needs none of them.
fn find_kept(
    request: &Request<'_>,
    sequences: &mut Vec<u64>,
    oldest: Option<&Found>,
) -> Result<VecDeque<SegmentInfo>> {
    let mut kept = VecDeque::new();
    let mut newer = oldest.map(|oldest| (oldest.header.sequence, oldest.header.first_lsn));
    let mut bytes = 0;
    while let (Some((number, lsn)), Some(&sequence)) = (newer, sequences.last()) {
        if bytes >= request.keep_bytes || sequence + 1 != number {
            break;
        }
        let file = request
            .storage
            .open(&segment_path(request.dir, sequence), false)?;
        let header = match read_head(&*file) {
            Ok((header, _)) => header,
            Err(Error::Corrupt { .. } | Error::FormatVersion { .. }) => break,
            Err(_) => {
                // It may be read another time.
                sequences.clear();
                break;
            }
        };
        let follows = header.database_id == request.database_id
            && header.sequence == sequence
            && header.first_lsn <= lsn;
        if !follows {
            break;
        }
        let info = SegmentInfo {
            sequence,
            first_lsn: header.first_lsn,
            bytes: file.len()?,
        };
        bytes += info.bytes;
        newer = Some((sequence, header.first_lsn));
        kept.push_front(info);
        sequences.pop();
    }
    Ok(kept)
}

fn check_header(
    request: &Request<'_>,
    header: &SegmentHeader,
    sequence: u64,
    newer: Option<&Found>,
    path: &Path,
) -> Result<()> {
    if header.database_id != request.database_id {
        return Err(Error::corrupt(
            path,
            16,
            "the segment belongs to another database",
        ));
    }
    if header.sequence != sequence {
        let what = format!(
            "the segment has number {}, its name says {sequence}",
            header.sequence
        );
        return Err(Error::corrupt(path, 32, what));
    }
    if let Some(newer) = newer
        && newer.header.sequence != sequence + 1
    {
        let missing = segment_path(request.dir, newer.header.sequence - 1);
        return Err(Error::corrupt(missing, 0, "the segment is missing"));
    }
    Ok(())
}

/// A record of several groups counts for this part of the budget at most.
pub(super) const LARGEST_CHARGE_DIVISOR: usize = 4;

/// A record of which some groups were read.
struct Pending {
    start: Lsn,
    offset: u64,
    bytes: Vec<u8>,
}

struct Replay<'a, 'v> {
    from: Lsn,
    budget: &'a Budget,
    pending: Option<Pending>,
    /// What the budget counts for it.
    charged: usize,
    visit: &'v mut dyn FnMut(Lsn, RecordRef<'_>) -> Result<()>,
}

impl Replay<'_, '_> {
    fn segment(&mut self, file: &Arc<dyn StorageFile>, reader: &mut GroupReader) -> Result<()> {
        loop {
            let offset = reader.offset();
            let Some((header, payload)) = reader.next_group()? else {
                return Ok(());
            };
            self.group(&header, payload).map_err(|e| match e {
                ReplayError::Format(what) => Error::corrupt(file.path(), offset, what),
                ReplayError::Visit(e) => e,
            })?;
            if header.kind == GroupKind::First
                && let Some(pending) = &mut self.pending
            {
                pending.offset = offset;
            }
        }
    }

    /// The record in several groups has `bytes` bytes now. It may be more than a budget that is
    /// smaller than the one it was written with: what is over a part of it counts for nothing, or
    /// what it holds would wait for itself.
    fn charge(&mut self, bytes: usize) {
        let bytes = bytes.min(self.budget.limit() / LARGEST_CHARGE_DIVISOR);
        self.budget.give(Holder::Log, self.charged);
        self.budget.take(Holder::Log, bytes);
        self.charged = bytes;
    }

    fn group(&mut self, header: &GroupHeader, payload: &[u8]) -> Result<(), ReplayError> {
        match (header.kind, self.pending.take()) {
            (GroupKind::Whole, None) => self.whole(header.first_lsn, payload),
            (GroupKind::First, None) => {
                let pending = Pending {
                    start: header.first_lsn,
                    offset: 0,
                    bytes: payload.to_vec(),
                };
                self.charge(pending.bytes.len());
                self.pending = Some(pending);
                Ok(())
            }
            (kind @ (GroupKind::Middle | GroupKind::Last), Some(mut pending)) => {
                if pending.bytes.len() + payload.len() > MAX_RECORD_BYTES {
                    return Err(ReplayError::Format("record over the limit"));
                }
                pending.bytes.extend_from_slice(payload);
                self.charge(pending.bytes.len());
                if kind == GroupKind::Middle {
                    self.pending = Some(pending);
                    return Ok(());
                }
                let done = self.whole(pending.start, &pending.bytes);
                self.charge(0);
                done
            }
            (GroupKind::Whole | GroupKind::First, Some(_)) => {
                Err(ReplayError::Format("a record goes on in no group"))
            }
            (GroupKind::Middle | GroupKind::Last, None) => {
                Err(ReplayError::Format("a group goes on from no record"))
            }
        }
    }

    fn whole(&mut self, first: Lsn, payload: &[u8]) -> Result<(), ReplayError> {
        let mut rest = payload;
        while !rest.is_empty() {
            let start = Lsn(first.0 + (payload.len() - rest.len()) as u64);
            let (record, len) = decode_record(rest).map_err(|e| match e {
                Malformed::Incomplete => ReplayError::Format("a record ends in the middle"),
                Malformed::Invalid(what) => ReplayError::Format(what),
            })?;
            if start >= self.from {
                (self.visit)(start, record).map_err(ReplayError::Visit)?;
            }
            rest = rest.get(len..).unwrap_or_default();
        }
        Ok(())
    }

    /// Rule 4: forgets a record whose last group is missing; returns where it began.
    fn drop_incomplete(&mut self) -> Option<(Lsn, u64)> {
        let pending = self.pending.take()?;
        self.charge(0);
        Some((pending.start, pending.offset))
    }
}

enum ReplayError {
    Format(&'static str),
    Visit(Error),
}
