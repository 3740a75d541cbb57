//! Index Y as a paged B+ tree on disk, with its own buffer pool.
//!
//! Source: IndeXY III-A (B+-tree as Index Y); the design is argued in `docs/decisions/0005-paged-bptree-as-index-y.md`.
//! One file of pages. A page never changes once it can be seen: a run writes new pages for the leaves it falls into and for the path
//! above them to free places of the file (`run.rs`), and publishes a new root; a superblock makes a version
//! durable (`commit.rs`), and pages are reused when no version that matters has them (`space.rs`).
//!
//! What a reader sees of a run: a `get`, and all of a `multi_get`, is of one version, so all of a run or nothing. A
//! range takes the newest version for each leaf: it may see the part of a run that lies ahead of it.
//!
//! Keeps: I4 (a failed run leaves what was there), I5 (`before_publish` precedes publication), I6 ([`IndexY::make_durable`] is the only
//! thing that syncs, with [`IndexY::release_files`] or the drop), I7 (`pool.rs` bounds the frames, [`IndexY::memory_bytes`] counts the rest).
//!
//! Threads: none of its own. Locks, in this order: `maintaining`
//! (`maintain`), `writing` (one run; the beginning of a copy), `committed` (one commit), `space`; then those of the pool. Only the first three are
//! held across I/O, and reads take none of these.
//! Not here: when to write and when to make durable (the framework).

#![forbid(unsafe_code)]

mod build;
mod commit;
mod copy;
mod cursor;
mod file;
#[cfg(any(test, feature = "testing"))]
pub(super) mod fuzzing;
mod map;
mod multi_get;
mod node;
mod output;
mod overflow;
mod page;
mod pool;
mod run;
mod search;
mod space;
mod superblock;
mod verify;
mod version;

#[cfg(test)]
mod measure;
#[cfg(test)]
mod tests;

pub(crate) use pool::PagedShared;

use super::{Capabilities, IndexY, Maintained, RunSource, YIter};
use crate::{
    error::{Error, Result},
    key::Value,
    limits::{MAX_KEY_BYTES, MAX_VALUE_BYTES},
    mem::{aligned::AlignedBuffer, frames::FrameView},
    poison::Poison,
    storage::{Direct, Storage, StorageFile},
    x::Order,
};
use arc_swap::ArcSwap;
use commit::Committed;
use cursor::Cursor;
use file::{PAGES_START, PageFile};
use map::StoredMap;
use parking_lot::Mutex;
use pool::Pool;
use space::Space;
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};
use superblock::Superblock;
use version::Version;

/// Sizes of pages that there are, in bytes.
pub(crate) const PAGE_SIZES: [u32; 3] = [4096, 8192, 16384];
/// What a run and a commit of one database hold while they work: output buffers, the open path.
pub(crate) const WORK_BYTES: usize = 1 << 20;

/// Payload of a run that is worth the path that it rewrites.
const PREFERRED_RUN_BYTES: usize = 256 << 10;
/// The file of the pages.
const PAGES: &str = "pages";
/// The file while it is being created.
const NEW_PAGES: &str = "pages.new";

/// A paged B+ tree in a directory of its own; see the module header.
pub(crate) struct PagedY {
    storage: Arc<dyn Storage>,
    file: PageFile,
    pool: Arc<Pool>,
    /// Number of this tree in the pool.
    number: u64,
    read_only: bool,
    version: ArcSwap<Version>,
    space: Mutex<Space>,
    committed: Mutex<Committed>,
    writing: Mutex<()>,
    maintaining: Mutex<()>,
    poison: Poison,
    /// Somebody else may have the file: it is not written any more. Set under `writing` and `committed`, looked at under either.
    released: AtomicBool,
}

