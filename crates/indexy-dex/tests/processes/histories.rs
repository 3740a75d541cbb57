//! Single keys are linearizable while two to four compute processes hand ranges over.
//!
//! A checker after Wing and Gong: an operation may take effect at any time between its call and its
//! answer; a history is right if there is an order in which a register gives all the answers.

use super::child::{Compute, Wire};
use std::{
    collections::{HashMap, HashSet},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

/// What a client did to a key, and what it was told.
#[derive(Debug, Clone, Copy)]
struct Operation {
    called: Instant,
    answered: Instant,
    /// `None`: a read.
    writes: Option<Option<u64>>,
    /// The value before.
    found: Option<u64>,
}

/// Some order of the operations, at most 64, explains all answers.
fn is_linearizable(first: Option<u64>, operations: &[Operation]) -> bool {
    assert!(operations.len() <= 64);
    let all = match operations.len() {
        64 => u64::MAX,
        length => (1 << length) - 1,
    };
    let mut seen: HashSet<(u64, Option<u64>)> = HashSet::new();
    let mut todo = vec![(0_u64, first)];
    while let Some((done, value)) = todo.pop() {
        if done == all {
            return true;
        }
        if !seen.insert((done, value)) {
            continue;
        }
        let open = || (0..operations.len()).filter(|i| done & 1 << i == 0);
        // Nothing may come before an operation that was answered before it was called.
        let Some(first_answer) = open().map(|i| operations[i].answered).min() else {
            continue;
        };
        for i in open() {
            let operation = operations[i];
            if operation.called <= first_answer && operation.found == value {
                todo.push((done | 1 << i, operation.writes.unwrap_or(value)));
            }
        }
    }
    false
}

#[test]
fn the_checker_finds_what_is_wrong() {
    let start = Instant::now();
    let operation = |called: u64, answered: u64, writes, found| Operation {
        called: start + Duration::from_millis(called),
        answered: start + Duration::from_millis(answered),
        writes,
        found,
    };
    let put =
        |called, answered, value, found| operation(called, answered, Some(Some(value)), found);
    let get = |called, answered, found| operation(called, answered, None, found);
    assert!(is_linearizable(
        None,
        &[put(0, 10, 1, None), get(5, 6, None), get(6, 7, Some(1))]
    ));
    assert!(!is_linearizable(
        None,
        &[put(0, 10, 1, None), get(5, 6, Some(1)), get(7, 8, None)]
    ));
    assert!(
        !is_linearizable(None, &[put(0, 4, 1, None), get(5, 6, None)]),
        "stale"
    );
    assert!(
        !is_linearizable(None, &[put(0, 4, 1, None), put(5, 6, 2, None)]),
        "lost"
    );
    let remove = operation(0, 9, Some(None), Some(1));
    assert!(is_linearizable(
        Some(1),
        &[remove, get(1, 2, Some(1)), get(3, 4, None)]
    ));
    assert!(!is_linearizable(
        Some(1),
        &[remove, get(1, 2, None), get(3, 4, Some(1))]
    ));
}

/// Keys that clients work on, next to each other around a place that changes hands.
const HOT: u64 = 40;
const PER_KEY: u64 = 60;
const CLIENTS: u64 = 4;

struct Desk {
    histories: Vec<Mutex<Vec<Operation>>>,
    next_value: AtomicU64,
    done: AtomicBool,
}

fn work(desk: &Desk, owners: &[Compute], first_key: u64, client: u64) {
    let mut lines: Vec<_> = owners.iter().map(Compute::line).collect();
    let (mut guess, mut dice) = (0, crate::child_dice(client));
    for round in 0..PER_KEY * HOT / CLIENTS {
        let number = dice() % HOT;
        let key = first_key + number;
        let (writes, command) = match dice() % 4 {
            0 | 1 => (None, format!("get {key}")),
            2 if round % 3 == 0 => (Some(None), format!("remove {key}")),
            _ => {
                let value = desk.next_value.fetch_add(1, SeqCst);
                (Some(Some(value)), format!("put {key} {value}"))
            }
        };
        let called = Instant::now();
        let answer = loop {
            let answer = lines[guess].ask(&command);
            if !answer.contains("NotOwner") {
                break answer;
            }
            guess = (guess + 1) % lines.len();
            assert!(
                called.elapsed() < Duration::from_secs(10),
                "nobody serves {key}"
            );
        };
        let answered = Instant::now();
        let found = match answer.as_str() {
            "none" => None,
            value => Some(value.parse().unwrap_or_else(|_| panic!("{answer}"))),
        };
        desk.histories[number as usize]
            .lock()
            .unwrap()
            .push(Operation {
                called,
                answered,
                writes,
                found,
            });
    }
}

/// Moves the range of the hot keys from owner to owner.
fn hand_over(desk: &Desk, owners: &[Compute], first_key: u64) -> u64 {
    let (mut moves, mut at) = (0, 0);
    let mut end = None;
    while !desk.done.load(SeqCst) {
        let to = (at + 1) % owners.len();
        let middle = first_key + HOT / 2;
        let answer = owners[at].ask(&format!("leaf {middle}"));
        let Ok(low) = answer.parse::<u64>() else {
            assert!(answer.contains("NotOwner"), "{answer}");
            at = to;
            continue;
        };
        // The end may be another owner's already: then it is where it was.
        let beyond = owners[at].ask(&format!("leaf {}", first_key + 400));
        end = beyond.parse::<u64>().ok().or(end);
        let Some(high) = end.map(|end| end - 1) else {
            at = to;
            continue;
        };
        let answer = owners[at].ask(&format!("release {low} {high} {to}"));
        if answer.parse::<u64>().is_ok() {
            let adopted = owners[to].ask("adopt");
            assert!(adopted.parse::<u64>().is_ok(), "{adopted}");
            moves += 1;
            at = to;
        } else {
            // Leaves were split or merged meanwhile.
            assert!(answer.contains("Options"), "{answer}");
        }
        thread::sleep(Duration::from_millis(3));
    }
    moves
}

fn run(wire: Wire, processes: u16) {
    let folder = tempfile::tempdir().unwrap();
    let pool = crate::pool(wire, folder.path());
    let start = |owner| Compute::start(wire, owner, &pool, folder.path());
    let owners: Vec<_> = (0..processes).map(start).collect();
    let first_key = 2_000;
    let desk = Desk {
        histories: (0..HOT).map(|_| Mutex::default()).collect(),
        next_value: AtomicU64::new(1_000_000),
        done: AtomicBool::new(false),
    };
    let moves = thread::scope(|scope| {
        let (desk, owners) = (&desk, &owners[..]);
        let mover = scope.spawn(move || hand_over(desk, owners, first_key));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| scope.spawn(move || work(desk, owners, first_key, client)))
            .collect();
        let ended: Vec<_> = clients.into_iter().map(|client| client.join()).collect();
        desk.done.store(true, SeqCst);
        ended.into_iter().for_each(|client| client.unwrap());
        mover.join().unwrap()
    });
    assert!(moves >= 3, "{moves} hand-overs");
    let mut longest: HashMap<usize, usize> = HashMap::new();
    for (number, history) in desk.histories.iter().enumerate() {
        let mut history = history.lock().unwrap().clone();
        history.sort_by_key(|operation| operation.called);
        // In parts that do not overlap, each from a value that the part before allows.
        longest.insert(number, history.len());
        check_in_parts(Some(first_key + number as u64), &history);
    }
    assert!(longest.values().sum::<usize>() as u64 == PER_KEY * HOT / CLIENTS * CLIENTS);
}

