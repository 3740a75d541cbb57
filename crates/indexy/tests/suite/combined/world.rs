//! The database under test: its options, its trees, and what keys and values look like.

use crate::{
    bank::Bank,
    pairs::{self, Pair},
    support::{MIB, Random},
};
use indexy::{
    Access, Admission, ChangePosition, Clock, Compression, Db, Durability, Evicted, Expires,
    HotSet, IndexXKind, IndexYKind, MergeOperator, Options, Tree, TreeOptions, Ttl,
};
use std::{
    fs::File,
    os::unix::fs::FileExt,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError, RwLock, RwLockReadGuard,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Trees in which each writer has keys of his own, by these numbers.
pub const TREES: usize = 4;
pub const PLAIN: usize = 0;
/// With values of up to a tenth of the budget, and some that memory does not keep.
pub const LARGE: usize = 1;
/// Its values are numbers, to which merges add.
pub const COUNTERS: usize = 2;
pub const EXPIRING: usize = 3;

pub const NAMES: [&str; TREES] = ["plain", "large", "counters", "expiring"];
/// The other name that the first tree has at times.
pub const RENAMED: &str = "plain under another name";

/// The tree that is dropped and made again, and its other name.
pub const SCRATCH: &str = "scratch";
pub const SCRAP: &str = "scrap";

/// What an entry without a moment expires at.
pub const NEVER: u64 = u64::MAX;
/// Default life in the tree whose entries expire, in milliseconds.
pub const LIFE: u64 = 4000;
pub const START: u64 = 1_000_000;

/// The feed keeps so much of the log for its follower.
const CHANGES_BYTES: u64 = 64 << 20;

/// Of a record of the feed this part of the budget is counted, at most.
const FEED_DIVISOR: u64 = 4;
/// The disk index is over the budget by this part of it, at most.
const DISK_INDEX_DIVISOR: u64 = 32;

/// How a run goes; its seed says the rest.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub seed: u64,
    pub pair: Pair,
    /// Nothing that was acknowledged may be lost.
    pub sync: bool,
}

impl Setup {
    /// The smallest budget of the run.
    pub fn budget(self) -> usize {
        (3 + self.seed as usize % 4) * MIB
    }

    /// Whether a replica follows the change feed.
    pub fn has_replica(self) -> bool {
        self.seed.is_multiple_of(2)
    }

    /// Memory beside the budget: the largest record that the feed reads is counted, but waits for
    /// no room. What the disk index holds for its trees is not wholly inside either.
    pub fn beside_budget(self) -> u64 {
        let feed = match self.has_replica() {
            true => self.budget() as u64 / FEED_DIVISOR,
            false => 0,
        };
        feed + self.budget() as u64 / DISK_INDEX_DIVISOR
    }

    /// Whether an open snapshot may be given up.
    pub fn gives_up_snapshots(self) -> bool {
        self.budget() < 4 * MIB
    }

    /// A random choice that belongs to the run: the same at each open.
    fn choice(self, which: u64, of: u64) -> u64 {
        Random(self.seed * 64 + which).below(of)
    }

    pub fn options(self, clock: &Arc<TestClock>) -> Options {
        let durability = match self.sync {
            true => Durability::Sync,
            false => Durability::Buffered { interval_ms: 10 },
        };
        let mut options = Options::new(self.budget())
            .durability(durability)
            .direct_reads(self.choice(0, 4) == 0)
            .change_history_bytes(CHANGES_BYTES)
            .clock(clock.clone());
        if self.choice(1, 2) == 0 {
            options = options.log_limit_bytes(1 << (20 + self.choice(2, 4)));
        }
        if self.choice(3, 4) == 0 {
            let every = Duration::from_millis(200);
            options = options.hot_set(HotSet::Keep { every });
        }
        // Some of the trees are LSM trees.
        pairs::options(self.pair, options).access(Access::Block)
    }

