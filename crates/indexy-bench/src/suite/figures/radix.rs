//! The radix cache of paper 002 beside the paged B+ tree alone and ART over it, at equal memory.
//!
//! The thesis varies the count of records, how keys are drawn, and the coefficient of geometric
//! draws; its workloads are A, B, C and E of YCSB and X, which deletes. Here the size of values is
//! varied, too: a locator of a large one leads past its leaf. Geometric draws are YCSB's
//! exponential ones, which are their limit.
//!
//! A load leaves what it wrote in the write buffer, which then answers reads in the place of the
//! cache. So each database is opened again after its load, and read for a while before anything is
//! measured; reads alone come first.

use super::{Sizes, draw::contenders};
use crate::{
    contender::{About, Durability, Focus},
    format,
    harness::{Job, Phase, Work},
    measure::RunResult,
    suite::{Plan, Step, YcsbRun, ycsb_plan},
    workload::{Properties, builtin_text},
};
use indexy_report::chart::{Plot, Series};

pub(super) const CONTENDERS: [&str; 4] = [
    "radix-cache",
    "radix-cache-leaves",
    "bplus-alone",
    "indexy-art-bplus",
];
const FIGURE: &str = "radix";
/// In an order in which what writes comes after reads, and what adds and what removes records last.
const WORKLOADS: [&str; 5] = ["c", "b", "a", "e", "x"];
/// The first of them, once before it is measured.
const WARM: &str = "warm";
/// Operations of a phase, for each record, at most.
const MOST_OPERATIONS: u64 = 8;
/// Most records of a scan.
const SCAN: &str = "100";
/// A key and a value of 8 bytes in a full leaf, in bytes.
const SMALL_BYTES: u64 = 16;

/// How keys are drawn.
#[derive(Debug, Clone, Copy)]
enum Draws {
    Uniform,
    Zipf(f64),
    /// With this coefficient.
    Geometric(f64),
}

struct Case {
    name: String,
    records: u64,
    value_bytes: u64,
    draws: Draws,
}

/// `budget` in bytes. An eighth of what fits lies in memory whatever a contender keeps of it; the
/// largest count is four times what fits.
fn cases(budget: u64) -> Vec<Case> {
    const IN_MEMORY: [(&str, Draws); 2] = [
        ("uniform", Draws::Uniform),
        ("zipf-0.99", Draws::Zipf(0.99)),
    ];
    const DRAWS: [(&str, Draws); 4] = [
        ("uniform", Draws::Uniform),
        ("zipf-0.99", Draws::Zipf(0.99)),
        ("zipf-0.7", Draws::Zipf(0.7)),
        ("geometric-0.1", Draws::Geometric(0.1)),
    ];
    let fit = budget / SMALL_BYTES;
    let case = |name: String, records, value_bytes, draws| Case {
        name,
        records,
        value_bytes,
        draws,
    };
    let memory = IN_MEMORY.map(|(name, draws)| case(format!("memory-{name}"), fit / 8, 8, draws));
    let draws = DRAWS.map(|(name, draws)| case(format!("draws-{name}"), 4 * fit, 8, draws));
    let values = [8192, 1024, 256].map(|bytes| {
        let records = 4 * budget / (bytes + 8);
        case(format!("value-{bytes}"), records, bytes, Draws::Zipf(0.7))
    });
    let counts = [(1, 8), (1, 1), (4, 1)].map(|(times, of)| {
        let name = format!("count-{times}-{of}");
        case(name, fit * times / of, 8, Draws::Geometric(0.001))
    });
    let all = memory.into_iter().chain(draws);
    all.chain(values).chain(counts).collect()
}

fn properties(sizes: &Sizes, case: &Case, workload: &str) -> Option<Properties> {
    /// The part of exponential draws that lies in a given part of the keys, in percent.
    const PERCENTILE: f64 = 95.0;
    // Large values need little room on disk then, however many would be inserted.
    let operations = sizes.operations.min(MOST_OPERATIONS * case.records);
    let mut p = Properties::default();
    p.read(builtin_text(workload)?).ok()?;
    let mut set = vec![
        ("recordcount", case.records.to_string()),
        ("operationcount", operations.to_string()),
        ("fieldcount", "1".to_owned()),
        ("fieldlength", case.value_bytes.to_string()),
        ("keyformat", "u64".to_owned()),
        ("maxscanlength", SCAN.to_owned()),
    ];
    match case.draws {
        Draws::Uniform => set.push(("requestdistribution", "uniform".to_owned())),
        Draws::Zipf(exponent) => {
            set.push(("requestdistribution", "zipfian".to_owned()));
            set.push(("zipfianconstant", exponent.to_string()));
        }
        Draws::Geometric(coefficient) => {
            let keys = -(1.0 - PERCENTILE / 100.0).ln() / coefficient;
            let part = (keys / case.records as f64).min(1.0);
            set.push(("requestdistribution", "exponential".to_owned()));
            set.push(("exponential.percentile", PERCENTILE.to_string()));
            set.push(("exponential.frac", part.to_string()));
        }
    }
    for (name, value) in set {
        p.set(name, &value).ok()?;
    }
    Some(p)
}

