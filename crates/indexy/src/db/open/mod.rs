//! Opening: lock, manifest, Index Ys, replay of the log, threads.
//!
//! `place` finds or makes the directory, `replay` applies the log, `loads` what
//! loads hide of it. The root of every tree whose Y
//! is not empty starts as a mount, so that replayed entries get `in_y`. Replay obeys the budget:
//! the framework's threads run beside it (I7).

#![forbid(unsafe_code)]

pub(super) mod loads;
mod place;
mod replay;
#[cfg(test)]
mod tests;

use super::{
    device::{Access, DeviceProfile, measure::measure},
    directory::{
        self, DirectoryLock, IMAGES_DIR, LOG_DIR, OwnedDirectory, OwnedStorage, TREES_DIR,
        manifest::{Manifest, TreeEntry},
    },
    handle::{Closing, Core, Division, DroppedTrees, Handle, Stripes, TreeCore, Turn, Work},
    hot_set::Keeper,
    index_y::{self, YShared},
    kinds::IndexXKind,
    machine,
    options::Options,
};
use crate::{
    error::{Error, Result},
    events,
    framework::{
        host::Host,
        policies::HotSet,
        shared::Shared,
        signal::Stop,
        sweep_schedule::Expiry,
        tree::{Joined, RadixCache},
        worker::Background,
    },
    mem::{
        Memory,
        budget::{Budget, Holder},
    },
    poison::Poison,
    storage::{Buffered, Direct, Storage},
    versions::Disk,
    wal::{self, Lsn},
    x::{AnyX, art::Art, bptree::BPlus},
};
use parking_lot::{Mutex, RwLock};
use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, OnceLock},
    time::Instant,
};

/// Opens or creates the database in `path`.
pub(super) fn open(path: &Path, options: Options) -> Result<Handle> {
    let storage = options.medium.holding(Arc::new(Buffered));
    open_on(storage, path, options)
}

/// As [`open`], with log and manifest on `storage`; the lock and the directories of trees are on
/// the real one.
pub(super) fn open_on(storage: Arc<dyn Storage>, path: &Path, options: Options) -> Result<Handle> {
    options.validate()?;
    let path = &*directory::absolute(path)?;
    let lock = place::lock(&*storage, path, &options)?;
    open_in(storage, path, options, Arc::new(lock))
}

/// As [`open`], in a directory that the caller has claimed. It stays locked until he, too, has
/// dropped `lock`.
pub(super) fn open_claimed(
    path: &Path,
    options: Options,
    lock: Arc<DirectoryLock>,
) -> Result<Handle> {
    options.validate()?;
    let storage = options.medium.holding(Arc::new(Buffered));
    open_in(storage, path, options, lock)
}

fn open_in(
    storage: Arc<dyn Storage>,
    path: &Path,
    options: Options,
    lock: Arc<DirectoryLock>,
) -> Result<Handle> {
    let started = Instant::now();
    let manifest = place::manifest(&*storage, path, &options)?;
    // Before anything is written: what one tree lacks keeps the whole database closed.
    let check = |options: &Options| {
        let mut trees = manifest.trees.iter();
        trees.try_for_each(|tree| options.check_pair(tree.index_x, tree.index_y))
    };
    check(&options)?;
    if !options.read_only {
        remove_images(path)?;
    }
    let options = on_its_device(path, options)?;
    check(&options)?;
    wal::check_format(&*storage, &path.join(LOG_DIR))?;
    let poison = Arc::new(Poison::default());
    let directory = Arc::new(OwnedDirectory::new(path, lock, poison.clone()));
    let core = make_core(storage, path, options, directory, poison, &manifest);
    if !core.options.read_only {
        remove_orphans(&core, &manifest)?;
    }
    for entry in manifest.trees.iter().cloned() {
        place::refuse_lost_tree(&core, &entry)?;
        let tree = open_tree(&core, manifest.database_id, entry, Lsn(manifest.log_start))?;
        core.trees.write().insert(tree.entry.id, Arc::new(tree));
    }
    core.divide_memory();
    let trees: Arc<dyn Host> = core.clone();
    let background = Background::start(&core.shared, &trees, core.options.read_only)
        .map_err(|e| Error::io("start a thread for", path, e))?;
    let handle = Handle {
        core,
        background: Arc::new(background),
    };
    match replay::replay(&handle.core, &manifest) {
        Ok(records) => {
            let trees = handle.core.trees.read().len();
            events::opened(path, trees, records, started.elapsed());
            keep_hot_set(&handle).inspect_err(|_| handle.abandon())?;
            Ok(handle)
        }
        Err(error) => {
            handle.abandon();
            Err(error)
        }
    }
}

