//! The list of segments on disk, and what removes or copies them.
//!
//! Keeps: I6 (its part: a segment goes only when all of it lies below the floor, and never the newest).
//! Threads: any; the list has a lock of its own, held across the removal of files.

use super::{
    Lsn,
    reader::{FileHead, GroupReader, read_head},
    record::decode_record,
    recovery::SegmentInfo,
    segment::{
        GROUP_HEADER_BYTES, GroupHeader, GroupKind, SEGMENT_HEADER_BYTES, SegmentHeader,
        segment_path,
    },
};
use crate::{
    error::{Error, Result},
    storage::{Storage, StorageFile},
};
use parking_lot::Mutex;
use std::{collections::VecDeque, path::Path};

/// Bytes copied at a time.
const COPY_BYTES: usize = 1 << 20;

#[derive(Default)]
struct State {
    /// Oldest first.
    segments: VecDeque<SegmentInfo>,
    holds: usize,
}

/// See the module header.
#[derive(Default)]
pub(super) struct SegmentList(Mutex<State>);

impl SegmentList {
    pub(super) fn new(segments: VecDeque<SegmentInfo>) -> Self {
        Self(Mutex::new(State { segments, holds: 0 }))
    }

    pub(super) fn push(&self, segment: SegmentInfo) {
        self.0.lock().segments.push_back(segment);
    }

    pub(super) fn set_newest_bytes(&self, bytes: u64) {
        if let Some(newest) = self.0.lock().segments.back_mut() {
            newest.bytes = bytes;
        }
    }

    pub(super) fn first_lsn(&self) -> Option<Lsn> {
        self.0.lock().segments.front().map(|s| s.first_lsn)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.0.lock().segments.iter().map(|s| s.bytes).sum()
    }

    pub(super) fn hold(&self) {
        self.0.lock().holds += 1;
    }

    pub(super) fn unhold(&self) {
        self.0.lock().holds -= 1;
    }

    /// Removes the segments that lie wholly below `floor`; returns the bytes freed.
    pub(super) fn truncate_below(
        &self,
        storage: &dyn Storage,
        dir: &Path,
        floor: Lsn,
    ) -> Result<u64> {
        let mut state = self.0.lock();
        if state.holds > 0 {
            return Ok(0);
        }
        let mut freed = 0;
        // I6: a segment ends where its successor begins; the newest has none and stays.
        while let (Some(oldest), Some(next)) = (state.segments.front(), state.segments.get(1))
            && next.first_lsn <= floor
        {
            storage.remove(&segment_path(dir, oldest.sequence))?;
            freed += oldest.bytes;
            state.segments.pop_front();
        }
        if freed > 0 {
            storage.sync_dir(dir)?;
        }
        Ok(freed)
    }

    /// Copies the log up to `upto` to the directory `dest`. The caller holds the log.
    pub(super) fn copy_to(
        &self,
        storage: &dyn Storage,
        dir: &Path,
        dest: &Path,
        database_id: u128,
        upto: Lsn,
    ) -> Result<()> {
        let segments: Vec<SegmentInfo> = self.0.lock().segments.iter().cloned().collect();
        storage.create_dir_all(dest)?;
        let mut copied = false;
        for segment in segments.iter().filter(|s| s.first_lsn < upto) {
            let source = storage.open(&segment_path(dir, segment.sequence), false)?;
            copy_segment(
                storage,
                &*source,
                &segment_path(dest, segment.sequence),
                upto,
                || storage.open(source.path(), false),
            )?;
            copied = true;
        }
        if !copied {
            // Nothing below `upto` is left, but the position must be.
            let sequence = segments.first().map_or(1, |s| s.sequence);
            let header = SegmentHeader {
                database_id,
                sequence,
                first_lsn: upto,
                nonce: sequence,
            };
            let file = storage.create(&segment_path(dest, sequence))?;
            file.write_at(&header.encode().0, 0)?;
            file.sync()?;
        }
        storage.sync_dir(dest)
    }
}

/// Copies one segment up to `upto`, which may lie inside a group but not inside a record.
fn copy_segment(
    storage: &dyn Storage,
    source: &dyn StorageFile,
    dest: &Path,
    upto: Lsn,
    reopen: impl FnOnce() -> Result<std::sync::Arc<dyn StorageFile>>,
) -> Result<()> {
    let FileHead::Header(header, identity) = read_head(source)? else {
        return Err(Error::corrupt(
            source.path(),
            0,
            "the segment header is missing",
        ));
    };
    let mut reader = GroupReader::new(reopen()?, &header, identity);
    let mut whole_bytes = SEGMENT_HEADER_BYTES as u64;
    let mut cut: Option<(GroupHeader, Vec<u8>)> = None;
    while reader.end() < upto {
        let at = reader.offset();
        let Some((group, payload)) = reader.next_group()? else {
            break;
        };
        if group.end_lsn() > upto {
            let len = (upto.0 - group.first_lsn.0) as usize;
            let kept = payload.get(..len).unwrap_or_default();
            if group.kind != GroupKind::Whole || !is_records(kept) {
                return Err(Error::corrupt(
                    source.path(),
                    at,
                    format!("LSN {} is inside a record", upto.0),
                ));
            }
            let shorter =
                GroupHeader::for_payload(GroupKind::Whole, kept, group.first_lsn, group.durable);
            cut = Some((shorter, kept.to_vec()));
            break;
        }
        whole_bytes = reader.offset();
    }
    let file = storage.create(dest)?;
    let mut buf = vec![0; COPY_BYTES];
    let mut at = 0;
    while at < whole_bytes {
        let want = buf.len().min((whole_bytes - at) as usize);
        let got = source.read_at(&mut buf[..want], at)?;
        if got < want {
            return Err(Error::corrupt(
                source.path(),
                at,
                "the segment is shorter than it was",
            ));
        }
        file.write_at(&buf[..want], at)?;
        at += want as u64;
    }
    if let Some((group, payload)) = cut {
        file.write_at(&group.encode(identity, whole_bytes), whole_bytes)?;
        file.write_at(&payload, whole_bytes + GROUP_HEADER_BYTES as u64)?;
    }
    file.sync()
}

fn is_records(mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        match decode_record(bytes) {
            Ok((_, len)) => bytes = bytes.get(len..).unwrap_or_default(),
            Err(_) => return false,
        }
    }
    true
}
