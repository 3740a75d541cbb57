//! IndeXY itself, by its public API, in each pair of indexes that this build has, and each Index Y
//! alone.
//!
//! One tree in one database with the whole budget. Reads go through `get_with`, which copies
//! nothing.
//!
//! A variant is `X-Y`: X is `art`, `bplus`, `none`, `radix` or `radix-leaves`, Y is `lsm`,
//! `rocksdb` or `bplus`; `bplus8k` has pages of that size, plain `bplus` those that the job asks
//! for. The two systems of one structure that the paper compares with are `bplus-alone` (its B+-B+:
//! what LeanStore is) and `lsm-alone` (its RocksDB, without the row cache that an Index X would be;
//! the peers' `rocksdb` has one). Their names do not begin as ours do, so that figures compare ours
//! with them.

use super::{
    about::{About, KeyShape, PageCache, Storage},
    contract::{Contender, Durability, End, Outcome, Session, Setup},
    device::DEVICE,
    opened::{Opened, open_database, tree_options},
};
use indexy::{Fetch, IndexXKind, IndexYKind, Ticket, Tree};
use std::collections::{BTreeMap, VecDeque};

const TREE: &str = "data";

/// Further configurations: name, variant, summary. They take part when they are named.
const MORE: [(&str, &str, &str); 11] = [
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
    (
        "radix-cache",
        "radix-bplus",
        "our paged B+ tree with a radix tree of where its keys are",
    ),
    (
        "radix-cache-leaves",
        "radix-leaves-bplus",
        "our paged B+ tree with a radix tree of its leaves",
    ),
];

/// The contender whose tables have transactions.
pub(crate) const TRANSACTIONS: &str = "indexy-transactions";

/// Ends the names of what is another contender but for its transactions.
const WITH_TRANSACTIONS: &str = "-transactions";
/// Peers that no paper compares with.
const IN_NO_PAPER: &str = "sqlite";

/// Names that take part when they are named.
pub(crate) fn only_if_named(name: &str) -> bool {
    name.ends_with(WITH_TRANSACTIONS)
        || [DEVICE, IN_NO_PAPER].contains(&name)
        || MORE.iter().any(|more| more.0 == name)
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
        .rsplit_once('-')
        .ok_or_else(|| format!("no pair {variant:?}"))?;
    let x = match x {
        "art" => IndexXKind::Art,
        "bplus" => IndexXKind::BPlus,
        "none" => IndexXKind::None,
        "radix" => IndexXKind::Radix,
        "radix-leaves" => IndexXKind::RadixLeaves,
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
