//! Replay of the log, within the budget: the framework's threads run beside it (I7).

#![forbid(unsafe_code)]

use super::loads::Loads;
use crate::{
    db::{directory::manifest::Manifest, handle::Core, options::Durability},
    error::{Error, Result},
    framework::{
        memory::Admitted,
        regions::key_range::{EVERYTHING, KeyRange, united},
    },
    wal::{Log, LogDurability, LogOptions, Lsn, RecordRef, batch_ops},
};
use std::{collections::BTreeMap, time::Duration};

/// Part of the budget that one of the log's buffers takes, and its bounds.
const LOG_BUFFER_DIVISOR: usize = 128;
const LOG_BUFFER_BYTES: (usize, usize) = (16 << 10, 1 << 20);
/// A segment is this part of the log's limit, and no more than so many bytes.
const SEGMENT_DIVISOR: u64 = 8;
const MAX_SEGMENT_BYTES: u64 = 64 << 20;

/// Ranges of a batch that go from Y together take so much, and each so much beside its keys.
const MOST_REMOVED_BYTES: usize = 256 << 10;
const REMOVED_BYTES: usize = 64;

/// Replays the log into X and leaves it ready for appends; returns the number of records. Without a
/// log of its own a database may still have one from earlier, which is replayed and then flushed
/// away.
pub(super) fn replay(core: &Core, manifest: &Manifest) -> Result<u64> {
    let (durability, logged) = match core.options.durability {
        Durability::None => (LogDurability::Sync, false),
        Durability::Sync => (LogDurability::Sync, true),
        Durability::Buffered { interval_ms } => (
            LogDurability::Buffered {
                interval: Duration::from_millis(interval_ms),
            },
            true,
        ),
    };
    let (min_buffer, max_buffer) = LOG_BUFFER_BYTES;
    let log_options = LogOptions {
        durability,
        segment_bytes: (core.options.log_limit() / SEGMENT_DIVISOR)
            .min(MAX_SEGMENT_BYTES)
            .max(core.options.min_segment_bytes),
        buffer_bytes: (core.options.memory_budget_bytes / LOG_BUFFER_DIVISOR)
            .clamp(min_buffer, max_buffer),
        database_id: manifest.database_id,
        keep_bytes: match logged {
            true => core.options.change_history_bytes,
            false => 0,
        },
    };
    let (dir, from) = (core.log_dir(), Lsn(manifest.log_start));
    let id = manifest.database_id;
    let loads = Loads::new(Log::loads(&*core.storage, &dir, id, from, &core.budget)?);
    let mut replayed = 0u64;
    core.all_joined()
        .iter()
        .for_each(|tree| tree.begin_replay());
    let log = Log::open(
        core.storage.clone(),
        &dir,
        log_options,
        from,
        Lsn(manifest.log_durable),
        core.options.read_only,
        core.shared.poison.clone(),
        core.budget.clone(),
        &mut |lsn, record| {
            replayed += 1;
            // I6: everything below is applied.
            core.shared.log.replaying(lsn);
            apply_record(core, &loads, lsn, record)
        },
    )?;
    if core.options.read_only {
        let bytes = (log.bytes_on_disk(), log.kept_bytes());
        core.log_found.get_or_init(|| bytes);
        return Ok(replayed);
    }
    core.shared.log.replayed(log.end());
    if logged {
        // The cell was empty: this is the only place that fills it.
        core.shared.log.set(log);
    } else if replayed > 0 {
        write_away(core, &log)?;
    }
    core.shared.log.begin_service();
    for tree in core.all_joined() {
        tree.end_replay()?;
    }
    Ok(replayed)
}

/// Takes everything that the log had to Y: this time there is no log that keeps it.
fn write_away(core: &Core, log: &Log) -> Result<()> {
    // A crash on the way would leave operands in the log and what they made in Y.
    if core
        .all_joined()
        .iter()
        .any(|tree| tree.has_operand(EVERYTHING))
    {
        return Err(Error::Unsupported {
            what:
                "Durability::None while merges wait in the log: open it once with a log, and flush"
                    .into(),
        });
    }
    for tree in core.all_joined() {
        tree.flush()?;
        tree.writer.make_durable()?;
    }
    let mut manifest = core.manifest.lock();
    manifest.log_start = log.end().0;
    manifest.log_durable = manifest.log_start;
    manifest.write(&*core.storage, &core.path)?;
    log.truncate_below(log.end()).map(|_| ())
}

fn apply_record(core: &Core, loads: &Loads, lsn: Lsn, record: RecordRef<'_>) -> Result<()> {
    match record {
        RecordRef::Put { tree, key, value } => {
            if !loads.hides(lsn, tree, key) {
                apply(core, tree, key, Some(value))?;
            }
        }
        RecordRef::Remove { tree, key } => {
            if !loads.hides(lsn, tree, key) {
                apply(core, tree, key, None)?;
            }
        }
        RecordRef::RemoveRange { tree, from, to } => match loads.shown(lsn, tree, from, to) {
            None => remove_range(core, tree, from, to)?,
            Some(parts) => {
                for (from, to) in parts {
                    remove_range(core, tree, &from, to.as_deref())?;
                }
            }
        },
        RecordRef::Merge { tree, key, operand } => {
            if !loads.hides(lsn, tree, key) {
                core.shared.log.replays_operands();
                merge(core, tree, key, operand)?;
            }
        }
        RecordRef::Resolved { tree, key, value } => {
            if !loads.hides(lsn, tree, key) {
                resolve(core, tree, key, value)?;
            }
        }
        // What Y has of it is what there is.
        RecordRef::Load { .. } => {}
        RecordRef::Batch { ops, .. } => {
            remove_from_y(core, loads, lsn, ops)?;
            for op in batch_ops(ops) {
                match op {
                    Ok(op) => apply_record(core, loads, lsn, op)?,
                    Err(e) => {
                        return Err(Error::corrupt(
                            core.log_dir(),
                            0,
                            format!("operation of a batch: {e:?}"),
                        ));
                    }
                }
            }
        }
    }
    Ok(())
}

