//! Figures 9, 10 and 11: TPC-C, New-Order and Payment half and half.
//!
//! As in the paper only ORDER-LINE has the contender's pair or engine; the other tables have
//! ART-LSM in a database of their own, with room for their rows. `fig9-all` gives the pair to all
//! tables instead, which the paper does not show. Figure 11 draws the runs of Figure 9 again.

use super::{
    Sizes,
    draw::{best_at, contenders, ours_and_peers, ratio_text},
};
use crate::{
    applications::Config,
    contender::{About, Durability, Others},
    format::{bytes, rate},
    measure::{Parts, PhaseResult, RunResult},
    suite::{Plan, RUN, TablesRun, tables_plan},
    tpcc::{self, Mix},
};
use indexy_report::chart::{Plot, Series};

const PAGE_BYTES: usize = 4096;
const OTHERS: &str = "art-lsm";
const LINE: &str = "fig9-line";
const ALL: &str = "fig9-all";
const MIB: f64 = 1048576.0;

/// Who is left out of Figures 9 and 11 unless named; of the peers the best known of each kind
/// remain, RocksDB and LMDB.
pub(super) const NOT_OVER_THREADS: &[&str] = &["bf-tree", "fjall", "redb"];
/// Who is left out of Figure 10: the paper compares pages of a B+ tree.
pub(super) const NOT_BY_PAGES: &[&str] = &["bf-tree", "fjall", "redb", "lmdb", "rocksdb"];

fn run(sizes: &Sizes, scenario: String, others: Others, threads: usize, x: f64) -> TablesRun {
    let t = &sizes.tpcc;
    TablesRun {
        scenario,
        on: Config::Tpcc(tpcc::Config {
            scale: t.scale,
            mix: Mix::Paper,
            others,
        }),
        budget: t.budget,
        page_bytes: PAGE_BYTES,
        durability: Durability::None,
        threads,
        load_seconds: t.load_seconds,
        seconds: t.seconds,
        repeats: 1,
        seed: sizes.seed,
        x: Some(x),
    }
}

/// Only ORDER-LINE has the contender's pair.
fn line_only(sizes: &Sizes) -> Others {
    Others::Apart {
        pair: OTHERS.to_owned(),
        resident: false,
        share: sizes.tpcc.others_share,
    }
}

pub(super) fn threads(sizes: &Sizes, all: &[&About], plan: &mut Plan) {
    if plan.jobs().any(|job| job.scenario.starts_with(LINE)) {
        // Figures 9 and 11 share their runs.
        return;
    }
    for &threads in sizes.tpcc.threads {
        let scenario = format!("{LINE}-{threads}t");
        let one = run(sizes, scenario, line_only(sizes), threads, threads as f64);
        tables_plan(&one, all, plan);
    }
}

pub(super) fn all_tables(sizes: &Sizes, all: &[&About], plan: &mut Plan) {
    let threads = sizes.threads;
    let one = run(sizes, ALL.to_owned(), Others::Same, threads, threads as f64);
    tables_plan(&one, all, plan);
}

pub(super) fn page_sizes(sizes: &Sizes, all: &[&About], plan: &mut Plan) {
    let paged: Vec<&About> = all.iter().copied().filter(|a| a.pages).collect();
    for &page in sizes.tpcc.pages {
        let scenario = format!("fig10-{}k", page >> 10);
        let mut one = run(
            sizes,
            scenario,
            line_only(sizes),
            sizes.threads,
            page as f64,
        );
        one.page_bytes = page;
        tables_plan(&one, &paged, plan);
    }
}

/// The runs of the mix in `results`.
fn runs(results: &[RunResult]) -> impl Iterator<Item = (&RunResult, &PhaseResult)> {
    let ran = |r: &&RunResult| r.phase(RUN).is_some_and(|p| p.done > 0);
    results
        .iter()
        .filter(ran)
        .filter_map(|r| Some((r, r.phase(RUN)?)))
}

