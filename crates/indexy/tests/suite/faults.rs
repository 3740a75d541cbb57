//! I/O errors, a full device, short writes and failed syncs, at every kind of file, once and for
//! good, in a real process.
//!
//! A shim (`tests/fault_shim`) is compiled on the spot and preloaded into a child, where it makes
//! calls fail on command. Checked: reads go on; writes fail with typed errors; after a full device
//! has room again writing goes on without a reopen; whatever happened, nothing that was
//! acknowledged is lost, and the next open is sound.

use crate::{
    history::History,
    pairs::{self, Pair},
    places::fast_dir,
    support::{
        MIB, Random, StopAtDrop, assert_sound, child, child_argument, open, setting, shim,
        side_by_side, tell, wait,
    },
};
use indexy::{Db, Durability, Error, IndexYKind, Options, Tree};
use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::{Duration, Instant},
};

const KEYS: u64 = 4000;
const WRITERS: u64 = 2;
/// Large entries of a batch beside them.
const FILLERS: u64 = 20;
/// How long writers go on with the fault in place: `INDEXY_FAULT_MS`.
fn under_fault() -> Duration {
    Duration::from_millis(setting("INDEXY_FAULT_MS", 100))
}

/// And at most until it has struck.
const UNTIL_STRUCK: Duration = Duration::from_secs(60);
/// How long writing may take to go on once there is room.
const RECOVERY: Duration = Duration::from_secs(30);

fn options(pair: Pair) -> Options {
    let options = Options::new(2 * MIB).durability(Durability::Sync);
    pairs::options(pair, options.log_limit_bytes(1 << 20))
}

#[derive(Debug, Clone, Copy)]
struct Case {
    op: &'static str,
    /// Part of the path; after a `$`, its end.
    filter: &'static str,
    kind: &'static str,
    forever: bool,
}

impl Case {
    fn full(&self) -> bool {
        self.kind != "eio"
    }

    fn arm(&self, skip: u64) {
        let how = if self.forever { "forever" } else { "once" };
        tell(&format!(
            "arm/{}/{}/{skip}/{how}/{}",
            self.op, self.kind, self.filter
        ));
    }
}

fn typed(case: Case, error: &Error) -> bool {
    match error {
        Error::OutOfSpace { .. } => case.full(),
        Error::Io { .. } | Error::Poisoned { .. } => !case.full(),
        _ => false,
    }
}

struct Run<'a> {
    case: Case,
    db: &'a Db,
    tree: &'a Tree,
    history: &'a History,
    done: &'a AtomicBool,
}

