//! Figures of *Larger-than-Memory Data Management on Modern Storage Hardware* (Ma and others, DaMoN
//! 2016), `ma1` to `ma6`: which policies for cold data are best on which device.
//!
//! Five devices are modelled (`Options::modelled_device`), so the data should lie in memory:
//! `--dir` on a tmpfs. Loads and warm-ups are not slowed down; each measured phase begins with the
//! memory that its policy keeps. A case is a device and a policy: a scenario `ma4-ssd-top5`, whose
//! phases are exponents of the draws.
//!
//! The paper's engine runs transactions one by one on each partition, and so does one thread here.
//! Its updates read the tuple that they write; here they are blind writes, which take no read.

pub(super) mod access;
pub(super) mod admission;
pub(super) mod blocks;
pub(super) mod devices;
pub(super) mod profiles;
pub(super) mod retrieval;
mod verdict;

use super::Sizes;
use crate::{
    contender::{About, Cold, Device, Focus},
    format,
    harness::{Phase, Work},
    measure::{PhaseResult, RunResult, Tick, median},
    suite::{Draft, Plan},
};
use indexy::Admission;
use indexy_report::chart::{Plot, Series};

/// The contender of ours that all cases run, with its disk index as a case has it.
const CONTENDER: &str = "indexy-art-bplus";
/// Reads that a thread puts aside, at most: all channels of every device have some.
const ASIDE: usize = 64;
/// The largest page that there is.
const LARGEST_PAGE: usize = 16_384;
/// Operations of a phase whose throughput says something.
const LEAST_OPERATIONS: u64 = 500;
/// Runs that were written meanwhile, each of which keeps a disk that turns busy for a while.
const LEAST_RUNS: f64 = 6.0;
/// Operations among which they do not matter.
const MANY_OPERATIONS: u64 = 10_000;
const RUN: &str = "run";
/// Releases that say how far they are apart: each is one of so many.
const LEAST_RELEASES: f64 = 8.0;

/// A policy on a device.
#[derive(Debug, Clone, Copy)]
struct Case<'a> {
    figure: &'static str,
    policy: &'a str,
    cold: Cold,
    /// Bytes of a page; 0 with a preset.
    page_bytes: usize,
    budget: u64,
}

/// The name of the scenario of a case.
fn scenario(figure: &str, device: Device, policy: &str) -> String {
    format!("{figure}-{}-{policy}", device.name())
}

/// The contender of all cases, if it takes part.
fn contender<'a>(all: &[&'a About]) -> Option<&'a About> {
    all.iter().copied().find(|about| about.name == CONTENDER)
}

/// As [`DeviceProfile`](indexy::DeviceProfile) has it, with `admission`.
fn tuned(device: Device, admission: Option<Admission>) -> Cold {
    Cold {
        profile: true,
        admission,
        ..Cold::on(device)
    }
}

fn draft(sizes: &Sizes, case: &Case<'_>) -> Draft {
    let scenario = scenario(case.figure, case.cold.device, case.policy);
    let mut draft = Draft::new(scenario, case.budget, sizes.cold.records, sizes.seed);
    draft.value_bytes = RECORD_BYTES;
    draft.page_bytes = case.page_bytes;
    draft.cold = Some(case.cold);
    draft
}

const RECORD_BYTES: usize = 1024;

fn properties(sizes: &Sizes, skew: f64, operations: u64) -> Vec<(String, String)> {
    let of = |name: &str, value: String| (name.to_owned(), value);
    vec![
        of("recordcount", sizes.cold.records.to_string()),
        of("operationcount", operations.to_string()),
        of("fieldcount", "1".to_owned()),
        of("fieldlength", RECORD_BYTES.to_string()),
        of("keyformat", "u64".to_owned()),
        of("readproportion", "0.9".to_owned()),
        of("updateproportion", "0.1".to_owned()),
        of("requestdistribution", "zipfian".to_owned()),
        of("zipfianconstant", skew.to_string()),
    ]
}

/// No more operations a second: what a phase may write, its disk must have room for.
const MOST_PER_SECOND: f64 = 2e6;
/// The same on disks that turn.
const MOST_WHERE_IT_TURNS: f64 = 5e4;
/// Milliseconds between two points of a phase over time.
const TICK_MS: u64 = 50;

fn most_per_second(device: Device) -> f64 {
    match device.turns() {
        true => MOST_WHERE_IT_TURNS,
        false => MOST_PER_SECOND,
    }
}

/// Adds the job of `case`: a load, and a warm-up and a measured phase for each of `skews`.
fn add_ycsb(sizes: &Sizes, case: &Case<'_>, about: &About, skews: &[f64], plan: &mut Plan) {
    let cold = &sizes.cold;
    let load = Work::YcsbLoad {
        properties: properties(sizes, 0.0, 0),
    };
    let mut phases = vec![
        Phase::new("load", 1, Focus::Writes, load)
            .capped(cold.load_seconds)
            .hurried(),
    ];
    let seconds = cold.seconds_on(case.cold.device);
    for &skew in skews {
        let work = |operations| Work::YcsbRun {
            properties: properties(sizes, skew, operations),
        };
        let warm = work(cold.warm_operations);
        phases.push(
            Phase::new(&format!("warm-{skew}"), 1, Focus::Mixed, warm)
                .capped(cold.load_seconds)
                .hurried(),
        );
        let name = format!("{RUN}-{skew}");
        let most = (seconds * most_per_second(case.cold.device)) as u64;
        let run = Phase::new(&name, 1, Focus::Mixed, work(most)).capped(seconds);
        phases.push(run.at(skew));
    }
    plan.add(&draft(sizes, case), about, 0, phases);
    if let Some(job) = plan.last_job_mut() {
        job.tick_ms = TICK_MS;
    }
}

