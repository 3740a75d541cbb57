//! Copies of a log: whole segments, and the newest one up to an LSN.
//!
//! Threads: any. The caller keeps segments from being removed.

use super::{
    lsn::Lsn,
    reader::{GroupReader, read_head},
    record::decode_record,
    segment::{
        GROUP_ALIGN, GROUP_HEADER_BYTES, GroupHeader, GroupKind, SEGMENT_HEADER_BYTES,
        SegmentHeader, SegmentInfo, fresh_nonce, segment_path,
    },
};
use crate::{
    error::{Error, Result},
    storage::{Storage, StorageFile},
};
use std::{path::Path, sync::Arc};

/// Bytes copied at a time.
const COPY_BYTES: usize = 1 << 20;

/// Copies the log in `dir`, of which `segments` are the segments, up to `upto` to the directory
/// `dest`. The caller holds the log.
pub(super) fn copy_segments(
    storage: &dyn Storage,
    segments: &[SegmentInfo],
    dir: &Path,
    dest: &Path,
    database_id: u128,
    upto: Lsn,
) -> Result<()> {
    storage.create_dir_all(dest)?;
    let mut reached = None;
    for (i, segment) in segments.iter().enumerate() {
        if segment.first_lsn >= upto {
            continue;
        }
        let path = segment_path(dir, segment.sequence);
        let source = storage.open(&path, false)?;
        let copy = segment_path(dest, segment.sequence);
        let end = copy_segment(storage, source, &copy, upto)?;
        // A damaged group ends a segment too early; the copy could not be opened.
        if let Some(next) = segments.get(i + 1).filter(|next| next.first_lsn <= upto)
            && end != next.first_lsn
        {
            let what = format!(
                "the segment ends at LSN {}, the next one begins at {}",
                end.0, next.first_lsn.0
            );
            return Err(Error::corrupt(path, 0, what));
        }
        reached = Some(end);
    }
    match reached {
        Some(end) if end < upto => {
            let what = format!(
                "the log ends at LSN {}, it was durable up to {}",
                end.0, upto.0
            );
            return Err(Error::corrupt(dir, 0, what));
        }
        Some(_) => {}
        None => {
            // Nothing below `upto` is left, but the position must be.
            let sequence = segments.first().map_or(1, |s| s.sequence);
            let header = SegmentHeader {
                database_id,
                sequence,
                first_lsn: upto,
                nonce: fresh_nonce(),
            };
            let file = storage.create(&segment_path(dest, sequence))?;
            file.write_at(&header.encode().0, 0)?;
            file.sync()?;
        }
    }
    storage.sync_dir(dest)
}

/// Copies one segment up to `upto`, which may lie inside a group but not inside a record. Returns
/// how far the copy goes.
fn copy_segment(
    storage: &dyn Storage,
    source: Arc<dyn StorageFile>,
    dest: &Path,
    upto: Lsn,
) -> Result<Lsn> {
    let (header, identity) = read_head(&*source)?;
    let mut reader = GroupReader::new(source.clone(), &header, identity);
    let mut end = header.first_lsn;
    let mut whole_bytes = SEGMENT_HEADER_BYTES as u64;
    let mut cut: Option<(GroupHeader, Vec<u8>)> = None;
    while end < upto {
        let at = reader.offset();
        let Some((group, payload)) = reader.next_group()? else {
            break;
        };
        if group.end_lsn() > upto {
            let kept = payload
                .get(..(upto.0 - group.first_lsn.0) as usize)
                .unwrap_or_default();
            if group.kind != GroupKind::Whole || !is_records(kept) {
                let what = format!("LSN {} is inside a record", upto.0);
                return Err(Error::corrupt(source.path(), at, what));
            }
            let shorter =
                GroupHeader::for_payload(GroupKind::Whole, kept, group.first_lsn, group.durable);
            cut = Some((shorter, kept.to_vec()));
            end = upto;
        } else {
            end = group.end_lsn();
            whole_bytes = reader.offset();
        }
    }
    let file = storage.create(dest)?;
    copy_bytes(&*source, &*file, whole_bytes)?;
    if let Some((group, payload)) = cut {
        file.write_at(&group.encode(identity, whole_bytes), whole_bytes)?;
        file.write_at(&payload, whole_bytes + GROUP_HEADER_BYTES as u64)?;
    }
    file.sync()?;
    Ok(end)
}

fn copy_bytes(source: &dyn StorageFile, dest: &dyn StorageFile, len: u64) -> Result<()> {
    let mut buf = vec![0; COPY_BYTES];
    let mut at = 0;
    while at < len {
        let want = COPY_BYTES.min((len - at) as usize);
        let chunk = buf.get_mut(..want).unwrap_or_default();
        let read = source.read_at(chunk, at)?;
        // The padding behind the last group need not be in the file: it is zero.
        chunk.get_mut(read..).unwrap_or_default().fill(0);
        let is_padding = at + want as u64 == len && want - read < GROUP_ALIGN;
        if read < want && !is_padding {
            return Err(Error::corrupt(
                source.path(),
                at,
                "the segment is shorter than it was",
            ));
        }
        dest.write_at(chunk, at)?;
        at += want as u64;
    }
    Ok(())
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
