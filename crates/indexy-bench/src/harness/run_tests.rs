//! Jobs run in this process against a map that can be told to misbehave.

use super::*;
use crate::{
    contender::{Contender, Durability, End, Focus, Outcome, Session, Setup},
    harness::{Clock, Emitter, Event, Job, JobError, Phase, Work},
    measure::PhaseResult,
    workload::{Keys, Order, Pick},
};
use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Mutex, MutexGuard},
    time::Duration,
};

/// A sorted map of any bytes; `setup.variant` names its fault.
struct Map {
    entries: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    fault: String,
}

struct MapSession<'a> {
    map: &'a Map,
}

/// The key that faults are about.
fn victim() -> Vec<u8> {
    Keys {
        order: Order::Random,
    }
    .key(7)
    .to_vec()
}

impl Map {
    fn entries(&self) -> MutexGuard<'_, BTreeMap<Vec<u8>, Vec<u8>>> {
        self.entries.lock().unwrap()
    }
}

impl Contender for Map {
    type Session<'a> = MapSession<'a>;

    fn open(setup: &Setup) -> Outcome<Self> {
        Ok(Self {
            entries: Mutex::default(),
            fault: setup.variant.clone(),
        })
    }

    fn session(&self) -> Outcome<MapSession<'_>> {
        if self.fault == "session" {
            return Err("no session".into());
        }
        Ok(MapSession { map: self })
    }

    fn settle(&self) -> Outcome<()> {
        if self.fault == "slow" {
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    fn close(self) -> Outcome<()> {
        Ok(())
    }
}

impl Session for MapSession<'_> {
    fn insert(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        let mut value = value.to_vec();
        match self.map.fault.as_str() {
            "stale" if self.map.entries().contains_key(key) && value[0].is_multiple_of(4) => {
                return Ok(());
            }
            "lose" if key == victim() => return Ok(()),
            "flip" if key == victim() => value[3] ^= 1,
            "error" => return Err("device on fire".into()),
            "panic" => panic!("engine fell over"),
            "slow" => std::thread::sleep(Duration::from_millis(2)),
            _ => {}
        }
        self.map.entries().insert(key.to_vec(), value);
        Ok(())
    }

    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        let entries = self.map.entries();
        if self.map.fault == "ghost" && !entries.contains_key(key) {
            let mut value = vec![0; 8];
            Values::fill(crate::workload::seed_of(key), 0, &mut value);
            return Ok(Some(see(&value)));
        }
        Ok(entries.get(key).map(|v| see(v)))
    }

    fn remove(&mut self, key: &[u8]) -> Outcome<()> {
        if self.map.fault != "undead" {
            self.map.entries().remove(key);
        }
        Ok(())
    }

    fn pop(&mut self, end: End, see: impl FnOnce(&[u8])) -> Outcome<bool> {
        let mut entries = self.map.entries();
        let popped = match (end, self.map.fault.as_str()) {
            (End::First, "wrong end") | (End::Last, _) => entries.pop_last(),
            (End::First, _) => entries.pop_first(),
        };
        Ok(popped.map(|(key, _)| see(&key)).is_some())
    }

    fn scan(
        &mut self,
        from: &[u8],
        count: usize,
        mut see: impl FnMut(&[u8], &[u8]),
    ) -> Outcome<usize> {
        let entries = self.map.entries();
        let mut found: Vec<_> = entries.range(from.to_vec()..).take(count).collect();
        if self.map.fault == "disorder" && found.len() > 2 {
            found.swap(1, 2);
        }
        for (key, value) in &found {
            see(key, value);
        }
        Ok(found.len())
    }
}

fn job(fault: &str, phases: Vec<Phase>) -> Job {
    Job {
        scenario: "test".into(),
        contender: "map".into(),
        repeat: 0,
        seed: 5,
        setup: Setup {
            path: PathBuf::from("/nonexistent"),
            budget: 1 << 20,
            durability: Durability::None,
            threads: 2,
            records: 1000,
            key_bytes: 8,
            value_bytes: 8,
            page_bytes: 0,
            focus: Focus::Mixed,
            variant: fault.into(),
            cold: None,
        },
        order: Order::Random,
        phases,
        tick_ms: 10,
        preloaded: 0,
        reuse_directory_of: None,
        keep_directory: false,
        confined: false,
        group: None,
        parameters: BTreeMap::new(),
    }
}

fn run(fault: &str, phases: Vec<Phase>) -> (Result<(), JobError>, Vec<PhaseResult>) {
    let mut results = Vec::new();
    let outcome = {
        let mut emitter = Emitter::new(|event: &Event| {
            if let Event::Phase { result } = event {
                results.push((**result).clone());
            }
        });
        guarded(|| run_job::<Map>(&job(fault, phases), &mut emitter))
    };
    (outcome, results)
}

fn load(count: u64) -> Phase {
    Phase::new("load", 2, Focus::Writes, Work::Load { from: 0, count })
}

