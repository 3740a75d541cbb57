//! The phases of the demo that write: the paths of the machine, and generated records.

use super::{
    generate::{Fingerprint, Versions, path_value, record_key, record_value},
    paths::Walk,
    stage::{STRIDE, Stage},
    stop::Stop,
};
use anyhow::bail;
use crossbeam_channel::RecvTimeoutError;
use indexy::limits::MAX_KEY_BYTES;
use indexy_report::size::{self, counted};
use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};

const POLL: Duration = Duration::from_millis(50);

/// Indexes the paths that `walk` finds, until it ends, `duration` is over or they have `at_most`
/// bytes.
pub fn index_paths(
    stage: &mut Stage<'_>,
    walk: Walk,
    duration: Duration,
    at_most: u64,
) -> anyhow::Result<String> {
    let start = Instant::now();
    let mut complete = false;
    let mut bytes = 0;
    while start.elapsed() < duration && bytes < at_most && !stage.interrupt.is_set() {
        let batch = match walk.batches.recv_timeout(POLL) {
            Ok(batch) => batch,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => {
                complete = true;
                break;
            }
        };
        stage.live.add_operations(batch.len() as u64);
        for found in batch
            .iter()
            .filter(|found| found.path.len() <= MAX_KEY_BYTES)
        {
            let value = path_value(&found.path, found.size, found.mtime);
            // A directory renamed during the walk shows the same path twice.
            if stage
                .tree
                .compare_and_swap(&found.path, None::<&[u8]>, Some(&value[..]))?
            {
                stage.expected.add(&found.path, &value);
                let added = (found.path.len() + value.len()) as u64;
                bytes += added;
                stage.live.add_data(added);
            }
        }
    }
    if stage.interrupt.is_set() {
        bail!(Stop);
    }
    let mut text = format!(
        "{} of {}",
        counted(stage.expected.records, "path"),
        size::bytes(bytes)
    );
    match complete {
        true => {}
        false if bytes < at_most => text += " (as many as there was time for)",
        false => text += " (as many as there was room for)",
    }
    match walk.unreadable() {
        0 => {}
        n => text += &format!(", {} unreadable", size::count(n)),
    }
    Ok(text)
}

/// Inserts generated records for `duration`; up to twice as long if the data are not yet `at_least`
/// bytes; until they are `at_most` bytes.
pub fn fill(
    stage: &mut Stage<'_>,
    duration: Duration,
    at_least: u64,
    at_most: u64,
) -> anyhow::Result<String> {
    let start = Instant::now();
    let clock = stage.clock(duration * 2);
    let next = AtomicU64::new(0);
    let enough = || {
        let data = stage.live.data();
        data >= at_most || (start.elapsed() >= duration && data >= at_least)
    };
    let parts = stage.on_threads(&clock, |_| {
        let mut written = Fingerprint::default();
        let mut value = Vec::new();
        while clock.goes_on() && !enough() {
            let first = next.fetch_add(STRIDE, Relaxed);
            let mut bytes = 0;
            for i in first..first + STRIDE {
                let key = record_key(i);
                record_value(i, 0, &mut value);
                stage.tree.insert(key, &value)?;
                written.add(&key, &value);
                bytes += (key.len() + value.len()) as u64;
            }
            stage.live.add_operations(STRIDE);
            stage.live.add_data(bytes);
        }
        Ok(written)
    })?;
    parts.into_iter().for_each(|part| stage.expected.join(part));
    stage.records = next.into_inner();
    stage.versions = Versions::new(stage.records);
    let data = stage.live.data();
    Ok(format!(
        "{}, {}; the data are {:.1} x the budget",
        counted(stage.records, "record"),
        size::rate(stage.records, start.elapsed()),
        data as f64 / stage.budget as f64
    ))
}
