//! The phases of the demo that load and read. Each ends by time, counts what it did and checks every value it reads.

use super::{
    Stop,
    generate::{
        Fingerprint, RECORD_PREFIX, Versions, is_path_value, log_number, path_value, record_key,
        record_number, record_value, records_in, scatter,
    },
    live::Live,
    paths::Walk,
};
use crate::{
    format::escape::escaped,
    interrupt::Interrupt,
    size::{self, counted},
};
use anyhow::{bail, ensure};
use crossbeam_channel::RecvTimeoutError;
use hdrhistogram::Histogram;
use indexy::{Db, Tree, limits::MAX_KEY_BYTES};
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};
use rand_distr::{Distribution as _, Zipf};
use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

/// Operations between two looks at the clock and additions to shared counters.
const STRIDE: u64 = 64;
/// One read in this many is timed.
const TIMED_ONE_IN: u64 = 8;
const LATENCY_DIGITS: u8 = 2;
const MOST_LATENCY_NANOS: u64 = 60_000_000_000;
/// Skew of the zipf reads.
const ZIPF_EXPONENT: f64 = 0.99;
/// Of the operations of the writing thread in the zipf phase, one in this many is an update.
const UPDATE_ONE_IN: u64 = 4;
/// Part of the budget that the records of the working set take.
const WORKING_SET_PART: f64 = 0.4;
/// Records of one range scan.
const SCAN_RECORDS: usize = 1000;
const SEED: u64 = 20_240_229;
const POLL: Duration = Duration::from_millis(50);

/// What the phases share.
pub struct Stage<'a> {
    pub db: Db,
    pub tree: Tree,
    pub live: &'a Live,
    pub interrupt: &'a Interrupt,
    pub budget: u64,
    pub threads: u64,
    /// Generated records: numbers below this are there.
    pub records: u64,
    pub versions: Versions,
    /// All that must be in the tree.
    pub expected: Fingerprint,
}

/// Median, 99 % and 99.9 % in nanoseconds.
pub type Latency = [u64; 3];

/// Whether a phase goes on.
struct Clock<'a> {
    deadline: Instant,
    interrupt: &'a Interrupt,
    failed: AtomicBool,
}

impl Clock<'_> {
    fn goes_on(&self) -> bool {
        Instant::now() < self.deadline && !self.interrupt.is_set() && !self.failed.load(Relaxed)
    }
}

