//! The log on real files: what goes in comes out. The other files break it.

mod crash;
mod damage;
mod faults;
mod following;
mod formats;
mod keeping;

use super::*;
use crate::storage::{
    Buffered,
    sim::{Fault, Sim, sites},
};
use std::time::Duration;

#[derive(Debug, PartialEq, Eq, Clone)]
enum Owned {
    Put(u32, Vec<u8>, Vec<u8>),
    Remove(u32, Vec<u8>),
    RemoveRange(u32, Vec<u8>, Option<Vec<u8>>),
    Load(u32, Vec<u8>, Option<Vec<u8>>),
    Merge(u32, Vec<u8>, Vec<u8>),
    Resolved(u32, Vec<u8>, Option<Vec<u8>>),
    Batch(u32, Vec<u8>),
}

impl Owned {
    fn borrowed(&self) -> RecordRef<'_> {
        match self {
            Self::Put(tree, key, value) => RecordRef::Put {
                tree: *tree,
                key,
                value,
            },
            Self::Remove(tree, key) => RecordRef::Remove { tree: *tree, key },
            Self::RemoveRange(tree, from, to) => RecordRef::RemoveRange {
                tree: *tree,
                from,
                to: to.as_deref(),
            },
            Self::Load(tree, from, to) => RecordRef::Load {
                tree: *tree,
                from,
                to: to.as_deref(),
            },
            Self::Merge(tree, key, operand) => RecordRef::Merge {
                tree: *tree,
                key,
                operand,
            },
            Self::Resolved(tree, key, value) => RecordRef::Resolved {
                tree: *tree,
                key,
                value: value.as_deref(),
            },
            Self::Batch(count, ops) => RecordRef::Batch { ops, count: *count },
        }
    }
}

fn own(r: RecordRef<'_>) -> Owned {
    match r {
        RecordRef::Put { tree, key, value } => Owned::Put(tree, key.to_vec(), value.to_vec()),
        RecordRef::Remove { tree, key } => Owned::Remove(tree, key.to_vec()),
        RecordRef::RemoveRange { tree, from, to } => {
            Owned::RemoveRange(tree, from.to_vec(), to.map(<[u8]>::to_vec))
        }
        RecordRef::Load { tree, from, to } => {
            Owned::Load(tree, from.to_vec(), to.map(<[u8]>::to_vec))
        }
        RecordRef::Merge { tree, key, operand } => {
            Owned::Merge(tree, key.to_vec(), operand.to_vec())
        }
        RecordRef::Resolved { tree, key, value } => {
            Owned::Resolved(tree, key.to_vec(), value.map(<[u8]>::to_vec))
        }
        RecordRef::Batch { ops, count } => Owned::Batch(count, ops.to_vec()),
    }
}

fn options(sync: bool) -> LogOptions {
    LogOptions {
        durability: if sync {
            LogDurability::Sync
        } else {
            LogDurability::Buffered {
                interval: Duration::from_millis(20),
            }
        },
        segment_bytes: 64 << 10,
        buffer_bytes: 8 << 10,
        database_id: 7,
        keep_bytes: 0,
    }
}

/// Where the simulated log lives.
const DIR: &str = "/log";

/// Small everything, so that a short workload meets every seam: groups, buffers, long records,
/// segments.
fn small(durability: LogDurability) -> LogOptions {
    LogOptions {
        durability,
        segment_bytes: 4 << 10,
        buffer_bytes: 4 << 10,
        database_id: 7,
        keep_bytes: 0,
    }
}

type Seen = Vec<(Lsn, Owned)>;

fn open_sim(sim: &Sim, from: Lsn, hint: Lsn, read_only: bool) -> Result<(Log, Seen)> {
    open_with(
        Arc::new(sim.clone()),
        small(LogDurability::Sync),
        from,
        hint,
        read_only,
    )
}

fn open_with(
    storage: Arc<dyn Storage>,
    options: LogOptions,
    from: Lsn,
    hint: Lsn,
    read_only: bool,
) -> Result<(Log, Seen)> {
    let mut seen = Vec::new();
    let budget = Arc::new(Budget::new(1 << 30));
    let visit = &mut |lsn, r: RecordRef<'_>| {
        seen.push((lsn, own(r)));
        Ok(())
    };
    let log = Log::open(
        storage,
        Path::new(DIR),
        options,
        from,
        hint,
        read_only,
        Arc::default(),
        budget,
        visit,
    )?;
    Ok((log, seen))
}

/// Appends what `record` says; returns where it starts and ends. One thread only.
fn append(log: &Log, record: &Owned) -> Result<(Lsn, Lsn)> {
    let borrowed = record.borrowed();
    let _admission = log.admit(borrowed.encoded_len())?;
    let start = log.end();
    Ok((start, log.append(borrowed)?))
}

