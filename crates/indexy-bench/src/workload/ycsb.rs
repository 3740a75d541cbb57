//! YCSB's core workload: which operation comes next, on which record, under which key.
//!
//! Source: the YCSB project's CoreWorkload, by its documented behaviour. Differs: records are one
//! value (`record.rs`); `deleteproportion` is ours, for the thesis' workload X; an update of one
//! field of several is a read and a write here, because a key-value index has no fields.

use super::{
    exponential::Exponential,
    hotspot::Hotspot,
    latest::{Acknowledged, Latest},
    operation::{Distribution, OPERATIONS, Operation, YcsbKeys},
    properties::{Properties, PropertyError},
    record::Records,
    rng::Rng,
    scrambled::Scrambled,
    zipf::Zipf,
};
use rand::Rng as _;
use std::sync::atomic::{AtomicU64, Ordering};

/// A core workload, as its properties describe it.
#[derive(Debug, Clone)]
pub struct Workload {
    /// First record number.
    pub insert_start: u64,
    /// Records that the load inserts.
    pub insert_count: u64,
    /// Operations of the run.
    pub operations: u64,
    /// The records.
    pub records: Records,
    /// The keys.
    pub keys: YcsbKeys,
    /// Whether a read looks at all fields.
    pub read_all: bool,
    /// Whether an update writes all fields.
    pub write_all: bool,
    /// Threads, if the properties say.
    pub threads: Option<usize>,
    /// Operations per second of an open loop; 0 for a closed one.
    pub target: f64,
    /// Seconds after which the run ends; 0 for none.
    pub max_seconds: f64,
    /// Cumulative shares, ending at 1.
    shares: [f64; OPERATIONS.len()],
    distribution: Distribution,
    exponent: f64,
    hotspot: (f64, f64),
    exponential: (f64, f64),
    scan_lengths: (u64, u64),
    zipfian_scans: bool,
}

impl Workload {
    /// Reads and validates the properties.
    pub fn from_properties(p: &Properties) -> Result<Self, PropertyError> {
        let records: u64 = p.get("recordcount")?;
        let insert_start: u64 = p.get("insertstart")?;
        let insert_count = p
            .get_if_set("insertcount")?
            .unwrap_or(records.saturating_sub(insert_start));
        if insert_count == 0 {
            return Err(p.invalid("recordcount", "more than insertstart"));
        }
        let end = insert_start.checked_add(insert_count);
        if end.is_none_or(|end| end > records) {
            return Err(p.invalid(
                "insertcount",
                "insertstart + insertcount within recordcount",
            ));
        }
        let (shortest, longest): (u64, u64) = (p.get("minscanlength")?, p.get("maxscanlength")?);
        if shortest == 0 || shortest > longest {
            return Err(p.invalid("minscanlength", "1 to maxscanlength"));
        }
        let exponent: f64 = p.get("zipfianconstant")?;
        if !(0.0..=10.0).contains(&exponent) {
            return Err(p.invalid("zipfianconstant", "0 to 10"));
        }
        Ok(Self {
            insert_start,
            insert_count,
            operations: p.get("operationcount")?,
            records: Records::from_properties(p)?,
            keys: keys(p)?,
            read_all: p.get("readallfields")?,
            write_all: p.get("writeallfields")?,
            threads: threads(p)?,
            target: at_least_zero(p, "target")?,
            max_seconds: at_least_zero(p, "maxexecutiontime")?,
            shares: shares(p)?,
            distribution: distribution(p)?,
            exponent,
            hotspot: (
                fraction(p, "hotspotdatafraction")?,
                fraction(p, "hotspotopnfraction")?,
            ),
            exponential: (exponential_percentile(p)?, fraction(p, "exponential.frac")?),
            scan_lengths: (shortest, longest),
            zipfian_scans: zipfian_scans(p)?,
        })
    }

