//! The newest segment: writes groups into it and starts the next one.
//!
//! - A write that found no space, descriptor or memory is repeated at the same place.
//! - A sync is never repeated. The header of a new segment is an exception: its file is built anew.
//! - Segment n is durable before the first write to n+1.
//! - A segment has its name only after its header is durable.
//! - Records never span segments, so a segment may exceed its nominal size by one record.
//!
//! Threads: one at a time (the lock `out` of `group_commit.rs`).

use super::{
    lsn::Lsn,
    segment::{
        GROUP_ALIGN, GROUP_HEADER_BYTES, GroupHeader, GroupKind, MAX_GROUP_PAYLOAD,
        SEGMENT_HEADER_BYTES, SegmentHeader, SegmentIdentity, SegmentInfo, fresh_nonce, padded,
        segment_path, unfinished_path,
    },
    truncation::SegmentList,
};
use crate::{
    error::{Error, Result},
    storage::{Storage, StorageFile},
};
use parking_lot::Mutex;
use std::{path::PathBuf, sync::Arc};

/// How far ahead of the last group space is allocated, in bytes. Writing into allocated space lets
/// `fdatasync` leave the file's length alone.
const ALLOCATE_BYTES: u64 = 1 << 20;

/// Why a write did not happen.
#[derive(Debug)]
pub(super) enum WriteError {
    /// No space, descriptor or memory: the same write may be repeated.
    Retry(Error),
    /// What the file holds is unknown from here on.
    Fatal(Error),
}

fn on_write(e: Error) -> WriteError {
    if matches!(e, Error::OutOfSpace { .. }) || e.is_transient() {
        WriteError::Retry(e)
    } else {
        WriteError::Fatal(e)
    }
}

/// Where every sync of the log's files goes through, one at a time.
///
/// The system reports a failed write-back to one sync only. Were two syncs of a file to overlap,
/// the other could succeed and acknowledge what is lost; so the second one waits, and fails like
/// the first.
#[derive(Default)]
pub(super) struct SyncGate(Mutex<Option<Error>>);

impl SyncGate {
    pub(super) fn sync(&self, file: &dyn StorageFile) -> Result<()> {
        let mut failed = self.0.lock();
        if let Some(first) = &*failed {
            return Err(first.clone());
        }
        file.sync().inspect_err(|e| *failed = Some(e.clone()))
    }
}

pub(super) struct SegmentWriter {
    storage: Arc<dyn Storage>,
    dir: PathBuf,
    database_id: u128,
    segment_bytes: u64,
    /// Longest payload of one group, in bytes; a longer record takes several.
    group_bytes: usize,
    /// See [`SegmentWriter::allocate_ahead`].
    allocate: bool,
    next_sequence: u64,
    active: Option<Active>,
    segments: Arc<SegmentList>,
    gate: Arc<SyncGate>,
}

struct Active {
    file: Arc<dyn StorageFile>,
    identity: SegmentIdentity,
    /// Where the next group goes.
    offset: u64,
    allocated: u64,
}

impl SegmentWriter {
    #[expect(clippy::too_many_arguments, reason = "one call, in Log::open")]
    pub(super) fn new(
        storage: Arc<dyn Storage>,
        dir: PathBuf,
        database_id: u128,
        segment_bytes: u64,
        group_bytes: usize,
        allocate: bool,
        next_sequence: u64,
        segments: Arc<SegmentList>,
    ) -> Self {
        Self {
            storage,
            dir,
            database_id,
            segment_bytes,
            group_bytes: group_bytes.clamp(1, MAX_GROUP_PAYLOAD),
            allocate,
            next_sequence,
            active: None,
            segments,
            gate: Arc::default(),
        }
    }

    /// The file to sync after a write; `None` before the first.
    pub(super) fn file(&self) -> Option<Arc<dyn StorageFile>> {
        self.active.as_ref().map(|a| a.file.clone())
    }

    pub(super) fn gate(&self) -> Arc<SyncGate> {
        self.gate.clone()
    }

    /// From now on space is allocated ahead: for logs that sync often. Cost once it is on: a call
    /// of the system for each MiB; the newest segment takes up to a MiB more, within its nominal
    /// size.
    pub(super) fn allocate_ahead(&mut self) {
        self.allocate = true;
    }

    /// Writes whole records. `bytes` is room for a group header, `len` bytes of payload, and room
    /// for padding. Returns true if a segment was started, and so everything before `first_lsn`
    /// made durable.
    pub(super) fn write_in_place(
        &mut self,
        bytes: &mut [u8],
        len: usize,
        first_lsn: Lsn,
        durable: Lsn,
    ) -> Result<bool, WriteError> {
        let total = GROUP_HEADER_BYTES + padded(len);
        let (started, durable) = self.prepare(total as u64, first_lsn, durable)?;
        let Some(active) = &mut self.active else {
            return Ok(started);
        };
        let (head, rest) = bytes.split_at_mut(GROUP_HEADER_BYTES);
        let (payload, padding) = rest.split_at_mut(len);
        let header = GroupHeader::for_payload(GroupKind::Whole, payload, first_lsn, durable);
        head.copy_from_slice(&header.encode(active.identity, active.offset));
        padding[..padded(len) - len].fill(0);
        active
            .file
            .write_at(&bytes[..total], active.offset)
            .map_err(on_write)?;
        self.advance(total as u64);
        Ok(started)
    }