pub(super) fn jobs(sizes: &Sizes, all: &[&About], plan: &mut Plan) {
    let ours: Vec<&About> = all
        .iter()
        .copied()
        .filter(|about| CONTENDERS.contains(&about.name))
        .collect();
    if ours.is_empty() {
        return;
    }
    for case in cases(sizes.read_budget) {
        let [reads, ..] = WORKLOADS;
        let runs = [(WARM, reads)].into_iter().chain(WORKLOADS.map(|w| (w, w)));
        let run = YcsbRun {
            scenario: format!("{FIGURE}-{}", case.name),
            workloads: runs
                .filter_map(|(name, w)| Some((name.to_owned(), properties(sizes, &case, w)?)))
                .collect(),
            budget: sizes.read_budget,
            durability: Durability::None,
            threads: sizes.threads,
            max_seconds: sizes.ycsb_seconds,
            repeats: 1,
            seed: sizes.seed,
            confined: true,
        };
        let mut steps = ycsb_plan(&run, &ours).map(|p| p.steps).unwrap_or_default();
        for step in &mut steps {
            if let Step::Run(job) = step {
                prepare(job, sizes);
            }
        }
        plan.steps.append(&mut steps);
    }
}

/// The load has the cap of a load before reads, and the database is opened again before the first
/// of them.
fn prepare(job: &mut Job, sizes: &Sizes) {
    if let Some(load) = job.phases.iter_mut().find(|phase| phase.name == "load") {
        load.max_seconds = sizes.read_load_seconds;
    }
    if let Some(first) = job.phases.iter().position(|phase| phase.name == WARM) {
        let reopen = Phase::new("reopen", 1, Focus::Reads, Work::Reopen);
        job.phases.insert(first, reopen);
    }
}

/// Names of the scenarios, in the order of their first run.
fn scenarios(results: &[RunResult]) -> Vec<&str> {
    let mut names = Vec::new();
    for run in results {
        if !names.contains(&run.scenario.as_str()) {
            names.push(&run.scenario);
        }
    }
    names
}

fn rate(results: &[RunResult], scenario: &str, who: &str, workload: &str) -> Option<f64> {
    let run = results
        .iter()
        .find(|run| run.scenario == scenario && run.contender == who)?;
    Some(run.phase(workload)?.rate()).filter(|rate| *rate > 0.0)
}

pub(super) fn plots(results: &[RunResult]) -> Vec<Plot> {
    let plot = |scenario: &str| {
        let series = contenders(results).into_iter().map(|name| {
            let at = |(i, workload): (usize, &&str)| {
                Some((i as f64, rate(results, scenario, &name, workload)?))
            };
            Series {
                points: WORKLOADS.iter().enumerate().filter_map(at).collect(),
                name,
                dashed: false,
            }
        });
        Plot {
            title: scenario.to_owned(),
            y_label: "operations/s".to_owned(),
            groups: WORKLOADS.iter().map(|w| w.to_uppercase()).collect(),
            series: series.collect(),
            log_y: true,
            ..Plot::default()
        }
    };
    scenarios(results).into_iter().map(plot).collect()
}

/// The goals: 1.2 times the disk index alone in memory, 0.95 times it beyond.
pub(super) fn findings(results: &[RunResult]) -> Vec<String> {
    let [keys, leaves, alone, art] = CONTENDERS;
    let mut found = Vec::new();
    for scenario in scenarios(results) {
        for who in [keys, leaves] {
            let against = |other: &str| {
                let ratio = |workload: &&str| {
                    let (own, theirs) = (
                        rate(results, scenario, who, workload)?,
                        rate(results, scenario, other, workload)?,
                    );
                    Some(format!("{} {:.2}", workload.to_uppercase(), own / theirs))
                };
                let ratios: Vec<String> = WORKLOADS.iter().filter_map(ratio).collect();
                (!ratios.is_empty()).then(|| format!("{} x {other}", ratios.join(", ")))
            };
            let told: Vec<String> = [alone, art].into_iter().filter_map(against).collect();
            let reads = rate(results, scenario, who, "c").map(format::rate);
            if let (Some(reads), false) = (reads, told.is_empty()) {
                found.push(format!(
                    "{scenario}, {who} (C {reads}): {}",
                    told.join("; ")
                ));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{registry::Registry, suite::figures::Preset};

    #[test]
    fn every_case_has_jobs_for_its_contenders_and_nobody_else() {
        let registry = Registry::with_own();
        let all: Vec<&About> = registry.iter().collect();
        let mut plan = Plan::default();
        let sizes = Preset::Smoke.sizes(1);
        jobs(&sizes, &all, &mut plan);
        let cases = cases(sizes.read_budget).len();
        assert_eq!(plan.jobs().count(), cases * CONTENDERS.len());
        for job in plan.jobs() {
            assert!(CONTENDERS.contains(&job.contender.as_str()));
            let names = job.phases.iter().map(|phase| phase.name.as_str());
            let asked = ["load", "settle", "reopen", WARM];
            assert!(names.eq(asked.into_iter().chain(WORKLOADS)), "{job:?}");
        }
    }
}
