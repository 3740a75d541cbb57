//! Makes the end of the log durable that an open finds, before anything is made of it.
//!
//! A sync alone does not: after one that failed in a process that is gone, the system may keep what
//! it could not write and call it written. Then another sync has nothing to do, says so, and the
//! next loss of power takes the end of a segment that has a successor by now. So the groups that
//! nothing proves durable are written again, the same bytes at the same place, and then synced.
//!
//! A crash in the middle leaves of each sector what was there or the same again. Without space for
//! it, which few file systems need, the open fails and may be repeated.
//! Keeps: I5, I8 (what is replayed survives). Threads: one. Memory: one window of a reader.

use super::{
    lsn::Lsn,
    reader::GroupReader,
    segment::{SegmentHeader, SegmentIdentity},
};
use crate::{error::Result, storage::StorageFile};
use std::{collections::VecDeque, sync::Arc};

/// Makes durable the groups of the newest segment. Everything below `durable` is. Cost: reads the
/// segment; writes what was not yet durable when its last group was written; a sync.
pub(super) fn secure(
    file: &Arc<dyn StorageFile>,
    header: &SegmentHeader,
    identity: SegmentIdentity,
    durable: Lsn,
) -> Result<()> {
    let mut reader = GroupReader::new(file.clone(), header, identity);
    let mut proven = durable;
    // Where groups stand that may not be durable: offset, first LSN, LSN behind.
    let mut doubtful: VecDeque<(u64, Lsn, Lsn)> = VecDeque::new();
    loop {
        let offset = reader.offset();
        let Some((group, _)) = reader.next_group()? else {
            break;
        };
        proven = proven.max(group.durable);
        doubtful.push_back((offset, group.first_lsn, group.end_lsn()));
        while doubtful.front().is_some_and(|(.., end)| *end <= proven) {
            doubtful.pop_front();
        }
    }
    if let Some((offset, first, _)) = doubtful.pop_front() {
        reader.go_to(offset, first);
        loop {
            let offset = reader.offset();
            let Some((_, bytes)) = reader.next_whole()? else {
                break;
            };
            file.write_at(bytes, offset)?;
        }
    }
    file.sync()
}
