//! What changed between two results.
//!
//! A change counts only if it leaves the noise: the larger of the two spreads over repetitions, or,
//! where a phase ran once, over its own course. The noise of a phase that ran once and shortly is
//! not known, so that its change never counts. Not here: under which conditions the two were
//! measured (`conditions.rs`).

use super::{document::Document, table::Table};
use crate::format;
use crate::measure::{PhaseResult, RunResult, median};

/// One phase of one contender, in both results or in one of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Scenario, contender and phase.
    pub what: [String; 3],
    /// Median rate before, operations/s; none if it did not run.
    pub before: Option<f64>,
    /// Median rate after, operations/s; none if it did not run.
    pub after: Option<f64>,
    /// Relative noise: a smaller change means nothing; none if it is not known.
    pub noise: Option<f64>,
}

impl Change {
    /// Relative change, if the phase ran in both.
    pub fn relative(&self) -> Option<f64> {
        Some(self.after? / self.before? - 1.0)
    }

    /// True if the change leaves the noise.
    pub fn is_significant(&self) -> bool {
        let noise = self.noise.unwrap_or(f64::INFINITY);
        self.relative().is_some_and(|change| change.abs() > noise)
    }
}

/// Below this, two runs of the same program differ anyway.
const LEAST_NOISE: f64 = 0.03;
/// Points of a series to speak of a spread.
const LEAST_POINTS: usize = 8;

/// All phases that have a rate in at least one of the two: those of the first in its order, then
/// those that only the second has.
pub fn compare(before: &Document, after: &Document) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for run in before.results.iter().chain(&after.results) {
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
            let (rate_before, rate_after) = (rate(&a), rate(&b));
            if rate_before.is_none() && rate_after.is_none() {
                continue;
            }
            changes.push(Change {
                what,
                before: rate_before,
                after: rate_after,
                noise: noise(&a, &b),
            });
        }
    }
    changes
}

/// Median rate.
fn rate(found: &[&PhaseResult]) -> Option<f64> {
    median(found.iter().map(|p| p.rate()).collect()).filter(|r| *r > 0.0)
}

fn noise(before: &[&PhaseResult], after: &[&PhaseResult]) -> Option<f64> {
    Some(spread(before)?.max(spread(after)?).max(LEAST_NOISE))
}

fn phases<'a>(results: &'a [RunResult], what: &[String; 3]) -> Vec<&'a PhaseResult> {
    let of = results
        .iter()
        .filter(|r| r.scenario == what[0] && r.contender == what[1]);
    of.filter_map(|r| r.phase(&what[2]))
        .filter(|p| p.done > 0)
        .collect()
}

/// Relative half width of the spread around the median; none if there is too little to tell.
fn spread(found: &[&PhaseResult]) -> Option<f64> {
    if found.len() > 1 {
        let rates: Vec<f64> = found.iter().map(|p| p.rate()).collect();
        let (low, high) = bounds(&rates);
        return Some((high - low) / 2.0 / median(rates)?.max(f64::MIN_POSITIVE));
    }
    let series = found.first()?.throughput();
    if series.len() < LEAST_POINTS {
        return None;
    }
    // The standard error of the mean over the points, twice.
    let n = series.len() as f64;
    let mean = series.iter().map(|(_, r)| r).sum::<f64>() / n;
    let variance = series.iter().map(|(_, r)| (r - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean > 0.0).then(|| 2.0 * (variance / n).sqrt() / mean)
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
        let speed = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), format::rate);
        let (change, noise) = match c.relative() {
            None => (String::new(), String::new()),
            Some(change) => (
                format!("{:+.1} %", 100.0 * change),
                c.noise
                    .map_or_else(|| "?".to_owned(), |n| format!("{:.1} %", 100.0 * n)),
            ),
        };
        table.rows.push(vec![
            scenario,
            contender,
            phase,
            speed(c.before),
            speed(c.after),
            change,
            noise,
            mark(c).to_owned(),
        ]);
    }
    table
}

/// The verdict on the change, in a word.
fn mark(change: &Change) -> &'static str {
    match (change.before, change.after) {
        (Some(_), None) => "only before",
        (None, _) => "only after",
        (Some(before), Some(after)) => match (change.noise, change.is_significant()) {
            (None, _) => "noise unknown",
            (Some(_), false) => "within noise",
            (Some(_), true) if after > before => "FASTER",
            (Some(_), true) => "SLOWER",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Outcome, Tick};

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
        assert!(changes[0].is_significant() && changes[0].relative().unwrap() < 0.0);
        assert!(change_table(&changes).to_string().contains("SLOWER"));
    }

    #[test]
    fn what_ran_once_and_shortly_has_unknown_noise_and_never_counts() {
        let changes = compare(&document(&[100]), &document(&[1000]));
        assert_eq!(changes[0].noise, None);
        assert!(!changes[0].is_significant() && changes[0].relative().unwrap() > 8.0);
        let table = change_table(&changes);
        assert_eq!(table.rows[0][5..], ["+900.0 %", "?", "noise unknown"]);
        // One side that is known does not make up for the other.
        let changes = compare(&document(&[99, 100, 101]), &document(&[1000]));
        assert_eq!(changes[0].noise, None);
    }

    #[test]
    fn what_ran_once_and_long_has_the_noise_of_its_course() {
        let steady = |rate: u64| {
            let mut document = document(&[rate]);
            let tick = |at: u64| Tick {
                at: at as f64,
                ops: at * rate,
                ..Tick::default()
            };
            document.results[0].phases[0].series = (0..=8).map(tick).collect();
            document
        };
        let changes = compare(&steady(100), &steady(110));
        assert_eq!(changes[0].noise, Some(LEAST_NOISE));
        assert!(changes[0].is_significant());
    }

    #[test]
    fn what_only_one_of_them_has_is_told() {
        let (before, mut after) = (document(&[100, 100]), document(&[100, 100]));
        for run in &mut after.results {
            run.phases[0].name = "scan".into();
        }
        let changes = compare(&before, &after);
        assert!(changes.iter().all(|c| c.relative().is_none()));
        let table = change_table(&changes);
        let told: Vec<_> = table
            .rows
            .iter()
            .map(|r| [&r[2], &r[3], &r[4], &r[7]])
            .collect();
        assert_eq!(
            told,
            [
                ["get", "100/s", "-", "only before"],
                ["scan", "-", "100/s", "only after"]
            ]
        );
    }
}