/// The `i`-th record of a workload: mostly small, some near a buffer, some over several groups.
fn record(i: u64) -> Owned {
    let len = match i % 13 {
        4 => 4000,
        9 => 9000 + (i % 5) as usize * 1111,
        _ => (i * 7 % 60) as usize,
    };
    match i % 7 {
        3 => Owned::Remove(i as u32, i.to_be_bytes().to_vec()),
        5 => {
            let mut batch = BatchEncoder::default();
            for k in 0..i % 11 {
                batch
                    .push(RecordRef::Put {
                        tree: 9,
                        key: &k.to_be_bytes(),
                        value: &[i as u8; 30],
                    })
                    .unwrap();
            }
            own(batch.record())
        }
        _ => Owned::Put(
            1 + i as u32 * 1000,
            i.to_be_bytes().to_vec(),
            vec![i as u8; len],
        ),
    }
}

fn open(dir: &Path, sync: bool, from: Lsn, read_only: bool) -> Result<(Log, Vec<(Lsn, Owned)>)> {
    let mut seen = Vec::new();
    let log = Log::open(
        Arc::new(Buffered),
        dir,
        options(sync),
        from,
        Lsn(0),
        read_only,
        Arc::default(),
        Arc::new(Budget::new(1 << 30)),
        &mut |lsn, r| {
            seen.push((lsn, own(r)));
            Ok(())
        },
    )?;
    Ok((log, seen))
}

fn put(log: &Log, i: u64, value: &[u8]) -> Lsn {
    let record = RecordRef::Put {
        tree: 1,
        key: &i.to_be_bytes(),
        value,
    };
    log.admit(record.encoded_len()).unwrap();
    log.append(record).unwrap()
}

#[test]
fn what_goes_in_comes_out() {
    let dir = tempfile::tempdir().unwrap();
    for sync in [false, true] {
        let dir = dir.path().join(sync.to_string());
        std::fs::create_dir(&dir).unwrap();
        let mut want = Vec::new();
        for round in 0..3u64 {
            let (log, seen) = open(&dir, sync, Lsn(0), false).unwrap();
            assert_eq!(seen, want);
            for i in 0..3000 {
                let start = log.end();
                let value = vec![i as u8; (i % 50) as usize];
                let end = put(&log, round * 10_000 + i, &value);
                assert_eq!(end, log.end());
                want.push((
                    start,
                    Owned::Put(1, (round * 10_000 + i).to_be_bytes().to_vec(), value),
                ));
                if sync && i % 100 == 0 {
                    log.wait_durable(end).unwrap();
                    assert!(log.durable() >= end);
                }
            }
            let big = vec![round as u8; 9 << 20];
            let start = log.end();
            put(&log, round, &big);
            want.push((start, Owned::Put(1, round.to_be_bytes().to_vec(), big)));
            let mut batch = BatchEncoder::default();
            batch
                .push(RecordRef::Remove {
                    tree: 300,
                    key: b"gone",
                })
                .unwrap();
            batch
                .push(RecordRef::Put {
                    tree: 2,
                    key: b"k",
                    value: b"",
                })
                .unwrap();
            let start = log.end();
            log.append(batch.record()).unwrap();
            let Owned::Batch(count, ops) = own(batch.record()) else {
                panic!()
            };
            assert_eq!(batch_ops(&ops).count(), 2);
            want.push((start, Owned::Batch(count, ops)));
            log.close().unwrap();
            assert!(matches!(
                log.append(RecordRef::Remove { tree: 1, key: b"" }),
                Err(Error::Closed)
            ));
        }
        let (_, seen) = open(&dir, sync, Lsn(0), true).unwrap();
        assert_eq!(seen, want);
        let from = want[5000].0;
        let (_, seen) = open(&dir, sync, from, true).unwrap();
        assert_eq!(seen, want[5000..]);
    }
}

#[test]
fn concurrent_appends_keep_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), false, Lsn(0), false).unwrap();
    std::thread::scope(|s| {
        for t in 0..4u64 {
            let log = &log;
            s.spawn(move || {
                for i in 0..20_000u64 {
                    put(log, t << 32 | i, &i.to_le_bytes()[..(i % 9) as usize]);
                }
            });
        }
    });
    log.close().unwrap();
    let (_, seen) = open(dir.path(), false, Lsn(0), false).unwrap();
    assert_eq!(seen.len(), 80_000);
    assert!(seen.is_sorted_by(|a, b| a.0 < b.0));
    let mut next = [0u64; 4];
    for (_, r) in seen {
        let Owned::Put(1, key, value) = r else {
            panic!()
        };
        let k = u64::from_be_bytes(key.try_into().unwrap());
        let i = k & 0xFFFF_FFFF;
        assert_eq!(i, next[(k >> 32) as usize]);
        assert_eq!(value, i.to_le_bytes()[..(i % 9) as usize]);
        next[(k >> 32) as usize] += 1;
    }
}