impl Stage<'_> {
    fn clock(&self, duration: Duration) -> Clock<'_> {
        Clock {
            deadline: Instant::now() + duration,
            interrupt: self.interrupt,
            failed: AtomicBool::new(false),
        }
    }

    /// Runs `work` on every thread; the first failure ends all.
    fn on_threads<T: Send>(
        &self,
        clock: &Clock<'_>,
        work: impl Fn(u64) -> anyhow::Result<T> + Sync,
    ) -> anyhow::Result<Vec<T>> {
        let results: Vec<anyhow::Result<T>> = thread::scope(|scope| {
            let work = &work;
            let spawned: Vec<_> = (0..self.threads)
                .map(|n| {
                    scope.spawn(move || {
                        let result = work(n);
                        if result.is_err() {
                            clock.failed.store(true, Relaxed);
                        }
                        result
                    })
                })
                .collect();
            spawned
                .into_iter()
                .map(|thread| {
                    thread
                        .join()
                        .unwrap_or_else(|_| Err(anyhow::anyhow!("a thread of the demo panicked")))
                })
                .collect()
        });
        let results = results.into_iter().collect::<anyhow::Result<Vec<T>>>()?;
        if self.interrupt.is_set() {
            bail!(Stop);
        }
        Ok(results)
    }

    /// Indexes the paths that `walk` finds, until it ends or `duration` is over.
    pub fn index_paths(&mut self, walk: Walk, duration: Duration) -> anyhow::Result<String> {
        let start = Instant::now();
        let mut complete = false;
        let mut bytes = 0;
        while start.elapsed() < duration && !self.interrupt.is_set() {
            let batch = match walk.batches.recv_timeout(POLL) {
                Ok(batch) => batch,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => {
                    complete = true;
                    break;
                }
            };
            self.live.add_operations(batch.len() as u64);
            for found in batch
                .iter()
                .filter(|found| found.path.len() <= MAX_KEY_BYTES)
            {
                let value = path_value(&found.path, found.size, found.mtime);
                // A directory renamed during the walk shows the same path twice.
                if self
                    .tree
                    .compare_and_swap(&found.path, None::<&[u8]>, Some(&value[..]))?
                {
                    self.expected.add(&found.path, &value);
                    let added = (found.path.len() + value.len()) as u64;
                    bytes += added;
                    self.live.add_data(added);
                }
            }
        }
        if self.interrupt.is_set() {
            bail!(Stop);
        }
        let mut text = format!(
            "{} of {}",
            counted(self.expected.records, "path"),
            size::bytes(bytes)
        );
        if !complete {
            text += " (as many as there was time for)";
        }
        match walk.unreadable() {
            0 => {}
            n => text += &format!(", {} unreadable", size::count(n)),
        }
        Ok(text)
    }

    /// Inserts generated records for `duration`; up to twice as long if the data are not yet `at_least` bytes; until they
    /// are `at_most` bytes.
    pub fn fill(
        &mut self,
        duration: Duration,
        at_least: u64,
        at_most: u64,
    ) -> anyhow::Result<String> {
        let start = Instant::now();
        let clock = self.clock(duration * 2);
        let next = AtomicU64::new(0);
        let enough = || {
            let data = self.live.data();
            data >= at_most || (start.elapsed() >= duration && data >= at_least)
        };
        let parts = self.on_threads(&clock, |_| {
            let mut written = Fingerprint::default();
            let mut value = Vec::new();
            while clock.goes_on() && !enough() {
                let first = next.fetch_add(STRIDE, Relaxed);
                let mut bytes = 0;
                for i in first..first + STRIDE {
                    let key = record_key(i);
                    record_value(i, 0, &mut value);
                    self.tree.insert(key, &value)?;
                    written.add(&key, &value);
                    bytes += (key.len() + value.len()) as u64;
                }
                self.live.add_operations(STRIDE);
                self.live.add_data(bytes);
            }
            Ok(written)
        })?;
        parts.into_iter().for_each(|part| self.expected.join(part));
        self.records = next.into_inner();
        self.versions = Versions::new(self.records);
        let data = self.live.data();
        Ok(format!(
            "{}, {}; the data are {:.1} x the budget",
            counted(self.records, "record"),
            size::rate(self.records, start.elapsed()),
            data as f64 / self.budget as f64
        ))
    }

    /// Reads a working set that fits the budget and lies scattered over all keys.
    pub fn read_working_set(&self, duration: Duration) -> anyhow::Result<(Latency, String)> {
        let fits = records_in((self.budget as f64 * WORKING_SET_PART) as u64);
        let members = fits.min(self.records / 4).max(1);
        let clock = self.clock(duration);
        let latency = self.on_threads(&clock, |thread| {
            let mut random = SmallRng::seed_from_u64(SEED + thread);
            self.read_while(&clock, |_| {
                Ok(scatter(random.random_range(0..members)) % self.records)
            })
        })?;
        let text = format!(
            "{} of {}, each checked",
            counted(members, "record"),
            size::count(self.records)
        );
        Ok((summary(latency), text))
    }

    /// Reads by a zipf distribution over all generated records, while one thread updates some of them.
    pub fn read_zipf(&mut self, duration: Duration) -> anyhow::Result<(Latency, String)> {
        let clock = self.clock(duration);
        let zipf = Zipf::new(self.records as f64, ZIPF_EXPONENT)?;
        let parts = self.on_threads(&clock, |thread| {
            let mut random = SmallRng::seed_from_u64(SEED ^ thread);
            let mut updated = Fingerprint::default();
            let (mut old, mut new) = (Vec::new(), Vec::new());
            let latency = self.read_while(&clock, |n| {
                if thread == 0 && n % UPDATE_ONE_IN == 0 {
                    self.update_one(&mut updated, &mut old, &mut new)?;
                }
                let rank = zipf.sample(&mut random) as u64;
                Ok(scatter(rank) % self.records)
            })?;
            Ok((latency, updated))
        })?;
        let mut latencies = Vec::new();
        for (latency, updated) in parts {
            latencies.push(latency);
            self.expected.join(updated);
        }
        let text = format!(
            "{} beside them, each read checked",
            counted(self.versions.updates(), "update")
        );
        Ok((summary(latencies), text))
    }

    fn update_one(
        &self,
        updated: &mut Fingerprint,
        old: &mut Vec<u8>,
        new: &mut Vec<u8>,
    ) -> anyhow::Result<()> {
        let Some((i, version)) = self.versions.start_update() else {
            return Ok(());
        };
        let key = record_key(i);
        record_value(i, version, old);
        record_value(i, version + 1, new);
        self.tree.insert(key, &*new)?;
        self.versions.finish_update();
        updated.replace(&key, old, new);
        Ok(())
    }

    /// Reads the records that `choose` names, checks them, and times some.
    fn read_while(
        &self,
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
                let oldest = self.versions.at_least(i);
                let start = n.is_multiple_of(TIMED_ONE_IN).then(Instant::now);
                let value = self.tree.get(key)?;
                if let Some(start) = start {
                    latency.saturating_record(start.elapsed().as_nanos() as u64);
                }
                let Some(value) = value else {
                    bail!("wrong read: {} is absent", escaped(&key));
                };
                let newest = self.versions.at_most(i);
                self.check(i, oldest..=newest, &value, &mut expected)?;
            }
            self.live.add_operations(STRIDE);
        }
        Ok(latency)
    }

    fn check(
        &self,
        i: u64,
        versions: std::ops::RangeInclusive<u64>,
        value: &[u8],
        expected: &mut Vec<u8>,
    ) -> anyhow::Result<()> {
        for version in versions.clone() {
            record_value(i, version, expected);
            if value == *expected {
                return Ok(());
            }
        }
        let found = value
            .get(..8)
            .and_then(|v| v.try_into().ok())
            .map(u64::from_le_bytes);
        bail!(
            "wrong read: {} has version {found:?} (or none), expected {versions:?}",
            escaped(&record_key(i))
        )
    }

    /// Scans from random places, half of the scans downward; checks order and values.
    pub fn scan(&self, duration: Duration) -> anyhow::Result<String> {
        let clock = self.clock(duration);
        let counts = self.on_threads(&clock, |thread| {
            let mut random = SmallRng::seed_from_u64(SEED * 3 + thread);
            let mut scans = 0_u64;
            let mut expected = Vec::new();
            while clock.goes_on() {
                let from = record_key(random.random_range(0..self.records));
                let downward = random.random();
                self.scan_once(&from, downward, &mut expected)?;
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

    fn scan_once(&self, from: &[u8], downward: bool, expected: &mut Vec<u8>) -> anyhow::Result<()> {
        let mut range = if downward {
            self.tree.range(RECORD_PREFIX..=from)
        } else {
            self.tree.range(from..)
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
            let Some(i) = record_number(&key).filter(|i| *i < self.records) else {
                bail!("wrong scan: {} was never written", escaped(&key));
            };
            self.check(
                i,
                self.versions.at_least(i)..=self.versions.at_most(i),
                &value,
                expected,
            )?;
            last = Some(key);
        }
        ensure!(last.is_some(), "wrong scan: {} is absent", escaped(from));
        self.live.add_operations(SCAN_RECORDS as u64);
        Ok(())
    }

    /// Reads every record in order and compares the whole with what was written.
    pub fn compare_all(&self) -> anyhow::Result<()> {
        let mut found = Fingerprint::default();
        let mut expected = Vec::new();
        let mut last: Option<indexy::Key> = None;
        for entry in self.tree.iter() {
            let (key, value) = entry?;
            if last.is_some_and(|last| *last >= *key) {
                bail!("wrong scan: {} is out of order", escaped(&key));
            }
            if let Some(i) = record_number(&key) {
                self.check(
                    i,
                    self.versions.at_least(i)..=self.versions.at_most(i),
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
                self.live.add_operations(STRIDE);
                if self.interrupt.is_set() {
                    bail!(Stop);
                }
            }
        }
        ensure!(
            found == self.expected,
            "the records are not those written: {} found, {} written, or one of them differs",
            size::count(found.records),
            size::count(self.expected.records)
        );
        Ok(())
    }
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
