//! Protocols of the framework, each interleaving forced: an Index X of each kind, an Index Y in
//! memory that stops and fails on demand, and a log on a simulated disk that loses what was not
//! synced.
//!
//! A [`Rig`] is a database without its API. Writers of one key are serial in these tests, as its
//! stripe makes them.

mod accesses;
mod by_hand;
mod checkpointing;
mod cleaning;
mod cutting;
mod evicted;
mod fetching;
mod images;
mod loading;
mod merging;
mod order;
mod popping;
mod power;
mod precleaning;
mod ranges;
mod releasing;
mod scanning;
mod stalls;
mod sweeping;
mod warming;

use super::{
    clean::{run::Pick, truncate},
    expiry,
    host::Host,
    memory::{Holdings, WaitLimits},
    operators::Operator,
    policies::Policies,
    shared::Shared,
    sweep_schedule::Expiry,
    tree::{Joined, Route, Written},
};
use crate::{
    error::Result,
    key::Value,
    mem::{Freed, Memory, budget::Budget},
    storage::{Storage, sim::Sim},
    wal::{Log, LogDurability, LogOptions, Lsn, RecordRef, batch_ops},
    x::{AnyX, Cut, IndexX, art::Art, bptree::BPlus, model::ModelX},
    y::{IndexY, memory::MemoryY},
};
use parking_lot::{Mutex, RwLock};
use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

const LOG_DIR: &str = "/log";
const BUDGET: usize = 64 << 20;
/// Nobody waits for long in a test.
const WAIT_LIMITS: WaitLimits = WaitLimits {
    stall: Duration::from_secs(4),
    crowded_out: Duration::from_secs(2),
    too_large: Duration::from_millis(300),
};
/// The tree that most tests use.
const TREE: u32 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum XKind {
    Model,
    Art,
    BPlus,
}
const X_KINDS: [XKind; 3] = [XKind::Model, XKind::Art, XKind::BPlus];

/// What survives a crash beside the log and the Ys.
#[derive(Debug, Default, Clone, Copy)]
struct Manifest {
    start: Lsn,
    durable: Lsn,
    /// Trees have an operator, and replay begins with everything mounted.
    merges: bool,
    /// What is replayed goes to Y at once, record by record.
    cleans_in_replay: bool,
    /// Entries of trees may expire.
    expires: bool,
    /// As it is opened with.
    policies: Policies,
}

struct Rig {
    kind: XKind,
    sim: Sim,
    shared: Arc<Shared>,
    memory: Arc<Memory>,
    trees: RwLock<BTreeMap<u32, Arc<Joined>>>,
    ys: Mutex<BTreeMap<u32, MemoryY>>,
    manifest: Mutex<Manifest>,
    /// Happens once, right after somebody has listed the trees.
    after_listing: Mutex<Option<AfterListing>>,
}

type AfterListing = Box<dyn FnOnce(&Rig) + Send>;

impl Holdings for Rig {
    fn x_bytes(&self) -> usize {
        self.trees.read().values().map(|t| t.x.stats().bytes).sum()
    }
    fn resident_bytes(&self) -> usize {
        let trees = self.trees.read();
        let resident = trees.values().filter(|t| t.resident);
        resident.map(|t| t.x.stats().bytes).sum()
    }
    fn y_bytes(&self) -> usize {
        let trees = self.trees.read();
        trees.values().map(|t| t.y.memory_bytes()).sum()
    }
    fn when_freed(&self) -> Freed {
        self.memory.when_freed()
    }
    fn spill_images(&self) {}
    fn give_up_images(&self) {}
}

impl Host for Rig {
    fn trees(&self) -> Vec<Arc<Joined>> {
        let trees = self.trees.read().values().cloned().collect();
        let happens = self.after_listing.lock().take();
        if let Some(happens) = happens {
            happens(self);
        }
        trees
    }
    fn persist_log_start(&self, start: Lsn) -> Result<()> {
        let mut manifest = self.manifest.lock();
        manifest.start = manifest.start.max(start);
        manifest.durable = manifest.durable.max(start);
        Ok(())
    }
    fn log_limit_bytes(&self) -> u64 {
        u64::MAX
    }
    fn collect_garbage(&self) {
        self.memory.collect();
    }
    fn empty_slabs(&self, bytes: usize) {
        let trees: Vec<_> = self.trees.read().values().cloned().collect();
        self.memory
            .empty_slabs(bytes, || trees.iter().for_each(|t| t.x.relocate()));
    }
    fn empty_dropped(&self) {}
    fn divide_memory(&self) {}
}

impl Rig {
    fn new(kind: XKind) -> Arc<Self> {
        Self::with_budget(kind, BUDGET)
    }

    fn with_budget(kind: XKind, budget: usize) -> Arc<Self> {
        let (sim, manifest) = (Sim::default(), Manifest::default());
        Self::open(kind, budget, sim, BTreeMap::new(), manifest)
    }