/// The options with what the profile of the device sets. The directory is locked.
fn on_its_device(path: &Path, options: Options) -> Result<Options> {
    let profile = match options.device {
        None => return Ok(options),
        Some(DeviceProfile::Auto) => {
            let files = options.medium.holding(Arc::new(Direct));
            let found = match measure(&*files, &path.join(IMAGES_DIR)) {
                // A full device opens, too.
                Err(Error::OutOfSpace { .. }) => DeviceProfile::Ssd,
                found => found?,
            };
            // A page cache looks like memory, too, and is none.
            let access = Some(options.access.unwrap_or(Access::Block));
            return Ok(Options { access, ..options }.on_device(found));
        }
        Some(named) => named,
    };
    Ok(options.on_device(profile))
}

/// Starts the thread that warms memory, and saves what is hot.
fn keep_hot_set(handle: &Handle) -> Result<()> {
    if handle.core.hot.is_none() {
        return Ok(());
    }
    let core = handle.core.clone();
    let body = move |stop: &Stop| {
        if let Some(hot) = &core.hot {
            hot.run(&*core, stop);
        }
    };
    handle
        .background
        .run_beside("indexy-hot", body)
        .map_err(|e| Error::io("start a thread for", &handle.core.path, e))
}

/// What all handles share, without trees yet.
fn make_core(
    storage: Arc<dyn Storage>,
    path: &Path,
    options: Options,
    directory: Arc<OwnedDirectory>,
    poison: Arc<Poison>,
    manifest: &Manifest,
) -> Arc<Core> {
    let budget = Arc::new(Budget::new(options.memory_budget_bytes));
    let shared = Shared::new(budget.clone(), poison).with_policies(options.policies);
    let shared = match options.clock.get() {
        Some(clock) => shared.with_clock(clock),
        None => shared,
    };
    let shared = Arc::new(match options.hot_set {
        HotSet::Keep { .. } if !options.read_only => shared.with_heat(),
        _ => shared,
    });
    let memory = Memory::new(budget.clone());
    shared.versions.set_memory(memory.clone());
    shared.versions.set_limit(options.snapshot_memory_bytes);
    let y_cache_bytes = index_y::cache_bytes(machine::usable(options.memory_budget_bytes));
    let y_shared = Arc::new(YShared::new(
        y_cache_bytes,
        options.factories.clone(),
        (options.reads_directly(), options.chosen_access()),
        options.medium.clone(),
        directory.clone(),
    ));
    if !options.read_only {
        let (of, dir) = (y_shared.clone(), path.join(IMAGES_DIR));
        let scratch = move || of.scratch(&dir);
        let disk = Disk::new(options.snapshot_disk_bytes, scratch);
        shared.versions.set_disk(disk);
    }
    let stripes = Stripes::new(options.memory_budget_bytes);
    budget.take(Holder::IndexY, y_shared.memory_bytes());
    budget.take(Holder::Transfer, stripes.bytes());
    let work = index_y::work_bytes(&options.factories);
    let storage: Arc<dyn Storage> = Arc::new(OwnedStorage::new(storage, directory.clone()));
    let hot = Keeper::new(
        options.hot_set,
        options.read_only,
        (storage.clone(), path.to_path_buf()),
        manifest.database_id,
        shared.clone(),
    );
    let core = Arc::new(Core {
        path: path.to_path_buf(),
        storage,
        hot,
        budget,
        shared,
        stripes,
        y_shared,
        division: Mutex::new(Division::new(y_cache_bytes)),
        work: Work::new(work),
        memory,
        manifest: Mutex::new(manifest.clone()),
        trees: RwLock::new(BTreeMap::new()),
        closing: Closing::default(),
        operations: RwLock::default(),
        loads: Mutex::default(),
        directory,
        log_found: OnceLock::new(),
        turn: Turn::default(),
        dropped: DroppedTrees::default(),
        options,
    });
    core.follow_budget();
    core
}