impl PagedY {
    /// Opens the tree in `dir`, or creates one there with pages of `page_bytes` unless `read_only`.
    ///
    /// `owner` is any number that the database and the tree in it have alone: the file of another one is `Corrupt`.
    /// Read-only writes not a byte.
    /// Cost: two reads, and those of the map (a page for every 32,000 pages or more).
    /// Errors: `NoDatabase` (read-only and nothing there), `InvalidOption` (no such page size), `Corrupt` (also for another page size
    /// than the file's), `Io`, `FormatVersion`.
    pub(crate) fn open(
        storage: &Arc<dyn Storage>,
        dir: &Path,
        page_bytes: u32,
        shared: &PagedShared,
        owner: u64,
        read_only: bool,
    ) -> Result<Self> {
        if !PAGE_SIZES.contains(&page_bytes) {
            return Err(Error::InvalidOption {
                option: "index_y",
                reason: format!("page_bytes is {page_bytes}: it is one of {PAGE_SIZES:?}"),
            });
        }
        let page_bytes = page_bytes as usize;
        let path = dir.join(PAGES);
        if !storage.exists(&path)? {
            if read_only {
                return Err(Error::NoDatabase {
                    path: dir.to_path_buf(),
                });
            }
            create(&**storage, dir, page_bytes, owner)?;
        }
        let opened = storage.open(&path, !read_only)?;
        let superblock = load_superblock(&opened, page_bytes, owner, read_only)?;
        let file = PageFile::new(opened, page_bytes, superblock.tree, superblock.generation);
        let (map, used) = StoredMap::load(&file, superblock.map, superblock.end)?;
        if superblock.root != 0 && !used.get(superblock.root) {
            return Err(file.corrupt(superblock.root, "the root is not in the map of used pages"));
        }
        let space = Space::new(file.first_page(), superblock.end, used, &map.pages());
        let version = Version::new(superblock.root, superblock.height, superblock.entries);
        let pool = shared.pool(page_bytes);
        Ok(Self {
            storage: Arc::clone(storage),
            number: pool.number_tree(),
            file,
            pool,
            read_only,
            version: ArcSwap::from_pointee(version),
            space: Mutex::new(space),
            committed: Mutex::new(Committed::new(superblock, map)),
            writing: Mutex::default(),
            maintaining: Mutex::default(),
            poison: Poison::default(),
            released: AtomicBool::new(false),
        })
    }

    /// Refuses writes that must not happen. The caller holds `writing` or `committed`.
    fn writable(&self) -> Result<()> {
        if self.read_only {
            return Err(Error::ReadOnly);
        }
        if self.released.load(Relaxed) {
            return Err(Error::Closed);
        }
        self.poison.check()
    }
}

/// Without a crash everything acknowledged is there after a reopen. What fails here comes back from the log.
impl Drop for PagedY {
    fn drop(&mut self) {
        let _ = self.commit();
    }
}

/// Where page files lie: on the device itself, past the system's cache.
pub(crate) fn device() -> Arc<dyn Storage> {
    Arc::new(Direct)
}

/// Makes an empty page file; a crash leaves it whole or not there.
fn create(storage: &dyn Storage, dir: &Path, page_bytes: usize, owner: u64) -> Result<()> {
    storage.create_dir_all(dir)?;
    let path: PathBuf = dir.join(NEW_PAGES);
    if storage.exists(&path)? {
        storage.remove(&path)?;
    }
    let file = storage.create(&path)?;
    let superblock = Superblock {
        page_bytes: page_bytes as u32,
        tree: random(),
        generation: 1,
        root: 0,
        height: 0,
        entries: 0,
        end: PAGES_START / page_bytes as u64,
        map: 0,
        owner,
    };
    file.allocate(0, PAGES_START)?;
    for copy in 0..superblock::COPIES.len() {
        superblock.write(&*file, copy)?;
    }
    file.sync()?;
    storage.rename(&path, &dir.join(PAGES))?;
    storage.sync_dir(dir)?;
    // The directory's own name must last too.
    dir.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .map_or(Ok(()), |parent| storage.sync_dir(parent))
}

/// A number that no other tree has.
fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

