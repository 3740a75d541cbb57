//! Figures 5, 6 and 7: reads after a load.
//!
//! Figures 5 and 6 read what one load left, one after the other in one job; so do the three parts
//! of Figure 7.

use super::{
    Sizes,
    draw::{best_at, by_x, ours_and_peers, ratio_text, whole_loads},
};
use crate::{
    contender::{About, Focus},
    harness::{Phase, UNBOUNDED, Work},
    measure::{PhaseResult, RunResult},
    suite::{Draft, Plan},
    workload::{Order, Pick},
};
use indexy_report::chart::{Plot, Series};

/// Shares of the keys that make a working set: the paper goes from 0.1 to some tens of its 320
/// million.
const SETS: [f64; 7] = [0.001, 0.0035, 0.01, 0.03, 0.08, 0.2, 0.5];
const EXPONENTS: [f64; 6] = [0.5, 0.6, 0.7, 0.8, 0.9, 0.99];
/// Exponents at which batches are read too.
const BATCHED: [f64; 2] = [0.7, 0.99];
const BATCH: usize = 64;
const SHIFT_EXPONENT: f64 = 0.7;
const SHIFTS: u64 = 4;
const UNITS: [u64; 3] = [1, 5, 10];
/// The scenario of Figures 5 and 6.
pub(super) const READS: &str = "reads";
/// That of Figure 6 from the largest exponent on.
const DOWNWARDS: &str = "reads-down";
const SET: &str = "get-set-";
const ZIPF: &str = "get-zipf-";
const ZIPF_BATCHED: &str = "multi-get-zipf-";

fn begin(sizes: &Sizes) -> Vec<Phase> {
    let load = Work::Load {
        from: 0,
        count: sizes.read_keys,
    };
    vec![
        Phase::new("load", sizes.threads, Focus::Writes, load).capped(sizes.read_load_seconds),
        Phase::new("settle", 1, Focus::Writes, Work::Settle),
    ]
}

fn draft(sizes: &Sizes, scenario: impl Into<String>) -> Draft {
    let mut draft = Draft::new(scenario, sizes.read_budget, sizes.read_keys, sizes.seed);
    draft.confined = true;
    draft
}

fn reading(sizes: &Sizes, name: String, seconds: f64, work: Work) -> Phase {
    Phase::new(&name, sizes.threads, Focus::Reads, work).capped(seconds)
}

/// One whose throughput is the figure's.
fn measured(sizes: &Sizes, name: String, seconds: f64, work: Work) -> Phase {
    reading(sizes, name, seconds, work).turned_over(sizes.turnover(seconds))
}

pub(super) fn working_sets(sizes: &Sizes, all: &[&About], plan: &mut Plan) {
    let mut phases = Vec::new();
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
            format!("warm-set-{set}"),
            sizes.touch_seconds,
            Work::Touch { pick },
        ));
        let phase = measured(sizes, format!("{SET}{set}"), sizes.read_seconds, read);
        phases.push(phase.at(set as f64));
    }
    for about in all {
        plan.go_on(&draft(sizes, READS), about, &begin(sizes), &phases);
    }
}

pub(super) fn skews(sizes: &Sizes, all: &[&About], plan: &mut Plan) {
    let upwards: Vec<Phase> = EXPONENTS.map(|e| at_exponent(sizes, e)).concat();
    for about in all {
        plan.go_on(&draft(sizes, READS), about, &begin(sizes), &upwards);
    }
    if !sizes.both_orders {
        return;
    }
    // What is in memory when an exponent begins is what the one before left.
    let mut downwards: Vec<f64> = EXPONENTS.to_vec();
    downwards.reverse();
    let phases = downwards.into_iter().map(|e| at_exponent(sizes, e));
    let phases: Vec<Phase> = begin(sizes).into_iter().chain(phases.flatten()).collect();
    for about in all {
        plan.add(&draft(sizes, DOWNWARDS), about, 0, phases.clone());
    }
}