/// Removes images that a process left behind. First of all: they may fill the device.
fn remove_images(path: &Path) -> Result<()> {
    let images = path.join(IMAGES_DIR);
    match std::fs::remove_dir_all(&images) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", images, e)),
        _ => Ok(()),
    }
}

/// Removes folders of trees that the manifest does not name: a drop or a creation that was cut
/// short.
fn remove_orphans(core: &Core, manifest: &Manifest) -> Result<()> {
    let dir = core.path.join(TREES_DIR);
    core.storage.create_dir_all(&dir)?;
    for entry in std::fs::read_dir(&dir).map_err(|e| Error::io("list", &dir, e))? {
        let entry = entry.map_err(|e| Error::io("list", &dir, e))?;
        let id = entry
            .file_name()
            .to_str()
            .and_then(|n| n.parse::<u32>().ok());
        if id.is_some_and(|id| manifest.trees.iter().all(|t| t.id != id)) {
            std::fs::remove_dir_all(entry.path())
                .map_err(|e| Error::io("remove", entry.path(), e))?;
        }
    }
    Ok(())
}

/// A number that tree `id` of this database and of its checkpoints has, and hardly any other.
pub(super) fn owner(database_id: u128, id: u32) -> u64 {
    let bytes = [&database_id.to_le_bytes()[..], &id.to_le_bytes()].concat();
    xxhash_rust::xxh3::xxh3_64(&bytes)
}

/// Opens the Y of a tree and puts an empty X before it.
pub(super) fn open_tree(
    core: &Core,
    database_id: u128,
    entry: TreeEntry,
    floor: Lsn,
) -> Result<TreeCore> {
    let dir = directory::tree_dir(&core.path, entry.id);
    let owner = owner(database_id, entry.id);
    let y = core
        .y_shared
        .open(entry.index_y, &dir, owner, core.options.read_only)?;
    if !core.options.read_only {
        y.set_compression(entry.compression)?;
    }
    // The first tree of a kind makes its caches.
    core.budget
        .set(Holder::IndexY, core.y_shared.memory_bytes());
    let mounted = !y.is_empty()?;
    let x = match entry.index_x {
        IndexXKind::Art => AnyX::Art(Art::new(core.memory.clone(), mounted)),
        // A write buffer has no use for anything but density and order.
        IndexXKind::BPlus | IndexXKind::None | IndexXKind::Radix | IndexXKind::RadixLeaves => {
            AnyX::BPlus(BPlus::new(core.memory.clone(), mounted))
        }
    };
    let joined =
        Joined::new(entry.id, x, y, entry.resident, floor, core.shared.clone())
            .buffer_only(entry.index_x.is_buffer_only())
            .with_radix(entry.index_x.radix_entries().map(|entries| {
                RadixCache::new(entry.id, entries, core.memory.clone(), &core.shared)
            }));
    // Without it the tree can be read as long as nothing waits to be merged.
    let merge = entry.merge.as_ref();
    if let Some(operator) = merge.and_then(|merge| core.options.merge_operators.operator(merge)) {
        joined.set_operator(operator);
    }
    let admission = core.options.admission(entry.index_x, entry.resident);
    joined.misses.choose(admission, &core.shared.miss_counts);
    let joined = match entry.ttl() {
        Some(ttl) => joined.expiring(Expiry::new(ttl, core.shared.versions.time().now())),
        None => joined,
    };
    Ok(TreeCore::new(entry, Arc::new(joined)))
}
