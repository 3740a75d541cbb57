//! Processes that are killed and stopped: the owner that gives, the owner that takes, the pool.
//! Nothing hangs, errors say what happened, and what was stopped and comes back serves nothing
//! stale and destroys nothing.

mod child;
mod histories;

use child::{BOUND, Compute, LEASE, PATIENCE, Process, Wire, secret, start_pool};
use indexy_dex::{
    BulkLoad,
    partition::Table,
    remote::{RemoteMemory, shm::Shm, tcp::Tcp},
};
use rustix::process::Signal;
use std::{
    path::{Path, PathBuf},
    thread::{self, sleep},
    time::{Duration, Instant},
};

/// Not a test: the processes that the tests start.
#[test]
fn child() {
    child::play();
}

const KEYS: u64 = 6_000;
/// Owner 1's first key.
const BORDER: u64 = 3_000;

/// A pool with a tree of three owners; the third has a little.
fn pool(wire: Wire, folder: &Path) -> Process {
    let pool = start_pool(wire, folder);
    match wire {
        Wire::Shm => {
            let path = PathBuf::from(&pool.word);
            fill(&Shm::connect(&[path], &secret(), PATIENCE).unwrap());
        }
        Wire::Tcp => {
            let address = pool.word.parse().unwrap();
            fill(&Tcp::connect(&[address], &secret(), PATIENCE).unwrap());
        }
    }
    pool
}

fn fill(memory: &impl RemoteMemory) {
    let table = Table::new(vec![(0, 0), (BORDER, 1), (KEYS - 100, 2)]).unwrap();
    let load = BulkLoad::default().fill(10).table(table);
    load.load(memory, (0..KEYS).map(|key| (key, key))).unwrap();
}

struct Scene {
    owners: [Compute; 3],
    _pool: Process,
    _folder: tempfile::TempDir,
}

impl Scene {
    fn new(wire: Wire) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pool = pool(wire, folder.path());
        let start = |owner| Compute::start(wire, owner, &pool, folder.path());
        Self {
            owners: [0, 1, 2].map(start),
            _pool: pool,
            _folder: folder,
        }
    }

    /// Changes of owner 0 that are flushed, and some that are not. Returns the range to give.
    fn prepare(&self) -> (u64, u64) {
        let mut line = self.owners[0].line();
        for key in (2_000..2_400).step_by(7) {
            assert_eq!(line.ask(&format!("put {key} 1{key}")), key.to_string());
        }
        assert_eq!(line.ask("flush"), "done");
        for key in (2_000..2_400).step_by(11) {
            line.ask(&format!("put {key} 2{key}"));
        }
        let low: u64 = line.ask("leaf 2000").parse().unwrap();
        let high: u64 = line.ask("leaf 2990").parse().unwrap();
        (low, high - 1)
    }

    /// Every key has what it had when it was flushed, or what was put later.
    fn check(&self, owner: usize, from: u64, to: u64) {
        let all = self.owners[owner].ask(&format!("scan {from} {to}"));
        let mut expected = from;
        for entry in all.split(' ') {
            let (key, value) = entry.split_once('=').unwrap_or_else(|| panic!("{entry}"));
            let key: u64 = key.parse().unwrap();
            assert_eq!(key, expected);
            expected += 1;
            let inside = (2_000..2_400).contains(&key);
            let flushed = match inside && (key - 2_000).is_multiple_of(7) {
                true => format!("1{key}"),
                false => key.to_string(),
            };
            let is_later = inside && (key - 2_000).is_multiple_of(11) && value == format!("2{key}");
            assert!(value == flushed || is_later, "{key} has {value}");
        }
        assert_eq!(expected, to + 1);
    }
}

/// Verbs that a command of a living process takes.
fn verbs(compute: &Compute, command: &str) -> u64 {
    compute.ask("arm 1000000 0");
    let answer = compute.ask(command);
    assert!(
        answer.parse::<u64>().is_ok() || answer == "done",
        "{answer}"
    );
    1_000_000 - compute.ask("left").parse::<u64>().unwrap()
}

/// Runs `scene` with each of `items`, some side by side: most of the time they wait for leases.
fn side_by_side<T: Send>(items: impl IntoIterator<Item = T>, scene: impl Fn(T) + Sync) {
    const AT_ONCE: usize = 4;
    let mut items = items.into_iter().peekable();
    while items.peek().is_some() {
        thread::scope(|s| {
            for item in items.by_ref().take(AT_ONCE) {
                let scene = &scene;
                s.spawn(move || scene(item));
            }
        });
    }
}

