//! The phases of the demo that read single keys, and check every value.

use super::{
    generate::{Fingerprint, record_key, record_value, records_in, scatter},
    stage::{Clock, STRIDE, Stage},
};
use crate::format::escape::escaped;
use anyhow::bail;
use hdrhistogram::Histogram;
use indexy_report::size::{self, counted};
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};
use rand_distr::{Distribution as _, Zipf};
use std::time::{Duration, Instant};

/// One read in this many is timed.
const TIMED_ONE_IN: u64 = 8;
const LATENCY_DIGITS: u8 = 2;
const MOST_LATENCY_NANOS: u64 = 60_000_000_000;
/// Skew of the zipf reads.
const ZIPF_EXPONENT: f64 = 0.99;
/// Of the operations of the writing thread in the zipf phase, one in this many is an update.
const UPDATE_ONE_IN: u64 = 4;
/// Share of the budget that the records of the working set take.
const WORKING_SET_SHARE: f64 = 0.4;
/// At most this part of all records is the working set.
const WORKING_SET_DIVISOR: u64 = 4;
const SEED: u64 = 20_240_229;

/// Median, 99 % and 99.9 % in nanoseconds.
pub type Latency = [u64; 3];

/// Reads a working set that fits the budget and lies scattered over all keys.
pub fn read_working_set(
    stage: &Stage<'_>,
    duration: Duration,
) -> anyhow::Result<(Latency, String)> {
    let fits = records_in((stage.budget as f64 * WORKING_SET_SHARE) as u64);
    let members = fits.min(stage.records / WORKING_SET_DIVISOR).max(1);
    let clock = stage.clock(duration);
    let latency = stage.on_threads(&clock, |thread| {
        let mut random = SmallRng::seed_from_u64(SEED + thread);
        read_while(stage, &clock, |_| {
            Ok(scatter(random.random_range(0..members)) % stage.records)
        })
    })?;
    let text = format!(
        "{} of {}, each checked",
        counted(members, "record"),
        size::count(stage.records)
    );
    Ok((summary(latency), text))
}

/// Reads by a zipf distribution over all generated records, while one thread updates some of them.
pub fn read_zipf(stage: &mut Stage<'_>, duration: Duration) -> anyhow::Result<(Latency, String)> {
    let clock = stage.clock(duration);
    let zipf = Zipf::new(stage.records as f64, ZIPF_EXPONENT)?;
    let parts = stage.on_threads(&clock, |thread| {
        let mut random = SmallRng::seed_from_u64(SEED ^ thread);
        let mut updated = Fingerprint::default();
        let (mut old, mut new) = (Vec::new(), Vec::new());
        let latency = read_while(stage, &clock, |n| {
            if thread == 0 && n % UPDATE_ONE_IN == 0 {
                update_one(stage, &mut updated, &mut old, &mut new)?;
            }
            let rank = zipf.sample(&mut random) as u64;
            Ok(scatter(rank) % stage.records)
        })?;
        Ok((latency, updated))
    })?;
    let mut latencies = Vec::new();
    for (latency, updated) in parts {
        latencies.push(latency);
        stage.expected.join(updated);
    }
    let text = format!(
        "{} beside them, each read checked",
        counted(stage.versions.updates(), "update")
    );
    Ok((summary(latencies), text))
}

fn update_one(
    stage: &Stage<'_>,
    updated: &mut Fingerprint,
    old: &mut Vec<u8>,
    new: &mut Vec<u8>,
) -> anyhow::Result<()> {
    let Some((i, version)) = stage.versions.start_update() else {
        return Ok(());
    };
    let key = record_key(i);
    record_value(i, version, old);
    record_value(i, version + 1, new);
    stage.tree.insert(key, &*new)?;
    stage.versions.finish_update();
    updated.replace(&key, old, new);
    Ok(())
}

/// Reads the records that `choose` names, checks them, and times some.
fn read_while(
    stage: &Stage<'_>,
    clock: &Clock<'_>,
    mut choose: impl FnMut(u64) -> anyhow::Result<u64>,
) -> anyhow::Result<Histogram<u64>> {
    let mut latency = Histogram::new_with_bounds(1, MOST_LATENCY_NANOS, LATENCY_DIGITS)?;
    let mut expected = Vec::new();
    let mut n = 0_u64;
    while clock.goes_on() {
        for _ in 0..STRIDE {
            n += 1;
            let i = choose(n)?;
            let key = record_key(i);
            let oldest = stage.versions.at_least(i);
            let start = n.is_multiple_of(TIMED_ONE_IN).then(Instant::now);
            let value = stage.tree.get(key)?;
            if let Some(start) = start {
                latency.saturating_record(start.elapsed().as_nanos() as u64);
            }
            let Some(value) = value else {
                bail!("wrong read: {} is absent", escaped(&key));
            };
            let newest = stage.versions.at_most(i);
            stage.check(i, oldest..=newest, &value, &mut expected)?;
        }
        stage.live.add_operations(STRIDE);
    }
    Ok(latency)
}

fn summary(parts: Vec<Histogram<u64>>) -> Latency {
    let mut parts = parts.into_iter();
    let Some(mut all) = parts.next() else {
        return [0; 3];
    };
    for part in parts {
        // Fails only for values out of range, and all parts have the same.
        let _ = all.add(part);
    }
    [0.5, 0.99, 0.999].map(|q| all.value_at_quantile(q))
}
