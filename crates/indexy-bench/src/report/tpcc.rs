//! Transactions of a TPC-C run: by kind, over time, and how much they fluctuate.

use super::table::Table;
use crate::{
    format::{count, micros, rate},
    measure::{Parts, PhaseResult, RunResult, Steadiness},
    tpcc::Transaction,
};
use indexy_report::chart::{Plot, Series};

/// The phases of `run` in which transactions ran.
pub fn transaction_phases(run: &RunResult) -> impl Iterator<Item = &PhaseResult> {
    let ran = |p: &&PhaseResult| p.series.last().is_some_and(|t| t.transactions.is_some());
    run.phases.iter().filter(ran)
}

/// One row for each kind of transaction of each run of `scenario`, and one for their sum; none if
/// there were none.
pub fn transaction_table(scenario: &str, results: &[RunResult]) -> Option<Table> {
    let heads = [
        "contender",
        "transaction",
        "done",
        "rate",
        "a minute",
        "rolled back",
        "p50",
        "p99",
        "p99.9",
        "max",
        "1-s p5 .. p50 .. p95",
        "before full",
        "after",
    ];
    let mut table = Table::new(&format!("{scenario}: transactions"), &heads);
    for run in results.iter().filter(|r| r.scenario == scenario) {
        let name = if run.repeat > 0 {
            format!("{} #{}", run.contender, run.repeat + 1)
        } else {
            run.contender.clone()
        };
        for phase in transaction_phases(run) {
            table.rows.push(sum_cells(&name, run, phase));
            for (index, kind) in Transaction::ALL.into_iter().enumerate() {
                table.rows.extend(kind_cells(&name, phase, index, kind));
            }
        }
    }
    let note = "No key or think times: not comparable with official tpmC. 1-s: throughput of \
        whole seconds.";
    table.notes.push(note.to_owned());
    (!table.rows.is_empty()).then_some(table)
}

fn sum_cells(name: &str, run: &RunResult, phase: &PhaseResult) -> Vec<String> {
    let parts = Parts::of(phase, run);
    let dash = |r: Option<f64>| r.map_or_else(|| "-".to_owned(), rate);
    let blank = String::new;
    vec![
        name.to_owned(),
        "all".to_owned(),
        count(phase.done as f64),
        rate(phase.rate()),
        count(phase.rate() * 60.0),
        (phase.done - phase.found.min(phase.done)).to_string(),
        blank(),
        blank(),
        blank(),
        blank(),
        steadiness_text(phase.steadiness(|t| t.ops)),
        dash(parts.before),
        dash(parts.after),
    ]
}

fn kind_cells(
    name: &str,
    phase: &PhaseResult,
    index: usize,
    kind: Transaction,
) -> Option<Vec<String>> {
    let latency = phase.latency.get(kind.name())?;
    let per_second = latency.count as f64 / phase.seconds.max(f64::MIN_POSITIVE);
    let of_kind = |t: &crate::measure::Tick| t.transactions.map_or(0, |n| n[index]);
    Some(vec![
        name.to_owned(),
        kind.name().to_owned(),
        count(latency.count as f64),
        rate(per_second),
        count(per_second * 60.0),
        String::new(),
        micros(latency.p50_us),
        micros(latency.p99_us),
        micros(latency.p999_us),
        micros(latency.max_us),
        steadiness_text(phase.steadiness(of_kind)),
        String::new(),
        String::new(),
    ])
}

fn steadiness_text(steadiness: Option<Steadiness>) -> String {
    let text = |s: Steadiness| format!("{} .. {} .. {}", rate(s.p5), rate(s.p50), rate(s.p95));
    steadiness.map_or_else(|| "-".to_owned(), text)
}

/// Each kind's transactions per second over time; one plot per run.
pub fn transaction_plots(runs: &[&RunResult]) -> Vec<Plot> {
    let mut plots = Vec::new();
    for run in runs {
        for phase in transaction_phases(run) {
            let series = Transaction::ALL.into_iter().enumerate().map(|(i, kind)| {
                let of_kind = |t: &crate::measure::Tick| t.transactions.map_or(0, |n| n[i]);
                Series {
                    name: kind.name().to_owned(),
                    points: phase.seconds_of(of_kind),
                    dashed: false,
                }
            });
            plots.push(Plot {
                title: format!("{} {}: transactions by kind", run.contender, phase.name),
                x_label: "seconds".to_owned(),
                y_label: "transactions/s".to_owned(),
                series: series
                    .filter(|s| s.points.iter().any(|p| p.1 > 0.0))
                    .collect(),
                ..Plot::default()
            });
        }
    }
    plots
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Tick;

    fn tick(at: f64, ops: u64, resident: u64) -> Tick {
        Tick {
            at,
            ops,
            resident,
            written: ops / 100,
            transactions: Some([ops, 0, 0, 0, 0]),
            ..Tick::default()
        }
    }

    fn run(budget: u64, durability: &str) -> RunResult {
        RunResult {
            scenario: "tpcc".into(),
            contender: "x".into(),
            repeat: 0,
            budget,
            memory_limit: None,
            durability: durability.into(),
            page_cache: "x".into(),
            seed: 0,
            outcome: crate::measure::Outcome::Finished,
            phases: vec![PhaseResult::default()],
            parameters: Default::default(),
        }
    }

    #[test]
    fn a_run_is_parted_where_the_memory_is_full() {
        let series = vec![
            tick(0.0, 0, 0),
            tick(2.0, 200, 84),
            tick(4.0, 400, 85),
            tick(8.0, 800, 90),
        ];
        let phase = PhaseResult {
            series,
            ..PhaseResult::default()
        };
        let parts = Parts::of(&phase, &run(100, "buffered"));
        assert_eq!((parts.full_at, parts.written_after), (Some(4.0), Some(1.0)));
        assert_eq!((parts.before, parts.after), (Some(100.0), Some(100.0)));
        // Two bytes are written by second 2: without a log that is more than a 32nd of the budget.
        let unlogged = Parts::of(&phase, &run(60, "none"));
        assert_eq!(unlogged.full_at, Some(2.0));
        let never = Parts::of(&phase, &run(1000, "none"));
        assert_eq!(
            (never.full_at, never.before, never.after),
            (None, Some(100.0), None)
        );
        assert_eq!(
            Parts::of(&PhaseResult::default(), &run(1, "none")),
            Parts::default()
        );
    }

    #[test]
    fn only_phases_with_transactions_are_in_the_table() {
        let mut run = run(100, "none");
        assert!(transaction_table("tpcc", std::slice::from_ref(&run)).is_none());
        run.phases.push(PhaseResult {
            latency: [("new_order".to_owned(), Default::default())].into(),
            series: vec![tick(0.0, 0, 0), tick(2.0, 200, 84)],
            done: 200,
            found: 198,
            seconds: 2.0,
            ..PhaseResult::default()
        });
        let table = transaction_table("tpcc", std::slice::from_ref(&run)).unwrap();
        let second: Vec<&str> = table.rows.iter().map(|r| r[1].as_str()).collect();
        assert_eq!(second, ["all", "new_order"]);
        assert_eq!(table.rows[0][5], "2");
        assert_eq!(transaction_plots(&[&run])[0].series.len(), 1);
    }
}