    /// Share of `operation`, of 0..=1.
    pub fn share(&self, operation: Operation) -> f64 {
        let at = OPERATIONS
            .iter()
            .position(|(o, _)| *o == operation)
            .unwrap_or_default();
        self.shares[at] - if at == 0 { 0.0 } else { self.shares[at - 1] }
    }

    /// More records than a run is likely to add: twice what its share of inserts comes to.
    pub fn most_inserts(&self) -> u64 {
        (self.operations as f64 * self.share(Operation::Insert) * 2.0) as u64
    }

    /// True if an update writes all of a record.
    pub fn writes_whole_records(&self) -> bool {
        self.write_all || self.records.fields() == 1
    }

    /// The client of one thread.
    pub fn client(&self) -> Client<'_> {
        let draw = match self.distribution {
            Distribution::Uniform => Draw::Uniform,
            Distribution::Zipfian => Draw::Zipfian(Scrambled::new(
                self.insert_count.saturating_add(self.most_inserts()),
                self.exponent,
            )),
            Distribution::Latest => Draw::Latest(Latest::new(self.insert_count, self.exponent)),
            Distribution::Hotspot => Draw::Hotspot(Hotspot::new(
                self.insert_count,
                self.hotspot.0,
                self.hotspot.1,
            )),
            Distribution::Exponential => {
                let range = self.exponential.1 * self.insert_count as f64;
                Draw::Exponential(Exponential::new(self.exponential.0, range))
            }
            Distribution::Sequential => Draw::Sequential,
        };
        let span = self.scan_lengths.1 - self.scan_lengths.0 + 1;
        Client {
            workload: self,
            draw,
            scan_zipf: Zipf::new(span, 0.99),
        }
    }
}

/// What the threads of a run share.
#[derive(Debug)]
pub struct Shared {
    /// Record numbers handed out and acknowledged.
    pub inserted: Acknowledged,
    sequence: AtomicU64,
}

impl Shared {
    /// State when all records below `limit` are inserted.
    pub fn new(limit: u64) -> Self {
        Self {
            inserted: Acknowledged::new(limit),
            sequence: AtomicU64::new(0),
        }
    }
}

#[derive(Debug)]
enum Draw {
    Uniform,
    Zipfian(Scrambled),
    Latest(Latest),
    Hotspot(Hotspot),
    Exponential(Exponential),
    Sequential,
}

/// Draws operations and records for one thread.
#[derive(Debug)]
pub struct Client<'a> {
    workload: &'a Workload,
    draw: Draw,
    scan_zipf: Zipf,
}

impl Client<'_> {
    /// The next operation.
    #[inline]
    pub fn operation(&self, rng: &mut Rng) -> Operation {
        let u: f64 = rng.random();
        let at = self
            .workload
            .shares
            .iter()
            .position(|&s| u < s)
            .unwrap_or(0);
        OPERATIONS[at].0
    }

    /// The record that the next operation is about; it was inserted, and acknowledged, before.
    #[inline]
    pub fn record(&mut self, shared: &Shared, rng: &mut Rng) -> u64 {
        let start = self.workload.insert_start;
        let count = self.workload.insert_count;
        let limit = shared.inserted.limit();
        loop {
            let number = match &mut self.draw {
                Draw::Uniform => start + rng.random_range(0..count),
                Draw::Zipfian(scrambled) => start + scrambled.sample(rng),
                Draw::Latest(latest) => latest.sample(start, limit, rng),
                Draw::Hotspot(hotspot) => start + hotspot.sample(rng),
                Draw::Exponential(exponential) => {
                    match (limit - 1).checked_sub(exponential.sample(rng)) {
                        Some(number) if number >= start => number,
                        _ => continue,
                    }
                }
                Draw::Sequential => start + shared.sequence.fetch_add(1, Ordering::Relaxed) % count,
            };
            if number < limit {
                return number;
            }
        }
    }

    /// How many records the next scan reads.
    #[inline]
    pub fn scan_length(&self, rng: &mut Rng) -> usize {
        let (shortest, longest) = self.workload.scan_lengths;
        let length = if self.workload.zipfian_scans {
            shortest + self.scan_zipf.sample(rng)
        } else {
            rng.random_range(shortest..=longest)
        };
        length as usize
    }
}