    /// Runs `test` once for each kind of Index X, with the tree [`TREE`] made.
    fn each(test: impl Fn(&Arc<Rig>, &Arc<Joined>, &MemoryY)) {
        Self::each_as(Manifest::default(), test);
    }

    /// The same with trees as `manifest` says.
    fn each_as(manifest: Manifest, test: impl Fn(&Arc<Rig>, &Arc<Joined>, &MemoryY)) {
        for kind in X_KINDS {
            let rig = Self::open(kind, BUDGET, Sim::default(), BTreeMap::new(), manifest);
            let (tree, y) = rig.tree(TREE);
            test(&rig, &tree, &y);
        }
    }

    fn open(
        kind: XKind,
        budget: usize,
        sim: Sim,
        ys: BTreeMap<u32, MemoryY>,
        manifest: Manifest,
    ) -> Arc<Self> {
        let budget = Arc::new(Budget::new(budget));
        let shared = Shared::with_wait_limits(budget.clone(), Arc::default(), WAIT_LIMITS);
        let rig = Self {
            kind,
            sim: sim.clone(),
            shared: Arc::new(shared.with_policies(manifest.policies)),
            memory: Memory::new(budget),
            trees: RwLock::default(),
            ys: Mutex::new(ys.clone()),
            manifest: Mutex::new(manifest),
            after_listing: Mutex::default(),
        };
        for id in ys.keys() {
            rig.make_tree(*id, manifest.start);
        }
        for tree in rig.trees.read().values() {
            tree.begin_replay();
        }
        let log = open_log(&sim, manifest, &rig.shared, &mut |lsn, record| {
            rig.shared.log.replaying(lsn);
            rig.replay(record);
            if manifest.cleans_in_replay {
                rig.trees.read().values().for_each(|tree| clean(tree));
            }
        });
        rig.shared.log.replayed(log.end());
        rig.shared.log.set(log);
        rig.shared.log.begin_service();
        for tree in rig.trees.read().values() {
            tree.end_replay().unwrap();
        }
        Arc::new(rig)
    }

    fn replay(&self, record: RecordRef<'_>) {
        let apply = |tree: u32, key: &[u8], value: Option<&[u8]>| {
            if let Some(tree) = self.trees.read().get(&tree) {
                tree.replay(key, value).unwrap();
            }
        };
        match record {
            RecordRef::Put { tree, key, value } => apply(tree, key, Some(value)),
            RecordRef::Remove { tree, key } => apply(tree, key, None),
            RecordRef::RemoveRange { tree, from, to } => {
                if let Some(tree) = self.trees.read().get(&tree) {
                    tree.replay_range(from, to).unwrap();
                }
            }
            RecordRef::Merge { tree, key, operand } => {
                self.shared.log.replays_operands();
                let tree = self.trees.read()[&tree].clone();
                tree.replay_merge(key, operand).unwrap();
            }
            RecordRef::Resolved {
                tree,
                key,
                value: None,
            } => self.trees.read()[&tree].replay_unmerged(key),
            RecordRef::Resolved { tree, key, value } => apply(tree, key, value),
            // Nothing is loaded without the API.
            RecordRef::Load { .. } => unreachable!(),
            RecordRef::Batch { ops, .. } => batch_ops(ops).for_each(|op| self.replay(op.unwrap())),
        }
    }

    fn make_tree(&self, id: u32, floor: Lsn) -> Arc<Joined> {
        let y = self.ys.lock().entry(id).or_default().clone();
        let mounted = !y.is_empty().unwrap();
        let memory = || self.memory.clone();
        let x = match self.kind {
            XKind::Model => AnyX::Model(ModelX::new(mounted)),
            XKind::Art => AnyX::Art(Art::new(memory(), mounted)),
            XKind::BPlus => AnyX::BPlus(BPlus::new(memory(), mounted)),
        };
        let joined = Joined::new(id, x, Arc::new(y), false, floor, self.shared.clone());
        let manifest = *self.manifest.lock();
        let joined = Arc::new(match manifest.expires {
            true => joined.expiring(Expiry::new(expiry::NEVER, 0)),
            false => joined,
        });
        if manifest.merges {
            joined.set_operator(Operator::Append {
                separator: vec![],
                limit: 100,
            });
        }
        self.trees.write().insert(id, joined.clone());
        joined
    }

    /// Makes an empty tree, as `tree_with` does.
    fn tree(&self, id: u32) -> (Arc<Joined>, MemoryY) {
        let joined = self.make_tree(id, self.shared.log.floor());
        let y = self.ys.lock()[&id].clone();
        (joined, y)
    }

    fn log(&self) -> &Log {
        self.shared.log.get().unwrap()
    }

    fn flush(&self) -> Result<()> {
        truncate::flush_all(self, &self.shared)
    }

