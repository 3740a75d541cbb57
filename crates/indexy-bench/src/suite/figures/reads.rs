//! Figures 5, 6 and 7: reads after a load.

use super::{
    Sizes,
    draw::{best_at, by_x, ours_and_peers, ratio_text},
};
use crate::{
    contender::{About, Focus},
    harness::{Phase, UNBOUNDED, Work},
    measure::{PhaseResult, RunResult},
    report::svg::{Plot, Series},
    suite::{Draft, Plan},
    workload::{Order, Pick},
};

/// Shares of the keys that make a working set: the paper goes from 0.1 to some tens of its 320 million.
const SETS: [f64; 7] = [0.001, 0.0035, 0.01, 0.03, 0.08, 0.2, 0.5];
const EXPONENTS: [f64; 6] = [0.5, 0.6, 0.7, 0.8, 0.9, 0.99];
/// Exponents at which batches are read too.
const BATCHED: [f64; 2] = [0.7, 0.99];
const BATCH: usize = 64;
const SHIFT_EXPONENT: f64 = 0.7;
const SHIFTS: u64 = 4;
const UNITS: [u64; 3] = [1, 5, 10];

fn begin(sizes: &Sizes) -> Vec<Phase> {
    let load = Work::Load {
        from: 0,
        count: sizes.read_keys,
    };
    vec![
        // Reads need all keys, so the load has no tight cap.
        Phase::new("load", sizes.threads, Focus::Writes, load).capped(4.0 * sizes.load_seconds),
        Phase::new("settle", 1, Focus::Writes, Work::Settle),
    ]
}

fn draft(sizes: &Sizes, scenario: impl Into<String>) -> Draft {
    let mut draft = Draft::new(scenario, sizes.budget, sizes.read_keys, sizes.seed);
    draft.confined = true;
    draft
}

fn reading(sizes: &Sizes, name: String, seconds: f64, work: Work) -> Phase {
    Phase::new(&name, sizes.threads, Focus::Reads, work).capped(seconds)
}

pub(super) fn working_sets(sizes: &Sizes, all: &[&About], plan: &mut Plan) {
    let mut phases = begin(sizes);
    for share in SETS {
        let set = ((sizes.read_keys as f64 * share) as u64).max(1);
        let pick = Pick::WorkingSet {
            keys: sizes.read_keys,
            set,
        };
        let read = Work::Read {
            pick: pick.clone(),
            ops: UNBOUNDED,
            unit: 1,
        };
        phases.push(reading(
            sizes,
            format!("warm-{set}"),
            sizes.warm_seconds,
            Work::Touch { pick },
        ));
        phases.push(reading(sizes, format!("get-{set}"), sizes.read_seconds, read).at(set as f64));
    }
    for about in all {
        plan.add(&draft(sizes, "fig5"), about, 0, phases.clone());
    }
}

pub(super) fn skews(sizes: &Sizes, all: &[&About], plan: &mut Plan) {
    let mut phases = begin(sizes);
    for exponent in EXPONENTS {
        let pick = Pick::Zipf {
            keys: sizes.read_keys,
            exponent,
            scattered: true,
            rotate: 0,
        };
        let read = |pick: &Pick| Work::Read {
            pick: pick.clone(),
            ops: UNBOUNDED,
            unit: 1,
        };
        phases.push(reading(
            sizes,
            format!("warm-{exponent}"),
            sizes.warm_seconds,
            read(&pick),
        ));
        phases.push(
            reading(
                sizes,
                format!("get-{exponent}"),
                sizes.read_seconds,
                read(&pick),
            )
            .at(exponent),
        );
        if BATCHED.contains(&exponent) {
            let multi = Work::MultiRead {
                pick,
                ops: UNBOUNDED,
                batch: BATCH,
            };
            phases.push(
                reading(
                    sizes,
                    format!("multi-get-{exponent}"),
                    sizes.read_seconds,
                    multi,
                )
                .at(exponent),
            );
        }
    }
    for about in all {
        plan.add(&draft(sizes, "fig6"), about, 0, phases.clone());
    }
}

pub(super) fn shifts(sizes: &Sizes, all: &[&About], plan: &mut Plan) {
    for unit in UNITS {
        let mut draft = draft(sizes, format!("fig7-{unit}"));
        draft.order = Order::Sequential;
        let pick = |shift: u64| Pick::Zipf {
            keys: sizes.read_keys,
            exponent: SHIFT_EXPONENT,
            scattered: false,
            rotate: shift * sizes.read_keys / SHIFTS,
        };
        let read = |shift, ops| Work::Read {
            pick: pick(shift),
            ops,
            unit,
        };
        // The paper reads twice as many keys in a phase as there are; a time cap may end it earlier.
        let ops = if sizes.shift_seconds > 0.0 {
            UNBOUNDED
        } else {
            2 * sizes.operations
        };
        let mut phases = begin(sizes);
        phases.push(reading(
            sizes,
            "warm".to_owned(),
            sizes.warm_seconds,
            read(0, UNBOUNDED),
        ));
        for shift in 0..SHIFTS {
            phases.push(
                reading(
                    sizes,
                    format!("shift-{shift}"),
                    sizes.shift_seconds,
                    read(shift, ops),
                )
                .at(shift as f64),
            );
        }
        for about in all {
            plan.add(&draft, about, 0, phases.clone());
        }
    }
}