fn shares(p: &Properties) -> Result<[f64; OPERATIONS.len()], PropertyError> {
    let mut cumulative = [0.0; OPERATIONS.len()];
    let mut sum = 0.0;
    for (slot, (_, name)) in cumulative.iter_mut().zip(OPERATIONS) {
        sum += at_least_zero(p, name)?;
        *slot = sum;
    }
    if sum <= 0.0 {
        return Err(p.invalid("readproportion", "at least one proportion above 0"));
    }
    Ok(cumulative.map(|s| s / sum))
}

fn keys(p: &Properties) -> Result<YcsbKeys, PropertyError> {
    let ordered = match p.text("insertorder") {
        Some("hashed") => false,
        Some("ordered") => true,
        _ => return Err(p.invalid("insertorder", "hashed or ordered")),
    };
    let eight_bytes = match p.text("keyformat") {
        Some("ycsb") => false,
        Some("u64") => true,
        _ => return Err(p.invalid("keyformat", "ycsb or u64")),
    };
    const MAX_DIGITS: usize = 1000;
    let digits: usize = p.get("zeropadding")?;
    if digits > MAX_DIGITS {
        return Err(p.invalid("zeropadding", "at most 1000"));
    }
    Ok(YcsbKeys {
        ordered,
        digits,
        eight_bytes,
    })
}

fn distribution(p: &Properties) -> Result<Distribution, PropertyError> {
    Ok(match p.text("requestdistribution") {
        Some("uniform") => Distribution::Uniform,
        Some("zipfian") => Distribution::Zipfian,
        Some("latest") => Distribution::Latest,
        Some("hotspot") => Distribution::Hotspot,
        Some("exponential") => Distribution::Exponential,
        Some("sequential") => Distribution::Sequential,
        _ => {
            let valid = "one of uniform, zipfian, latest, hotspot, exponential, sequential";
            return Err(p.invalid("requestdistribution", valid));
        }
    })
}

fn zipfian_scans(p: &Properties) -> Result<bool, PropertyError> {
    match p.text("scanlengthdistribution") {
        Some("uniform") => Ok(false),
        Some("zipfian") => Ok(true),
        _ => Err(p.invalid("scanlengthdistribution", "uniform or zipfian")),
    }
}

fn threads(p: &Properties) -> Result<Option<usize>, PropertyError> {
    const MAX_THREADS: usize = 1024;
    let threads = p.get_if_set("threadcount")?;
    match threads {
        Some(n) if n == 0 || n > MAX_THREADS => Err(p.invalid("threadcount", "1 to 1024")),
        _ => Ok(threads),
    }
}

fn at_least_zero(p: &Properties, name: &str) -> Result<f64, PropertyError> {
    let value: f64 = p.get(name)?;
    if value.is_finite() && value >= 0.0 {
        Ok(value)
    } else {
        Err(p.invalid(name, "at least 0"))
    }
}

fn fraction(p: &Properties, name: &str) -> Result<f64, PropertyError> {
    let value: f64 = p.get(name)?;
    if (0.0..=1.0).contains(&value) {
        Ok(value)
    } else {
        Err(p.invalid(name, "0 to 1"))
    }
}

fn exponential_percentile(p: &Properties) -> Result<f64, PropertyError> {
    let value: f64 = p.get("exponential.percentile")?;
    if value > 0.0 && value < 100.0 {
        Ok(value)
    } else {
        Err(p.invalid("exponential.percentile", "between 0 and 100"))
    }
}

#[cfg(test)]
#[path = "ycsb_tests.rs"]
mod tests;
