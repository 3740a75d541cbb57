//! What the fuzz targets need to see of the log; see `crate::fuzzing`.

#![forbid(unsafe_code)]

use super::{
    BatchEncoder, Log, LogDurability, LogOptions, Lsn, RecordRef, batch_ops,
    record::decode_record,
    segment::{
        GROUP_HEADER_BYTES, GroupHeader, GroupKind, MAX_GROUP_PAYLOAD, SEGMENT_HEADER_BYTES,
        SegmentHeader, decode_group, padded, segment_path,
    },
};
use crate::{
    mem::budget::Budget,
    storage::{Storage, sim::Sim},
};
use std::{path::Path, sync::Arc};

const DIR: &str = "/log";
const DATABASE_ID: u128 = 7;

fn header() -> SegmentHeader {
    SegmentHeader {
        database_id: DATABASE_ID,
        sequence: 1,
        first_lsn: Lsn(0),
        nonce: 5,
    }
}

/// A segment with `payload` in one group.
pub(crate) fn segment(payload: &[u8]) -> Vec<u8> {
    let payload = payload.get(..MAX_GROUP_PAYLOAD).unwrap_or(payload);
    let (head, identity) = header().encode();
    let group = GroupHeader::for_payload(GroupKind::Whole, payload, Lsn(0), Lsn(0));
    let mut bytes = head.to_vec();
    bytes.extend_from_slice(&group.encode(identity, SEGMENT_HEADER_BYTES as u64));
    bytes.extend_from_slice(payload);
    bytes.resize(
        SEGMENT_HEADER_BYTES + GROUP_HEADER_BYTES + padded(payload.len()),
        0,
    );
    bytes
}

/// Records of every kind.
pub(crate) fn records() -> Vec<u8> {
    let (key, value) = (&b"key"[..], &b"value"[..]);
    let records = [
        RecordRef::Put {
            tree: 1,
            key,
            value,
        },
        RecordRef::Remove { tree: 300, key },
        RecordRef::RemoveRange {
            tree: 2,
            from: key,
            to: Some(value),
        },
    ];
    let mut batch = BatchEncoder::default();
    for record in records {
        // Within the limits.
        let _ = batch.push(record);
    }
    let load = RecordRef::Load {
        tree: 3,
        from: key,
        to: None,
    };
    let merge = RecordRef::Merge {
        tree: 4,
        key,
        operand: value,
    };
    let resolved = |value| RecordRef::Resolved {
        tree: 5,
        key,
        value,
    };
    let all = [
        records[0],
        records[1],
        records[2],
        batch.record(),
        load,
        merge,
        resolved(Some(value)),
        resolved(None),
    ];
    let mut bytes = Vec::new();
    for record in &all {
        let (head, a, b) = record.parts();
        bytes.extend([head.as_slice(), a, b].concat());
    }
    bytes
}

/// Takes `bytes` apart into records; what it reads lies within them.
pub(crate) fn decode_records(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok((record, len)) = decode_record(rest) {
        assert!(len > 0 && len <= rest.len());
        if let RecordRef::Batch { ops, .. } = record {
            let operations = batch_ops(ops).count();
            assert!(operations <= ops.len());
        }
        rest = &rest[len..];
    }
}

/// Takes a group apart, as it stands behind a segment's header.
pub(crate) fn decode_one_group(bytes: &[u8]) {
    let (_, identity) = header().encode();
    if let Some((group, payload)) = decode_group(bytes, identity, SEGMENT_HEADER_BYTES as u64) {
        assert_eq!(group.payload_len, payload.len());
    }
}

/// Recovers from `bytes` as the only segment. What one recovery makes of it, the next finds again.
pub(crate) fn recover(bytes: &[u8]) {
    let sim = Sim::default();
    sim.tamper(&segment_path(Path::new(DIR), 1), bytes.to_vec());
    let read_only = replay(&sim, true);
    let first = replay(&sim, false);
    assert_eq!(read_only, first);
    if first.is_some() {
        assert_eq!(replay(&sim, false), first);
    }
}

/// Every record with its LSN, as debug text; `None` if the log does not open.
fn replay(sim: &Sim, read_only: bool) -> Option<Vec<(Lsn, String)>> {
    let _ = sim.create_dir_all(Path::new(DIR));
    let mut seen = Vec::new();
    let options = LogOptions {
        durability: LogDurability::Sync,
        segment_bytes: 4 << 10,
        buffer_bytes: 4 << 10,
        database_id: DATABASE_ID,
        keep_bytes: 0,
    };
    Log::open(
        Arc::new(sim.clone()),
        Path::new(DIR),
        options,
        Lsn(0),
        Lsn(0),
        read_only,
        Arc::default(),
        Arc::new(Budget::new(1 << 30)),
        &mut |lsn, record| {
            seen.push((lsn, format!("{record:?}")));
            Ok(())
        },
    )
    .ok()
    .map(|_| seen)
}