    /// Writes `payload`, in several groups if it is one long record. Returns as
    /// [`SegmentWriter::write_in_place`] does.
    pub(super) fn write_copied(
        &mut self,
        payload: &[u8],
        first_lsn: Lsn,
        durable: Lsn,
    ) -> Result<bool, WriteError> {
        let chunks = payload.len().div_ceil(self.group_bytes).max(1);
        let total = payload.len() + chunks * (GROUP_HEADER_BYTES + GROUP_ALIGN);
        let (started, durable) = self.prepare(total as u64, first_lsn, durable)?;
        let Some(active) = &self.active else {
            return Ok(started);
        };
        let mut offset = active.offset;
        let mut lsn = first_lsn;
        for (i, chunk) in payload.chunks(self.group_bytes).enumerate() {
            let kind = match (chunks, i) {
                (1, _) => GroupKind::Whole,
                (_, 0) => GroupKind::First,
                (n, i) if i + 1 == n => GroupKind::Last,
                _ => GroupKind::Middle,
            };
            let header = GroupHeader::for_payload(kind, chunk, lsn, durable);
            let head = header.encode(active.identity, offset);
            active.file.write_at(&head, offset).map_err(on_write)?;
            active
                .file
                .write_at(chunk, offset + GROUP_HEADER_BYTES as u64)
                .map_err(on_write)?;
            offset += header.file_bytes();
            lsn = header.end_lsn();
        }
        let written = offset - active.offset;
        self.advance(written);
        Ok(started)
    }

    fn advance(&mut self, bytes: u64) {
        if let Some(active) = &mut self.active {
            active.offset += bytes;
            self.segments
                .set_newest_bytes(active.offset.max(active.allocated));
        }
    }

    /// Makes sure that a segment takes `bytes` more. Returns whether one was started, and the LSN
    /// durable then.
    fn prepare(
        &mut self,
        bytes: u64,
        first_lsn: Lsn,
        durable: Lsn,
    ) -> Result<(bool, Lsn), WriteError> {
        let fits = self.active.as_ref().is_some_and(|a| {
            a.offset == SEGMENT_HEADER_BYTES as u64
                || a.offset.saturating_add(bytes) <= self.segment_bytes
        });
        let (started, durable) = if fits {
            (false, durable)
        } else {
            self.finish_segment()?;
            self.start_segment(first_lsn)?;
            (true, first_lsn)
        };
        if self.allocate
            && let Some(active) = &mut self.active
            && active.offset + bytes > active.allocated
        {
            let left = self.segment_bytes.saturating_sub(active.offset);
            let step = ALLOCATE_BYTES.min(left).max(bytes);
            // Only an optimization: without it the write itself finds out whether there is room.
            if active.file.allocate(active.offset, step).is_ok() {
                active.allocated = active.offset + step;
            }
        }
        Ok((started, durable))
    }

    /// Makes the newest segment durable, without what was allocated in vain.
    fn finish_segment(&mut self) -> Result<(), WriteError> {
        if let Some(active) = &mut self.active {
            if active.allocated > active.offset {
                active.file.set_len(active.offset).map_err(on_write)?;
                active.allocated = 0;
            }
            self.gate.sync(&*active.file).map_err(WriteError::Fatal)?;
            self.segments.set_newest_bytes(active.offset);
        }
        Ok(())
    }

    fn start_segment(&mut self, first_lsn: Lsn) -> Result<(), WriteError> {
        let sequence = self.next_sequence;
        let header = SegmentHeader {
            database_id: self.database_id,
            sequence,
            first_lsn,
            nonce: fresh_nonce(),
        };
        let (bytes, identity) = header.encode();
        let building = unfinished_path(&self.dir, sequence);
        if self.storage.exists(&building).map_err(on_write)? {
            // Left by an attempt that failed. Its sync may have, so that the next one must be of
            // another file.
            self.storage.remove(&building).map_err(on_write)?;
        }
        let file = self.storage.create(&building).map_err(on_write)?;
        file.write_at(&bytes, 0).map_err(on_write)?;
        file.sync().map_err(on_write)?;
        let path = segment_path(&self.dir, sequence);
        // An attempt that could not open the directory to sync it has left the name; this replaces
        // it.
        self.storage.rename_open(&*file, &path).map_err(on_write)?;
        self.storage.sync_dir(&self.dir).map_err(|e| match e {
            // Whether the name is durable is unknown.
            Error::OutOfSpace { .. } => WriteError::Fatal(e),
            e => on_write(e),
        })?;
        self.next_sequence += 1;
        self.active = Some(Active {
            file,
            identity,
            offset: SEGMENT_HEADER_BYTES as u64,
            allocated: 0,
        });
        self.segments.push(SegmentInfo {
            sequence,
            first_lsn,
            bytes: SEGMENT_HEADER_BYTES as u64,
        });
        Ok(())
    }

    /// Marks that everything up to `end` is durable, so that damage below is told from a torn tail.
    /// Without a sync and without an error: nothing is lost if the mark is.
    pub(super) fn mark_close(&mut self, end: Lsn) {
        let Some(active) = &mut self.active else {
            return;
        };
        if active.allocated > active.offset && active.file.set_len(active.offset).is_err() {
            return;
        }
        let header = GroupHeader::for_payload(GroupKind::Whole, &[], end, end);
        let bytes = header.encode(active.identity, active.offset);
        if active.file.write_at(&bytes, active.offset).is_ok() {
            active.offset += header.file_bytes();
        }
        self.segments.set_newest_bytes(active.offset);
    }
}