fn reads() -> Vec<Phase> {
    let pick = Pick::Uniform { keys: 1000 };
    let phase = |name: &str, work| Phase::new(name, 2, Focus::Reads, work);
    vec![
        load(1000),
        phase("touch", Work::Touch { pick: pick.clone() }),
        phase(
            "read",
            Work::Read {
                pick: pick.clone(),
                ops: 5000,
                unit: 1,
            },
        )
        .timed(Clock::Sampled),
        phase(
            "units",
            Work::Read {
                pick: pick.clone(),
                ops: 5000,
                unit: 5,
            },
        ),
        phase(
            "multi",
            Work::MultiRead {
                pick: pick.clone(),
                ops: 6400,
                batch: 64,
            },
        ),
        phase(
            "absent",
            Work::Read {
                pick: Pick::Absent,
                ops: 500,
                unit: 1,
            },
        ),
        phase(
            "mixed",
            Work::Mixed {
                pick,
                ops: 2000,
                insert_share: 0.5,
            },
        ),
    ]
}

#[test]
fn a_correct_engine_passes_every_phase_with_all_operations_done() {
    let (outcome, results) = run("", reads());
    outcome.unwrap();
    let done: Vec<(&str, u64)> = results.iter().map(|p| (p.name.as_str(), p.done)).collect();
    assert_eq!(
        done,
        [
            ("open", 1),
            ("load", 1000),
            ("touch", 1000),
            ("read", 5000),
            ("units", 5000),
            ("multi", 6400),
            ("absent", 500),
            ("mixed", 2000)
        ]
    );
    let absent = &results[6];
    assert_eq!(absent.found, 0);
    assert!(results.iter().all(|p| !p.partial));
}

