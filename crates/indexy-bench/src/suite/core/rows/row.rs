//! What a row is, how numbers are looked up for one, and the verdict over it.

use crate::format::rate;
use crate::measure::{PhaseResult, RunResult, median};
use serde::{Deserialize, Serialize};

/// Our contender in its default pair.
pub(super) const OURS: &str = "indexy";

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

    pub(super) fn of(holds: Option<bool>) -> Self {
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
pub(super) fn whole_phases(run: &RunResult) -> impl Iterator<Item = &PhaseResult> {
    run.phases.iter().filter(|p| !p.interrupted)
}

/// Looks numbers up.
pub(super) struct Numbers<'a> {
    pub(super) results: &'a [RunResult],
}

impl Numbers<'_> {
    /// Median over the repetitions of what `of` takes from the phase.
    pub(super) fn value(
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
    pub(super) fn of_run(
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

    pub(super) fn rate(&self, scenario: &str, who: &str, phase: &str) -> Option<f64> {
        self.value(scenario, who, phase, |p| {
            Some(p.rate()).filter(|r| *r > 0.0)
        })
    }
}

pub(super) fn text(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), show)
}

pub(super) fn ratio(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    Some(a? / b?).filter(|r| r.is_finite())
}

/// A rate of ours that must be at least `goal` times a peer's.
pub(super) fn rate_row(
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
pub(super) fn own_row(
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
