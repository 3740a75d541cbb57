//! Histories of transactions, judged: lists that transactions read and append to, from many
//! threads, with cleaning, release and snapshots beside them.
//!
//! Each list is a tree's value. What a transaction read of it tells which transactions came before,
//! and in which order. Three kinds of edges between transactions follow: who wrote what was there
//! before (ww), who wrote what was read (wr), who wrote next what was read (rw); and one who began
//! after another one had ended comes after it. The history is strictly serializable if and only if
//! these have no cycle (Adya; the checker Elle).

use crate::{
    pairs,
    places::fast_dir,
    support::{MIB, Random, StopAtDrop, open, setting},
};
use indexy::{Db, Error, Isolation, Options, Tree};
use std::{
    collections::HashMap,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

/// A transaction that committed.
#[derive(Debug, Clone, Default)]
struct Done {
    id: u32,
    /// When it was begun, and when the commit had returned, by one clock.
    began: u64,
    ended: u64,
    /// Lists, as they were read.
    read: Vec<(u64, Vec<u32>)>,
    /// Lists to which it appended its own number.
    appended: Vec<u64>,
}

fn ids(value: &[u8]) -> Vec<u32> {
    let numbers = value.chunks_exact(4);
    numbers
        .map(|n| u32::from_le_bytes(n.try_into().unwrap()))
        .collect()
}

/// A cycle, or what else cannot be; `None`: the history is strictly serializable.
fn judge(history: &[Done], last: &HashMap<u64, Vec<u32>>) -> Option<String> {
    let at: HashMap<u32, usize> = history
        .iter()
        .enumerate()
        .map(|(i, done)| (done.id, i))
        .collect();
    let mut edges: Vec<Vec<(usize, &str)>> = vec![Vec::new(); history.len()];
    for (list, ids) in last {
        if let Some(id) = ids.iter().find(|id| !at.contains_key(id)) {
            return Some(format!("list {list} has {id}, which did not commit"));
        }
        for pair in ids.windows(2) {
            edges[at[&pair[0]]].push((at[&pair[1]], "ww"));
        }
    }
    for (i, done) in history.iter().enumerate() {
        for list in &done.appended {
            if !last.get(list).is_some_and(|ids| ids.contains(&done.id)) {
                return Some(format!("{} is lost from list {list}", done.id));
            }
        }
        for (list, seen) in &done.read {
            let all = last.get(list).map_or(&[][..], Vec::as_slice);
            if !all.starts_with(seen) {
                return Some(format!(
                    "{} read {seen:?} of list {list}, which is {all:?}",
                    done.id
                ));
            }
            if let Some(id) = seen.last() {
                edges[at[id]].push((i, "wr"));
            }
            if let Some(next) = all
                .get(seen.len())
                .map(|id| at[id])
                .filter(|next| *next != i)
            {
                edges[i].push((next, "rw"));
            }
        }
    }
    // In the order of time: an edge to whoever began after it had ended. Enough are those to the
    // first one after each end, because they are joined by the chain of begins.
    let mut by_begin: Vec<usize> = (0..history.len()).collect();
    by_begin.sort_by_key(|&i| history[i].began);
    // Node `n + k` stands for "the k-th begin has come": whoever begins later follows.
    let n = history.len();
    edges.resize(2 * n, Vec::new());
    for k in 0..n {
        edges[n + k].push((by_begin[k], "time"));
        if k + 1 < n {
            edges[n + k].push((n + k + 1, "time"));
        }
    }
    for i in 0..n {
        let first = by_begin.partition_point(|&j| history[j].began < history[i].ended);
        if first < n {
            edges[i].push((n + first, "time"));
        }
    }
    find_cycle(&edges).map(|cycle| {
        let name = |&(i, how): &(usize, &str)| match history.get(i) {
            Some(done) => format!("{how} {}", done.id),
            None => how.into(),
        };
        cycle.iter().map(name).collect::<Vec<_>>().join(" -> ")
    })
}

/// Depth first, without recursion.
fn find_cycle<'a>(edges: &[Vec<(usize, &'a str)>]) -> Option<Vec<(usize, &'a str)>> {
    const NEW: u8 = 0;
    const OPEN: u8 = 1;
    const DONE: u8 = 2;
    let mut state = vec![NEW; edges.len()];
    for start in 0..edges.len() {
        if state[start] != NEW {
            continue;
        }
        state[start] = OPEN;
        let mut path = vec![(start, "")];
        let mut next = vec![0];
        while let (Some(&(node, _)), Some(edge)) = (path.last(), next.last_mut()) {
            match edges[node].get(*edge) {
                None => {
                    state[node] = DONE;
                    path.pop();
                    next.pop();
                }
                Some(&(to, how)) => {
                    *edge += 1;
                    match state[to] {
                        NEW => {
                            state[to] = OPEN;
                            path.push((to, how));
                            next.push(0);
                        }
                        OPEN => {
                            let from = path.iter().position(|(node, _)| *node == to).unwrap();
                            path.push((to, how));
                            return Some(path.split_off(from));
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    None
}

#[test]
fn the_judge_finds_what_is_wrong() {
    let done = |id, began, ended, read: &[(u64, &[u32])], appended: &[u64]| Done {
        id,
        began,
        ended,
        read: read
            .iter()
            .map(|(list, ids)| (*list, ids.to_vec()))
            .collect(),
        appended: appended.to_vec(),
    };
    let last = |lists: &[(u64, &[u32])]| -> HashMap<u64, Vec<u32>> {
        lists
            .iter()
            .map(|(list, ids)| (*list, ids.to_vec()))
            .collect()
    };
    let good = [
        done(1, 0, 3, &[(0, &[])], &[0]),
        done(2, 1, 4, &[(0, &[1])], &[1]),
        done(3, 5, 6, &[(0, &[1]), (1, &[2])], &[]),
    ];
    assert_eq!(judge(&good, &last(&[(0, &[1]), (1, &[2])])), None);
    // Write skew.
    let skew = [
        done(1, 0, 3, &[(0, &[]), (1, &[])], &[0]),
        done(2, 1, 4, &[(0, &[]), (1, &[])], &[1]),
    ];
    assert!(
        judge(&skew, &last(&[(0, &[1]), (1, &[2])]))
            .unwrap()
            .contains("rw")
    );
    // Lost update.
    let lost = [
        done(1, 0, 3, &[(0, &[])], &[0]),
        done(2, 1, 4, &[(0, &[])], &[0]),
    ];
    assert!(judge(&lost, &last(&[(0, &[2])])).unwrap().contains("lost"));
    // A read of the past, after it was over.
    let stale = [done(1, 0, 1, &[], &[0]), done(2, 2, 3, &[(0, &[])], &[])];
    assert!(judge(&stale, &last(&[(0, &[1])])).unwrap().contains("time"));
    // Half of a transaction.
    let half = [
        done(1, 0, 9, &[], &[0, 1]),
        done(2, 1, 3, &[(0, &[1]), (1, &[])], &[]),
    ];
    assert!(judge(&half, &last(&[(0, &[1]), (1, &[1])])).is_some());
}

const LISTS: u64 = 12;

fn key(list: u64) -> [u8; 8] {
    (list * 1000).to_be_bytes()
}

/// One transaction of random reads, scans and appends; `None` if it met a conflict.
fn run(
    db: &Db,
    trees: &[Tree; 2],
    id: u32,
    clock: &AtomicU64,
    random: &mut Random,
) -> Option<Done> {
    let mut done = Done {
        id,
        began: clock.fetch_add(1, SeqCst),
        ..Done::default()
    };
    let mut tx = db.begin().unwrap();
    tx.isolation(Isolation::Serializable);
    let of = |list: u64| &trees[(list % 2) as usize];
    for _ in 0..=random.below(4) {
        let list = random.below(LISTS);
        if done.appended.contains(&list) || done.read.iter().any(|(read, _)| *read == list) {
            continue;
        }
        let tree = of(list);
        // By key or by a range with nothing else in it.
        let value = match random.below(3) {
            0 => tx.get(tree, key(list)).ok()?,
            1 => {
                let mut range = tx.range(tree, key(list)..(list * 1000 + 500).to_be_bytes());
                range.next().transpose().ok()?.map(|(_, value)| value)
            }
            _ => tx.get_for_update(tree, key(list)).ok()?,
        };
        let seen = value.as_deref().map_or(Vec::new(), ids);
        if random.one_in(2) {
            let mut longer = value.map_or(Vec::new(), |value| value.to_vec());
            longer.extend_from_slice(&id.to_le_bytes());
            tx.insert(tree, key(list), longer).unwrap();
            done.appended.push(list);
        }
        done.read.push((list, seen));
    }
    match tx.commit() {
        Ok(()) => {
            done.ended = clock.fetch_add(1, SeqCst);
            Some(done)
        }
        Err(Error::Conflict { .. } | Error::SnapshotTooOld) => None,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn i13_histories_are_strictly_serializable() {
    let seconds = setting("INDEXY_HISTORY_SECONDS", 2);
    for (seed, pair) in (setting("INDEXY_HISTORY_SEED", 1)..).zip(pairs::chosen(0, 2)) {
        let dir = fast_dir();
        let db = open(dir.path(), &pairs::options(pair, Options::new(4 * MIB)));
        let trees = [
            db.tree("a").unwrap(),
            db.tree_with("b", pairs::second(pair)).unwrap(),
        ];
        let filler = db.tree("filler").unwrap();
        let (stop, clock, numbers) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(1));
        let history = Mutex::new(Vec::new());
        std::thread::scope(|s| {
            for thread in 0..6 {
                let (db, trees, stop, clock, numbers, history) =
                    (&db, &trees, &stop, &clock, &numbers, &history);
                s.spawn(move || {
                    let mut random = Random(seed * 100 + thread);
                    let mut mine = Vec::new();
                    while !stop.load(SeqCst) {
                        let id = numbers.fetch_add(1, SeqCst) as u32;
                        mine.extend(run(db, trees, id, clock, &mut random));
                    }
                    history.lock().unwrap().extend(mine);
                });
            }
            let (db, filler, stop_now) = (&db, &filler, &stop);
            // What pushes lists out of X and gives their runs to Y.
            s.spawn(move || {
                let mut random = Random(seed);
                while !stop_now.load(SeqCst) {
                    for _ in 0..200 {
                        filler
                            .insert(random.next().to_be_bytes(), [1; 500])
                            .unwrap();
                    }
                    if random.one_in(20) {
                        db.flush().unwrap();
                    }
                }
            });
            let _stop = StopAtDrop(&stop);
            // Lists grow: they are cut off before they take the time of the test.
            let until = Instant::now() + Duration::from_secs(seconds);
            while Instant::now() < until && numbers.load(SeqCst) < 60_000 {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let history = history.into_inner().unwrap();
        let mut last = HashMap::new();
        for list in 0..LISTS {
            let value = trees[(list % 2) as usize].get(key(list)).unwrap();
            last.insert(list, value.as_deref().map_or(Vec::new(), ids));
        }
        println!(
            "{}: {} of {} committed",
            pairs::name(pair),
            history.len(),
            numbers.load(SeqCst) - 1
        );
        assert!(history.len() > 100);
        if let Some(wrong) = judge(&history, &last) {
            panic!("{}: {wrong}", pairs::name(pair));
        }
    }
}
