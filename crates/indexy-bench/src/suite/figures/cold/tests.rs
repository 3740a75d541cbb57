//! The jobs of the figures, and what is said of results that are made up.

use super::{admission::Interval, *};
use crate::{
    harness::{Emitter, Event, Job},
    measure::Outcome,
    registry::Registry,
    suite::figures::{FIGURES, Figure, Preset},
    workload::{Operation, Properties, Workload, builtin_text},
};
use std::collections::BTreeMap;

fn figures() -> impl Iterator<Item = &'static Figure> {
    FIGURES.iter().filter(|figure| figure.id.starts_with("ma"))
}

fn jobs(preset: Preset) -> Vec<Job> {
    let registry = Registry::with_own();
    let ours: Vec<&About> = registry.iter().filter(|a| a.name == CONTENDER).collect();
    let (sizes, mut plan) = (preset.sizes(1), Plan::default());
    figures().for_each(|figure| figure.add_jobs(&sizes, &ours, &mut plan));
    plan.jobs().cloned().collect()
}

#[test]
fn the_smallest_preset_takes_less_than_two_minutes_and_the_next_half_an_hour() {
    let seconds = |preset| -> f64 {
        let jobs = jobs(preset);
        assert!(jobs.len() > 20);
        let phases = jobs.iter().flat_map(|job| &job.phases);
        phases
            .map(|phase| match phase.hurried {
                // Loads and warm-ups end long before their cap.
                true => 0.5,
                false => phase.max_seconds,
            })
            .sum()
    };
    assert!(seconds(Preset::Smoke) < 60.0);
    assert!(seconds(Preset::Laptop) < 1800.0);
}

/// What is measured is as slow as the device; what is not has no exponent that a plot could show.
#[test]
fn what_is_measured_is_on_a_device_with_its_own_time() {
    for job in jobs(Preset::Laptop) {
        assert!(
            job.setup.cold.is_some() && !job.confined,
            "{}",
            job.scenario
        );
        for phase in &job.phases {
            assert_eq!(phase.hurried, phase.x.is_none(), "{}", phase.name);
            let is_check = phase.name == "check";
            assert!(is_check || phase.max_seconds > 0.0, "{}", phase.name);
        }
    }
}

/// As in `workloadt`, with a skew to be varied.
#[test]
fn nine_reads_come_to_one_update_of_a_tuple_of_1_kib() {
    let sizes = Preset::Smoke.sizes(1);
    let mut of_the_paper = Properties::default();
    of_the_paper.read(builtin_text("t").unwrap()).unwrap();
    let mut ours = Properties::default();
    for (name, value) in properties(&sizes, 0.5, 100) {
        ours.set(&name, &value).unwrap();
    }
    let of = |properties: &Properties| {
        let workload = Workload::from_properties(properties).unwrap();
        let shares = [Operation::Read, Operation::Update].map(|o| workload.share(o));
        (shares, workload.records.longest_bytes())
    };
    let ([reads, updates], bytes) = of(&ours);
    assert!((reads - 0.9).abs() < 1e-9 && (updates - 0.1).abs() < 1e-9);
    assert_eq!(bytes, RECORD_BYTES);
    assert_eq!(of(&ours), of(&of_the_paper));
}

#[test]
fn without_our_contender_there_is_nothing_to_run() {
    let registry = Registry::with_own();
    let others: Vec<&About> = registry.iter().filter(|a| a.name != CONTENDER).collect();
    let mut plan = Plan::default();
    let sizes = Preset::Smoke.sizes(1);
    figures().for_each(|figure| figure.add_jobs(&sizes, &others, &mut plan));
    assert!(plan.steps.is_empty());
}

/// A run with a warm-up and a second at exponent 1, with so many operations and releases.
fn run(name: &str, operations: u64, releases: f64) -> RunResult {
    let phase = |name: &str, x, done, releases| PhaseResult {
        name: name.to_owned(),
        x,
        done,
        seconds: 1.0,
        counters: BTreeMap::from([("releases".to_owned(), releases)]),
        ..PhaseResult::default()
    };
    RunResult {
        scenario: name.to_owned(),
        contender: CONTENDER.to_owned(),
        repeat: 0,
        budget: 0,
        memory_limit: None,
        durability: "none".to_owned(),
        page_cache: String::new(),
        seed: 1,
        outcome: Outcome::Finished,
        phases: vec![
            phase("warm-1", None, 9, 100.0),
            phase("run-1", Some(1.0), operations, 100.0 + releases),
        ],
        parameters: BTreeMap::new(),
    }
}

