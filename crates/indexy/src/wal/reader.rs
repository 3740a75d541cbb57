//! Reads one segment group by group, and looks behind damage.
//!
//! Memory: one window, at most a group long. Threads: one.
//! Not here: what damage means (`recovery.rs`).

use super::{
    lsn::Lsn,
    segment::{
        GROUP_ALIGN, GROUP_HEADER_BYTES, GroupHeader, MAX_GROUP_PAYLOAD, SEGMENT_HEADER_BYTES,
        SegmentHeader, SegmentIdentity, decode_group, padded,
    },
};
use crate::{
    error::{Error, Result},
    storage::StorageFile,
};
use std::sync::Arc;

/// Bytes asked of the file at a time.
const READ_BYTES: usize = 1 << 20;
/// The same of one that stays for long.
const SMALL_READ_BYTES: usize = 64 << 10;

/// Reads the header of `file`. `Corrupt` where there is none: it is durable before a segment gets
/// its name, so no crash leaves one without.
pub(super) fn read_head(file: &dyn StorageFile) -> Result<(SegmentHeader, SegmentIdentity)> {
    let mut bytes = [0; SEGMENT_HEADER_BYTES];
    if file.read_at(&mut bytes, 0)? < SEGMENT_HEADER_BYTES {
        let what = "the segment header is missing";
        return Err(Error::corrupt(file.path(), 0, what));
    }
    SegmentHeader::decode(&bytes, file.path())
}

/// See the module header.
pub(super) struct GroupReader {
    file: Arc<dyn StorageFile>,
    identity: SegmentIdentity,
    /// Where the next group should start in the file, and in the log.
    offset: u64,
    next: Lsn,
    /// Bytes of the file from `window_at` on; `window_len` of them are valid.
    window: Vec<u8>,
    window_at: u64,
    window_len: usize,
    read_bytes: usize,
}

impl GroupReader {
    pub(super) fn new(
        file: Arc<dyn StorageFile>,
        header: &SegmentHeader,
        identity: SegmentIdentity,
    ) -> Self {
        Self {
            file,
            identity,
            offset: SEGMENT_HEADER_BYTES as u64,
            next: header.first_lsn,
            window: Vec::new(),
            window_at: 0,
            window_len: 0,
            read_bytes: READ_BYTES,
        }
    }

    /// It asks the file for less at a time.
    pub(super) fn small(mut self) -> Self {
        self.read_bytes = SMALL_READ_BYTES;
        self
    }

    /// Memory that it holds.
    pub(super) fn window_bytes(&self) -> usize {
        self.window.capacity()
    }

    /// The file has grown since it was read: what is in memory may be of before.
    pub(super) fn forget(&mut self) {
        self.window_len = 0;
        if self.window.capacity() > self.read_bytes {
            self.window = Vec::new();
        }
    }

    /// File offset behind the last group read: where the next one is, or the damage.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// LSN behind the last group read.
    pub(super) fn end(&self) -> Lsn {
        self.next
    }

    /// Goes to where a group stands: at `offset` of the file, and at `lsn` of the log.
    pub(super) fn go_to(&mut self, offset: u64, lsn: Lsn) {
        (self.offset, self.next) = (offset, lsn);
    }

    /// The next group; `None` where no intact one follows.
    pub(super) fn next_group(&mut self) -> Result<Option<(GroupHeader, &[u8])>> {
        let Some((head, bytes)) = self.next_whole()? else {
            return Ok(None);
        };
        let payload = bytes.get(GROUP_HEADER_BYTES..);
        Ok(payload.map(|payload| (head, payload)))
    }

    /// As [`GroupReader::next_group`], with the bytes of the group from its header on.
    pub(super) fn next_whole(&mut self) -> Result<Option<(GroupHeader, &[u8])>> {
        let (offset, identity) = (self.offset, self.identity);
        let head =
            GroupHeader::decode(self.bytes_at(offset, GROUP_HEADER_BYTES)?, identity, offset);
        let Some(head) = head.filter(|h| h.first_lsn == self.next) else {
            return Ok(None);
        };
        let bytes = self.load(offset, GROUP_HEADER_BYTES + head.payload_len)?;
        let intact = decode_group(
            self.window.get(bytes.clone()).unwrap_or_default(),
            identity,
            offset,
        )
        .is_some();
        if !intact {
            return Ok(None);
        }
        self.offset += head.file_bytes();
        self.next = head.end_lsn();
        Ok(self.window.get(bytes).map(|bytes| (head, bytes)))
    }

    /// The highest durable LSN that any group header from the present offset on speaks of, with
    /// that header's offset: proof of what had been durable before the damage. Reads to the end of
    /// the file.
    pub(super) fn later_durable(&mut self) -> Result<Option<(Lsn, u64)>> {
        let len = self.file.len()?;
        let mut best: Option<(Lsn, u64)> = None;
        let mut at = self.offset;
        while at + GROUP_HEADER_BYTES as u64 <= len {
            let identity = self.identity;
            if let Some(head) =
                GroupHeader::decode(self.bytes_at(at, GROUP_HEADER_BYTES)?, identity, at)
                && best.is_none_or(|(lsn, _)| head.durable > lsn)
            {
                best = Some((head.durable, at));
            }
            at += GROUP_ALIGN as u64;
        }
        Ok(best)
    }

    /// Goes to the next whole group behind what is damaged at the present offset; returns its first
    /// LSN. `None`: there is none.
    pub(super) fn skip_damage(&mut self) -> Result<Option<Lsn>> {
        let len = self.file.len()?;
        let (identity, mut at) = (self.identity, self.offset + GROUP_ALIGN as u64);
        while at + GROUP_HEADER_BYTES as u64 <= len {
            let head = GroupHeader::decode(self.bytes_at(at, GROUP_HEADER_BYTES)?, identity, at);
            if let Some(head) = head.filter(|head| head.first_lsn >= self.next) {
                let bytes = self.bytes_at(at, GROUP_HEADER_BYTES + head.payload_len)?;
                if decode_group(bytes, identity, at).is_some() {
                    (self.offset, self.next) = (at, head.first_lsn);
                    return Ok(Some(head.first_lsn));
                }
            }
            at += GROUP_ALIGN as u64;
        }
        Ok(None)
    }

    /// Up to `len` bytes at `offset` of the file; less at its end.
    fn bytes_at(&mut self, offset: u64, len: usize) -> Result<&[u8]> {
        let range = self.load(offset, len)?;
        Ok(self.window.get(range).unwrap_or_default())
    }

    /// Brings `[offset, offset + len)` into the window; returns where it is there, cut at the end
    /// of the file.
    fn load(&mut self, offset: u64, len: usize) -> Result<std::ops::Range<usize>> {
        debug_assert!(len <= GROUP_HEADER_BYTES + padded(MAX_GROUP_PAYLOAD));
        let inside = offset
            .checked_sub(self.window_at)
            .filter(|skip| skip + len as u64 <= self.window_len as u64);
        if let Some(skip) = inside {
            return Ok(skip as usize..skip as usize + len);
        }
        let want = len.max(self.read_bytes);
        if self.window.len() < want {
            self.window.resize(want, 0);
        }
        self.window_len = 0;
        self.window_at = offset;
        self.window_len = self.file.read_at(&mut self.window, offset)?;
        Ok(0..len.min(self.window_len))
    }
}
