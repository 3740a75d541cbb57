//! The one place that chooses between the kinds of Index Y, and divides among them the memory that
//! all trees share.
//!
//! A kind's caches are made with its first tree; the part of the budget is divided evenly among the
//! kinds in use. A further kind of this crate is one field of [`Kinds`], one arm of
//! [`YShared::open`] and of [`supported`], and a line in `each`, its part of `WORK_BYTES`, and its
//! name in `RESERVED` of `kinds/names.rs`. Kinds from outside come by their factories.
//!
//! Keeps: I7 ([`YShared::memory_bytes`] is an upper bound of all of it, whichever kinds come
//! later).

#![forbid(unsafe_code)]

use super::{
    device::Access,
    directory::{GuardedY, OwnedDirectory, OwnedStorage},
    kinds::{Factories, IndexYKind, IndexYName},
};
#[cfg(feature = "rocksdb")]
use crate::y::rocks::{self, RocksShared, RocksY};
use crate::{
    error::{Error, Result},
    storage::{Buffered, Direct, FewOpen, Medium, OpenFiles, Storage},
    y::{
        IndexY, IndexYShared,
        lsm::{self, LsmY, Scratch},
        paged::{self, PAGE_SIZES, PagedY},
        pool::PageCache,
        pool::loan::FilterLoan,
    },
};
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Weak},
};

/// Part of the budget that goes to the caches of Index Y.
const CACHE_DIVISOR: usize = 12;
const MIN_CACHE_BYTES: usize = 256 << 10;
/// Where no tree has pages of its own, those of spilled images get this part of the caches.
const IMAGES_DIVISOR: usize = 16;
/// Tables that are kept open; a process has 1,024 descriptors by default.
const MOST_OPEN_TABLES: usize = 256;
/// What runs and compactions of one database hold while they work; one of each runs at a time.
#[cfg(not(feature = "rocksdb"))]
const WORK_BYTES: usize = max(lsm::WORK_BYTES, paged::WORK_BYTES);
#[cfg(feature = "rocksdb")]
const WORK_BYTES: usize = max(max(lsm::WORK_BYTES, paged::WORK_BYTES), rocks::WORK_BYTES);

