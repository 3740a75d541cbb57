//! IndeXY itself, by its public API, in each pair of indexes that this build has, and each Index Y
//! alone.
//!
//! One tree in one database with the whole budget. Reads go through `get_with`, which copies
//! nothing.
//!
//! A variant is `X-Y`: X is `art`, `bplus` or `none`, Y is `lsm`, `rocksdb` or `bplus`; `bplus8k`
//! has pages of that size, plain `bplus` those that the job asks for. The two systems of one
//! structure that the paper compares with are `bplus-alone` (its B+-B+: what LeanStore is) and
//! `lsm-alone` (its RocksDB, without the row cache that an Index X would be; the peers' `rocksdb`
//! has one). Their names do not begin as ours do, so that figures compare ours with them.

use super::{
    about::{About, KeyShape, PageCache, Storage},
    cold::device_counters,
    contract::{Contender, Durability, End, Outcome, Session, Setup},
    device::DEVICE,
};
use indexy::{
    Db, Fetch, IndexXKind, IndexYKind, ModelledDevice, Options, Stats, Ticket, Tree, TreeOptions,
};
use std::{
    collections::{BTreeMap, VecDeque},
    thread,
    time::Duration,
};

const BUFFERED_INTERVAL_MS: u64 = 100;
const TREE: &str = "data";

/// Further configurations: name, variant, summary. They take part when they are named.
const MORE: [(&str, &str, &str); 9] = [
    (
        "indexy-bplus-lsm",
        "bplus-lsm",
        "IndeXY: B+ tree over an LSM tree",
    ),
    (
        "indexy-art-bplus",
        "art-bplus",
        "IndeXY: ART over a paged B+ tree, pages as asked for",
    ),
    (
        "indexy-art-bplus4k",
        "art-bplus4k",
        "IndeXY: ART over a paged B+ tree, pages of 4 KiB",
    ),
    (
        "indexy-art-bplus8k",
        "art-bplus8k",
        "IndeXY: ART over a paged B+ tree, pages of 8 KiB",
    ),
    (
        "indexy-art-bplus16k",
        "art-bplus16k",
        "IndeXY: ART over a paged B+ tree, pages of 16 KiB",
    ),
    (
        "indexy-bplus-bplus",
        "bplus-bplus",
        "IndeXY: B+ tree over a paged B+ tree",
    ),
    (
        "indexy-bplus-bplus16k",
        "bplus-bplus16k",
        "IndeXY: B+ tree over a paged B+ tree, pages of 16 KiB",
    ),
    (
        "bplus-alone",
        "none-bplus",
        "our paged B+ tree alone: the budget is its pool",
    ),
    (
        "lsm-alone",
        "none-lsm",
        "our LSM tree alone: the budget is memtable and block cache",
    ),
];

/// The contender whose tables have transactions.
pub(crate) const TRANSACTIONS: &str = "indexy-transactions";

/// Names that take part when they are named.
pub(crate) fn only_if_named(name: &str) -> bool {
    name == TRANSACTIONS || name == DEVICE || MORE.iter().any(|more| more.0 == name)
}

impl Indexy {
    /// All configurations, the default pair first.
    pub fn abouts() -> Vec<About> {
        let about = About {
            name: "indexy",
            summary: "IndeXY in its default pair: ART over an LSM tree",
            storage: Storage::Disk,
            page_cache: PageCache::Used,
            keys: KeyShape::Bytes,
            max_threads: usize::MAX,
            scans: true,
            reopens: true,
            pages: false,
            durabilities: &[Durability::None, Durability::Buffered, Durability::Sync],
            variant: "art-lsm",
        };
        let transactions = About {
            name: TRANSACTIONS,
            summary: "IndeXY: on tables, serializable transactions instead of the driver's locks",
            ..about.clone()
        };
        let more = MORE.iter().map(|&(name, variant, summary)| About {
            name,
            summary,
            variant,
            pages: variant.ends_with("-bplus"),
            ..about.clone()
        });
        [about.clone(), transactions]
            .into_iter()
            .chain(more)
            .collect()
    }
}

/// An open database and its one tree.
#[derive(Debug)]
pub struct Indexy {
    opened: Opened,
    tree: Tree,
}

/// A database, and the device under it.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) db: Db,
    device: Option<ModelledDevice>,
}

