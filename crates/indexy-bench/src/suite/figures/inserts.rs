//! Figures 3 and 4 and Table II: inserts only.

use super::{
    Sizes,
    draw::{by_x, contenders, ours_and_peers, ratio_text},
};
use crate::{
    contender::{About, Focus},
    harness::{Phase, Work},
    measure::{PhaseResult, RunResult},
    suite::{Draft, Plan},
    workload::Order,
};
use indexy_report::chart::{Plot, Series};

const VALUE_BYTES: [usize; 5] = [8, 64, 256, 1024, 4096];
const PAGE_BYTES: [usize; 3] = [4096, 8192, 16_384];
const KEY_BYTES: u64 = 8;
const MIB: f64 = 1048576.0;

fn load(threads: usize, keys: u64, seconds: f64) -> Phase {
    Phase::new(
        "load",
        threads,
        Focus::Writes,
        Work::Load {
            from: 0,
            count: keys,
        },
    )
    .capped(seconds)
}

fn draft(sizes: &Sizes, scenario: impl Into<String>, keys: u64) -> Draft {
    let mut draft = Draft::new(scenario, sizes.budget, keys, sizes.seed);
    draft.confined = true;
    draft
}

fn growth(sizes: &Sizes, all: &[&About], plan: &mut Plan, scenario: &str, order: Order) {
    let mut draft = draft(sizes, scenario, sizes.insert_keys);
    draft.order = order;
    for about in all {
        let settle = Phase::new("settle", 1, Focus::Writes, Work::Settle);
        plan.add(
            &draft,
            about,
            0,
            vec![
                load(sizes.threads, sizes.insert_keys, sizes.load_seconds),
                settle,
            ],
        );
    }
}

pub(super) fn random(sizes: &Sizes, all: &[&About], plan: &mut Plan) {
    growth(sizes, all, plan, "fig3-random", Order::Random);
}

pub(super) fn sequential(sizes: &Sizes, all: &[&About], plan: &mut Plan) {
    growth(sizes, all, plan, "fig3-sequential", Order::Sequential);
}

pub(super) fn page_sizes(sizes: &Sizes, all: &[&About], plan: &mut Plan) {
    for bytes in PAGE_BYTES {
        let mut draft = draft(sizes, format!("table2-{}k", bytes >> 10), sizes.insert_keys);
        draft.page_bytes = bytes;
        for about in all.iter().filter(|a| a.pages) {
            plan.add(
                &draft,
                about,
                0,
                vec![load(sizes.threads, sizes.insert_keys, sizes.load_seconds).at(bytes as f64)],
            );
        }
    }
}

pub(super) fn value_sizes(sizes: &Sizes, all: &[&About], plan: &mut Plan) {
    let volume = sizes.insert_keys * (KEY_BYTES + VALUE_BYTES[0] as u64);
    for bytes in VALUE_BYTES {
        let keys = volume / (KEY_BYTES + bytes as u64);
        let mut draft = draft(sizes, format!("fig4-{bytes}"), keys);
        draft.value_bytes = bytes;
        for about in all {
            let load = load(sizes.threads, keys, sizes.size_seconds);
            plan.add(&draft, about, 0, vec![load.at(bytes as f64)]);
        }
    }
}

pub(super) fn growth_plots(results: &[RunResult]) -> Vec<Plot> {
    let series = |points: fn(&PhaseResult) -> Vec<(f64, f64)>| -> Vec<Series> {
        let runs = results
            .iter()
            .filter_map(|r| Some((r.contender.clone(), r.phase("load")?)));
        runs.map(|(name, phase)| Series {
            name,
            points: points(phase),
            dashed: false,
        })
        .collect()
    };
    let mut memory = series(|p| {
        p.series
            .iter()
            .map(|t| (t.ops as f64, t.resident as f64 / MIB))
            .collect()
    });
    if let Some(run) = results.first() {
        let budget = run.budget as f64 / MIB;
        let last = memory
            .iter()
            .flat_map(|s| &s.points)
            .map(|p| p.0)
            .fold(0.0, f64::max);
        memory.push(Series {
            name: "budget".to_owned(),
            points: vec![(0.0, budget), (last, budget)],
            dashed: true,
        });
    }
    vec![
        Plot {
            title: "Throughput over keys inserted".to_owned(),
            x_label: "keys".to_owned(),
            y_label: "inserts/s".to_owned(),
            series: series(throughput_over_keys),
            ..Plot::default()
        },
        Plot {
            title: "Resident memory over keys inserted".to_owned(),
            x_label: "keys".to_owned(),
            y_label: "MiB".to_owned(),
            series: memory,
            ..Plot::default()
        },
    ]
}

fn throughput_over_keys(phase: &PhaseResult) -> Vec<(f64, f64)> {
    let middle = |w: &[crate::measure::Tick]| w[0].ops.midpoint(w[1].ops) as f64;
    phase
        .series
        .windows(2)
        .zip(phase.throughput())
        .map(|(w, (_, rate))| (middle(w), rate))
        .collect()
}

/// Throughput of the second half of what was inserted: after the limit in every preset.
fn late_rate(phase: &PhaseResult) -> Option<f64> {
    let half = phase.done / 2;
    let first = phase.series.iter().find(|t| t.ops >= half)?;
    let last = phase.series.last()?;
    (last.at > first.at).then(|| (last.ops - first.ops) as f64 / (last.at - first.at))
}

/// Throughput until this part of the budget is resident.
const BEFORE_THE_LIMIT: f64 = 0.75;