/// Throughput and memory over time, one pair of plots per scenario.
pub(super) fn time_plots(results: &[RunResult]) -> Vec<Plot> {
    let mut scenarios: Vec<&str> = runs(results).map(|(r, _)| r.scenario.as_str()).collect();
    scenarios.dedup();
    let plot = |scenario: &str, what: &str, points: fn(&PhaseResult) -> Vec<(f64, f64)>| {
        let of = runs(results).filter(|(r, _)| r.scenario == scenario);
        let series = of.map(|(run, phase)| Series {
            name: run.contender.clone(),
            points: points(phase),
            dashed: false,
        });
        Plot {
            title: format!("{scenario}: {what} over time"),
            x_label: "seconds".to_owned(),
            y_label: what.to_owned(),
            series: series.collect(),
            ..Plot::default()
        }
    };
    let resident = |p: &PhaseResult| -> Vec<(f64, f64)> {
        let points = p.series.iter();
        points.map(|t| (t.at, t.resident as f64 / MIB)).collect()
    };
    scenarios
        .into_iter()
        .flat_map(|s| {
            [
                plot(s, "transactions/s", |p| p.seconds_of(|t| t.ops)),
                plot(s, "resident, MiB", resident),
            ]
        })
        .collect()
}

/// One series per contender over x, where `y` has a value.
fn by_x(results: &[RunResult], y: impl Fn(&Parts) -> Option<f64>) -> Vec<Series> {
    let of = |name: &str| {
        let own = runs(results).filter(|(r, _)| r.contender == name);
        let mut points: Vec<(f64, f64)> = own
            .filter_map(|(r, p)| Some((p.x?, y(&Parts::of(p, r))?)))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    };
    contenders(results)
        .into_iter()
        .map(|name| Series {
            points: of(&name),
            name,
            dashed: false,
        })
        .collect()
}

/// Throughput before and after the limit, and the device, over threads.
pub(super) fn thread_plots(results: &[RunResult]) -> Vec<Plot> {
    let plot = |title: &str, y_label: &str, series: Vec<Series>| Plot {
        title: title.to_owned(),
        x_label: "threads".to_owned(),
        y_label: y_label.to_owned(),
        series,
        ..Plot::default()
    };
    let mib = |b: Option<f64>| b.map(|b| b / MIB);
    vec![
        plot(
            "Before the limit",
            "transactions/s",
            by_x(results, |p| p.before),
        ),
        plot(
            "After the limit",
            "transactions/s",
            by_x(results, |p| p.after),
        ),
        plot(
            "Device after the limit: written",
            "MiB/s",
            by_x(results, |p| mib(p.written_after)),
        ),
        plot(
            "Device after the limit: read",
            "MiB/s",
            by_x(results, |p| mib(p.read_after)),
        ),
    ]
}

pub(super) fn page_plots(results: &[RunResult]) -> Vec<Plot> {
    let mut plots = vec![Plot {
        title: "After the limit, by page size".to_owned(),
        x_label: "bytes of a page".to_owned(),
        y_label: "transactions/s".to_owned(),
        series: by_x(results, |p| p.after),
        log_x: true,
        ..Plot::default()
    }];
    plots.extend(time_plots(results));
    plots
}

/// Ours against the best other structure before the limit and after it, for each x; then how much
/// each fluctuates.
pub(super) fn findings(results: &[RunResult]) -> Vec<String> {
    let names = contenders(results);
    let mut found = match ours_and_peers(&names) {
        Some((ours, peers)) => ratios(results, ours, &peers),
        None => Vec::new(),
    };
    found.extend(runs(results).map(|(run, phase)| story(run, phase)));
    found
}

/// "at 2, before the limit: 1.5 x lmdb (30 k/s against 20 k/s)". The best other one before the
/// limit may be another than after it.
fn ratios(results: &[RunResult], ours: &str, peers: &[&str]) -> Vec<String> {
    let parts = [
        ("before", by_x(results, |p| p.before)),
        ("after", by_x(results, |p| p.after)),
    ];
    let ratio = |x: f64, (when, series): &(&str, Vec<Series>)| {
        let (_, rate) = best_at(series, &[ours], x)?;
        let (peer, theirs) = best_at(series, peers, x)?;
        let text = ratio_text(rate, peer, theirs);
        Some(format!("at {x}, {when} the limit: {text}"))
    };
    let own = by_x(results, |_| Some(0.0)).into_iter();
    let points = own.filter(|s| s.name == ours).flat_map(|s| s.points);
    points
        .flat_map(|(x, _)| parts.iter().filter_map(move |part| ratio(x, part)))
        .collect()
}

