//! What changed between two results.
//!
//! A change counts only if it leaves the noise: the larger of the two spreads over repetitions, or, where a phase ran once, over
//! its own seconds.

use super::{Document, Table, format};
use crate::measure::{PhaseResult, RunResult, median};

/// One phase of one contender in both results.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Scenario, contender and phase.
    pub what: [String; 3],
    /// Median rate before, operations/s.
    pub before: f64,
    /// Median rate after, operations/s.
    pub after: f64,
    /// Relative noise: a smaller change means nothing.
    pub noise: f64,
}

impl Change {
    /// Relative change.
    pub fn relative(&self) -> f64 {
        self.after / self.before - 1.0
    }

    /// True if the change leaves the noise.
    pub fn is_significant(&self) -> bool {
        self.relative().abs() > self.noise
    }
}

/// Below this, two runs of the same program differ anyway.
const LEAST_NOISE: f64 = 0.03;
/// Seconds of a series to speak of a spread.
const LEAST_POINTS: usize = 8;

/// All phases that both have, in the order of the first.
pub fn compare(before: &Document, after: &Document) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for run in &before.results {
        for phase in &run.phases {
            let what = [
                run.scenario.clone(),
                run.contender.clone(),
                phase.name.clone(),
            ];
            if changes.iter().any(|c| c.what == what) {
                continue;
            }
            let (a, b) = (
                phases(&before.results, &what),
                phases(&after.results, &what),
            );
            let rate = |found: &[&PhaseResult]| {
                median(found.iter().map(|p| p.rate()).collect()).filter(|r| *r > 0.0)
            };
            if let (Some(rate_before), Some(rate_after)) = (rate(&a), rate(&b)) {
                let noise = spread(&a).max(spread(&b)).max(LEAST_NOISE);
                changes.push(Change {
                    what,
                    before: rate_before,
                    after: rate_after,
                    noise,
                });
            }
        }
    }
    changes
}

fn phases<'a>(results: &'a [RunResult], what: &[String; 3]) -> Vec<&'a PhaseResult> {
    let of = results
        .iter()
        .filter(|r| r.scenario == what[0] && r.contender == what[1]);
    of.filter_map(|r| r.phase(&what[2]))
        .filter(|p| p.done > 0)
        .collect()
}

/// Relative half width of the spread around the median.
fn spread(found: &[&PhaseResult]) -> f64 {
    if found.len() > 1 {
        let rates: Vec<f64> = found.iter().map(|p| p.rate()).collect();
        let (low, high) = bounds(&rates);
        return (high - low) / 2.0 / median(rates).unwrap_or(1.0).max(f64::MIN_POSITIVE);
    }
    let Some(series) = found
        .first()
        .map(|p| p.throughput())
        .filter(|s| s.len() >= LEAST_POINTS)
    else {
        return 0.0;
    };
    // The standard error of the mean over the seconds, twice.
    let n = series.len() as f64;
    let mean = series.iter().map(|(_, r)| r).sum::<f64>() / n;
    let variance = series.iter().map(|(_, r)| (r - mean).powi(2)).sum::<f64>() / (n - 1.0);
    if mean > 0.0 {
        2.0 * (variance / n).sqrt() / mean
    } else {
        0.0
    }
}

fn bounds(values: &[f64]) -> (f64, f64) {
    values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
            (low.min(*v), high.max(*v))
        })
}

/// The changes as a table.
pub fn change_table(changes: &[Change]) -> Table {
    let mut table = Table::new(
        "Changes",
        &[
            "scenario",
            "contender",
            "phase",
            "before",
            "after",
            "change",
            "noise",
            "",
        ],
    );
    for c in changes {
        let [scenario, contender, phase] = c.what.clone();
        let mark = match (c.is_significant(), c.relative() > 0.0) {
            (false, _) => "within noise",
            (true, true) => "FASTER",
            (true, false) => "SLOWER",
        };
        table.rows.push(vec![
            scenario,
            contender,
            phase,
            format::rate(c.before),
            format::rate(c.after),
            format!("{:+.1} %", 100.0 * c.relative()),
            format!("{:.1} %", 100.0 * c.noise),
            mark.to_owned(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Outcome;

    fn document(rates: &[u64]) -> Document {
        let mut document = Document::begin("core", std::path::Path::new("/"));
        for (repeat, rate) in rates.iter().enumerate() {
            let phase = PhaseResult {
                name: "get".into(),
                done: *rate,
                seconds: 1.0,
                ..Default::default()
            };
            document.results.push(RunResult {
                scenario: "s".into(),
                contender: "c".into(),
                repeat,
                budget: 0,
                memory_limit: None,
                durability: String::new(),
                page_cache: String::new(),
                seed: 0,
                outcome: Outcome::Finished,
                phases: vec![phase],
                parameters: Default::default(),
            });
        }
        document
    }

    #[test]
    fn a_change_within_the_spread_of_the_repetitions_is_noise() {
        let changes = compare(&document(&[90, 100, 110]), &document(&[104, 105, 106]));
        assert_eq!(changes.len(), 1);
        assert!(!changes[0].is_significant());
    }

    #[test]
    fn a_change_beyond_the_spread_counts() {
        let changes = compare(&document(&[99, 100, 101]), &document(&[79, 80, 81]));
        assert!(changes[0].is_significant() && changes[0].relative() < 0.0);
        assert!(change_table(&changes).to_string().contains("SLOWER"));
    }
}