#[track_caller]
fn said(findings: &[String], parts: &[&str]) {
    let line = findings
        .iter()
        .find(|line| parts.iter().all(|part| line.contains(part)));
    assert!(line.is_some(), "{parts:?} in {findings:#?}");
}

#[test]
fn intervals_are_compared_where_there_were_enough_releases() {
    let of = |top: (u64, f64), always: (u64, f64)| {
        let results = [
            run("ma4-ssd-top5", top.0, top.1),
            run("ma4-ssd-always", always.0, always.1),
        ];
        admission::findings(&results)
    };
    let findings = of((90_000, 10.0), (30_000, 20.0));
    said(&findings, &["3.00 x", "as claimed"]);
    said(&findings, &["9.00 k", "1.50 k", "6.0 x", "as claimed"]);
    let findings = of((30_000, 10.0), (30_000, 20.0));
    said(&findings, &["1.00 x", "not shown"]);
    said(&findings, &["2.0 x", "direction only"]);
    // Too few of the top, and still enough to say; too few of both.
    said(
        &of((90_000, 2.0), (30_000, 20.0)),
        &["at least", "as claimed"],
    );
    said(&of((30_000, 6.0), (30_000, 20.0)), &["too short to tell"]);
    said(&of((90_000, 2.0), (30_000, 3.0)), &["too short to tell"]);
    // Nothing is said of what was not run.
    assert!(admission::findings(&[]).is_empty());
}

#[test]
fn an_interval_is_known_from_enough_releases_on() {
    assert_eq!(Interval::new(800.0, 8.0), Interval::Of(100.0));
    assert_eq!(Interval::new(800.0, 7.0), Interval::AtLeast(100.0));
    assert_eq!(Interval::new(800.0, 0.0), Interval::AtLeast(800.0));
}

#[test]
fn each_device_has_a_claim_of_its_own() {
    let results = |device: &str, wait, aside| {
        [
            run(&format!("ma2-{device}-wait"), wait, 0.0),
            run(&format!("ma2-{device}-aside"), aside, 0.0),
        ]
    };
    let found = |device, wait, aside| retrieval::findings(&results(device, wait, aside));
    said(
        &found("hdd", 10_000, 15_000),
        &["HDD", "more", "as claimed"],
    );
    said(&found("hdd", 10_000, 10_000), &["HDD", "not shown"]);
    said(
        &found("ssd", 10_000, 10_500),
        &["about the same", "as claimed"],
    );
    said(&found("ssd", 10_000, 25_000), &["not shown"]);
    said(
        &found("ssd", 10_000, 4_000),
        &["0.40 x", "too short to tell"],
    );
    said(&found("nvram", 40_000, 20_000), &["less", "as claimed"]);
    let both = [
        run("ma6-ssd-tuned", 30_000, 0.0),
        run("ma6-ssd-generic", 10_000, 0.0),
    ];
    said(
        &profiles::findings(&both),
        &["YCSB at 1", "3.00 x", "as claimed"],
    );
    let both = [
        run("ma6-smr-tuned", 30_000, 0.0),
        run("ma6-smr-generic", 10_000, 0.0),
    ];
    said(&profiles::findings(&both), &["the same", "not shown"]);
    let tpcc = |device: &str, tuned| {
        let mut both = [("tuned", tuned), ("generic", 20_000)]
            .map(|(policy, done)| run(&format!("ma6-{device}-{policy}-tpcc"), done, 0.0));
        // It has no exponent.
        both.iter_mut().for_each(|run| run.phases[1].x = Some(0.0));
        profiles::findings(&both)
    };
    said(&tpcc("ssd", 21_000), &["TPC-C", "little", "as claimed"]);
    said(&tpcc("xpoint", 24_000), &["1.36 x", "direction only"]);
    said(&tpcc("nvram", 26_000), &["1.26 x", "as claimed"]);
}

/// Few operations are enough where the device was written to meanwhile.
#[test]
fn a_phase_is_long_enough_by_its_operations_or_its_runs() {
    let of = |operations, runs| {
        let mut run = run("ma2-hdd-wait", operations, 0.0);
        for (phase, runs) in run.phases.iter_mut().zip([3.0, 3.0 + runs]) {
            phase.counters.insert("cleaned_runs".to_owned(), runs);
        }
        is_enough(&run, &run.phases[1])
    };
    assert!(of(MANY_OPERATIONS, 0.0) && of(LEAST_OPERATIONS, LEAST_RUNS));
    assert!(!of(MANY_OPERATIONS - 1, LEAST_RUNS - 1.0) && !of(LEAST_OPERATIONS - 1, 99.0));
}