const KILL: u64 = 0;
const STOP: u64 = 1;

/// Owner `victim` gets the signal at a verb of `command`; returns its line, unanswered. `None`: it
/// took fewer verbs this time.
fn strike(
    scene: &Scene,
    victim: usize,
    at: u64,
    signal: u64,
    command: &str,
) -> Option<child::Line> {
    let compute = &scene.owners[victim];
    assert_eq!(compute.ask(&format!("arm {at} {signal}")), "done");
    let mut line = compute.line();
    line.send(command);
    let is_struck = match signal {
        KILL => line.receive().is_empty(),
        _ => line.is_silent_for(Duration::from_millis(300)),
    };
    is_struck.then_some(line)
}

/// The one that was stopped goes on: it has been replaced.
fn come_back(scene: &Scene, victim: usize, mut line: child::Line, key: u64) {
    scene.owners[victim].process.signal(Signal::CONT);
    let answer = line.receive();
    assert!(
        answer.parse::<u64>().is_err() && answer != "done",
        "{answer}"
    );
    for command in [
        format!("get {key}"),
        format!("put {key} 666"),
        "flush".into(),
    ] {
        let answer = line.ask(&command);
        let is_refused = answer.contains("Fenced") || answer.contains("NotOwner");
        // With nothing dirty a flush has nothing to write.
        assert!(
            is_refused || (command == "flush" && answer == "done"),
            "{answer}"
        );
    }
    assert!(line.ask(&format!("get {key}")).contains("Fenced"));
}

fn giver(wire: Wire, signal: u64, step: usize) {
    let scene = Scene::new(wire);
    let (low, high) = scene.prepare();
    let release = format!("release {low} {high} 1");
    let all = verbs(&scene.owners[0], &release);
    assert!(all > 20, "{all} verbs");
    side_by_side((0..all).step_by(step), |at| {
        let scene = Scene::new(wire);
        assert_eq!(scene.prepare(), (low, high));
        let Some(line) = strike(&scene, 0, at, signal, &release) else {
            assert!(at + 5 > all, "at {at} of {all}");
            return;
        };
        let started = Instant::now();
        assert_eq!(scene.owners[1].ask_until_lapsed("take 0"), "done");
        assert!(
            started.elapsed() < 4 * LEASE + PATIENCE,
            "{:?}",
            started.elapsed()
        );
        scene.check(1, 0, KEYS - 101);
        // New values everywhere, in the pool too.
        let mut taker = scene.owners[1].line();
        for key in low..low + 400 {
            taker.ask(&format!("put {key} 9{key}"));
        }
        assert_eq!(taker.ask("flush"), "done");
        if signal == STOP {
            come_back(&scene, 0, line, 5);
        }
        // A third owner reads them from the pool: nothing old came over them.
        let end: u64 = taker.ask(&format!("leaf {}", low + 399)).parse().unwrap();
        let epoch = taker.ask(&format!("release {low} {} 2", end - 1));
        assert_eq!(scene.owners[2].ask("adopt"), epoch);
        let all = scene.owners[2].ask(&format!("scan {low} {}", end - 1));
        let expected: Vec<_> = (low..end).map(|key| format!("{key}=9{key}")).collect();
        assert_eq!(all, expected.join(" "));
        assert_eq!(scene.owners[1].ask("get 5"), "5");
        assert_eq!(scene.owners[2].ask("get 5999"), "5999");
    });
}

#[test]
fn a_giver_is_killed_at_any_verb_of_a_hand_over() {
    giver(Wire::Shm, KILL, 2);
    giver(Wire::Tcp, KILL, 7);
}

#[test]
fn a_giver_is_stopped_at_any_verb_of_a_hand_over() {
    giver(Wire::Shm, STOP, 2);
    giver(Wire::Tcp, STOP, 7);
}