/// Throughput of what was inserted before the memory was full.
fn early_rate(run: &RunResult) -> Option<f64> {
    let series = &run.phase("load")?.series;
    let full = (run.budget as f64 * BEFORE_THE_LIMIT) as u64;
    let last = series.iter().take_while(|t| t.resident < full).last()?;
    (last.ops > 0).then(|| last.ops as f64 / last.at)
}

pub(super) fn growth_findings(results: &[RunResult]) -> Vec<String> {
    let names = contenders(results);
    let Some((ours, peers)) = ours_and_peers(&names) else {
        return Vec::new();
    };
    let run = |who: &str| results.iter().find(|r| r.contender == who);
    let load = |who: &str| run(who)?.phase("load");
    let mut findings = Vec::new();
    if let Some(rate) = run(ours).and_then(early_rate) {
        // Our other pairs too: the paper compares the memory indexes of its own.
        for other in names.iter().filter(|name| *name != ours) {
            if let Some(theirs) = run(other).and_then(early_rate) {
                findings.push(format!(
                    "before the memory is full: {}",
                    ratio_text(rate, other, theirs)
                ));
            }
        }
    }
    if let Some(rate) = load(ours).and_then(late_rate) {
        for peer in peers {
            if let Some(theirs) = load(peer).and_then(late_rate) {
                findings.push(format!(
                    "second half of the inserts: {}",
                    ratio_text(rate, peer, theirs)
                ));
            }
        }
    }
    for run in results.iter().filter(|r| r.contender == ours) {
        let peak = run
            .phases
            .iter()
            .map(PhaseResult::peak_resident)
            .max()
            .unwrap_or(0) as f64;
        findings.push(format!(
            "peak resident memory: {:.2} x the budget",
            peak / run.budget as f64
        ));
    }
    findings
}

pub(super) fn page_plots(results: &[RunResult]) -> Vec<Plot> {
    vec![Plot {
        title: "Random inserts by page size".to_owned(),
        x_label: "bytes of a page".to_owned(),
        y_label: "inserts/s".to_owned(),
        series: by_x(results, "load", |_, p| p.rate()),
        ..Plot::default()
    }]
}

fn volume_series(results: &[RunResult]) -> Vec<Series> {
    by_x(results, "load", |_, p| {
        p.payload_written as f64 / MIB / p.seconds.max(1e-9)
    })
}

pub(super) fn value_plots(results: &[RunResult]) -> Vec<Plot> {
    vec![Plot {
        title: "Random inserts by value size".to_owned(),
        x_label: "bytes of a value".to_owned(),
        y_label: "MiB/s of keys and values".to_owned(),
        series: volume_series(results),
        log_x: true,
        log_y: true,
        ..Plot::default()
    }]
}

pub(super) fn value_findings(results: &[RunResult]) -> Vec<String> {
    let gain = |s: &Series| Some(s.points.last()?.1 / s.points.first()?.1);
    let text = |s: &Series| {
        Some(format!(
            "{}: {:.1} x the bytes per second at the largest value",
            s.name,
            gain(s)?
        ))
    };
    volume_series(results).iter().filter_map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Outcome, Tick};

    /// A load with a budget of 1000 bytes, of which so many keys are in after 0, 1, 2, 3 and 4
    /// seconds. Three quarters are resident between 2 and 3.
    fn result(contender: &str, keys: [u64; 5]) -> RunResult {
        let resident = [0, 250, 500, 800, 900];
        let ticks = keys.iter().zip(resident).enumerate();
        let series = ticks.map(|(at, (&ops, resident))| Tick {
            at: at as f64,
            ops,
            resident,
            ..Tick::default()
        });
        RunResult {
            scenario: "fig3-random".to_owned(),
            contender: contender.to_owned(),
            repeat: 0,
            budget: 1000,
            memory_limit: None,
            durability: "none".to_owned(),
            page_cache: String::new(),
            seed: 0,
            outcome: Outcome::Finished,
            phases: vec![PhaseResult {
                name: "load".to_owned(),
                done: keys[4],
                seconds: 4.0,
                series: series.collect(),
                ..PhaseResult::default()
            }],
            parameters: Default::default(),
        }
    }

    #[test]
    fn rates_are_those_before_the_memory_is_full_and_of_the_second_half() {
        let run = result("x", [0, 600, 1200, 1300, 1400]);
        assert_eq!(early_rate(&run), Some(600.0));
        assert_eq!(run.phase("load").and_then(late_rate), Some(100.0));
        // Full from the beginning, and never.
        let with = |budget| RunResult {
            budget,
            ..run.clone()
        };
        assert_eq!(early_rate(&with(0)), None);
        assert_eq!(early_rate(&with(100_000)), Some(350.0));
    }

    #[test]
    fn ours_is_compared_before_the_memory_is_full_and_after() {
        let results = [
            result("indexy", [0, 600, 1200, 1300, 1400]),
            result("indexy-bplus-lsm", [0, 200, 400, 700, 1000]),
            result("bplus-alone", [0, 100, 200, 240, 280]),
        ];
        let told = growth_findings(&results);
        let expected = [
            "before the memory is full: 3.00 x indexy-bplus-lsm (600/s against 200/s)",
            "before the memory is full: 6.00 x bplus-alone (600/s against 100/s)",
            "second half of the inserts: 2.50 x bplus-alone (100/s against 40/s)",
            "peak resident memory: 0.00 x the budget",
        ];
        assert_eq!(told, expected);
    }
}