#[test]
fn pops_come_in_order_and_end_with_the_records() {
    let load = Work::Load {
        from: 0,
        count: 1000,
    };
    let phases = |ops| {
        let pop = Phase::new("pop", 1, Focus::Writes, Work::Pop { ops });
        vec![Phase::new("load", 2, Focus::Writes, load.clone()), pop]
    };
    let (outcome, results) = run("", phases(1000));
    outcome.unwrap();
    assert_eq!((results[2].done, results[2].found), (1000, 1000));
    for (fault, ops, says) in [
        ("", 1001, "nothing is left"),
        ("wrong end", 100, "out of order"),
    ] {
        let error = run(fault, phases(ops)).0.unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn lost_keys_changed_values_and_ghosts_fail_the_job() {
    for (fault, says) in [
        ("lose", "not found"),
        ("flip", "expected 8 bytes"),
        ("ghost", "never inserted, and found"),
    ] {
        let (outcome, _) = run(fault, reads());
        let error = outcome.unwrap_err();
        assert!(
            matches!(error, JobError::WrongValue { .. }) && error.to_string().contains(says),
            "{fault}: {error}"
        );
    }
}

#[test]
fn errors_and_panics_of_an_engine_end_the_job_and_are_quoted() {
    for (fault, says) in [
        ("error", "device on fire"),
        ("panic", "engine fell over"),
        ("session", "no session"),
    ] {
        let error = run(fault, reads()).0.unwrap_err().to_string();
        assert!(error.contains(says), "{fault}: {error}");
    }
}

#[test]
fn a_capped_load_is_partial_and_later_reads_ask_only_for_what_is_there() {
    let pick = Pick::Uniform { keys: 1_000_000 };
    let read = Work::Read {
        pick,
        ops: 1000,
        unit: 1,
    };
    let phases = vec![
        load(1_000_000).capped(0.2),
        Phase::new("read", 2, Focus::Reads, read),
    ];
    let (outcome, results) = run("slow", phases);
    outcome.unwrap();
    assert!(results[1].partial && results[1].done < 1000 && results[1].seconds < 5.0);
    assert_eq!(results[2].done, 1000);
}

/// Runs `phases`, and interrupts them as soon as the one named `at` has gone on for a while.
fn run_interrupted(fault: &str, phases: Vec<Phase>, at: &str) -> Vec<PhaseResult> {
    let (interrupt, mut results, mut under_way) =
        (Interrupt::detached(), Vec::new(), String::new());
    let mut emitter = Emitter::new(|event: &Event| match event {
        Event::Began { phase, .. } => under_way.clone_from(phase),
        Event::Going { .. } if under_way == at => interrupt.raise(),
        Event::Phase { result } => results.push((**result).clone()),
        _ => {}
    });
    run_until::<Map>(&job(fault, phases), &interrupt, &mut emitter).unwrap();
    drop(emitter);
    results
}

fn unbounded_reads(name: &str, seconds: f64) -> Phase {
    let work = Work::Read {
        pick: Pick::Uniform { keys: 100 },
        ops: UNBOUNDED,
        unit: 1,
    };
    Phase::new(name, 2, Focus::Reads, work).capped(seconds)
}

#[test]
fn a_phase_without_a_count_is_partial_if_an_interrupt_ends_it_and_whole_if_its_cap_does() {
    let phases = vec![
        load(100),
        unbounded_reads("capped", 0.1),
        unbounded_reads("cut", 60.0),
        unbounded_reads("never", 0.1),
    ];
    let results = run_interrupted("", phases, "cut");
    let told: Vec<_> = results
        .iter()
        .map(|p| (p.name.as_str(), p.partial, p.interrupted))
        .collect();
    assert_eq!(
        told,
        [
            ("open", false, false),
            ("load", false, false),
            ("capped", false, false),
            ("cut", true, true)
        ]
    );
    assert!(results[2].done > 0 && results[3].seconds < 30.0);
}

#[test]
fn a_phase_that_does_all_despite_an_interrupt_is_whole() {
    let phases = vec![
        load(100),
        Phase::new("settle", 1, Focus::Writes, Work::Settle),
    ];
    let results = run_interrupted("slow", phases, "settle");
    assert!(results.iter().all(|p| !p.partial && !p.interrupted));
    let capped = run("slow", vec![load(1_000_000).capped(0.1)]).1;
    assert!(capped[1].partial && !capped[1].interrupted);
}

#[test]
fn an_open_loop_keeps_its_rate_and_counts_waiting_as_latency() {
    let pick = Pick::Uniform { keys: 100 };
    let read = Work::Read {
        pick,
        ops: 200,
        unit: 1,
    };
    let phases = vec![
        load(100),
        Phase::new("read", 2, Focus::Reads, read).timed(Clock::OpenLoop(1000.0)),
        // Twice as many inserts per second as the engine can do.
        Phase::new(
            "behind",
            1,
            Focus::Writes,
            Work::Load {
                from: 100,
                count: 100,
            },
        )
        .timed(Clock::OpenLoop(1000.0)),
    ];
    let (outcome, results) = run("slow", phases);
    outcome.unwrap();
    let seconds = results[2].seconds;
    assert!((0.15..1.0).contains(&seconds), "{seconds}");
    assert!(results[3].latency["insert"].max_us > 50_000.0);
}

fn ycsb(name: &str, more: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut p = Properties::default();
    p.read(crate::workload::builtin_text(name).unwrap())
        .unwrap();
    for (name, value) in [
        ("recordcount", "500"),
        ("operationcount", "3000"),
        ("fieldlength", "10"),
    ] {
        p.set(name, value).unwrap();
    }
    for (name, value) in more {
        p.set(name, value).unwrap();
    }
    p.iter()
        .map(|(n, v)| (n.to_owned(), v.to_owned()))
        .collect()
}

fn ycsb_phases(names: &[&str], more: &[(&str, &str)]) -> Vec<Phase> {
    let load = Work::YcsbLoad {
        properties: ycsb(names[0], more),
    };
    let mut phases = vec![Phase::new("load", 2, Focus::Writes, load)];
    for name in names {
        let work = Work::YcsbRun {
            properties: ycsb(name, more),
        };
        phases.push(Phase::new(name, 2, Focus::Mixed, work));
    }
    phases
}

#[test]
fn a_correct_engine_passes_every_ycsb_workload() {
    let all = ["a", "b", "c", "f", "d", "e", "x"];
    for more in [
        &[][..],
        &[("keyformat", "u64"), ("fieldcount", "1")],
        &[
            ("fieldlengthdistribution", "uniform"),
            ("readallfields", "false"),
            ("writeallfields", "true"),
        ],
    ] {
        let (outcome, results) = run("", ycsb_phases(&all, more));
        outcome.unwrap();
        assert_eq!(results.len(), 2 + all.len());
        assert!(results[2..].iter().all(|p| p.done == 3000));
    }
}

#[test]
fn a_lost_update_is_seen_as_a_stale_read() {
    let one_field = [("fieldcount", "1"), ("operationcount", "20000")];
    let error = run("stale", ycsb_phases(&["a"], &one_field)).0.unwrap_err();
    assert!(
        error.to_string().contains("was acknowledged before"),
        "{error}"
    );
}

#[test]
fn as_many_operations_as_anyone_may_ask_for_take_no_memory() {
    let many = [("operationcount", "1000000000000000")];
    let mut phases = ycsb_phases(&["x"], &many);
    phases[1] = phases[1].clone().capped(0.1);
    let (outcome, results) = run("", phases);
    outcome.unwrap();
    assert!(results[2].partial && results[2].done > 0);
}

#[test]
fn deleted_records_that_come_back_and_scans_out_of_order_fail_the_job() {
    let error = run("undead", ycsb_phases(&["x"], &[])).0.unwrap_err();
    assert!(error.to_string().contains("deleted, and found"), "{error}");
    let error = run("disorder", ycsb_phases(&["e"], &[])).0.unwrap_err();
    assert!(error.to_string().contains("out of order"), "{error}");
}