/// The tree, and the reads that this thread put aside, the first one first, with their tokens.
#[derive(Debug)]
pub struct IndexySession<'a> {
    tree: &'a Tree,
    aside: VecDeque<(usize, Ticket)>,
}

/// True if `variant` names a pair of indexes.
pub(crate) fn is_pair(variant: &str) -> bool {
    pair(variant, 0).is_ok()
}

/// The pair of indexes that `variant` names.
pub(super) fn pair(variant: &str, page_bytes: usize) -> Outcome<(IndexXKind, IndexYKind)> {
    const DEFAULT_PAGE_BYTES: u32 = 4096;
    let page_bytes = if page_bytes > 0 {
        u32::try_from(page_bytes)?
    } else {
        DEFAULT_PAGE_BYTES
    };
    let (x, y) = variant
        .split_once('-')
        .ok_or_else(|| format!("no pair {variant:?}"))?;
    let x = match x {
        "art" => IndexXKind::Art,
        "bplus" => IndexXKind::BPlus,
        "none" => IndexXKind::None,
        _ => return Err(format!("no index X {x:?}").into()),
    };
    let y = match y {
        "lsm" => IndexYKind::Lsm,
        "rocksdb" => IndexYKind::RocksDb,
        "bplus" => IndexYKind::BPlus { page_bytes },
        "bplus4k" => IndexYKind::BPlus { page_bytes: 4096 },
        "bplus8k" => IndexYKind::BPlus { page_bytes: 8192 },
        "bplus16k" => IndexYKind::BPlus { page_bytes: 16384 },
        _ => return Err(format!("no index Y {y:?}").into()),
    };
    Ok((x, y))
}

/// Opens or creates the database of `setup`, of which a pair of its own has its parts.
pub(super) fn open_database(setup: &Setup, (x, y): (IndexXKind, IndexYKind)) -> Outcome<Opened> {
    const SEED: u64 = 1;
    let durability = match setup.durability {
        Durability::None => indexy::Durability::None,
        Durability::Buffered => indexy::Durability::Buffered {
            interval_ms: BUFFERED_INTERVAL_MS,
        },
        Durability::Sync => indexy::Durability::Sync,
    };
    let mut options = Options::new(setup.budget as usize)
        .index_x(x)
        .durability(durability);
    let mut device = None;
    match setup.cold {
        // What is set explicitly wins over a preset.
        Some(cold) if cold.profile => options = options.device(cold.device.profile()),
        _ => options = options.index_y(y),
    }
    if let Some(cold) = setup.cold {
        let model = ModelledDevice::new(cold.device.model(), SEED);
        device = Some(model.clone());
        options = options.modelled_device(model);
    }
    let db = Db::open(&setup.path, options)?;
    Ok(Opened { db, device })
}

/// What a tree of `setup` says for itself.
pub(super) fn tree_options(setup: &Setup) -> TreeOptions {
    match setup.cold.and_then(|cold| cold.admission) {
        Some(admission) => TreeOptions::new().admission(admission),
        None => TreeOptions::new(),
    }
}

impl Opened {
    /// The statistics of the database and of its device by name.
    pub(super) fn counters(&self) -> BTreeMap<String, f64> {
        let mut counters = counters(&self.db);
        if let Some(device) = &self.device {
            counters.extend(device_counters(device));
        }
        counters
    }

    pub(super) fn hurry(&self, hurry: bool) {
        if let Some(device) = &self.device {
            device.hurry(hurry);
        }
    }

    /// What is written at the end is no part of a measurement.
    pub(super) fn close(self) -> Outcome<()> {
        self.hurry(true);
        Ok(self.db.close()?)
    }

    pub(super) fn settle(&self) -> Outcome<()> {
        self.db.flush()?;
        wait_for_quiet(&self.db);
        Ok(())
    }
}

impl Contender for Indexy {
    type Session<'a> = IndexySession<'a>;

    fn open(setup: &Setup) -> Outcome<Self> {
        let (x, y) = pair(&setup.variant, setup.page_bytes)?;
        let opened = open_database(setup, (x, y))?;
        let tree = opened.db.tree_with(TREE, tree_options(setup))?;
        Ok(Self { opened, tree })
    }