/// The phases of one exponent.
fn at_exponent(sizes: &Sizes, exponent: f64) -> Vec<Phase> {
    let pick = Pick::Zipf {
        keys: sizes.read_keys,
        exponent,
        scattered: true,
        rotate: 0,
    };
    let read = Work::Read {
        pick: pick.clone(),
        ops: UNBOUNDED,
        unit: 1,
    };
    let (warm, seconds) = (sizes.warm_seconds, sizes.read_seconds);
    let name = format!("{ZIPF}{exponent}");
    let mut phases = vec![
        reading(sizes, format!("warm-zipf-{exponent}"), warm, read.clone()),
        measured(sizes, name, seconds, read).at(exponent),
    ];
    if BATCHED.contains(&exponent) {
        let multi = Work::MultiRead {
            pick,
            ops: UNBOUNDED,
            batch: BATCH,
        };
        let name = format!("{ZIPF_BATCHED}{exponent}");
        phases.push(measured(sizes, name, seconds, multi).at(exponent));
    }
    phases
}

pub(super) fn shifts(sizes: &Sizes, all: &[&About], plan: &mut Plan) {
    let mut draft = draft(sizes, "fig7");
    draft.order = Order::Sequential;
    let pick = |shift: u64| Pick::Zipf {
        keys: sizes.read_keys,
        exponent: SHIFT_EXPONENT,
        scattered: false,
        rotate: shift * sizes.read_keys / SHIFTS,
    };
    // The paper reads twice as many keys in a phase as there are; a time cap may end it earlier.
    let ops = if sizes.shift_seconds > 0.0 {
        UNBOUNDED
    } else {
        2 * sizes.operations
    };
    let mut phases = begin(sizes);
    for unit in UNITS {
        let read = |shift, ops| Work::Read {
            pick: pick(shift),
            ops,
            unit,
        };
        let name = format!("warm-{unit}");
        let warm = reading(sizes, name, sizes.warm_seconds, read(0, UNBOUNDED));
        phases.push(warm);
        for shift in 0..SHIFTS {
            let (name, seconds) = (shift_name(unit, shift), sizes.shift_seconds);
            let phase = measured(sizes, name, seconds, read(shift, ops));
            phases.push(phase.at(shift as f64));
        }
    }
    for about in all {
        plan.add(&draft, about, 0, phases.clone());
    }
}

fn shift_name(unit: u64, shift: u64) -> String {
    format!("unit-{unit}-shift-{shift}")
}

/// The phases of `run` with `unit` keys an access, in order.
fn shift_phases(run: &RunResult, unit: u64) -> impl Iterator<Item = &PhaseResult> {
    (0..SHIFTS).filter_map(move |shift| run.phase(&shift_name(unit, shift)))
}

pub(super) fn working_set_plots(results: &[RunResult]) -> Vec<Plot> {
    vec![Plot {
        title: "Gets by size of the working set".to_owned(),
        x_label: "keys of the working set".to_owned(),
        y_label: "gets/s".to_owned(),
        series: by_x(results, SET, |_, p| p.rate()),
        log_x: true,
        log_y: true,
        ..Plot::default()
    }]
}

pub(super) fn skew_plots(results: &[RunResult]) -> Vec<Plot> {
    let (up, down) = by_order(results);
    let mut series = by_x(&up, ZIPF, |_, p| p.rate());
    let batched = by_x(&up, ZIPF_BATCHED, |_, p| p.rate());
    let downwards = by_x(&down, ZIPF, |_, p| p.rate()).into_iter();
    series.extend(downwards.map(|s| Series {
        name: format!("{}, downwards", s.name),
        dashed: true,
        ..s
    }));
    let ours = batched
        .into_iter()
        .filter(|s| s.name.starts_with("indexy") && !s.points.is_empty());
    series.extend(ours.map(|s| Series {
        name: format!("{}, batches of {BATCH}", s.name),
        dashed: true,
        ..s
    }));
    vec![Plot {
        title: "Gets by zipf exponent".to_owned(),
        x_label: "exponent".to_owned(),
        y_label: "gets/s".to_owned(),
        series,
        log_y: true,
        ..Plot::default()
    }]
}

pub(super) fn working_set_findings(results: &[RunResult]) -> Vec<String> {
    point_findings(&by_order(results).0, SET)
}