    /// The pairs are mixed: one log and one budget serve all.
    fn tree_options(self, tree: usize) -> TreeOptions {
        let paged = |page_bytes| IndexYKind::BPlus { page_bytes };
        let (x, y) = match (tree, self.choice(4, 4)) {
            (PLAIN, _) => self.pair,
            (COUNTERS, 0) => (IndexXKind::Art, paged(8192)),
            (COUNTERS, 1) => (IndexXKind::BPlus, paged(4096)),
            (COUNTERS, _) => (IndexXKind::BPlus, IndexYKind::Lsm),
            (EXPIRING, 0) => (IndexXKind::None, IndexYKind::Lsm),
            (EXPIRING, 1) => (IndexXKind::Art, IndexYKind::Lsm),
            (EXPIRING, 2) => (IndexXKind::BPlus, paged(16384)),
            (EXPIRING, _) => (IndexXKind::None, paged(4096)),
            _ => return self.large(),
        };
        let options = TreeOptions::new().index_x(x).index_y(y);
        match tree {
            COUNTERS => options.merge_operator(MergeOperator::AddU64),
            EXPIRING => options.ttl(Ttl::Default(Duration::from_millis(LIFE))),
            _ if self.choice(5, 3) == 0 => options.evicted(Evicted::Filter { bits_per_key: 10 }),
            _ if self.choice(6, 3) == 0 => options.admission(Admission::OnUpdate),
            _ => options,
        }
    }

    fn large(self) -> TreeOptions {
        let options = pairs::second(self.pair);
        let lsm = pairs::second_pair(self.pair).1 == IndexYKind::Lsm;
        match lsm && self.choice(7, 2) == 0 {
            true => options.compression(Compression::Lz4),
            false => options,
        }
    }
}

/// A clock that goes on when it is told to.
#[derive(Debug)]
pub struct TestClock {
    now: AtomicU64,
    moves: RwLock<()>,
    /// Where the time is noted, for after a kill.
    note: Option<File>,
}

impl Clock for TestClock {
    fn now(&self) -> SystemTime {
        moment(self.millis())
    }
}

pub fn moment(at: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(at)
}

/// When an entry of a model expires.
pub fn expires(at: u64) -> Expires {
    match at {
        NEVER => Expires::Never,
        at => Expires::At(moment(at)),
    }
}

impl TestClock {
    pub fn new(note: Option<File>) -> Arc<Self> {
        let mut bytes = [0; 8];
        // A short file reads as zeros.
        if let Some(note) = &note {
            let _ = note.read_at(&mut bytes, 0);
        }
        Arc::new(Self {
            now: AtomicU64::new(START.max(u64::from_be_bytes(bytes))),
            moves: RwLock::new(()),
            note,
        })
    }

    pub fn millis(&self) -> u64 {
        self.now.load(SeqCst)
    }

    /// The time stands still as long as the guard lives.
    pub fn still(&self) -> (RwLockReadGuard<'_, ()>, u64) {
        let guard = self.moves.read().unwrap_or_else(PoisonError::into_inner);
        (guard, self.millis())
    }

    pub fn advance(&self, by: u64) {
        let _alone = self.moves.write().unwrap_or_else(PoisonError::into_inner);
        let next = self.millis() + by;
        if let Some(note) = &self.note {
            note.write_all_at(&next.to_be_bytes(), 0).unwrap();
        }
        self.now.store(next, SeqCst);
    }
}

pub struct World {
    pub setup: Setup,
    pub clock: Arc<TestClock>,
    pub db: Db,
    pub trees: Vec<Tree>,
    pub bank: Bank,
    /// Before the accounts were there, if they are new.
    pub start: ChangePosition,
    /// A tree that is dropped and made again.
    pub scratch: Mutex<Tree>,
    pub done: AtomicBool,
}

