//! The charts of the report: throughput, memory, hits and data over time, with the phases as bands.

use super::sample::{PhaseResult, Sample, Seen};
use indexy_report::{
    chart::{Band, Plot, Series},
    size::{self, percent},
};

/// Throughput is shown over so many powers of ten, so that slow phases are seen beside fast ones.
const THROUGHPUT_RANGE: f64 = 1e4;

/// A chart and the sentence below it.
pub struct Chart {
    pub plot: Plot,
    pub note: &'static str,
}

/// What the charts are drawn from.
#[derive(Debug, Clone, Copy)]
pub struct Measured<'a> {
    pub seen: &'a Seen,
    /// Memory budget in bytes.
    pub budget: u64,
    /// What may be resident, less what was before the open.
    pub resident_limit: u64,
    /// How long it all took.
    pub seconds: f64,
}

impl Measured<'_> {
    /// All charts, in the order of the report.
    pub fn charts(&self) -> [Chart; 4] {
        [self.throughput(), self.memory(), self.hits(), self.data()]
    }

    fn throughput(&self) -> Chart {
        let rates = || self.seen.samples.iter().map(|s| s.operations_per_second);
        let plot = Plot {
            title: "Throughput, operations per second".into(),
            series: vec![self.series("operations per second", |s| Some(s.operations_per_second))],
            log_y: true,
            y_min: Some(rates().fold(1.0, f64::max) / THROUGHPUT_RANGE),
            ..self.over_time(numbered)
        };
        let note = "The scale is logarithmic. A rate of zero lies on the lower edge.";
        Chart { plot, note }
    }

    fn memory(&self) -> Chart {
        let bytes = |n: u64| n as f64;
        let plot = Plot {
            title: "Memory beside its limits".into(),
            series: vec![
                self.series("counted by the database", |s| s.memory.map(bytes)),
                self.series("resident, less what was before", |s| s.resident.map(bytes)),
                self.limit("budget", self.budget),
                self.limit("limit of resident memory", self.resident_limit),
            ],
            binary_y: true,
            y_text: as_bytes,
            ..self.over_time(numbered)
        };
        let note = "Resident memory may be 1.10 times the budget and 32 MiB. It has a gap while \
                    another process has the database open.";
        Chart { plot, note }
    }

    fn hits(&self) -> Chart {
        let ratio = |s: &Sample| {
            s.hit_ratio
                .filter(|_| self.reads_keys_at(s.at))
                .map(|ratio| ratio * 100.0)
        };
        let plot = Plot {
            title: "Reads that memory answered".into(),
            series: vec![self.series("hits, part of all reads", ratio)],
            y_max: Some(100.0),
            y_text: |value| format!("{value:.0} %"),
            ..self.over_time(|n, phase| match hits(phase) {
                Some(hits) => vec![
                    format!("{n} {}: {hits}", phase.name),
                    format!("{n}: {hits}"),
                    n.to_string(),
                ],
                None => vec![n.to_string()],
            })
        };
        let note = "Shown for the phases that read single keys, with the share of the whole phase.";
        Chart { plot, note }
    }

    fn data(&self) -> Chart {
        let plot = Plot {
            title: "Data beside the budget".into(),
            series: vec![
                self.series("keys and values", |s| Some(s.data as f64)),
                self.series("on disk, log included", |s| s.disk.map(|v| v as f64)),
                self.limit("budget", self.budget),
            ],
            binary_y: true,
            y_text: as_bytes,
            ..self.over_time(numbered)
        };
        let note = "Bytes on disk shrink when runs are merged.";
        Chart { plot, note }
    }

    /// A plot over the time of the demo, with a band per phase.
    fn over_time(&self, labels: impl Fn(usize, &PhaseResult) -> Vec<String>) -> Plot {
        let phases = self.seen.phases.iter().enumerate();
        let bands = phases.map(|(n, phase)| Band {
            labels: labels(n + 1, phase),
            title: format!("{} {}: {}", n + 1, phase.name, phase.outcome),
            from: phase.began,
            to: phase.ended,
        });
        Plot {
            bands: bands.collect(),
            untitled: true,
            x_label: "seconds".into(),
            x_range: Some((0.0, self.seconds.max(1e-3))),
            ..Plot::default()
        }
    }

    fn series(&self, name: &str, value: impl Fn(&Sample) -> Option<f64>) -> Series {
        let point = |sample: &Sample| (sample.at, value(sample).unwrap_or(f64::NAN));
        Series {
            name: name.into(),
            points: self.seen.samples.iter().map(point).collect(),
            dashed: false,
        }
    }

    fn limit(&self, name: &str, bytes: u64) -> Series {
        Series {
            name: format!("{name}: {}", size::bytes(bytes)),
            points: [0.0, self.seconds].map(|at| (at, bytes as f64)).into(),
            dashed: true,
        }
    }

    /// True while a phase that reads single keys was under way.
    fn reads_keys_at(&self, seconds: f64) -> bool {
        let mut phases = self.seen.phases.iter();
        phases.any(|p| p.latency.is_some() && (p.began..=p.ended).contains(&seconds))
    }
}

fn numbered(n: usize, phase: &PhaseResult) -> Vec<String> {
    vec![format!("{n} {}", phase.name), n.to_string()]
}

/// The hits of a phase that reads single keys, as a part of its reads.
pub fn hits(phase: &PhaseResult) -> Option<String> {
    phase.latency?;
    let reads = phase.hits + phase.misses;
    Some(percent(phase.hits as f64, reads as f64))
}

fn as_bytes(value: f64) -> String {
    size::bytes(value as u64)
}