/// The run of a case.
fn run_of<'a>(
    results: &'a [RunResult],
    figure: &str,
    device: Device,
    policy: &str,
) -> Option<&'a RunResult> {
    let name = scenario(figure, device, policy);
    results.iter().find(|run| run.scenario == name)
}

/// The measured phases of a run with their exponents.
fn points(run: &RunResult) -> impl Iterator<Item = (f64, &PhaseResult)> {
    run.phases
        .iter()
        .filter(|phase| phase.done > 0)
        .filter_map(|phase| Some((phase.x?, phase)))
}

/// The measured phase at `x`.
fn at(run: Option<&RunResult>, x: f64) -> Option<&PhaseResult> {
    points(run?).find(|point| point.0 == x).map(|point| point.1)
}

/// Exponents that any of `results` has, in order.
fn skews(results: &[RunResult]) -> Vec<f64> {
    let mut all: Vec<f64> = results
        .iter()
        .flat_map(points)
        .map(|point| point.0)
        .collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    all
}

/// Whether `phase` is so long that its throughput says something: some writes to the device are in
/// it, or so many operations that they do not matter. A phase of tables is by its operations.
fn is_enough(run: &RunResult, phase: &PhaseResult) -> bool {
    let runs = run.grown(phase, "cleaned_runs").unwrap_or(0.0);
    phase.done >= MANY_OPERATIONS || phase.done >= LEAST_OPERATIONS && runs >= LEAST_RUNS
}

/// What `run` has at `x` over what `other` has; none where a phase was too short for a verdict.
fn rate_ratio(run: Option<&RunResult>, other: Option<&RunResult>, x: f64) -> Option<f64> {
    let (here, there) = (at(run, x)?, at(other, x)?);
    let enough = is_enough(run?, here) && is_enough(other?, there);
    enough.then(|| here.rate() / there.rate())
}

/// "2.31 x (90 k/s against 39 k/s)".
fn rates_text(run: Option<&RunResult>, other: Option<&RunResult>, x: f64) -> Option<String> {
    let (one, other) = (at(run, x)?.rate(), at(other, x)?.rate());
    let ratio = one / other;
    let (one, other) = (format::rate(one), format::rate(other));
    Some(format!("{ratio:.2} x ({one} against {other})"))
}

/// Throughput by ticks, without those that were cut short, which say little.
fn ticks(phase: &PhaseResult) -> Vec<(f64, f64)> {
    let whole = |w: &&[Tick]| w[1].at - w[0].at > TICK_MS as f64 / 2e3;
    let whole = phase.series.windows(2).filter(whole);
    let rate = |w: &[Tick]| {
        let operations = w[1].ops.saturating_sub(w[0].ops) as f64;
        (w[0].at.midpoint(w[1].at), operations / (w[1].at - w[0].at))
    };
    whole.map(rate).collect()
}

/// By how much throughput changes from tick to tick: the distance from the 5th to the 95th of a
/// hundred ticks, as a part of the median. None of a phase with too few.
fn unsteadiness(phase: &PhaseResult) -> Option<f64> {
    const LEAST_TICKS: usize = 20;
    let mut rates: Vec<f64> = ticks(phase).into_iter().map(|tick| tick.1).collect();
    if rates.len() < LEAST_TICKS {
        return None;
    }
    rates.sort_by(f64::total_cmp);
    let part = |p: usize| rates[(rates.len() - 1) * p / 100];
    let middle = median(rates.clone()).filter(|middle| *middle > 0.0)?;
    Some((part(95) - part(5)) / middle)
}

/// A plot for each device that has results, with a series for each policy.
fn by_device(
    results: &[RunResult],
    figure: &str,
    policies: &[(&str, &str)],
    what: &str,
    y: impl Fn(&RunResult, &PhaseResult) -> Option<f64>,
) -> Vec<Plot> {
    let plot = |device: Device| {
        let series = policies.iter().filter_map(|(policy, title)| {
            let run = run_of(results, figure, device, policy)?;
            let points = points(run).filter_map(|(x, phase)| Some((x, y(run, phase)?)));
            Some(Series {
                name: (*title).to_owned(),
                points: points.collect(),
                dashed: false,
            })
        });
        Plot {
            title: format!("{}: {what}", device.title()),
            x_label: "zipf exponent".to_owned(),
            y_label: what.to_owned(),
            series: series.filter(|s| !s.points.is_empty()).collect(),
            y_min: None,
            ..Plot::default()
        }
    };
    let plots = Device::ALL.into_iter().map(plot);
    let mut plots: Vec<Plot> = plots.filter(|plot| !plot.series.is_empty()).collect();
    // Where others have lines, a device with one exponent is told of in words.
    let is_line = |plot: &Plot| plot.series.iter().any(|s| s.points.len() > 1);
    if plots.iter().any(is_line) {
        plots.retain(is_line);
    }
    plots
}

#[cfg(test)]
mod tests;