/// Cuts a history where no operation is under way; each part is checked from every value that the
/// parts before may have left.
fn check_in_parts(first: Option<u64>, history: &[Operation]) {
    let mut values = HashSet::from([first]);
    let mut rest = history;
    while !rest.is_empty() {
        let mut end = 1;
        let mut latest = rest[0].answered;
        while end < rest.len() && rest[end].called <= latest {
            latest = latest.max(rest[end].answered);
            end += 1;
        }
        let (part, after) = rest.split_at(end);
        let left: HashSet<_> = part
            .iter()
            .filter_map(|operation| operation.writes)
            .chain(values.iter().copied())
            .filter(|last| {
                // A read at the very end finds `last`.
                let end = latest + Duration::from_nanos(1);
                let read = Operation {
                    called: end,
                    answered: end + Duration::from_nanos(1),
                    writes: None,
                    found: *last,
                };
                let with_read = [part, &[read]].concat();
                values
                    .iter()
                    .any(|value| is_linearizable(*value, &with_read))
            })
            .collect();
        assert!(!left.is_empty(), "from one of {values:?}: {part:#?}");
        values = left;
        rest = after;
    }
}

#[test]
fn two_processes_over_shared_memory() {
    run(Wire::Shm, 2);
}

#[test]
fn three_and_four_processes() {
    run(Wire::Shm, 3);
    run(Wire::Tcp, 4);
}