    fn truncate(&self) {
        truncate::truncate(self, &self.shared).unwrap();
    }

    /// The power fails and the database is opened again. Nobody uses `self` any more.
    fn crash(&self, seed: u64) -> Arc<Self> {
        let ys = self.ys.lock().clone();
        ys.values().for_each(MemoryY::crash);
        let (budget, sim) = (self.shared.budget.limit(), self.sim.crash(seed));
        Self::open(self.kind, budget, sim, ys, *self.manifest.lock())
    }

    /// As [`Rig::crash`], a few times over, each time with other losses; `check` gets the tree
    /// [`TREE`].
    fn crash_and(&self, check: impl Fn(&Joined)) {
        for seed in 0..8 {
            let rig = self.crash(seed);
            let tree = rig.trees.read()[&TREE].clone();
            check(&tree);
        }
    }
}

fn open_log(
    sim: &Sim,
    manifest: Manifest,
    shared: &Shared,
    visit: &mut dyn FnMut(Lsn, RecordRef<'_>),
) -> Log {
    sim.create_dir_all(Path::new(LOG_DIR)).unwrap();
    let options = LogOptions {
        // Nothing becomes durable unless somebody waits for it.
        durability: LogDurability::Sync,
        segment_bytes: 4 << 10,
        buffer_bytes: 4 << 10,
        database_id: 1,
        keep_bytes: 0,
    };
    Log::open(
        Arc::new(sim.clone()),
        Path::new(LOG_DIR),
        options,
        manifest.start,
        manifest.durable,
        false,
        shared.poison.clone(),
        shared.budget.clone(),
        &mut |lsn, record| {
            visit(lsn, record);
            Ok(())
        },
    )
    .unwrap()
}

/// As the API routes it.
fn put_as_routed(tree: &Joined, key: &[u8], value: Option<&[u8]>) -> Result<Option<Lsn>> {
    let route = value.map_or(Route::ThroughX, |v| tree.route(key.len() + v.len()));
    match tree.put(key, value, route, 0)? {
        Written::Done(end) => Ok(end),
        Written::NeedsImage | Written::Changed => panic!("no snapshot is open"),
    }
}

fn put(tree: &Joined, key: &[u8], value: &[u8]) -> Lsn {
    put_as_routed(tree, key, Some(value)).unwrap().unwrap()
}

fn remove(tree: &Joined, key: &[u8]) {
    put_as_routed(tree, key, None).unwrap();
}

fn get(tree: &Joined, key: &[u8]) -> Option<Vec<u8>> {
    tree.get(key, <[u8]>::to_vec).unwrap()
}

fn in_y(y: &MemoryY, key: &[u8]) -> Option<Vec<u8>> {
    y.contents().get(key).cloned()
}

fn clean(tree: &Joined) {
    tree.write_back(Pick::All).unwrap();
}

/// Cuts everything that may go, as a release does.
fn cut(tree: &Joined) -> Cut {
    tree.x.cut(&[], None, tree.settled(), false, usize::MAX)
}

/// Puts `key` into Y alone, below a mount.
fn put_away(tree: &Joined, key: &[u8], value: &[u8]) {
    put(tree, key, value);
    clean(tree);
    assert!(cut(tree).dropped > 0);
}

fn some(bytes: &[u8]) -> Option<Vec<u8>> {
    Some(bytes.to_vec())
}

/// Long enough that a thread which may go on would have.
const A_WHILE: Duration = Duration::from_millis(50);

/// The clean entries of X are what Y says (I2).
fn assert_clean_means_equal(tree: &Joined) {
    let mut problems = Vec::new();
    tree.compare_clean_with_y(10, &mut 0, &mut problems)
        .unwrap();
    assert_eq!(problems, [] as [String; 0]);
}

#[test]
fn the_rig_recovers_what_was_durable() {
    for kind in X_KINDS {
        let rig = Rig::new(kind);
        let (tree, _) = rig.tree(TREE);
        put(&tree, b"a", b"1");
        rig.log().sync().unwrap();
        put(&tree, b"b", b"1");
        rig.crash_and(|tree| assert_eq!(get(tree, b"a"), some(b"1")));
    }
}

#[test]
fn values_are_the_newest_through_every_move() {
    Rig::each(|rig, tree, _| {
        for round in 0..20u8 {
            for key in 0..50u8 {
                put(tree, &[key], &[round, key]);
            }
            match round % 4 {
                0 => clean(tree),
                1 => rig.flush().unwrap(),
                2 => {
                    clean(tree);
                    cut(tree);
                }
                _ => {}
            }
            for key in 0..50u8 {
                let value: Option<Value> = tree.get(&[key], Value::new).unwrap();
                assert_eq!(value.as_deref(), Some(&[round, key][..]));
            }
            assert_clean_means_equal(tree);
        }
    });
}
