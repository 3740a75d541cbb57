//! Keys instead of pages: what Art over Dex costs beside DEX alone, in the same local memory.
//!
//! ```text
//! cargo run --release -p indexy-dex-y --example gate -- [smoke|laptop|evening]
//! ```
//!
//! One partition of 8-byte keys and values, one thread, no offloading. DEX alone has all of the
//! memory for pages; the database has the same as its budget. Each line is measured after as many
//! operations to warm up, over a pool that was loaded anew. Both write everything before the counts
//! begin and before they end, so that no line owes writes. Counts, no times. Prints Markdown.

#[allow(dead_code, reason = "the figures use more of it")]
#[path = "../../indexy-bench/src/dex/load.rs"]
mod load;

use indexy::{Db, IndexYKind, Options};
use indexy_dex::{
    BulkLoad, Tree,
    offload::{self, Offloading},
    remote::{Counts, Latency, Model, Region, RemoteMemory},
};
use indexy_dex_y::{DexFactory, NAME, Pools};
use load::{Load, Mix, Operation, Zipf};
use std::{
    error::Error,
    path::Path,
    sync::{Arc, Mutex},
};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Name, keys, operations.
const PRESETS: [(&str, u64, u64); 3] = [
    ("smoke", 800_000, 200_000),
    ("laptop", 2_000_000, 1_000_000),
    ("evening", 5_000_000, 2_500_000),
];
const THETAS: [f64; 5] = [0.0, 0.5, 0.7, 0.9, 0.99];
const MIXES: [(Mix, &str); 2] = [(Mix::ReadOnly, "reads"), (Mix::WriteIntensive, "50/50")];
/// The paper's cache for its keys: 256 MiB a compute server, 50 million keys a partition.
const PAPER_BYTES: u64 = 256 << 20;
const PAPER_KEYS: u64 = 50_000_000;

/// The pool of the database, of which the verbs are counted.
#[derive(Clone)]
struct Counted {
    bytes: u64,
    last: Arc<Mutex<Option<Arc<Model>>>>,
}

impl Counted {
    fn counts(&self) -> Counts {
        let last = self.last.lock().unwrap();
        last.as_ref()
            .map_or_else(Counts::default, |model| model.counts())
    }
}

fn pool(bytes: u64) -> indexy_dex::Result<Arc<Model>> {
    let region = Arc::new(Region::create(bytes)?);
    Ok(Arc::new(Model::new(
        vec![region],
        offload::serve,
        Latency::rdma(),
    )))
}

impl Pools for Counted {
    type Memory = Arc<Model>;

    fn empty(&self, _: &Path) -> indexy_dex::Result<Arc<Model>> {
        let model = pool(self.bytes)?;
        *self.last.lock().unwrap() = Some(Arc::clone(&model));
        Ok(model)
    }

    fn gave_up(&self, _: &Path, why: &indexy_dex::Error) {
        panic!("{why}");
    }
}

/// Verbs an operation.
struct Cost {
    reads: f64,
    verbs: f64,
}

impl Cost {
    fn of(counts: Counts, operations: u64) -> Self {
        let each = |sum: u64| sum as f64 / operations as f64;
        let verbs = counts.reads + counts.writes + counts.swaps + counts.calls;
        Self {
            reads: each(counts.reads),
            verbs: each(verbs),
        }
    }
}

struct Setting<'a> {
    load: &'a Load,
    mix: Mix,
    operations: u64,
    memory_bytes: usize,
}

