//! The phases of the demo that read ranges: scans from random places, and the check of everything.

use super::{
    generate::{Fingerprint, RECORD_PREFIX, is_path_value, log_number, record_key, record_number},
    stage::{STRIDE, Stage},
    stop::Stop,
};
use crate::format::escape::escaped;
use anyhow::{bail, ensure};
use indexy_report::size::{self, counted};
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};
use std::time::Duration;

/// Records of one range scan.
const SCAN_RECORDS: usize = 1000;
const SEED: u64 = 60_720_687;

/// Scans from random places, half of the scans downward; checks order and values.
pub fn scan(stage: &Stage<'_>, duration: Duration) -> anyhow::Result<String> {
    let clock = stage.clock(duration);
    let counts = stage.on_threads(&clock, |thread| {
        let mut random = SmallRng::seed_from_u64(SEED + thread);
        let mut scans = 0_u64;
        let mut expected = Vec::new();
        while clock.goes_on() {
            let from = record_key(random.random_range(0..stage.records));
            let downward = random.random();
            scan_once(stage, &from, downward, &mut expected)?;
            scans += 1;
        }
        Ok(scans)
    })?;
    let scans = counts.into_iter().sum();
    Ok(format!(
        "{} of up to {}, half of them downward",
        counted(scans, "scan"),
        counted(SCAN_RECORDS as u64, "record")
    ))
}

fn scan_once(
    stage: &Stage<'_>,
    from: &[u8],
    downward: bool,
    expected: &mut Vec<u8>,
) -> anyhow::Result<()> {
    let mut range = if downward {
        stage.tree.range(RECORD_PREFIX..=from)
    } else {
        stage.tree.range(from..)
    };
    let mut last: Option<indexy::Key> = None;
    for n in 0..SCAN_RECORDS {
        let Some(entry) = (if downward {
            range.next_back()
        } else {
            range.next()
        }) else {
            break;
        };
        let (key, value) = entry?;
        let in_order = match &last {
            None => *key == *from,
            Some(last) => (*key < **last) == downward && *key != **last,
        };
        ensure!(
            in_order,
            "wrong scan: {} is out of order at place {n}",
            escaped(&key)
        );
        let Some(i) = record_number(&key).filter(|i| *i < stage.records) else {
            bail!("wrong scan: {} was never written", escaped(&key));
        };
        stage.check(
            i,
            stage.versions.at_least(i)..=stage.versions.at_most(i),
            &value,
            expected,
        )?;
        last = Some(key);
    }
    ensure!(last.is_some(), "wrong scan: {} is absent", escaped(from));
    stage.live.add_operations(SCAN_RECORDS as u64);
    Ok(())
}

/// Reads every record in order and compares the whole with what was written.
pub fn compare_all(stage: &Stage<'_>) -> anyhow::Result<()> {
    let mut found = Fingerprint::default();
    let mut expected = Vec::new();
    let mut last: Option<indexy::Key> = None;
    for entry in stage.tree.iter() {
        let (key, value) = entry?;
        if last.is_some_and(|last| *last >= *key) {
            bail!("wrong scan: {} is out of order", escaped(&key));
        }
        if let Some(i) = record_number(&key) {
            stage.check(
                i,
                stage.versions.at_least(i)..=stage.versions.at_most(i),
                &value,
                &mut expected,
            )?;
        } else if log_number(&key).is_none() && !is_path_value(&key, &value) {
            bail!(
                "wrong read: the value of {} is not what was written",
                escaped(&key)
            );
        }
        found.add(&key, &value);
        last = Some(key);
        if found.records.is_multiple_of(STRIDE) {
            stage.live.add_operations(STRIDE);
            if stage.interrupt.is_set() {
                bail!(Stop);
            }
        }
    }
    ensure!(
        found == stage.expected,
        "the records are not those written: {} found, {} written, or one of them differs",
        size::count(found.records),
        size::count(stage.expected.records)
    );
    Ok(())
}