#[test]
fn access_by_the_byte_has_to_gain() {
    let findings = |byte| {
        access::findings(&[
            run("ma5-nvram-block", 10000, 0.0),
            run("ma5-nvram-byte", byte, 0.0),
            run("ma5-dram-memory", 25000, 0.0),
        ])
    };
    said(&findings(15000), &["1.50 x", "as claimed"]);
    said(&findings(15000), &["2.50 x", "all in memory"]);
    said(&findings(10500), &["1.05 x", "not shown"]);
}

#[test]
fn unsteadiness_needs_ticks() {
    let phase = |rates: &[u64]| {
        let mut series = vec![Tick::default()];
        for rate in rates {
            let last = series[series.len() - 1];
            series.push(Tick {
                at: last.at + 0.05,
                ops: last.ops + rate,
                ..last
            });
        }
        PhaseResult {
            series,
            ..PhaseResult::default()
        }
    };
    assert_eq!(unsteadiness(&phase(&[10; 19])), None);
    assert!(unsteadiness(&phase(&[10; 40])).unwrap() < 1e-9);
    let half: Vec<u64> = (0..40).map(|n| if n % 2 == 0 { 10 } else { 30 }).collect();
    assert!((unsteadiness(&phase(&half)).unwrap() - 1.0).abs() < 1e-9);
}

/// Every figure runs on sizes that say nothing, with every value that is read compared, and says
/// something of each device.
#[test]
fn all_figures_run_and_speak() {
    const RECORDS: u64 = 4000;
    let registry = Registry::with_own();
    let ours: Vec<&About> = registry.iter().filter(|a| a.name == CONTENDER).collect();
    let mut sizes = Preset::Smoke.sizes(1);
    sizes.cold.records = RECORDS;
    sizes.cold.subscribers = 300;
    sizes.cold.tpcc.items = 300;
    sizes.cold.tpcc.customers = 30;
    sizes.cold.warm_operations = 100;
    sizes.cold.seconds = 0.04;
    sizes.cold.devices = vec![Device::Ssd, Device::Nvram];
    sizes.cold.block_seconds = 0.03;
    sizes.cold.block_bytes = 1 << 18;
    for figure in figures() {
        let mut plan = Plan::default();
        figure.add_jobs(&sizes, &ours, &mut plan);
        let results: Vec<RunResult> = plan.jobs().map(|job| ran(&registry, job)).collect();
        let findings = figure.findings(&results);
        for device in &sizes.cold.devices {
            let title = device.title();
            let spoken = findings.iter().any(|line| line.contains(title));
            let has_it = results
                .iter()
                .any(|run| run.scenario.contains(device.name()));
            assert_eq!(spoken, has_it, "{}: {title} in {findings:#?}", figure.id);
        }
        let plots = figure.plots(&results);
        assert!(!plots.is_empty(), "{}", figure.id);
        for run in results.iter().filter(|run| run.contender == CONTENDER) {
            for (x, phase) in points(run) {
                let busy = run.grown(phase, "device_busy_seconds").unwrap();
                let reads = run.grown(phase, "device_reads").unwrap();
                let is_cold = !run.scenario.contains("memory") && x > 0.0;
                assert_eq!(busy > 0.0 && reads > 0.0, is_cold, "{} {x}", run.scenario);
                let warm = run.phases.iter().find(|p| p.name.starts_with("warm"));
                let idle = warm.is_none_or(|p| run.grown(p, "device_busy_seconds") == Some(0.0));
                assert!(idle, "{}", run.scenario);
            }
        }
    }
}

/// The result of `job`, run in this process in a directory of its own.
fn ran(registry: &Registry, job: &Job) -> RunResult {
    let memory = std::path::Path::new("/dev/shm");
    let dir = match memory.is_dir() {
        true => tempfile::tempdir_in(memory),
        false => tempfile::tempdir(),
    };
    let dir = dir.unwrap();
    let mut job = job.clone();
    job.setup.path = dir.path().to_path_buf();
    let about = &registry.get(&job.contender).unwrap().about;
    let mut result = crate::harness::empty_result(&job, about, None);
    let sink = |event: &Event| {
        if let Event::Phase { result: phase } = event {
            result.phases.push((**phase).clone());
        }
    };
    let ended = registry.run(&job, &mut Emitter::new(sink));
    assert!(ended.is_ok(), "{}: {ended:?}", job.scenario);
    result
}