impl Setting<'_> {
    /// Warms up, and measures.
    fn run(
        &self,
        counts: impl Fn() -> Counts,
        mut operate: impl FnMut(Operation, u64) -> indexy_dex::Result<()>,
        flush: impl Fn() -> indexy_dex::Result<()>,
    ) -> indexy_dex::Result<Cost> {
        let keys = self.load.keys;
        self.load
            .run(1, self.operations, self.mix, keys, &mut operate)?;
        flush()?;
        let before = counts();
        self.load
            .run(2, self.operations, self.mix, keys, &mut operate)?;
        flush()?;
        Ok(Cost::of(counts() - before, self.operations))
    }

    fn dex(&self, pool_bytes: u64) -> Outcome<Cost> {
        let memory = pool(pool_bytes)?;
        BulkLoad::default().load(&memory, (0..self.load.keys).map(|key| (key, key)))?;
        let options = indexy_dex::Options::new(0, self.memory_bytes / 1024);
        let tree = Tree::open(memory, options.offloading(Offloading::Never))?;
        let operate = |operation, key: u64| match operation {
            Operation::Lookup => tree.get(key).map(drop),
            _ => tree.put(key, key).map(drop),
        };
        Ok(self.run(|| tree.counts(), operate, || tree.flush())?)
    }

    fn art_over_dex(&self, dir: &Path, pools: &Counted) -> Outcome<Cost> {
        let db = Db::open(dir, options(self.memory_bytes, pools)?)?;
        let tree = db.tree("t")?;
        let operate = |operation, key: u64| {
            let bytes = key.to_be_bytes();
            let done = match operation {
                Operation::Lookup => tree.get(bytes).map(drop),
                _ => tree.insert(bytes, bytes).map(drop),
            };
            done.map_err(text)
        };
        let flush = || db.flush().map_err(text);
        let cost = self.run(|| pools.counts(), operate, flush)?;
        let stats = db.stats();
        assert!(stats.memory_used_bytes <= stats.memory_budget_bytes);
        db.close()?;
        Ok(cost)
    }
}

fn text(error: indexy::Error) -> indexy_dex::Error {
    indexy_dex::Error::Options(error.to_string())
}

fn options(memory_bytes: usize, pools: &Counted) -> Outcome<Options> {
    let factory = DexFactory::<_, 16>::new(pools.clone())
        .tune(|options| options.offloading(Offloading::Never));
    let options = Options::new(memory_bytes).register_index_y(NAME, Arc::new(factory))?;
    Ok(options.index_y(IndexYKind::custom(NAME)?))
}

fn main() -> Outcome<()> {
    let wanted = std::env::args().nth(1).unwrap_or_else(|| "smoke".into());
    let preset = PRESETS.iter().find(|preset| preset.0 == wanted);
    let &(name, keys, operations) = preset.ok_or("neither smoke, laptop nor evening")?;
    let memory_bytes = (PAPER_BYTES * keys / PAPER_KEYS) as usize;
    let pools = Counted {
        bytes: (keys * 64).next_multiple_of(4096) + (64 << 20),
        last: Arc::default(),
    };
    let dir = std::env::temp_dir().join(format!("indexy-dex-gate-{}", std::process::id()));
    let db = Db::open(&dir, options(memory_bytes, &pools)?)?;
    let tree = db.tree("t")?;
    for key in 0..keys {
        tree.insert(key.to_be_bytes(), key.to_be_bytes())?;
    }
    drop(tree);
    db.close()?;
    println!(
        "Preset `{name}`: {keys} keys, {memory_bytes} bytes, {operations} operations a line.\n"
    );
    println!(
        "| theta | mix | DEX: reads | verbs | Art over Dex: reads | verbs | reads, x | verbs, x |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (mix, what) in MIXES {
        for theta in THETAS {
            let load = Load {
                keys,
                own_keys: keys,
                zipf: (theta > 0.0).then(|| Zipf::new(keys, theta)),
            };
            let setting = Setting {
                load: &load,
                mix,
                operations,
                memory_bytes,
            };
            let (dex, art) = (
                setting.dex(pools.bytes)?,
                setting.art_over_dex(&dir, &pools)?,
            );
            println!(
                "| {theta} | {what} | {:.3} | {:.3} | {:.3} | {:.3} | {:.2} | {:.2} |",
                dex.reads,
                dex.verbs,
                art.reads,
                art.verbs,
                art.reads / dex.reads,
                art.verbs / dex.verbs,
            );
        }
    }
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}