fn taker(wire: Wire, signal: u64, command: &str) {
    let is_take_over = command.starts_with("take");
    let set_out = || {
        let scene = Scene::new(wire);
        let (low, high) = scene.prepare();
        // It knows the shared nodes as they are.
        scene.owners[1].ask(&format!("get {BORDER}"));
        if is_take_over {
            scene.owners[0].process.signal(Signal::KILL);
            sleep(2 * LEASE);
        } else {
            scene.owners[0].ask(&format!("release {low} {high} 1"));
        }
        scene
    };
    let all = verbs(&set_out().owners[1], command);
    assert!(all >= 5, "{all} verbs");
    side_by_side(0..all, |at| {
        let scene = set_out();
        let Some(line) = strike(&scene, 1, at, signal, command) else {
            assert!(at + 5 > all, "at {at} of {all}");
            return;
        };
        // The third owner takes what the second had, or was about to get.
        assert_eq!(scene.owners[2].ask_until_lapsed("take 1"), "done");
        if is_take_over {
            assert_eq!(scene.owners[2].ask_until_lapsed("take 0"), "done");
            scene.check(2, 0, KEYS - 1);
        } else {
            scene.check(2, 2_100, 2_900);
            scene.check(2, BORDER, KEYS - 1);
            scene.check(0, 0, 1_900);
        }
        if signal == STOP {
            come_back(&scene, 1, line, BORDER);
        }
        assert_eq!(scene.owners[2].ask("get 5999"), "5999");
    });
}

#[test]
fn a_taker_is_killed_or_stopped_at_any_verb_of_a_hand_over() {
    taker(Wire::Shm, KILL, "adopt");
    taker(Wire::Shm, STOP, "adopt");
}

#[test]
fn one_that_takes_over_is_killed_itself() {
    taker(Wire::Shm, KILL, "take 0");
}

#[test]
fn one_that_takes_over_is_stopped_itself() {
    taker(Wire::Tcp, STOP, "take 0");
}

#[test]
fn a_pool_that_is_killed_is_an_error_in_bounded_time() {
    side_by_side([Wire::Shm, Wire::Tcp], |wire| {
        let scene = Scene::new(wire);
        let mut line = scene.owners[0].line();
        line.ask("get 5");
        scene._pool.signal(Signal::KILL);
        let started = Instant::now();
        // What is cached is an answer until the lease ends.
        while line.ask("get 5") == "5" {
            assert!(started.elapsed() < BOUND);
            sleep(Duration::from_millis(10));
        }
        assert!(
            started.elapsed() < LEASE + PATIENCE,
            "{:?}",
            started.elapsed()
        );
        for command in ["get 5", "put 7 7", "release 0 9 1", "adopt", "take 1"] {
            let started = Instant::now();
            let answer = line.ask(command);
            assert!(answer.contains("Lost"), "{command}: {answer}");
            assert!(started.elapsed() < BOUND);
        }
    });
}

#[test]
fn a_pool_that_is_stopped_and_goes_on_is_the_same_pool() {
    side_by_side([Wire::Shm, Wire::Tcp], |wire| {
        let scene = Scene::new(wire);
        let mut line = scene.owners[0].line();
        line.ask("put 5 55");
        scene._pool.signal(Signal::STOP);
        sleep(LEASE + Duration::from_millis(100));
        let started = Instant::now();
        assert!(line.ask("get 5").contains("Lost"));
        assert!(started.elapsed() < PATIENCE + LEASE);
        scene._pool.signal(Signal::CONT);
        // Nobody could replace us: the lease goes on.
        let started = Instant::now();
        while line.ask("get 5") != "55" {
            assert!(started.elapsed() < BOUND);
            sleep(Duration::from_millis(20));
        }
        assert_eq!(line.ask("flush"), "done");
    });
}

/// A controller has no state: what it decided stands in the pool, or did not happen.
#[test]
fn a_controller_that_dies_between_the_halves_of_a_hand_over() {
    let scene = Scene::new(Wire::Shm);
    let (low, high) = scene.prepare();
    let epoch = scene.owners[0].ask(&format!("release {low} {high} 1"));
    // It is gone here. Nobody serves the range, and nobody serves it wrongly.
    assert!(
        scene.owners[0]
            .ask(&format!("get {low}"))
            .contains("NotOwner")
    );
    assert!(
        scene.owners[1]
            .ask(&format!("get {low}"))
            .contains("NotOwner")
    );
    // The next one has every owner look at the table.
    for owner in &scene.owners {
        assert_eq!(owner.ask("adopt"), epoch);
    }
    scene.check(1, low, high);
}

/// Numbers that repeat.
fn child_dice(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed + 1;
    move || {
        state = state
            .wrapping_mul(0x5851_F42D_4C95_7F2D)
            .wrapping_add(0x1405_7B7E_F767_814F);
        state >> 33
    }
}
