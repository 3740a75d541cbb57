//! Transactions of TATP, Voter and Counters by kind, how many of each succeeded, and rates by skew.

use super::table::Table;
use crate::{
    applications::Kind,
    format::{count, micros, rate},
    measure::{PhaseResult, RunResult},
    suite::{RUN, ZIPF},
};
use indexy_report::chart::{Plot, Series};

/// One row for each kind of transaction of each run of `scenario`; none if there were none.
pub fn outcome_table(scenario: &str, results: &[RunResult]) -> Option<Table> {
    let heads = [
        "contender",
        "transaction",
        "done",
        "rate",
        "succeeded",
        "p50",
        "p99",
        "p99.9",
        "max",
    ];
    let mut table = Table::new(&format!("{scenario}: transactions"), &heads);
    for run in results.iter().filter(|r| r.scenario == scenario) {
        let name = if run.repeat > 0 {
            format!("{} #{}", run.contender, run.repeat + 1)
        } else {
            run.contender.clone()
        };
        for phase in &run.phases {
            let kinds = Kind::all().filter_map(|kind| cells(&name, phase, kind.name()));
            table.rows.extend(kinds);
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

/// None if the phase did not count how many of `kind` succeeded: those of TPC-C are told otherwise.
fn cells(contender: &str, phase: &PhaseResult, kind: &str) -> Option<Vec<String>> {
    let latency = phase.latency.get(kind)?;
    let done = latency.count as f64;
    let succeeded = phase.counters.get(&format!("{kind}_succeeded"))?;
    Some(vec![
        contender.to_owned(),
        kind.to_owned(),
        count(done),
        rate(done / phase.seconds.max(f64::MIN_POSITIVE)),
        format!("{:.1} %", succeeded * 100.0 / done.max(1.0)),
        micros(latency.p50_us),
        micros(latency.p99_us),
        micros(latency.p999_us),
        micros(latency.max_us),
    ])
}

/// Transactions a second by the exponent of Zipf, a line for each contender; none if fewer than two
/// exponents were run.
pub fn skew_plot(results: &[RunResult]) -> Option<Plot> {
    let mut series: Vec<Series> = Vec::new();
    for run in results.iter().filter(|r| r.repeat == 0) {
        let (Some(zipf), Some(phase)) = (run.parameters.get(ZIPF), run.phase(RUN)) else {
            continue;
        };
        let point = (*zipf, phase.rate());
        match series.iter_mut().find(|s| s.name == run.contender) {
            Some(line) => line.points.push(point),
            None => series.push(Series {
                name: run.contender.clone(),
                points: vec![point],
                dashed: false,
            }),
        }
    }
    for line in &mut series {
        line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    series.iter().any(|s| s.points.len() > 1).then(|| Plot {
        title: "transactions by skew".to_owned(),
        x_label: "exponent of Zipf".to_owned(),
        y_label: "transactions/s".to_owned(),
        series,
        ..Plot::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Outcome;

    fn run(contender: &str, zipf: f64, done: u64) -> RunResult {
        let latency = [
            ("vote".to_owned(), Default::default()),
            ("new_order".to_owned(), Default::default()),
        ];
        let phase = PhaseResult {
            name: RUN.to_owned(),
            latency: latency.into(),
            counters: [("vote_succeeded".to_owned(), 1.0)].into(),
            done,
            seconds: 1.0,
            ..PhaseResult::default()
        };
        RunResult {
            scenario: "voter".into(),
            contender: contender.into(),
            repeat: 0,
            budget: 1,
            memory_limit: None,
            durability: "none".into(),
            page_cache: String::new(),
            seed: 0,
            outcome: Outcome::Finished,
            phases: vec![phase],
            parameters: [(ZIPF.to_owned(), zipf)].into(),
        }
    }

    #[test]
    fn only_kinds_whose_successes_were_counted_have_a_row() {
        let table = outcome_table("voter", &[run("x", 0.5, 10)]).unwrap();
        assert_eq!(table.rows.len(), 1);
        assert_eq!(table.rows[0][1], "vote");
        assert!(outcome_table("tatp", &[run("x", 0.5, 10)]).is_none());
    }

    #[test]
    fn a_contender_has_a_point_for_each_skew_in_order() {
        let results = [run("x", 1.2, 5), run("y", 1.2, 6), run("x", 0.5, 7)];
        let plot = skew_plot(&results).unwrap();
        assert_eq!(plot.series[0].points, [(0.5, 7.0), (1.2, 5.0)]);
        assert_eq!(plot.series[1].points, [(1.2, 6.0)]);
        assert!(skew_plot(&results[..2]).is_none());
    }
}
