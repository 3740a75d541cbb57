//! Jobs of transactions run in this process.

use super::*;
use crate::{
    contender::{BTreeTables, Durability, Focus, IndexyTables, Others, Setup},
    harness::Phase,
    tpcc::{self, Mix, Scale, tests::Leaky},
    workload::Order,
};
use std::path::PathBuf;

const SCALE: Scale = Scale {
    warehouses: 1,
    items: 100,
    customers: 30,
};

fn step(name: &str, step: TableStep, seconds: f64) -> Phase {
    let on = Config::Tpcc(tpcc::Config {
        scale: SCALE,
        mix: Mix::Standard,
        others: Others::Same,
    });
    Phase::new(name, 2, Focus::Mixed, Work::Tables { step, on }).capped(seconds)
}

fn job(variant: &str, path: PathBuf, phases: Vec<Phase>) -> Job {
    Job {
        scenario: "tpcc".to_owned(),
        contender: "test".to_owned(),
        repeat: 0,
        seed: 1,
        setup: Setup {
            path,
            budget: 24 << 20,
            durability: Durability::None,
            threads: 2,
            records: 0,
            key_bytes: 39,
            value_bytes: 700,
            page_bytes: 0,
            focus: Focus::Mixed,
            variant: variant.to_owned(),
            cold: None,
        },
        order: Order::Random,
        phases,
        tick_ms: 20,
        preloaded: 0,
        reuse_directory_of: None,
        keep_directory: false,
        confined: false,
        group: None,
        parameters: BTreeMap::new(),
    }
}

fn results<T: Tables>(job: &Job) -> (Vec<PhaseResult>, Result<(), JobError>) {
    let mut phases = Vec::new();
    let ended = {
        let mut emitter = Emitter::new(|event| {
            if let Event::Phase { result } = event {
                phases.push((**result).clone());
            }
        });
        run_tables_job::<T>(job, &mut emitter)
    };
    (phases, ended)
}

fn whole(seconds: f64) -> Vec<Phase> {
    vec![
        step("load", TableStep::Load, 0.0),
        step("run", TableStep::Run, seconds),
        step("check", TableStep::Check, 0.0),
        Phase::new("settle", 1, Focus::Writes, Work::Settle),
        Phase::new("reopen", 1, Focus::Reads, Work::Reopen),
        step("check-again", TableStep::Check, 0.0),
    ]
}

#[test]
fn every_phase_says_what_it_did_and_a_reopened_database_is_still_consistent() {
    let dir = tempfile::tempdir().unwrap();
    let job = job("art-lsm", dir.path().to_path_buf(), whole(0.4));
    let (phases, ended) = results::<IndexyTables>(&job);
    ended.unwrap();
    let names: Vec<&str> = phases.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "open",
            "load",
            "run",
            "check",
            "settle",
            "reopen",
            "check-again"
        ]
    );
    let run = &phases[2];
    assert!(run.done > 100 && !run.partial && run.payload_written > 0);
    assert!(run.counters["rolled_back"] + (run.found as f64) == run.done as f64);
    let kinds: Vec<&str> = run.latency.keys().map(String::as_str).collect();
    assert_eq!(
        kinds,
        [
            "delivery",
            "new_order",
            "order_status",
            "payment",
            "stock_level"
        ]
    );
    let by_kind: u64 = run.latency.values().map(|l| l.count).sum();
    let last = run.series.last().unwrap();
    assert_eq!((by_kind, last.ops), (run.done, run.done));
    assert_eq!(last.transactions.unwrap().iter().sum::<u64>(), run.done);
    assert!(phases[3].done > 0 && !phases[3].partial);
    // The newest rows of ORDER-LINE went through a clean close and open.
    assert_eq!(phases[6].done, phases[3].done);
}

#[test]
fn a_broken_condition_fails_the_run() {
    let sound = job("", PathBuf::new(), whole(0.6));
    results::<Leaky>(&Job {
        phases: whole(0.6)[..3].to_vec(),
        ..sound.clone()
    })
    .1
    .unwrap();
    let leaky = job("leaky", PathBuf::new(), whole(1.0)[..3].to_vec());
    let (_, ended) = results::<Leaky>(&leaky);
    assert!(
        matches!(ended, Err(JobError::WrongValue { .. })),
        "{ended:?}"
    );
}

#[test]
fn a_load_that_was_cut_short_leaves_nothing_to_run_on_and_says_so() {
    let mut phases = vec![
        step("load", TableStep::Load, 1e-9),
        step("run", TableStep::Run, 0.2),
        step("check", TableStep::Check, 0.0),
    ];
    // Far more than a thread loads before it is told to stop.
    for phase in &mut phases {
        if let Work::Tables {
            on: Config::Tpcc(config),
            ..
        } = &mut phase.work
        {
            config.scale.warehouses = 10;
            config.scale.items = 100_000;
        }
    }
    let (phases, ended) = results::<BTreeTables>(&job("", PathBuf::new(), phases));
    ended.unwrap();
    assert!(phases.iter().skip(1).all(|p| p.partial));
    let (load, run) = (&phases[1], &phases[2]);
    assert!(load.asked > load.done && run.done == 0);
}

#[test]
fn transactions_that_an_interrupt_ends_are_partial() {
    let (interrupt, mut results, mut under_way) =
        (Interrupt::detached(), Vec::new(), String::new());
    let mut emitter = Emitter::new(|event: &Event| match event {
        Event::Began { phase, .. } => under_way.clone_from(phase),
        Event::Going { .. } if under_way == "run" => interrupt.raise(),
        Event::Phase { result } => results.push((**result).clone()),
        _ => {}
    });
    let job = job("", PathBuf::new(), whole(60.0)[..3].to_vec());
    run_tables_until::<BTreeTables>(&job, &interrupt, &mut emitter).unwrap();
    drop(emitter);
    let told: Vec<_> = results
        .iter()
        .map(|p: &PhaseResult| (p.name.as_str(), p.partial, p.interrupted))
        .collect();
    assert_eq!(
        told,
        [
            ("open", false, false),
            ("load", false, false),
            ("run", true, true)
        ]
    );
}

#[test]
fn work_on_one_table_is_refused() {
    let phases = vec![
        step("load", TableStep::Load, 0.0),
        Phase::new("abandon", 1, Focus::Reads, Work::Abandon),
    ];
    let (_, ended) = results::<BTreeTables>(&job("", PathBuf::new(), phases));
    assert!(matches!(ended, Err(JobError::Invalid(_))));
    let none = job("", PathBuf::new(), vec![]);
    assert!(matches!(
        results::<BTreeTables>(&none).1,
        Err(JobError::Invalid(_))
    ));
}