/// "fig9-line-2t indexy: 20 k/s before the limit at 4 s, 18 k/s after; whole seconds 15 k/s to 21
/// k/s (p5 to p95)".
fn story(run: &RunResult, phase: &PhaseResult) -> String {
    let parts = Parts::of(phase, run);
    let course = match (parts.full_at, parts.before, parts.after) {
        (None, before, _) => format!("{}; the limit was not reached", rate(before.unwrap_or(0.0))),
        (Some(at), before, after) => format!(
            "{} before the limit at {at:.0} s, {} after, writing {}/s",
            before.map_or_else(|| "-".to_owned(), rate),
            after.map_or_else(|| "-".to_owned(), rate),
            bytes(parts.written_after.unwrap_or(0.0)),
        ),
    };
    let steady = phase.steadiness(|t| t.ops).map_or_else(String::new, |s| {
        format!(
            "; whole seconds {} to {} (p5 to p95)",
            rate(s.p5),
            rate(s.p95)
        )
    });
    format!("{} {}: {course}{steady}", run.scenario, run.contender)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        measure::{Outcome, Tick},
        suite::figures::{Preset, find},
    };

    /// Ten seconds at one rate before the limit, which is reached after three, and at another one
    /// behind it.
    fn result(contender: &str, x: f64, before: u64, after: u64) -> RunResult {
        let ops = |at: u64| at.min(3) * before + at.saturating_sub(3) * after;
        let tick = |at: u64| Tick {
            at: at as f64,
            ops: ops(at),
            resident: if at < 3 { 0 } else { 100 },
            written: if at < 3 { 0 } else { at << 20 },
            transactions: Some([ops(at), 0, 0, 0, 0]),
            ..Tick::default()
        };
        RunResult {
            scenario: format!("{LINE}-{x}t"),
            contender: contender.to_owned(),
            repeat: 0,
            budget: 100,
            memory_limit: None,
            durability: "none".to_owned(),
            page_cache: String::new(),
            seed: 0,
            outcome: Outcome::Finished,
            phases: vec![PhaseResult {
                name: RUN.to_owned(),
                x: Some(x),
                done: ops(10),
                seconds: 10.0,
                series: (0..=10).map(tick).collect(),
                ..PhaseResult::default()
            }],
            parameters: Default::default(),
        }
    }

    #[test]
    fn figures_9_and_11_share_their_runs() {
        let registry = crate::registry::Registry::with_own();
        let all: Vec<&About> = registry.iter().filter(|a| a.name == "indexy").collect();
        let sizes = Preset::Smoke.sizes(1);
        let count = |ids: &[&str]| {
            let mut plan = Plan::default();
            for figure in ids.iter().flat_map(|id| find(id)) {
                figure.add_jobs(&sizes, &all, &mut plan);
            }
            plan.jobs().count()
        };
        let (nine, eleven) = (count(&["fig9-line"]), count(&["fig11"]));
        assert_eq!((nine, eleven), (sizes.tpcc.threads.len(), nine));
        assert_eq!(count(&["fig9-line", "fig11"]), nine);
        assert_eq!(count(&["fig9"]), nine + 1);
    }

    #[test]
    fn what_was_measured_is_found_drawn_and_told() {
        let results = [
            result("indexy", 2.0, 300, 120),
            result("bplus-alone", 2.0, 100, 60),
            result("lmdb", 2.0, 200, 20),
        ];
        for (id, plots) in [("fig9-line", 2), ("fig11", 4)] {
            let figure = find(id)[0];
            let drawn = figure.plots(&results);
            assert_eq!(drawn.len(), plots);
            assert!(drawn.iter().all(|p| p.series.len() == 3));
            let told = figure.findings(&results);
            // The best other one is not the same.
            let before = "at 2, before the limit: 1.50 x lmdb (300/s against 200/s)";
            let after = "at 2, after the limit: 2.00 x bplus-alone (120/s against 60/s)";
            assert_eq!(told[..2], [before, after]);
            assert!(told.iter().any(|t| t.contains("p5 to p95")));
        }
        assert!(find("fig10")[0].plots(&results)[0].series.is_empty());
    }

    #[test]
    fn a_run_on_one_side_of_the_limit_is_compared_on_that_side() {
        let mut never = result("indexy", 1.0, 100, 100);
        never.budget = 1 << 40;
        let mut at_once = result("indexy", 4.0, 100, 100);
        at_once.phases[0].series[0].resident = 100;
        let peers = [1.0, 4.0].map(|x| result("lmdb", x, 200, 50));
        let results = [vec![never, at_once], peers.to_vec()].concat();
        let told = ratios(&results, "indexy", &["lmdb"]);
        let [before, after] = &told[..] else {
            panic!("{told:?}");
        };
        assert!(
            before.starts_with("at 1, before the limit: 0.50 x lmdb"),
            "{before}"
        );
        assert!(
            after.starts_with("at 4, after the limit: 2.00 x lmdb"),
            "{after}"
        );
    }
}