/// The superblock to start from; a copy that is damaged or older is written anew.
fn load_superblock(
    file: &Arc<dyn StorageFile>,
    page_bytes: usize,
    owner: u64,
    read_only: bool,
) -> Result<Superblock> {
    let (superblock, stale) = Superblock::load(&**file)?;
    if superblock.owner != owner {
        let what = "superblock: the pages of another tree or database";
        return Err(Error::corrupt(file.path(), 0, what.to_string()));
    }
    if superblock.page_bytes as usize != page_bytes {
        let found = superblock.page_bytes;
        let what = format!("superblock: pages of {found} bytes, asked for {page_bytes}");
        return Err(Error::corrupt(file.path(), 0, what));
    }
    // The next commit begins with the first copy: the second must be of this generation by then, and
    // is, for a commit syncs before.
    if let (Some(copy), false) = (stale, read_only) {
        // The copy that is kept may be that of a commit that was not synced: it must not be the only one that was ever written,
        // nor be taken for durable.
        file.sync()?;
        superblock.write(&**file, copy)?;
    }
    Ok(superblock)
}

/// Copies the page in a frame, hints included.
fn copy_frame(view: FrameView<'_>, to: &mut AlignedBuffer) {
    page::put(to, 0, view.bytes);
    for (i, word) in view.words.iter().enumerate() {
        let at = view.bytes.len() + i * 8;
        page::put(to, at, &word.load(Relaxed).to_ne_bytes());
    }
}

impl IndexY for PagedY {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_key_bytes: MAX_KEY_BYTES,
            max_value_bytes: MAX_VALUE_BYTES,
            preferred_run_bytes: PREFERRED_RUN_BYTES,
        }
    }

    fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        self.get_in(&self.version.load(), key)
    }

    fn multi_get(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        self.multi_get_in(&self.version.load(), keys)
    }

    fn range(&self, from: &[u8], to: Option<&[u8]>, order: Order) -> Result<YIter<'_>> {
        Ok(Box::new(Cursor::new(self, from, to, order)))
    }

    fn write_run(&self, source: &mut dyn RunSource) -> Result<()> {
        let _one_writer = self.writing.lock();
        self.writable()?;
        self.apply_run(source)
    }

    fn make_durable(&self) -> Result<()> {
        if self.read_only {
            return Ok(());
        }
        self.commit()
    }

    fn maintain(&self) -> Result<Maintained> {
        let _one_maintainer = self.maintaining.lock();
        self.reap();
        self.pool.replenish();
        Ok(Maintained::Idle)
    }

    fn congested(&self) -> bool {
        false
    }

    fn is_empty(&self) -> Result<bool> {
        Ok(self.version.load().root == 0)
    }

    fn approximate_len(&self) -> u64 {
        self.version.load().entries
    }

    fn memory_bytes(&self) -> usize {
        // A commit works on copies of the map.
        let map = self
            .committed
            .try_lock()
            .map_or(0, |c| c.map.memory_bytes());
        size_of::<Self>() + 2 * self.space.lock().memory_bytes() + 2 * map
    }

    fn disk_bytes(&self) -> u64 {
        self.file.offset(self.space.lock().end())
    }

    fn run_count(&self) -> usize {
        usize::from(self.version.load().root != 0)
    }

    fn verify(&self) -> Result<u64> {
        self.verify_all()
    }

    fn release_files(&self) -> bool {
        self.reap();
        let Some(_no_run) = self.writing.try_lock() else {
            return false;
        };
        let settled = self.space.lock().settled();
        if settled {
            // What was published becomes durable now or, out of the log, with the next owner: not when this is dropped, over
            // what that one has written by then.
            let _ = self.commit();
            // Runs and commits look at it under their locks, so that none which began before goes on behind it.
            let _no_commit = self.committed.lock();
            self.released.store(true, Relaxed);
        }
        settled
    }

    fn copies_beside_runs(&self) -> bool {
        true
    }

    fn copy_to(&self, dest: &Path) -> Result<()> {
        self.copy_durable(dest)
    }
}
