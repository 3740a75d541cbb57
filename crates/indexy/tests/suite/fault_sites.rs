//! A fault at the n-th call of its kind, once and for good, for n until none is left to hit, from
//! before the database is made to after it is closed.
//!
//! Checked: every error is typed; reads go on; after a failed sync of the database's own files
//! nothing is written any more, with that cause; when the device works again the database opens, is
//! sound, and each key is what the last acknowledged write left, or one that failed after it; a
//! finished checkpoint opens. An ordinary run takes some n of each kind, `INDEXY_FAULT_SITES=all`
//! all of them.

use crate::{
    pairs::{self, Pair},
    places::fast_dir,
    support::{MIB, assert_sound, child, child_argument, shim, side_by_side, tell, wait},
};
use indexy::{Db, Durability, Error, IndexXKind, IndexYKind, Options, Tree};
use std::{
    collections::BTreeMap,
    path::Path,
    time::{Duration, Instant},
};

const KEYS: u64 = 300;
/// Over an eighth of the budget: such a value goes past Index X.
const LARGE: usize = 300_000;
/// How long a failure in a background thread may take to be known.
const KNOWN: Duration = Duration::from_secs(5);

fn options(pair: Pair) -> Options {
    let options = Options::new(2 * MIB).durability(Durability::Sync);
    pairs::options(pair, options.log_limit_bytes(1 << 20))
}

#[derive(Debug, Clone, Copy)]
struct Fault {
    op: &'static str,
    kind: &'static str,
    forever: bool,
}

/// What fails how.
const FAULTS: [(&str, &[&str]); 11] = [
    ("write", &["eio", "enospc", "short"]),
    ("sync", &["eio"]),
    ("create", &["eio", "enospc"]),
    ("rename", &["eio", "enospc"]),
    ("read", &["eio"]),
    ("truncate", &["eio", "enospc"]),
    ("allocate", &["eio", "enospc"]),
    ("remove", &["eio"]),
    ("link", &["eio", "enospc"]),
    ("copy", &["eio", "enospc"]),
    ("mkdir", &["eio", "enospc"]),
];

/// The faults are shared out to so many children.
const SHARES: usize = 3;

/// What a key may hold: what was acknowledged last, then what failed since.
type Possible = Vec<Option<Vec<u8>>>;

struct Run<'a> {
    fault: Fault,
    skip: u64,
    options: &'a Options,
    home: &'a Path,
    keys: BTreeMap<String, Possible>,
    /// Checkpoints that were finished, and the keys then.
    copies: BTreeMap<String, BTreeMap<String, Possible>>,
    round: u8,
}

