//! Opening and creating a page file.

use super::{
    file::{
        PAGES_START, PageFile,
        committed::Committed,
        map::StoredMap,
        space::Space,
        superblock::{self, Superblock},
    },
    tree::{PAGES, PagedY},
    version::Version,
};
use crate::y::pool::PageCache;
use crate::y::{page::PageSource, pool::search::CachedPages};
use crate::{
    error::{Error, Result},
    poison::Poison,
    storage::{Buffered, Direct, Mapped, Storage, StorageFile},
};
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize},
    },
};

/// Sizes of pages that there are, in bytes.
pub(crate) const PAGE_SIZES: [u32; 3] = [4096, 8192, 16384];
/// The file while it is being created.
const NEW_PAGES: &str = "pages.new";

impl PagedY {
    /// Opens the tree in `dir`, or creates one there with pages of `page_bytes` unless `read_only`.
    ///
    /// `owner` is any number that the database and the tree in it have alone: the file of another
    /// one is `Corrupt`. Read-only writes not a byte.
    /// Cost: two reads, and those of the map (a page for every 32,000 pages or more). Unless
    /// `read_only`, also a write of 4 KiB; after a crash in a commit two, and a sync.
    /// Errors: `NoDatabase` (read-only and nothing there), `InvalidOption` (no such page size),
    /// `Corrupt` (also for another page size than the file's), `Io`, `FormatVersion`, `Unsupported`
    /// (the eight-millionth that `shared` sees).
    pub(crate) fn open(
        storage: &Arc<dyn Storage>,
        dir: &Path,
        page_bytes: u32,
        shared: &PageCache,
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
        let (superblock, stale) = load_superblock(&opened, page_bytes, owner, read_only)?;
        let file = PageFile::new(opened, page_bytes, superblock.tree, superblock.generation);
        let (map, used) = StoredMap::load(&file, superblock.map, superblock.end)?;
        if superblock.root != 0 && !used.get(superblock.root) {
            return Err(file.corrupt(superblock.root, "the root is not in the map of used pages"));
        }
        let mut space = Space::new(file.first_page(), superblock.end, used, &map.pages());
        if file.storage.len()? > file.offset(superblock.end) {
            space.set_uncut();
        }
        let version = Version::new(superblock.root, superblock.height, superblock.entries);
        let pool = shared.pool(page_bytes);
        Ok(Self {
            storage: Arc::clone(storage),
            pages: CachedPages::new(file, pool)?,
            read_only,
            version: ArcSwap::from_pointee(version),
            space: Mutex::new(space),
            turns: OnceLock::new(),
            committed: Mutex::new(Committed {
                stale,
                ..Committed::new(superblock, map)
            }),
            writing: Mutex::default(),
            maintaining: Mutex::default(),
            interrupted: AtomicBool::new(false),
            poison: Poison::default(),
            loads: AtomicUsize::new(0),
            load_bytes: AtomicUsize::new(0),
            released: AtomicBool::new(false),
        })
    }
}

/// Where page files lie: on the device itself, past the system's cache.
pub(crate) fn device() -> Arc<dyn Storage> {
    Arc::new(Direct)
}

/// Where page files lie that are looked at: what their mappings show goes through the system's
/// cache, which is the device itself where that is memory.
pub(crate) fn mapped() -> Arc<dyn Storage> {
    Arc::new(Mapped::new(Arc::new(Buffered)))
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
        version: superblock::VERSION,
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

/// The superblock to start from, and whether the second copy is still to be written.
fn load_superblock(
    file: &Arc<dyn StorageFile>,
    page_bytes: usize,
    owner: u64,
    read_only: bool,
) -> Result<(Superblock, bool)> {
    let (superblock, other) = Superblock::load(&**file)?;
    superblock.check_owner(owner, file.path())?;
    if superblock.page_bytes as usize != page_bytes {
        let found = superblock.page_bytes;
        let what = format!("superblock: pages of {found} bytes, asked for {page_bytes}");
        return Err(Error::corrupt(file.path(), 0, what));
    }
    let stale = !read_only && secure(&**file, &superblock, other)?;
    Ok((superblock, stale))
}

/// Makes `superblock`, which was found, durable; `other` is the copy that says something else.
/// Returns whether the second copy is still to be written.
///
/// What is found is written again, not only synced: a sync that failed in a process that is gone
/// may have left it in the system's memory alone, where it counts as written.
fn secure(file: &dyn StorageFile, superblock: &Superblock, other: Option<usize>) -> Result<bool> {
    if let Some(other) = other {
        // Until it is durable the other copy counts, and nothing that that one names is reused.
        superblock.write(file, 1 - other)?;
        file.sync()?;
    }
    // Where both say the same, the first was durable before the second was written. The next commit
    // syncs the second before it writes over the first, and writes it if that fails here: a full
    // device does not keep the tree closed.
    Ok(superblock.write(file, other.unwrap_or(1)).is_err())
}