    fn session(&self) -> Outcome<IndexySession<'_>> {
        Ok(IndexySession {
            tree: &self.tree,
            aside: VecDeque::new(),
        })
    }

    fn hurry(&self, hurry: bool) {
        self.opened.hurry(hurry);
    }

    fn settle(&self) -> Outcome<()> {
        self.opened.settle()
    }

    fn memory_used(&self) -> Option<u64> {
        Some(self.opened.db.stats().memory_used_bytes)
    }

    fn counters(&self) -> BTreeMap<String, f64> {
        self.opened.counters()
    }

    fn close(self) -> Outcome<()> {
        self.opened.close()
    }
}

/// The statistics of `db` by name.
fn counters(db: &Db) -> BTreeMap<String, f64> {
    let stats = db.stats();
    let mut counters = flatten(&stats);
    counters.insert("level0_runs".to_owned(), stats.y_runs as f64);
    counters.insert("hit_ratio".to_owned(), stats.hit_ratio());
    counters
}

/// Waits until compaction has nothing more to do, neither now nor when writers have rested for a
/// while, and the shape of Y stays as it is.
fn wait_for_quiet(db: &Db) {
    const LOOK: Duration = Duration::from_millis(100);
    const QUIET_LOOKS: u32 = 10;
    const MOST_LOOKS: u32 = 6000;
    let shape = || {
        let stats = db.stats();
        (stats.y_unsettled, stats.y_runs, stats.y_bytes_on_disk)
    };
    let (mut last, mut quiet) = (shape(), 0);
    for _ in 0..MOST_LOOKS {
        if quiet == QUIET_LOOKS {
            return;
        }
        thread::sleep(LOOK);
        let now = shape();
        let same = now == last && now.0 == 0;
        quiet = if same { quiet + 1 } else { 0 };
        last = now;
    }
}

/// Every number of the statistics by its name, so that new ones appear by themselves.
fn flatten(stats: &Stats) -> BTreeMap<String, f64> {
    let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(stats) else {
        return BTreeMap::new();
    };
    fields
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.as_f64()?)))
        .collect()
}

impl Session for IndexySession<'_> {
    #[inline]
    fn insert(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        Ok(self.tree.insert(key, value)?)
    }

    #[inline]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        Ok(self.tree.get_with(key, see)?)
    }

    #[inline]
    fn get_or_begin<R>(
        &mut self,
        key: &[u8],
        token: usize,
        see: impl FnOnce(&[u8]) -> R,
    ) -> Outcome<Option<Option<R>>> {
        match self.tree.try_get(key)? {
            Fetch::Now(value) => Ok(Some(value.map(|value| see(&value)))),
            Fetch::Later(ticket) => {
                self.aside.push_back((token, ticket));
                Ok(None)
            }
        }
    }

    fn fetched<R>(
        &mut self,
        wait: bool,
        see: impl FnOnce(usize, Option<&[u8]>) -> R,
    ) -> Outcome<Option<R>> {
        let first = match self.aside.front() {
            Some((_, ticket)) if wait || ticket.is_ready() => self.aside.pop_front(),
            _ => None,
        };
        let Some((token, ticket)) = first else {
            return Ok(None);
        };
        let value = ticket.wait()?;
        Ok(Some(see(token, value.as_deref())))
    }

    #[inline]
    fn multi_get(
        &mut self,
        keys: &[&[u8]],
        mut see: impl FnMut(usize, Option<&[u8]>),
    ) -> Outcome<()> {
        for (index, value) in self.tree.multi_get(keys)?.iter().enumerate() {
            see(index, value.as_deref());
        }
        Ok(())
    }

    fn remove(&mut self, key: &[u8]) -> Outcome<()> {
        Ok(self.tree.remove(key)?)
    }

    fn pop(&mut self, end: End, see: impl FnOnce(&[u8])) -> Outcome<bool> {
        let popped = match end {
            End::First => self.tree.pop_first()?,
            End::Last => self.tree.pop_last()?,
        };
        Ok(popped.map(|(key, _)| see(&key)).is_some())
    }

    fn scan(
        &mut self,
        from: &[u8],
        count: usize,
        mut see: impl FnMut(&[u8], &[u8]),
    ) -> Outcome<usize> {
        let mut seen = 0;
        for entry in self.tree.range(from..).take(count) {
            let (key, value) = entry?;
            see(&key, &value);
            seen += 1;
        }
        Ok(seen)
    }
}
