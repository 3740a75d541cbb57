//! Every engine behind the seam does what the harness asks: the harness itself checks every answer.

use crate::registry;
use indexy_bench::{
    contender::{About, Durability, Focus},
    harness::{Emitter, Event, Phase, Work},
    measure::PhaseResult,
    suite::{Draft, Plan, Step},
    workload::{Pick, Properties, builtin_text},
};

const KEYS: u64 = 20_000;
const BUDGET: u64 = 32 << 20;

fn ycsb(name: &str) -> Vec<(String, String)> {
    let mut p = Properties::default();
    p.read(builtin_text(name).unwrap()).unwrap();
    for line in [
        "recordcount=1002000",
        "operationcount=1000",
        "fieldcount=1",
        "fieldlength=8",
        "keyformat=u64",
        // Numbers of the other phases begin at 0 and are mixed alike.
        "insertstart=1000000",
        "insertcount=2000",
    ] {
        p.set_line(line).unwrap();
    }
    p.iter()
        .map(|(n, v)| (n.to_owned(), v.to_owned()))
        .collect()
}

fn phases(about: &About) -> Vec<Phase> {
    let threads = about.max_threads.min(2);
    let all = Pick::Uniform { keys: KEYS };
    let phase = |name: &str, focus, work| Phase::new(name, threads, focus, work);
    let read = |pick: &Pick| Work::Read {
        pick: pick.clone(),
        ops: KEYS,
        unit: 1,
    };
    let mut phases = vec![
        phase(
            "load",
            Focus::Writes,
            Work::Load {
                from: 0,
                count: KEYS,
            },
        ),
        phase("read", Focus::Reads, read(&all)),
        phase("absent", Focus::Reads, read(&Pick::Absent)),
        phase(
            "multi",
            Focus::Reads,
            Work::MultiRead {
                pick: all.clone(),
                ops: 6400,
                batch: 64,
            },
        ),
        phase(
            "mixed",
            Focus::Mixed,
            Work::Mixed {
                pick: all.clone(),
                ops: 2000,
                insert_share: 0.5,
            },
        ),
        Phase::new("settle", 1, Focus::Writes, Work::Settle),
        phase(
            "ycsb-load",
            Focus::Writes,
            Work::YcsbLoad {
                properties: ycsb("a"),
            },
        ),
    ];
    for name in ["a", "f", "d", "e", "x"] {
        if about.scans || name != "e" {
            phases.push(phase(
                name,
                Focus::Mixed,
                Work::YcsbRun {
                    properties: ycsb(name),
                },
            ));
        }
    }
    phases.push(Phase::new("reopen", 1, Focus::Reads, Work::Reopen));
    phases.push(phase("again", Focus::Reads, read(&all)));
    phases
}

fn run(about: &About, durability: Durability) -> Vec<PhaseResult> {
    let mut draft = Draft::new("engines", BUDGET, KEYS, 3);
    draft.durability = durability;
    let mut plan = Plan::default();
    plan.add(&draft, about, 0, phases(about));
    let Some(Step::Run(job)) = plan.steps.pop() else {
        panic!("{} takes no part", about.name);
    };
    let mut job = *job;
    let directory = tempfile::tempdir().unwrap();
    job.setup.path = directory.path().to_path_buf();
    let mut results = Vec::new();
    let mut emitter = Emitter::new(|event: &Event| {
        if let Event::Phase { result } = event {
            results.push((**result).clone());
        }
    });
    let outcome = registry().get(about.name).unwrap().run(&job, &mut emitter);
    drop(emitter);
    outcome.unwrap_or_else(|error| panic!("{}: {error}", about.name));
    results
}

#[test]
fn every_engine_answers_every_phase_as_the_harness_expects() {
    // Nothing at all, and a device without an engine, answer nothing.
    let engines = |about: &&About| !["null", "device"].contains(&about.name);
    for about in registry().iter().filter(engines) {
        let results = run(about, Durability::None);
        let again = results.iter().find(|p| p.name == "again").unwrap();
        assert_eq!(again.found, KEYS, "{}", about.name);
        assert_eq!(
            results.iter().any(|p| p.name == "reopen"),
            about.reopens,
            "{}",
            about.name
        );
    }
}
