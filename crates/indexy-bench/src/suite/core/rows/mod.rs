//! The rows of the core's table: what was measured, against whom, and whether the goal was met.
//!
//! Ratios are medians over the repetitions of one run; a number that was not measured leaves its
//! row open, and one of a phase that an interrupt cut short counts as not measured.

use crate::format::rate;
use crate::measure::{PhaseResult, RunResult, median};
use serde::{Deserialize, Serialize};

/// Our contender in its default pair.
const OURS: &str = "indexy";

mod larger;
mod latency;
mod memory;

/// Whether a goal was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Yes.
    Met,
    /// No.
    Missed,
    /// Something that it needs was not measured.
    Open,
    /// The row has no goal.
    Info,
}

impl Verdict {
    /// As tables print it.
    pub fn mark(self) -> &'static str {
        match self {
            Verdict::Met => "met",
            Verdict::Missed => "MISSED",
            Verdict::Open => "not measured",
            Verdict::Info => "",
        }
    }

    fn of(holds: Option<bool>) -> Self {
        match holds {
            Some(true) => Verdict::Met,
            Some(false) => Verdict::Missed,
            None => Verdict::Open,
        }
    }
}

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Section of the table.
    pub section: String,
    /// What was done.
    pub work: String,
    /// What we measured for ourselves.
    pub ours: String,
    /// What it is held against.
    pub against: String,
    /// The measured ratio or value that the goal is about.
    pub measured: String,
    /// The goal.
    pub goal: String,
    /// Whether it was met.
    pub verdict: Verdict,
}

/// The phases of `run` but one that an interrupt cut short.
fn whole_phases(run: &RunResult) -> impl Iterator<Item = &PhaseResult> {
    run.phases.iter().filter(|p| !p.interrupted)
}

/// Looks numbers up.
struct Numbers<'a> {
    results: &'a [RunResult],
}

impl Numbers<'_> {
    /// Median over the repetitions of what `of` takes from the phase.
    fn value(
        &self,
        scenario: &str,
        who: &str,
        phase: &str,
        of: impl Fn(&PhaseResult) -> Option<f64>,
    ) -> Option<f64> {
        let matching = self
            .results
            .iter()
            .filter(|r| r.scenario == scenario && r.contender == who);
        let named = matching.filter_map(|r| whole_phases(r).find(|p| p.name == phase));
        median(named.filter_map(of).collect())
    }

    /// Median over the repetitions of what `of` takes from the run.
    fn of_run(
        &self,
        scenario: &str,
        who: &str,
        of: impl Fn(&RunResult) -> Option<f64>,
    ) -> Option<f64> {
        let matching = self
            .results
            .iter()
            .filter(|r| r.scenario == scenario && r.contender == who);
        median(matching.filter_map(of).collect())
    }

    fn rate(&self, scenario: &str, who: &str, phase: &str) -> Option<f64> {
        self.value(scenario, who, phase, |p| {
            Some(p.rate()).filter(|r| *r > 0.0)
        })
    }
}

/// The whole table, as far as `results` fill it.
pub fn core_rows(results: &[RunResult]) -> Vec<Row> {
    let n = Numbers { results };
    let mut rows = memory::memory_rows(&n);
    rows.extend(memory::durability_rows(&n));
    rows.extend(larger::larger_rows(&n));
    rows.extend(latency::latency_rows(&n));
    rows.extend(latency::replay_rows(&n));
    rows.retain(|row| row.ours != "-");
    rows
}

fn text(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), show)
}

fn ratio(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    Some(a? / b?).filter(|r| r.is_finite())
}

/// A rate of ours that must be at least `goal` times a peer's.
fn rate_row(
    n: &Numbers<'_>,
    section: &str,
    work: &str,
    at: (&str, &str),
    peer: &str,
    goal: f64,
) -> Row {
    let ours = n.rate(at.0, OURS, at.1);
    let theirs = n.rate(at.0, peer, at.1);
    let ratio = ratio(ours, theirs);
    Row {
        section: section.to_owned(),
        work: work.to_owned(),
        ours: text(ours, rate),
        against: format!("{peer} {}", text(theirs, rate)),
        measured: text(ratio, |r| format!("{r:.2} x")),
        goal: if goal == 1.0 {
            "faster".to_owned()
        } else {
            format!(">= {goal} x")
        },
        verdict: Verdict::of(ratio.map(|r| r >= goal)),
    }
}