impl Run<'_> {
    #[track_caller]
    fn expect(&self, error: &Error, what: &str) {
        let right = match error {
            Error::OutOfSpace { .. } => self.fault.kind != "eio",
            Error::Io { .. } => self.fault.kind == "eio",
            Error::Poisoned { .. } => true,
            _ => false,
        };
        assert!(
            right,
            "{:?} at {}: {what}: {error:?}",
            self.fault, self.skip
        );
    }

    /// Notes what became of a write. Returns whether it was done.
    fn note(&mut self, key: &str, value: Option<Vec<u8>>, done: &indexy::Result<()>) {
        let possible = self.keys.entry(key.into()).or_insert_with(|| vec![None]);
        match done {
            Ok(()) => *possible = vec![value],
            Err(_) => possible.push(value),
        }
        if let Err(error) = done {
            self.expect(error, key);
        }
    }

    fn insert(&mut self, tree: &Tree, key: &str, bytes: usize) -> bool {
        self.round = self.round.wrapping_add(1);
        let value = vec![self.round; bytes];
        let done = tree.insert(key, &value);
        self.note(key, Some(value), &done);
        done.is_ok()
    }

    fn remove(&mut self, tree: &Tree, key: &str) {
        let done = tree.remove(key);
        self.note(key, None, &done);
    }

    fn batch(&mut self, db: &Db, tree: &Tree, first: u64) {
        self.round = self.round.wrapping_add(1);
        let value = vec![self.round; 300];
        let mut batch = db.batch();
        let keys: Vec<String> = (first..first + 60)
            .map(|n| format!("key{}", n % KEYS))
            .collect();
        keys.iter().for_each(|key| batch.insert(tree, key, &value));
        let done = batch.commit();
        for key in keys {
            self.note(&key, Some(value.clone()), &done);
        }
    }

    fn load(&mut self, tree: &Tree, part: u64) {
        let keys: Vec<String> = (0..20).map(|n| format!("load{part}/{n:02}")).collect();
        let value = vec![part as u8; 300];
        let done = tree.load_sorted(keys.iter().map(|key| (key, &value)));
        if matches!(done, Err(Error::Unsupported { .. })) {
            return;
        }
        let done = done.map(|_| ());
        for key in keys {
            self.note(&key, Some(value.clone()), &done);
        }
    }

    /// Reads work whatever else does not, unless they are what fails.
    fn read(&self, tree: &Tree) {
        for (key, possible) in self.keys.iter().step_by(7) {
            match tree.get(key) {
                Ok(found) => self.check(key, possible, found.as_deref()),
                Err(error) => {
                    self.expect(&error, "a read");
                    let reads_fail = ["read", "create"].contains(&self.fault.op);
                    assert!(reads_fail, "{:?}: a read: {error}", self.fault);
                }
            }
        }
    }

    fn check(&self, key: &str, possible: &Possible, found: Option<&[u8]>) {
        let right = possible.iter().any(|value| value.as_deref() == found);
        let is = found.map(|v| (v.len(), v[0]));
        assert!(right, "{:?} at {}: {key} is {is:?}", self.fault, self.skip);
    }

    fn tried<T>(&self, result: indexy::Result<T>, what: &str) -> Option<T> {
        result.inspect_err(|error| self.expect(error, what)).ok()
    }

    /// After a sync of the database's own files failed, nothing is written as if it had not.
    fn is_poisoned_if_struck(&mut self, tree: &Tree) {
        if self.fault.op != "sync" || !tell("struck") {
            return;
        }
        let start = Instant::now();
        while self.insert(tree, "after", 10) {
            assert!(
                start.elapsed() < KNOWN,
                "{:?} at {}: a write",
                self.fault,
                self.skip
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        let error = tree.insert("after", "").unwrap_err();
        let Error::Poisoned { cause } = &error else {
            panic!("{:?} at {}: {error:?}", self.fault, self.skip);
        };
        assert!(cause.contains("Input/output error"), "{cause}");
    }

    /// Everything that touches files. `None`: it could not be opened.
    fn use_database(&mut self, part: u64) -> Option<()> {
        let path = self.home.join("db");
        let db = self.tried(Db::open(&path, self.options.clone()), "open")?;
        let tree = self.tried(db.tree("t"), "tree")?;
        let struck_before = tell("struck");
        for n in 0..6 {
            self.batch(&db, &tree, n * 47 + part);
        }
        self.insert(&tree, "large", LARGE);
        self.remove(&tree, "key5");
        self.read(&tree);
        self.tried(db.flush(), "flush");
        for n in 0..5 {
            self.batch(&db, &tree, n * 60 + part);
        }
        self.insert(&tree, "large", LARGE / 2);
        self.tried(db.flush(), "flush");
        self.insert(&tree, "large", LARGE);
        self.insert(&tree, "small", 100);
        self.load(&tree, part);
        self.tried(db.sync(), "sync");
        if !struck_before {
            self.is_poisoned_if_struck(&tree);
        }
        self.read(&tree);
        if let Ok(report) = db.verify() {
            assert!(report.is_ok() || self.fault.op == "read", "{report:?}");
        }
        let copy = format!("copy{part}");
        if self
            .tried(db.checkpoint(self.home.join(&copy)), "checkpoint")
            .is_some()
        {
            self.copies.insert(copy, self.keys.clone());
        }
        if let Some(guest) = self.tried(db.tree("guest"), "tree") {
            let _ = guest.insert("k", "v");
            drop(guest);
            match db.drop_tree("guest") {
                Ok(()) | Err(Error::NoSuchTree { .. }) => {}
                Err(error) => self.expect(&error, "drop_tree"),
            }
        }
        self.batch(&db, &tree, 7);
        self.insert(&tree, "last", 50);
        self.read(&tree);
        if part == 1 {
            self.tried(db.close(), "close");
        }
        Some(())
    }

    /// With a device that works again.
    fn check_all(&self) {
        let check = |db: &Db, keys: &BTreeMap<String, Possible>| {
            let tree = db.tree("t").unwrap();
            for (key, possible) in keys {
                self.check(key, possible, tree.get(key).unwrap().as_deref());
            }
            assert_sound(db);
        };
        let db = Db::open(self.home.join("db"), self.options.clone());
        let db = db.unwrap_or_else(|e| panic!("{:?} at {}: {e:?}", self.fault, self.skip));
        check(&db, &self.keys);
        db.tree("t").unwrap().insert("again", "1").unwrap();
        db.close().unwrap();
        for (name, keys) in &self.copies {
            let options = self.options.clone().create_if_missing(false);
            let copy = Db::open(self.home.join(name), options);
            check(
                &copy.unwrap_or_else(|e| panic!("{:?}: {e:?}", self.fault)),
                keys,
            );
        }
    }
}

/// Returns whether the fault struck.
fn strikes(fault: Fault, skip: u64, options: &Options) -> bool {
    let dir = fast_dir();
    let home = dir.path().join("site");
    std::fs::create_dir(&home).unwrap();
    let mut run = Run {
        fault,
        skip,
        options,
        home: &home,
        keys: BTreeMap::new(),
        copies: BTreeMap::new(),
        round: 0,
    };
    let how = if fault.forever { "forever" } else { "once" };
    tell(&format!(
        "arm/{}/{}/{skip}/{how}//site/",
        fault.op, fault.kind
    ));
    for part in 0..2 {
        // What struck once lets the second attempt through.
        if run.use_database(part).is_none() && !fault.forever {
            run.use_database(part);
        }
    }
    let struck = tell("struck");
    tell("disarm");
    run.check_all();
    struck
}

#[test]
fn sites_child() {
    let Some(argument) = child_argument() else {
        return;
    };
    let (name, share) = argument.split_once(' ').unwrap();
    let share: usize = share.parse().unwrap();
    let options = options(pairs::named(name));
    let all = std::env::var("INDEXY_FAULT_SITES").is_ok_and(|v| v == "all");
    for (op, kinds) in FAULTS.iter().skip(share).step_by(SHARES) {
        for (i, kind) in kinds.iter().enumerate() {
            for forever in [false, true] {
                let fault = Fault { op, kind, forever };
                let mut skip = if all { 0 } else { i as u64 };
                let mut sites = 0;
                while strikes(fault, skip, &options) {
                    sites += 1;
                    skip = if all { skip + 1 } else { skip * 2 + 3 };
                }
                println!("{name}: {fault:?}: {sites} sites, up to {skip}");
            }
        }
    }
}

fn every_site(pair: Pair) {
    let chosen = match std::env::var("INDEXY_TEST_PAIRS") {
        Ok(_) => pairs::chosen(0, 1),
        Err(_) => vec![pair],
    };
    let dir = fast_dir();
    let shim = shim(dir.path());
    let shares = chosen
        .into_iter()
        .flat_map(|pair| (0..SHARES).map(move |share| (pair, share)));
    side_by_side(shares, |(pair, share)| {
        let argument = format!("{} {share}", pairs::name(pair));
        let child = child("fault_sites::sites_child", &argument)
            .env("LD_PRELOAD", &shim)
            .spawn();
        assert!(wait(child.unwrap(), Duration::from_secs(1800)), "see above");
    });
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn of_an_lsm() {
    every_site((IndexXKind::Art, IndexYKind::Lsm));
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn of_a_paged_tree() {
    every_site((IndexXKind::BPlus, IndexYKind::BPlus { page_bytes: 4096 }));
}