/// Where a batch removes several ranges of a tree, these go from its Y some at a time.
fn remove_from_y(core: &Core, loads: &Loads, lsn: Lsn, ops: &[u8]) -> Result<()> {
    if core.options.read_only {
        return Ok(());
    }
    let mut removed: BTreeMap<u32, Removed> = BTreeMap::new();
    for op in batch_ops(ops).map_while(std::result::Result::ok) {
        let RecordRef::RemoveRange { tree, from, to } = op else {
            continue;
        };
        let removed = removed.entry(tree).or_default();
        match loads.shown(lsn, tree, from, to) {
            None => removed.add(from.to_vec(), to.map(<[u8]>::to_vec)),
            // What a load has replaced meanwhile stays.
            Some(parts) => parts
                .into_iter()
                .for_each(|(from, to)| removed.add(from, to)),
        }
        if removed.bytes > MOST_REMOVED_BYTES {
            removed.take_from_y(core, tree)?;
        }
    }
    let mut removed = removed.into_iter();
    removed.try_for_each(|(tree, mut removed)| removed.take_from_y(core, tree))
}

/// Ranges that wait to go from Y together.
#[derive(Default)]
struct Removed {
    ranges: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    bytes: usize,
}

impl Removed {
    fn add(&mut self, from: Vec<u8>, to: Option<Vec<u8>>) {
        self.bytes += REMOVED_BYTES + from.len() + to.as_ref().map_or(0, Vec::len);
        self.ranges.push((from, to));
    }

    fn take_from_y(&mut self, core: &Core, tree: u32) -> Result<()> {
        self.bytes = 0;
        let ranges = std::mem::take(&mut self.ranges);
        let tree = core.trees.read().get(&tree).map(|t| t.joined.clone());
        // One goes when its operation comes.
        let Some(tree) = tree.filter(|_| ranges.len() > 1) else {
            return Ok(());
        };
        let ranges = united(ranges);
        let ranges = ranges.iter().map(|(from, to)| (&from[..], to.as_deref()));
        tree.replay_ranges_of_y(&ranges.collect::<Vec<KeyRange<'_>>>())
    }
}

fn apply(core: &Core, tree: u32, key: &[u8], value: Option<&[u8]>) -> Result<()> {
    // Tree numbers are never reused: an unknown one was dropped.
    let Some(tree) = core.trees.read().get(&tree).map(|t| t.joined.clone()) else {
        return Ok(());
    };
    let bytes = key.len() + value.map_or(0, <[u8]>::len);
    if core.options.read_only {
        admit_read_only(core, bytes)?;
        tree.apply(key, value);
        return Ok(());
    }
    let _admitted = admit(core, bytes)?;
    tree.replay(key, value)
}

/// What X does not hold asks for nothing: its record alone may be more than the budget, and is held
/// while this would wait.
fn admit(core: &Core, bytes: usize) -> Result<Option<Admitted<'_>>> {
    (bytes <= core.budget.limit() / 8)
        .then(|| core.shared.room.admit(bytes))
        .transpose()
}

fn merge(core: &Core, tree: u32, key: &[u8], operand: &[u8]) -> Result<()> {
    let Some(tree) = core.trees.read().get(&tree).cloned() else {
        return Ok(());
    };
    let bytes = key.len() + operand.len();
    let _admitted = match core.options.read_only {
        true => {
            admit_read_only(core, bytes)?;
            None
        }
        false => admit(core, bytes)?,
    };
    let replayed = tree.joined.replay_merge(key, operand);
    replayed.map_err(|error| match (error, &tree.entry.merge) {
        (Error::MergeOperatorMissing { .. }, Some(merge)) => Error::MergeOperatorMissing {
            tree: format!("{:?} ({merge})", tree.entry.name),
        },
        (Error::MergeOperatorMissing { .. } | Error::MergeRefused { .. }, _) => {
            Error::corrupt(core.log_dir(), 0, "an operand that the tree cannot have")
        }
        (error, _) => error,
    })
}

fn resolve(core: &Core, tree: u32, key: &[u8], value: Option<&[u8]>) -> Result<()> {
    if value.is_some() {
        return apply(core, tree, key, value);
    }
    if let Some(tree) = core.trees.read().get(&tree).map(|t| t.joined.clone()) {
        tree.replay_unmerged(key);
    }
    Ok(())
}

fn remove_range(core: &Core, tree: u32, from: &[u8], to: Option<&[u8]>) -> Result<()> {
    let Some(tree) = core.trees.read().get(&tree).map(|t| t.joined.clone()) else {
        return Ok(());
    };
    match core.options.read_only {
        true => tree.hide_range(from, to, |bytes| admit_read_only(core, bytes)),
        false => tree.replay_range(from, to),
    }
}

/// Nothing can be written away: what the log holds has to fit.
fn admit_read_only(core: &Core, bytes: usize) -> Result<()> {
    let minimum_bytes = core.budget.used() + bytes;
    if minimum_bytes > core.budget.limit() {
        return Err(Error::BudgetTooSmall {
            budget_bytes: core.budget.limit(),
            minimum_bytes,
        });
    }
    Ok(())
}
