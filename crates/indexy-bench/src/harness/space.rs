//! Disk space: enough of it before a run, and how much was used.

use super::job::{Job, Phase, TableStep, Work};
use crate::{
    applications,
    workload::{Properties, Workload},
};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Bytes that an engine keeps beside the key and the value of an entry.
const ENTRY_OVERHEAD: u64 = 24;
/// Space that a tree with half-empty pages, or an LSM in the middle of a compaction, takes for each
/// byte of data.
const SPACE_FACTOR: u64 = 3;
/// Bytes of log for each byte of payload.
const LOG_FACTOR: u64 = 3;
/// What must stay free in any case.
const RESERVE: u64 = 512 << 20;

/// Not enough room on the device.
#[derive(Debug, thiserror::Error)]
#[error("{} has {available_mib} MiB free, scenario {scenario} may need {needed_mib} MiB; use \
    --dir on a larger device or a smaller --scale", path.display())]
pub struct SpaceError {
    path: PathBuf,
    scenario: String,
    available_mib: u64,
    needed_mib: u64,
}

/// Bytes of disk that `job` may need, generously; what is beyond 64 bits counts as all of them.
pub fn needed_bytes(job: &Job) -> u64 {
    let entry = |key: u64, value: u64| key + value + ENTRY_OVERHEAD;
    let small = entry(8, job.setup.value_bytes as u64);
    let written: u64 = job
        .phases
        .iter()
        .map(|phase| {
            let bytes = match &phase.work {
                Work::Load { count, .. } => count.saturating_mul(small),
                Work::Mixed {
                    ops, insert_share, ..
                } => ((*ops as f64 * insert_share) as u64).saturating_mul(small),
                Work::YcsbLoad { properties } | Work::YcsbRun { properties } => {
                    ycsb_bytes(properties, &phase.work, entry)
                }
                Work::Tables { step, on } => table_bytes(*step, on, phase),
                _ => 0,
            };
            bytes.min(most_in_time(phase, small))
        })
        .fold(0, u64::saturating_add);
    let logged = if job.setup.durability == crate::contender::Durability::None {
        0
    } else {
        LOG_FACTOR
    };
    written
        .saturating_mul(SPACE_FACTOR + logged)
        .saturating_add(RESERVE)
}

/// What the fastest engine writes until the time cap of `phase`.
fn most_in_time(phase: &Phase, entry: u64) -> u64 {
    const FASTEST_PER_SECOND: f64 = 1e6;
    if phase.most_seconds() > 0.0 {
        ((phase.most_seconds() * FASTEST_PER_SECOND) as u64).saturating_mul(entry)
    } else {
        u64::MAX
    }
}

fn table_bytes(step: TableStep, on: &applications::Config, phase: &Phase) -> u64 {
    // Of TPC-C, an order with ten lines, and the versions of rows that wait for compaction; of the
    // others, a few small rows.
    let (transaction_bytes, fastest_per_second) = match on {
        applications::Config::Tpcc(_) => (1500.0, 20_000.0),
        applications::Config::Tatp(_) => (20.0, 200_000.0),
        applications::Config::Voter(_) => (60.0, 150_000.0),
        applications::Config::Counters(config) => {
            let row = f64::from(config.value_bytes) + 16.0;
            (f64::from(config.at_once) * row, 200_000.0)
        }
    };
    match step {
        TableStep::Load => on.bytes(),
        TableStep::Run => {
            let rate = fastest_per_second * phase.threads as f64;
            (phase.most_seconds() * rate * transaction_bytes) as u64
        }
        TableStep::Check => 0,
    }
}

fn ycsb_bytes(
    properties: &[(String, String)],
    work: &Work,
    entry: impl Fn(u64, u64) -> u64,
) -> u64 {
    const KEY_BYTES: u64 = 24;
    let mut p = Properties::default();
    let known = properties.iter().all(|(n, v)| p.set(n, v).is_ok());
    let Some(workload) = Workload::from_properties(&p).ok().filter(|_| known) else {
        return 0;
    };
    let record = entry(KEY_BYTES, workload.records.average_bytes());
    match work {
        Work::YcsbLoad { .. } => workload.insert_count.saturating_mul(record),
        // Overwritten versions wait for compaction, so every write counts.
        _ => ((workload.operations as f64 * writes(&workload)) as u64).saturating_mul(record),
    }
}

fn writes(workload: &Workload) -> f64 {
    use crate::workload::Operation::{Insert, ReadModifyWrite, Update};
    [Insert, Update, ReadModifyWrite]
        .into_iter()
        .map(|o| workload.share(o))
        .sum()
}

/// Refuses a job that `path` has no room for.
pub fn check_space(job: &Job, path: &Path) -> Result<(), SpaceError> {
    let Some(available) = available_bytes(path) else {
        return Ok(());
    };
    let needed = needed_bytes(job);
    if available >= needed {
        return Ok(());
    }
    Err(SpaceError {
        path: path.to_path_buf(),
        scenario: job.scenario.clone(),
        available_mib: available >> 20,
        needed_mib: needed >> 20,
    })
}

fn available_bytes(path: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(path).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Bytes that the files below `path` take on the device (holes do not count).
pub fn directory_bytes(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let Ok(entries) = fs::read_dir(path) else {
        return 0;
    };
    entries
        .filter_map(Result::ok)
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => directory_bytes(&entry.path()),
            // st_blocks counts units of 512 bytes whatever the block size is.
            Ok(meta) => meta.blocks() * 512,
            // Compaction removed it meanwhile.
            Err(_) => 0,
        })
        .sum()
}