fn points_plot(results: &[RunResult], title: &str, x_label: &str, log_x: bool) -> Vec<Plot> {
    let mut series = by_x(results, "get-", |_, p| p.rate());
    let batched = by_x(results, "multi-get-", |_, p| p.rate());
    let ours = batched
        .into_iter()
        .filter(|s| s.name.starts_with("indexy") && !s.points.is_empty());
    series.extend(ours.map(|s| Series {
        name: format!("{}, batches of {BATCH}", s.name),
        dashed: true,
        ..s
    }));
    vec![Plot {
        title: title.to_owned(),
        x_label: x_label.to_owned(),
        y_label: "gets/s".to_owned(),
        series,
        log_x,
        log_y: true,
        ..Plot::default()
    }]
}

pub(super) fn working_set_plots(results: &[RunResult]) -> Vec<Plot> {
    points_plot(
        results,
        "Gets by size of the working set",
        "keys of the working set",
        true,
    )
}

pub(super) fn skew_plots(results: &[RunResult]) -> Vec<Plot> {
    points_plot(results, "Gets by zipf exponent", "exponent", false)
}

/// At each x, ours against the best peer.
pub(super) fn point_findings(results: &[RunResult]) -> Vec<String> {
    let series = by_x(results, "get-", |_, p| p.rate());
    let names: Vec<String> = series.iter().map(|s| s.name.clone()).collect();
    let Some((ours, peers)) = ours_and_peers(&names) else {
        return Vec::new();
    };
    let own = series
        .iter()
        .find(|s| s.name == ours)
        .map(|s| s.points.clone())
        .unwrap_or_default();
    let at = |(x, y): (f64, f64)| {
        let (peer, theirs) = best_at(&series, &peers, x)?;
        Some(format!("at {x}: {}", ratio_text(y, peer, theirs)))
    };
    own.into_iter().filter_map(at).collect()
}

/// The phases of one run one after the other, on one time axis.
fn shift_series(run: &RunResult) -> Series {
    let (mut offset, mut points) = (0.0, Vec::new());
    for phase in run.phases.iter().filter(|p| p.name.starts_with("shift-")) {
        points.extend(
            phase
                .throughput()
                .into_iter()
                .map(|(at, rate)| (offset + at, rate)),
        );
        offset += phase.seconds;
    }
    Series {
        name: run.contender.clone(),
        points,
        dashed: false,
    }
}

pub(super) fn shift_plots(results: &[RunResult]) -> Vec<Plot> {
    let plot = |unit: u64| {
        let runs = results
            .iter()
            .filter(|r| r.scenario == format!("fig7-{unit}"));
        Plot {
            title: format!("Gets while the key space rotates, {unit} key(s) per access"),
            x_label: "seconds".to_owned(),
            y_label: "gets/s".to_owned(),
            series: runs.map(shift_series).collect(),
            ..Plot::default()
        }
    };
    UNITS
        .iter()
        .map(|unit| plot(*unit))
        .filter(|p| !p.series.is_empty())
        .collect()
}

/// How soon after a shift nine tenths of the phase's steady throughput are back.
fn recovery(phase: &PhaseResult) -> Option<f64> {
    const STEADY_FROM: f64 = 0.5;
    const ENOUGH: f64 = 0.9;
    let series = phase.throughput();
    let steady: Vec<f64> = series
        .iter()
        .filter(|p| p.0 >= STEADY_FROM * phase.seconds)
        .map(|p| p.1)
        .collect();
    let steady = crate::measure::median(steady)?;
    let back = series.iter().find(|p| p.1 >= ENOUGH * steady)?;
    Some(back.0 / phase.seconds)
}

pub(super) fn shift_findings(results: &[RunResult]) -> Vec<String> {
    let ours = results.iter().filter(|r| r.contender.starts_with("indexy"));
    let text = |run: &RunResult| {
        let later = run
            .phases
            .iter()
            .filter(|p| p.name.starts_with("shift-") && p.name != "shift-0");
        let worst = later
            .filter_map(recovery)
            .fold(None, |worst: Option<f64>, r| {
                Some(worst.map_or(r, |w| w.max(r)))
            })?;
        Some(format!(
            "{} {}: 90 % of the steady throughput again after {:.0} % of a phase at worst",
            run.scenario,
            run.contender,
            100.0 * worst
        ))
    };
    ours.filter_map(text).collect()
}