impl World {
    pub fn open(dir: &Path, setup: Setup, clock: &Arc<TestClock>, budget: usize) -> Self {
        let options = setup.options(clock);
        let db = match Db::open(dir, options) {
            Ok(db) => db,
            Err(error) => panic!("{setup:?}: {error}"),
        };
        db.set_memory_budget(budget).unwrap();
        if db.tree_names().iter().any(|name| name == RENAMED) {
            db.rename_tree(RENAMED, NAMES[PLAIN]).unwrap();
        }
        if db.tree_names().iter().any(|name| name == SCRAP) {
            db.drop_tree(SCRAP).unwrap();
        }
        let open = |name: &str, options| db.tree_with(name, options).unwrap();
        let trees = (0..TREES).map(|t| open(NAMES[t], setup.tree_options(t)));
        let trees = trees.collect();
        let start = db.newest_change().unwrap();
        let (x, y) = pairs::DEFAULT;
        let resident = TreeOptions::new().index_x(x).index_y(y).resident(true);
        let bank = Bank {
            accounts: open("accounts", resident),
            by_balance: open("by balance", pairs::second(setup.pair)),
            history: None,
            db: db.clone(),
        };
        bank.fill();
        Self {
            scratch: Mutex::new(open(SCRATCH, TreeOptions::new())),
            done: AtomicBool::new(false),
            clock: clock.clone(),
            setup,
            trees,
            bank,
            start,
            db,
        }
    }

    pub fn is_done(&self) -> bool {
        self.done.load(SeqCst)
    }

    pub fn scratch(&self) -> Tree {
        self.scratch
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The first tree gets its other name, or its first one again.
    pub fn rename(&self) {
        let first = self.db.tree_names().iter().any(|name| name == NAMES[PLAIN]);
        let (old, new) = match first {
            true => (NAMES[PLAIN], RENAMED),
            false => (RENAMED, NAMES[PLAIN]),
        };
        self.db.rename_tree(old, new).unwrap();
    }

    /// The value that write number `stamp` gives to a key.
    pub fn value(&self, tree: usize, key: &[u8], stamp: u64) -> Vec<u8> {
        if tree == COUNTERS {
            return stamp.to_be_bytes().to_vec();
        }
        let mix = (stamp ^ key.len() as u64).wrapping_mul(0xD6E8_FEB8_6659_FD93) >> 20;
        let budget = self.setup.budget() as u64;
        let len = match (tree, mix % 400) {
            (_, 0..16) => return Vec::new(),
            (LARGE, 16) => budget / 6,
            (LARGE, 17..20) => budget / 10 - mix % 5000,
            (_, 20..40) => mix % 4000,
            _ => mix % 700,
        };
        let mut value = stamp.to_be_bytes().to_vec();
        value.extend((0..len).map(|i| (stamp + i) as u8 ^ key[0]));
        value
    }

    /// Whether somebody may have written that.
    pub fn is_a_value(&self, tree: usize, key: &[u8], value: &[u8]) -> bool {
        let Some(stamp) = value.first_chunk::<8>() else {
            return value.is_empty();
        };
        value == self.value(tree, key, u64::from_be_bytes(*stamp))
    }
}

/// Stretches of keys that each writer has in each tree; those of other writers lie between them.
pub const STRETCHES: u64 = 6;
const KEYS: u64 = 500;
/// Bytes that all keys of a stretch begin with.
pub const PREFIX_BYTES: usize = 2;

pub fn prefix(writer: usize, stretch: u64) -> Vec<u8> {
    vec![(stretch * 40) as u8, writer as u8]
}

pub fn writer_of(key: &[u8]) -> usize {
    usize::from(key[1])
}

/// A key of a shape that an index may stumble over.
pub fn key(writer: usize, random: &mut Random) -> Vec<u8> {
    let mut key = prefix(writer, random.below(STRETCHES));
    let n = random.below(KEYS);
    match n % 8 {
        0 => key.extend(format!("user/{:03}/item/{n}", n % 17).into_bytes()),
        1 => key.extend(vec![0; (n % 50) as usize]),
        2 => key.extend(vec![0xff; (n % 50) as usize]),
        3 => key.extend([vec![b'p'; 260], n.to_le_bytes().to_vec()].concat()),
        4 => key.extend("abc".repeat((n % 60) as usize).into_bytes()),
        5 => key.extend(n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()),
        _ => key.extend(n.to_be_bytes()),
    }
    key
}