const fn max(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

/// What runs and maintenance of this database's kinds hold while they work, in bytes.
pub(super) fn work_bytes(factories: &Factories) -> usize {
    WORK_BYTES.max(factories.work_bytes())
}

/// Caches of Index Y under a budget, all kinds together, in bytes.
pub(super) fn cache_bytes(budget_bytes: usize) -> usize {
    (budget_bytes / CACHE_DIVISOR).max(MIN_CACHE_BYTES)
}

/// Whether trees of `kind` can be opened; else `Unsupported`, with what to do about it.
pub(super) fn supported(kind: IndexYKind, factories: &Factories) -> Result<()> {
    let reason = match kind {
        IndexYKind::Lsm => return Ok(()),
        IndexYKind::BPlus { page_bytes } if PAGE_SIZES.contains(&page_bytes) => return Ok(()),
        IndexYKind::BPlus { .. } => "(pages have 4096, 8192 or 16384 bytes)",
        IndexYKind::RocksDb if cfg!(feature = "rocksdb") => return Ok(()),
        IndexYKind::RocksDb => "in a build without the cargo feature `rocksdb`",
        IndexYKind::Custom(name) if factories.get(name).is_some() => return Ok(()),
        IndexYKind::Custom(_) => {
            "(this program has no factory of that name: \
             Options::register_index_y comes before opening)"
        }
    };
    Err(Error::Unsupported {
        what: format!("index_y {kind} {reason}"),
    })
}

/// What the Index Ys of a database share, by kind.
pub(crate) struct YShared {
    factories: Factories,
    /// Tables of all LSM trees that are open.
    open_tables: Arc<OpenFiles>,
    /// Tables are read past the page cache.
    direct_reads: bool,
    /// How paged trees are read.
    access: Access,
    medium: Medium,
    kinds: Mutex<Kinds>,
    directory: Arc<OwnedDirectory>,
    /// Every Index Y that was opened and is still there, those of dropped trees too.
    opened: Mutex<Vec<Weak<GuardedY>>>,
}

struct Kinds {
    /// For all kinds together, in bytes.
    total: usize,
    /// Lent to the filters of LSM trees, besides, and the most that would be.
    lent: usize,
    offered: usize,
    /// Of LSM trees, of paged trees, and of spilled images.
    pages: Option<Arc<PageCache>>,
    /// A tree has pages; else they are of images alone.
    has_page_trees: bool,
    #[cfg(feature = "rocksdb")]
    rocks: Option<Arc<RocksShared>>,
    custom: BTreeMap<IndexYName, Arc<dyn IndexYShared>>,
}

impl YShared {
    /// Shares of a database with `total` bytes for the caches of its Index Ys. Nothing is allocated
    /// yet.
    pub(super) fn new(
        total: usize,
        factories: Factories,
        (direct_reads, access): (bool, Access),
        medium: Medium,
        directory: Arc<OwnedDirectory>,
    ) -> Self {
        Self {
            factories,
            open_tables: Arc::new(OpenFiles::new(MOST_OPEN_TABLES)),
            direct_reads,
            access,
            medium,
            kinds: Mutex::new(Kinds {
                total,
                lent: 0,
                offered: 0,
                pages: None,
                has_page_trees: false,
                #[cfg(feature = "rocksdb")]
                rocks: None,
                custom: BTreeMap::new(),
            }),
            directory,
            opened: Mutex::default(),
        }
    }

    /// Opens the Index Y of one tree in `dir`, or creates it there unless `read_only`. `owner`: a
    /// number that the tree of this database has alone, for kinds that tell files of another one by
    /// it.
    pub(super) fn open(
        &self,
        kind: IndexYKind,
        dir: &Path,
        owner: u64,
        read_only: bool,
    ) -> Result<Arc<dyn IndexY>> {
        supported(kind, &self.factories)?;
        self.directory.check()?;
        let y = self.open_kind(kind, dir, owner, read_only)?;
        let guarded = Arc::new(GuardedY::new(y, &self.directory, dir));
        let mut opened = self.opened.lock();
        opened.retain(|y| y.strong_count() > 0);
        opened.push(Arc::downgrade(&guarded));
        Ok(guarded)
    }

    /// Asks every Index Y for [`IndexY::release_files`]; true when all of them agreed.
    pub(super) fn release_files(&self) -> bool {
        let opened: Vec<_> = self
            .opened
            .lock()
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        // One that is just being dropped is there no more, and still writes.
        let all = opened.len() == self.directory.holds();
        all && opened.iter().filter(|y| !y.release_files()).count() == 0
    }

    fn open_kind(
        &self,
        kind: IndexYKind,
        dir: &Path,
        owner: u64,
        read_only: bool,
    ) -> Result<Arc<dyn IndexY>> {
        match kind {
            IndexYKind::Lsm => {
                let (storage, cache) = (self.tables_storage(), self.pages());
                let y = LsmY::open(&storage, dir, &cache, owner, read_only)?;
                Ok(Arc::new(y))
            }
            IndexYKind::BPlus { page_bytes } => {
                let files = match self.access {
                    Access::Block => paged::device(),
                    Access::Byte => paged::mapped(),
                };
                let storage = self.medium.holding(files);
                let cache = self.pages();
                let y = PagedY::open(&storage, dir, page_bytes, &cache, owner, read_only)?;
                Ok(Arc::new(y))
            }
            #[cfg(feature = "rocksdb")]
            IndexYKind::RocksDb => Ok(Arc::new(RocksY::open(dir, &self.rocks(), read_only)?)),
            // Refused above.
            #[cfg(not(feature = "rocksdb"))]
            IndexYKind::RocksDb => Err(Error::Unsupported {
                what: format!("index_y {kind}"),
            }),
            IndexYKind::Custom(name) => self.open_custom(name, dir, read_only),
        }
    }

    /// Calls of one kind come one at a time, as the contract says: the lock is held across them.
    fn open_custom(
        &self,
        name: IndexYName,
        dir: &Path,
        read_only: bool,
    ) -> Result<Arc<dyn IndexY>> {
        let mut kinds = self.kinds.lock();
        let shared = match kinds.custom.get(&name) {
            Some(shared) => Arc::clone(shared),
            None => {
                let factory = self.factories.get(name).ok_or(Error::Unsupported {
                    what: format!("index_y {}", IndexYKind::Custom(name)),
                })?;
                let shared = factory
                    .share(kinds.make_room())
                    .inspect_err(|_| kinds.divide())?;
                kinds.custom.insert(name, Arc::clone(&shared));
                shared
            }
        };
        shared.open(dir, read_only)
    }

    fn pages(&self) -> Arc<PageCache> {
        let mut kinds = self.kinds.lock();
        let pages = kinds.pages();
        if !kinds.has_page_trees {
            kinds.has_page_trees = true;
            kinds.divide();
        }
        pages
    }

    /// Where images of snapshots are spilled: files in `dir`, through the pools of pages.
    pub(super) fn scratch(&self, dir: &Path) -> Arc<Scratch> {
        let pool = self.kinds.lock().pages().pool(lsm::PAGE_BYTES);
        Arc::new(Scratch::new(self.tables_storage(), dir.to_path_buf(), pool))
    }

    /// Where tables lie: on the device itself, or behind the system's cache. A merge that began
    /// before the directory was moved goes on by path: it is stopped there.
    fn tables_storage(&self) -> Arc<dyn Storage> {
        let files: Arc<dyn Storage> = match self.direct_reads {
            true => Arc::new(Direct),
            false => Arc::new(Buffered),
        };
        let owned = Arc::new(OwnedStorage::new(files, Arc::downgrade(&self.directory)));
        let few = FewOpen::new(owned, Arc::clone(&self.open_tables));
        self.medium.holding(Arc::new(few))
    }

    #[cfg(feature = "rocksdb")]
    fn rocks(&self) -> Arc<RocksShared> {
        let mut kinds = self.kinds.lock();
        if let Some(rocks) = &kinds.rocks {
            return Arc::clone(rocks);
        }
        let rocks = Arc::new(RocksShared::new(kinds.make_room()));
        kinds.rocks = Some(Arc::clone(&rocks));
        rocks
    }

    /// Upper bound in bytes of what the shared caches hold, whatever the trees do.
    pub(super) fn memory_bytes(&self) -> usize {
        let kinds = self.kinds.lock();
        let taken = kinds
            .each()
            .iter()
            .fold(0usize, |sum, kind| sum.saturating_add(kind.memory_bytes()));
        // Kinds that come later take their share of the same total.
        taken.max(kinds.total + kinds.lent)
    }

    /// Changes the total, at any time; what was cached may be forgotten.
    pub(super) fn set_memory(&self, total: usize) {
        let mut kinds = self.kinds.lock();
        kinds.total = total;
        kinds.divide();
    }

    /// Says how much the filters of LSM trees would be lent at most, in bytes.
    pub(super) fn offer(&self, bytes: usize) {
        let mut kinds = self.kinds.lock();
        kinds.offered = bytes;
        if let Some(pages) = &kinds.pages {
            pages.offer(bytes);
        }
    }

    /// What the filters of LSM trees need and have.
    pub(super) fn loans(&self) -> Vec<Arc<FilterLoan>> {
        let kinds = self.kinds.lock();
        kinds.pages.as_ref().map_or(Vec::new(), |p| p.loans())
    }

    /// Changes what they have together, in bytes, at any time.
    pub(super) fn lend(&self, bytes: usize) {
        let mut kinds = self.kinds.lock();
        kinds.lent = bytes;
        if let Some(pages) = &kinds.pages {
            pages.lend(bytes);
        }
    }
}

/// Memory that one kind's trees share.
trait Caches {
    fn memory_bytes(&self) -> usize;
    fn set_memory(&self, bytes: usize);
}

macro_rules! caches {
    ($kind:ty) => {
        impl Caches for $kind {
            fn memory_bytes(&self) -> usize {
                self.memory_bytes()
            }

            fn set_memory(&self, bytes: usize) {
                self.set_memory(bytes);
            }
        }
    };
}
caches!(PageCache);
#[cfg(feature = "rocksdb")]
caches!(RocksShared);

impl Caches for Arc<dyn IndexYShared> {
    fn memory_bytes(&self) -> usize {
        (**self).memory_bytes()
    }

    fn set_memory(&self, bytes: usize) {
        (**self).set_memory(bytes);
    }
}

impl Kinds {
    /// The kinds in use.
    fn each(&self) -> Vec<&dyn Caches> {
        let kinds = [
            self.pages.as_deref().map(|kind| kind as &dyn Caches),
            #[cfg(feature = "rocksdb")]
            self.rocks.as_deref().map(|kind| kind as &dyn Caches),
        ];
        let custom = self.custom.values().map(|kind| kind as &dyn Caches);
        kinds.into_iter().flatten().chain(custom).collect()
    }

    /// Gives every kind in use the same part of the total, and images alone a small one.
    fn divide(&self) {
        self.divide_among(0);
    }

    /// Makes the kinds in use smaller for one more; returns its share in bytes.
    fn make_room(&self) -> usize {
        self.divide_among(1)
    }

    /// Returns the share of one of the kinds in use and `more` others, in bytes.
    fn divide_among(&self, more: usize) -> usize {
        let (mut kinds, mut rest) = (self.each(), self.total);
        if let Some(pages) = self.pages.as_ref().filter(|_| !self.has_page_trees) {
            let part = self.total / IMAGES_DIVISOR;
            pages.set_memory(part);
            // They are the first of all.
            kinds.remove(0);
            rest -= part;
        }
        let share = rest / (kinds.len() + more).max(1);
        for kind in kinds {
            kind.set_memory(share);
        }
        share
    }

    /// The cache of pages; a new one has a small share until a tree has pages.
    fn pages(&mut self) -> Arc<PageCache> {
        if let Some(pages) = &self.pages {
            return Arc::clone(pages);
        }
        let pages = Arc::new(PageCache::new(self.total / IMAGES_DIVISOR));
        pages.lend(self.lent);
        pages.offer(self.offered);
        self.pages = Some(Arc::clone(&pages));
        self.divide();
        pages
    }
}

#[cfg(test)]
mod tests;