/// Also what batches gain.
pub(super) fn skew_findings(results: &[RunResult]) -> Vec<String> {
    let (results, down) = by_order(results);
    let results = &results[..];
    let mut found = point_findings(results, ZIPF);
    found.extend(order_findings(results, &down));
    let (single, batched) = (
        by_x(results, ZIPF, |_, p| p.rate()),
        by_x(results, ZIPF_BATCHED, |_, p| p.rate()),
    );
    for (one, many) in single.iter().zip(&batched) {
        let pairs = many.points.iter().filter_map(|&(x, rate)| {
            let at = one.points.iter().find(|p| p.0 == x)?;
            Some((x, rate / at.1))
        });
        let ours = one.name.starts_with("indexy");
        found.extend(pairs.filter(|_| ours).map(|(x, ratio)| {
            format!(
                "{} at {x}: batches of {BATCH} get {ratio:.2} x single gets",
                one.name
            )
        }));
    }
    found
}

/// The results of the exponents upwards, and downwards.
fn by_order(results: &[RunResult]) -> (Vec<RunResult>, Vec<RunResult>) {
    let results = results.iter().cloned();
    results.partition(|run| run.scenario != DOWNWARDS)
}

/// What the order of the exponents makes of ours.
fn order_findings(up: &[RunResult], down: &[RunResult]) -> Vec<String> {
    let (up, down) = (
        by_x(up, ZIPF, |_, p| p.rate()),
        by_x(down, ZIPF, |_, p| p.rate()),
    );
    let ours = up.iter().filter(|s| s.name.starts_with("indexy"));
    let text = |one: &Series| {
        let other = down.iter().find(|s| s.name == one.name)?;
        let pairs = one.points.iter().filter_map(|(x, rate)| {
            let at = other.points.iter().find(|p| p.0 == *x)?;
            Some(format!("{:.2} x at {x}", at.1 / rate))
        });
        let pairs: Vec<String> = pairs.collect();
        (!pairs.is_empty()).then(|| {
            format!(
                "{}, downwards against upwards: {}",
                one.name,
                pairs.join(", ")
            )
        })
    };
    ours.filter_map(text).collect()
}

/// At each x, ours against the best peer.
fn point_findings(results: &[RunResult], phase: &str) -> Vec<String> {
    let (whole, remarks) = whole_loads(results);
    let series = by_x(&whole, phase, |_, p| p.rate());
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
    own.into_iter().filter_map(at).chain(remarks).collect()
}

/// The phases with `unit` keys an access one after the other, on one time axis.
fn shift_series(run: &RunResult, unit: u64) -> Series {
    let (mut offset, mut points) = (0.0, Vec::new());
    for phase in shift_phases(run, unit) {
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
        let series = results.iter().map(|run| shift_series(run, unit));
        Plot {
            title: format!("Gets while the key space rotates, {unit} key(s) per access"),
            x_label: "seconds".to_owned(),
            y_label: "gets/s".to_owned(),
            series: series.filter(|s| !s.points.is_empty()).collect(),
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

/// Releases of memory in the phase that had the fewest.
fn least_releases(run: &RunResult, unit: u64) -> u64 {
    let grown = |phase| run.grown(phase, "releases").unwrap_or(0.0);
    let least = shift_phases(run, unit).map(grown).reduce(f64::min);
    least.unwrap_or(0.0) as u64
}

pub(super) fn shift_findings(results: &[RunResult]) -> Vec<String> {
    let worst = |run: &RunResult, unit: u64| {
        let later = shift_phases(run, unit).skip(1).filter_map(recovery);
        later.reduce(f64::max)
    };
    let mut found = Vec::new();
    for run in results.iter().filter(|r| r.contender.starts_with("indexy")) {
        for unit in UNITS {
            if let Some(worst) = worst(run, unit) {
                found.push(format!(
                    "{}, {unit} key(s) per access: 90 % of the steady throughput again after \
                     {:.0} % of a phase at worst; {} releases in a phase at least",
                    run.contender,
                    100.0 * worst,
                    least_releases(run, unit)
                ));
            }
        }
    }
    found
}
