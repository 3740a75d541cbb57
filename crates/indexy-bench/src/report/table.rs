//! Tables: aligned text for a terminal, rows for HTML.

use crate::format::{bytes, count, micros, rate};
use crate::{
    measure::{Outcome, PhaseResult, RunResult},
    suite::core::Row,
};
use indexy_report::text_table;
use serde::Serialize;
use std::fmt;

/// A table of text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// Heads of the columns.
    pub heads: Vec<String>,
    /// Rows of cells.
    pub rows: Vec<Vec<String>>,
    /// Lines below.
    pub notes: Vec<String>,
}

impl Table {
    /// An empty table.
    pub fn new(title: &str, heads: &[&str]) -> Self {
        Self {
            title: title.to_owned(),
            heads: heads.iter().map(|h| (*h).to_owned()).collect(),
            rows: Vec::new(),
            notes: Vec::new(),
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title)?;
        writeln!(f, "{}", text_table(&self.heads, &self.rows, usize::MAX))?;
        for note in &self.notes {
            writeln!(f, "{note}")?;
        }
        Ok(())
    }
}

/// The goals and what was measured.
pub fn goal_table(rows: &[Row]) -> Table {
    let heads = [
        "section", "work", "indexy", "against", "measured", "goal", "",
    ];
    let mut table = Table::new("Goals", &heads);
    for r in rows {
        let verdict = r.verdict.mark().to_owned();
        let cells = [
            &r.section,
            &r.work,
            &r.ours,
            &r.against,
            &r.measured,
            &r.goal,
            &verdict,
        ];
        table.rows.push(cells.map(Clone::clone).into());
    }
    table
}

/// Every phase of every run of `scenario`.
pub fn detail_table(scenario: &str, results: &[RunResult]) -> Table {
    let heads = [
        "contender",
        "phase",
        "thr",
        "ops",
        "rate",
        "p50",
        "p99",
        "p99.9",
        "max",
        "rss peak",
        "own count",
        "read/op",
        "written/op",
        "w-amp",
        "disk",
        "page cache",
        "",
    ];
    let mut table = Table::new(scenario, &heads);
    for run in results.iter().filter(|r| r.scenario == scenario) {
        let name = if run.repeat > 0 {
            format!("{} #{}", run.contender, run.repeat + 1)
        } else {
            run.contender.clone()
        };
        for phase in &run.phases {
            table.rows.push(phase_cells(&name, run, phase));
        }
        let remark = remark(&run.outcome);
        if !remark.is_empty() {
            table.notes.push(format!("{name} {remark}"));
        }
    }
    table
}

fn phase_cells(name: &str, run: &RunResult, phase: &PhaseResult) -> Vec<String> {
    // The kind with the most operations speaks for the phase; CSV and JSON have all.
    let latency = phase.latency.values().max_by_key(|l| l.count);
    let us = |of: fn(&crate::measure::LatencySummary) -> f64| {
        latency.map_or_else(String::new, |l| micros(of(l)))
    };
    let speed = if phase.done > 1 {
        rate(phase.rate())
    } else {
        micros(phase.seconds * 1e6)
    };
    let dash = |n: u64, text: String| if n == 0 { "-".to_owned() } else { text };
    vec![
        name.to_owned(),
        phase.name.clone(),
        phase.threads.to_string(),
        count(phase.done as f64),
        speed,
        us(|l| l.p50_us),
        us(|l| l.p99_us),
        us(|l| l.p999_us),
        us(|l| l.max_us),
        bytes(phase.peak_resident() as f64),
        phase
            .accounted
            .map_or_else(|| "-".to_owned(), |a| bytes(a as f64)),
        dash(phase.done, bytes(phase.per_op(phase.io.device_read))),
        dash(phase.done, bytes(phase.per_op(phase.io.device_written))),
        phase
            .write_amplification()
            .map_or_else(|| "-".to_owned(), |w| format!("{w:.1}")),
        bytes(phase.disk as f64),
        run.page_cache.clone(),
        how_far(phase),
    ]
}

/// How far a phase came that was cut short.
pub(super) fn how_far(phase: &PhaseResult) -> String {
    match (phase.partial, phase.asked) {
        (false, _) => String::new(),
        (true, 0) => "cut short".to_owned(),
        (true, asked) => format!(
            "{:.0} % of {}",
            100.0 * phase.done as f64 / asked as f64,
            count(asked as f64)
        ),
    }
}

/// How a run ended, if not as planned.
pub(super) fn remark(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Finished => String::new(),
        Outcome::Interrupted => "INTERRUPTED: partial results".to_owned(),
        Outcome::WrongValue(what) => format!("WRONG VALUE: {what}"),
        Outcome::Failed(what) => format!("FAILED: {what}"),
        Outcome::OutOfMemory(what) | Outcome::Died(what) => format!("DIED: {what}"),
        Outcome::Skipped(why) => format!("left out: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_short_rows_are_allowed() {
        let mut table = Table::new("t", &["a", "bb"]);
        table.rows.push(vec!["xxxx".to_owned(), "y".to_owned()]);
        table.rows.push(vec!["z".to_owned()]);
        assert_eq!(table.to_string(), "t\na     bb\n--------\nxxxx  y\nz\n");
    }
}