impl Run<'_> {
    fn write(&self, n: u64) -> indexy::Result<()> {
        let write = self.history.begin(n);
        match self.history.value(n, write) {
            Some(value) => self.tree.insert(self.history.key(n), value)?,
            None => self.tree.remove(self.history.key(n))?,
        }
        self.history.acknowledge(n, write);
        Ok(())
    }

    /// Every `step`-th key, in batches: each waits for the disk once.
    fn write_many(&self, step: u64) {
        let all: Vec<u64> = (0..KEYS).step_by(step as usize).collect();
        for some in all.chunks(100) {
            let mut batch = self.db.batch();
            let writes: Vec<_> = some.iter().map(|&n| (n, self.history.begin(n))).collect();
            for &(n, write) in &writes {
                match self.history.value(n, write) {
                    Some(value) => batch.insert(self.tree, self.history.key(n), value),
                    None => batch.remove(self.tree, self.history.key(n)),
                }
            }
            batch.commit().unwrap();
            writes
                .into_iter()
                .for_each(|(n, write)| self.history.acknowledge(n, write));
        }
    }

    fn check(&self, n: u64) {
        let look = self.history.look(n);
        let found = self.tree.get(self.history.key(n));
        let found = found.unwrap_or_else(|e| panic!("{:?}: a read fails: {e:?}", self.case));
        self.history.check(&look, found.as_deref());
    }

    fn write_under_fault(&self, writer: u64) {
        let mut random = Random(writer);
        while !self.done.load(SeqCst) {
            let n = random.below(KEYS / WRITERS) * WRITERS + writer;
            if let Err(error) = self.write(n) {
                assert!(typed(self.case, &error), "{:?}: {error:?}", self.case);
                std::thread::sleep(Duration::from_millis(5));
            }
            self.check(random.below(KEYS));
        }
    }

    /// Enough for a new file of the log every few calls, however slow the disk is.
    fn fill_log(&self, round: u64) -> indexy::Result<()> {
        let mut batch = self.db.batch();
        for n in 0..FILLERS {
            batch.insert(self.tree, format!("filler {n}"), vec![round as u8; 8000]);
        }
        batch.commit()
    }

    /// Flushes, makes and drops trees: what touches Y and the manifest.
    fn disturb(&self) {
        let start = Instant::now();
        for round in 0.. {
            let passed = start.elapsed();
            if passed > UNTIL_STRUCK || passed > under_fault() && tell("struck") {
                return;
            }
            let name = format!("tree {round}");
            for result in [
                self.fill_log(round),
                self.db.tree(&name).map(|_| ()),
                self.db.flush(),
                self.db.sync(),
                self.db.drop_tree(&name),
            ] {
                match result {
                    Ok(()) | Err(Error::NoSuchTree { .. }) => {}
                    Err(error) => assert!(typed(self.case, &error), "{:?}: {error:?}", self.case),
                }
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// After a full device got room: no reopen is needed.
    fn goes_on(&self) {
        let start = Instant::now();
        let until_it_works = |what: &str, attempt: &dyn Fn() -> indexy::Result<()>| {
            while let Err(error) = attempt() {
                assert!(
                    typed(self.case, &error),
                    "{:?}: {what}: {error:?}",
                    self.case
                );
                assert!(
                    start.elapsed() < RECOVERY,
                    "{:?}: {what} still fails: {error:?}",
                    self.case
                );
                std::thread::sleep(Duration::from_millis(20));
            }
        };
        for n in 0..50 {
            until_it_works("a write", &|| self.write(n));
        }
        until_it_works("a flush", &|| self.db.flush());
        until_it_works("a tree", &|| self.db.tree("another").map(|_| ()));
        assert_sound(self.db);
    }
}

fn run(case: Case, options: &Options, skip: u64, dir: &Path) {
    let history = History::new(KEYS, 2000);
    let db = open(dir, options);
    let tree = db.tree("t").unwrap();
    let done = AtomicBool::new(false);
    let run = Run {
        case,
        db: &db,
        tree: &tree,
        history: &history,
        done: &done,
    };
    run.write_many(1);
    db.flush().unwrap();
    case.arm(skip);
    std::thread::scope(|s| {
        let _stop = StopAtDrop(&done);
        for writer in 0..WRITERS {
            let run = &run;
            s.spawn(move || run.write_under_fault(writer));
        }
        run.disturb();
    });
    let struck = tell("struck");
    tell("disarm");
    (0..KEYS).for_each(|n| run.check(n));
    if case.full() {
        run.goes_on();
    }
    // What is left is closed or dropped, with or without an error.
    if skip.is_multiple_of(2) {
        let closed = db.close();
        assert!(closed.is_ok() || !case.full(), "{case:?}: {closed:?}");
    }
    // The last handles go before the directory is opened again.
    drop((tree, db));
    let db = open(dir, options);
    let tree = db.tree("t").unwrap();
    history.reopened();
    let run = Run {
        case,
        db: &db,
        tree: &tree,
        history: &history,
        done: &done,
    };
    (0..KEYS).for_each(|n| run.check(n));
    assert_sound(&db);
    run.write_many(3);
    db.close().unwrap();
    assert!(struck, "{case:?}: the fault never struck");
}

fn cases(site: &str, pair: Pair) -> Vec<Case> {
    let all: &[(&str, &str, &[&str])] = match site {
        "log" => &[
            ("write", "/log/", &["eio", "enospc", "short"]),
            ("sync", "/log/", &["eio"]),
            ("create", "/log/", &["eio", "enospc"]),
            ("rename", "/log/", &["eio", "enospc"]),
            ("sync", "$/log", &["eio"]),
        ],
        "trees" => &[
            ("write", "/trees/1/", &["eio", "enospc", "short"]),
            ("sync", "/trees/1/", &["eio"]),
            ("create", "/trees/1/", &["eio", "enospc"]),
        ],
        _ => &[
            ("write", "/MANIFEST", &["eio", "enospc", "short"]),
            ("sync", "/MANIFEST", &["eio"]),
            ("create", "/MANIFEST", &["eio", "enospc"]),
            ("rename", "/MANIFEST", &["eio", "enospc"]),
            ("sync", "$/db", &["eio"]),
        ],
    };
    let mut cases = Vec::new();
    // A page file is the only one of its tree, and is there before the fault.
    let creates = !matches!(pair.1, IndexYKind::BPlus { .. }) || site != "trees";
    for (op, filter, kinds) in all {
        if *op == "create" && !creates {
            continue;
        }
        for kind in *kinds {
            for forever in [false, true] {
                cases.push(Case {
                    op,
                    filter,
                    kind,
                    forever,
                });
            }
        }
    }
    cases
}

#[test]
fn faulty_child() {
    let Some(argument) = child_argument() else {
        return;
    };
    let (name, site) = argument.split_once(' ').unwrap();
    let pair = pairs::named(name);
    let options = options(pair);
    for (n, case) in cases(site, pair).into_iter().enumerate() {
        println!("{name}: {case:?}");
        let dir = fast_dir();
        // The first calls, and later ones.
        run(case, &options, n as u64 % 3, &dir.path().join("db"));
    }
}

/// Faults at `site`, with the pairs of test `number` of `of`.
fn with_faults(site: &str, number: usize, of: usize) {
    let dir = fast_dir();
    let shim = shim(dir.path());
    side_by_side(pairs::chosen(number, of), |pair| {
        let argument = format!("{} {site}", pairs::name(pair));
        let child = child("faults::faulty_child", &argument)
            .env("LD_PRELOAD", &shim)
            .spawn();
        assert!(wait(child.unwrap(), Duration::from_secs(900)), "see above");
    });
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn faults_of_the_log() {
    with_faults("log", 1, 2);
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn faults_of_index_y() {
    // Each has its own way of failing.
    with_faults("trees", 0, 1);
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn faults_of_the_manifest() {
    with_faults("manifest", 0, 2);
}