/// A rate of ours that must be at least `goal` times another rate of ours.
fn own_row(
    n: &Numbers<'_>,
    section: &str,
    work: &str,
    at: (&str, &str),
    base: (&str, &str),
    goal: f64,
) -> Row {
    let ours = n.rate(at.0, OURS, at.1);
    let other = n.rate(base.0, OURS, base.1);
    let ratio = ratio(ours, other);
    Row {
        section: section.to_owned(),
        work: work.to_owned(),
        ours: text(ours, rate),
        against: format!("itself {}", text(other, rate)),
        measured: text(ratio, |r| format!("{r:.2} x")),
        goal: format!(">= {goal} x"),
        verdict: Verdict::of(ratio.map(|r| r >= goal)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Outcome;

    fn run(scenario: &str, contender: &str, phase: &str, done: u64, seconds: f64) -> RunResult {
        RunResult {
            scenario: scenario.to_owned(),
            contender: contender.to_owned(),
            repeat: 0,
            budget: 0,
            memory_limit: None,
            durability: String::new(),
            page_cache: String::new(),
            seed: 0,
            outcome: Outcome::Finished,
            phases: vec![PhaseResult {
                name: phase.to_owned(),
                done,
                seconds,
                ..PhaseResult::default()
            }],
            parameters: Default::default(),
        }
    }

    fn verdict(rows: &[Row], work: &str, peer: &str) -> Verdict {
        rows.iter()
            .find(|r| r.work == work && r.against.starts_with(peer))
            .unwrap()
            .verdict
    }

    #[test]
    fn a_ratio_below_its_goal_is_missed_and_one_without_a_peer_is_open() {
        let results = vec![
            run("memory-1t", "indexy", "get", 100, 1.0),
            run("memory-1t", "congee", "get", 120, 1.0),
            run("memory-1t", "btreemap", "get", 99, 1.0),
        ];
        let rows = core_rows(&results);
        assert_eq!(verdict(&rows, "get, 1 thread", "congee"), Verdict::Met);
        assert_eq!(verdict(&rows, "get, 1 thread", "btreemap"), Verdict::Missed);
        assert_eq!(verdict(&rows, "get, 1 thread", "skiplist"), Verdict::Open);
    }

    #[test]
    fn a_phase_that_an_interrupt_cut_short_does_not_count_and_one_that_its_cap_ended_does() {
        let mut results = vec![
            run("memory-1t", "indexy", "get", 100, 1.0),
            run("memory-1t", "indexy", "get", 2, 1.0),
            run("memory-1t", "congee", "get", 100, 1.0),
        ];
        let row = |results: &[RunResult]| {
            let rows = core_rows(results);
            let get = rows.into_iter().find(|r| r.work == "get, 1 thread");
            get.map(|r| (r.measured, r.verdict))
        };
        results[1].phases[0].partial = true;
        let both = row(&results).unwrap();
        assert_eq!(both, ("0.51 x".to_owned(), Verdict::Missed));
        results[1].phases[0].interrupted = true;
        let first = row(&results).unwrap();
        assert_eq!(first, ("1.00 x".to_owned(), Verdict::Met));
        results[0].phases[0].interrupted = true;
        assert_eq!(row(&results), None);
    }

    #[test]
    fn repetitions_count_by_their_median() {
        let mut results: Vec<_> = [1.0, 10.0, 2.0]
            .map(|s| run("memory-1t", "indexy", "get", 100, s))
            .into();
        results.push(run("memory-1t", "congee", "get", 100, 2.0));
        let rows = core_rows(&results);
        let row = rows.iter().find(|r| r.work == "get, 1 thread").unwrap();
        assert_eq!(row.measured, "1.00 x");
    }
}
