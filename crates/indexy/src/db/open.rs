//! Opening: lock, manifest, Index Ys, replay of the log, threads.
//!
//! Source: design 5. The root of every tree whose Y is not empty starts as a mount (design 2.2), so replayed entries get
//! `in_y`. Replay obeys the budget: the framework's threads run beside it (I7).

#![forbid(unsafe_code)]

use super::{
    core::{Core, Handle, TreeCore},
    directory::{
        self, DirectoryLock, LOG_DIR, OwnedDirectory, OwnedStorage, TREES_DIR,
        manifest::{MANIFEST_NEXT, Manifest, TreeEntry},
    },
    index_y::{self, YShared},
    machine,
    options::{Durability, IndexXKind, IndexYKind, Options},
    stripes::Stripes,
};
use crate::{
    error::{Error, Result},
    framework::{
        background::{Background, Trees},
        joined::Joined,
        shared::Shared,
    },
    mem::{
        Memory,
        budget::{Budget, Holder},
    },
    poison::Poison,
    storage::{Buffered, Storage},
    wal::{Log, LogDurability, LogOptions, Lsn, RecordRef, batch_ops},
    x::{AnyX, art::Art, bptree::BPlus},
};
use parking_lot::{Mutex, RwLock};
use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

/// What runs and compactions in flight take is counted up to this part of the budget.
const WORK_PART: usize = 32;
/// Part of the budget that one of the log's buffers takes, and its bounds.
const LOG_BUFFER_PART: usize = 128;
const LOG_BUFFER_BYTES: (usize, usize) = (16 << 10, 1 << 20);
/// A segment is this part of the log's limit, within bounds. (Tests of this crate fill some.)
const SEGMENT_PART: u64 = 8;
const SEGMENT_BYTES: (u64, u64) = (if cfg!(test) { 4 << 10 } else { 1 << 20 }, 64 << 20);

/// Opens or creates the database in `path`.
pub(super) fn open(path: &Path, options: Options) -> Result<Handle> {
    open_on(Arc::new(Buffered), path, options)
}

/// As [`open`], with log and manifest on `storage`; the lock and the directories of trees are on the real one.
pub(super) fn open_on(storage: Arc<dyn Storage>, path: &Path, options: Options) -> Result<Handle> {
    options.validate()?;
    let path = &*directory::absolute(path)?;
    let (lock, manifest) = take_directory(&*storage, path, &options)?;
    let poison = Arc::new(Poison::default());
    let directory = Arc::new(OwnedDirectory::new(path, lock, poison.clone()));
    let storage = Arc::new(OwnedStorage::new(storage, directory.clone()));
    // Before anything is written: what one tree lacks keeps the whole database closed.
    for tree in &manifest.trees {
        options.check_pair(tree.index_x, tree.index_y)?;
    }
    let budget = Arc::new(Budget::new(options.memory_budget_bytes));
    let shared = Arc::new(Shared::new(budget.clone(), poison));
    let memory = Memory::new(budget.clone());
    let y_cache_bytes = index_y::cache_bytes(machine::usable(options.memory_budget_bytes));
    let y_shared = YShared::new(
        y_cache_bytes,
        options.factories.clone(),
        options.reads_directly(),
        directory.clone(),
    );
    let stripes = Stripes::new(options.memory_budget_bytes);
    budget.take(Holder::IndexY, y_shared.memory_bytes());
    // Small budgets do not have this much: there the rest is a fixed cost beside the budget (README, limits).
    budget.take(
        Holder::Transfer,
        stripes.bytes()
            + index_y::work_bytes(&options.factories).min(options.memory_budget_bytes / WORK_PART),
    );
    let core = Arc::new(Core {
        path: path.to_path_buf(),
        storage,
        budget,
        shared: shared.clone(),
        stripes,
        y_shared,
        y_cache_bytes: Mutex::new(y_cache_bytes),
        memory,
        manifest: Mutex::new(manifest.clone()),
        trees: RwLock::new(BTreeMap::new()),
        closed: AtomicU8::new(0),
        operations: RwLock::default(),
        directory,
        options,
    });
    if !core.options.read_only {
        remove_orphans(&core, &manifest)?;
    }
    for entry in manifest.trees.iter().cloned() {
        refuse_lost_tree(&core, &entry)?;
        let tree = open_tree(&core, manifest.database_id, entry, Lsn(manifest.log_start))?;
        core.trees.write().insert(tree.entry.id, Arc::new(tree));
    }
    core.divide_memory();
    let trees: Arc<dyn Trees> = core.clone();
    let background = Background::start(&shared, &trees, core.options.read_only)
        .map_err(|e| Error::io("start a thread for", path, e))?;
    let handle = Handle {
        core,
        background: Arc::new(background),
    };
    match replay(&handle.core, &manifest) {
        Ok(()) => Ok(handle),
        Err(error) => {
            handle.abandon();
            Err(error)
        }
    }
}

/// Locks the directory and reads its manifest; creates both where that is asked for.
fn take_directory(
    storage: &dyn Storage,
    path: &Path,
    options: &Options,
) -> Result<(DirectoryLock, Manifest)> {
    let create = options.create_if_missing && !options.read_only;
    let missing = || Error::NoDatabase {
        path: path.to_path_buf(),
    };
    refuse_file(path)?;
    if !storage.exists(&path.join(directory::LOCK_FILE))? && !Manifest::exists(storage, path)? {
        if !create {
            return Err(missing());
        }
        refuse_foreign_files(path)?;
        directory::create_lasting(storage, path)?;
    }
    let lock = DirectoryLock::take(path, options.read_only)?;
    if let Some(manifest) = Manifest::read(storage, path)? {
        return Ok((lock, manifest));
    }
    refuse_lost_manifest(path)?;
    if !create {
        return Err(missing());
    }
    storage.create_dir_all(&path.join(LOG_DIR))?;
    storage.create_dir_all(&path.join(TREES_DIR))?;
    let manifest = Manifest::new(random_id());
    manifest.write(storage, path)?;
    // Also for a directory that was there: a crash may have come before its name was lasting.
    if let Some(parent) = path.parent() {
        storage.sync_dir(parent)?;
    }
    Ok((lock, manifest))
}

/// `NotADirectory` where `path`, or something above it, is a file.
fn refuse_file(path: &Path) -> Result<()> {
    let is_file = match std::fs::metadata(path) {
        Ok(meta) => !meta.is_dir(),
        Err(e) => e.kind() == std::io::ErrorKind::NotADirectory,
    };
    match is_file {
        true => Err(Error::NotADirectory {
            path: path.to_path_buf(),
        }),
        false => Ok(()),
    }
}

/// A new database is not made among somebody else's files. What a loss of power left of one that was being made is not:
/// names come to the disk in any order.
fn refuse_foreign_files(path: &Path) -> Result<()> {
    let entries = match std::fs::read_dir(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(|e| Error::io("open", path, e))?,
    };
    for entry in entries {
        let entry = entry.map_err(|e| Error::io("open", path, e))?;
        let is_empty = || std::fs::read_dir(entry.path()).is_ok_and(|mut e| e.next().is_none());
        let ours = match entry.file_name().to_str() {
            Some(LOG_DIR | TREES_DIR) => is_empty(),
            Some(name) => name == MANIFEST_NEXT,
            None => false,
        };
        if !ours {
            return Err(Error::DestinationNotEmpty {
                path: path.to_path_buf(),
            });
        }
    }
    Ok(())
}

/// A directory with a log or trees and no manifest was a database: it is not made anew over them.
fn refuse_lost_manifest(path: &Path) -> Result<()> {
    for dir in [path.join(LOG_DIR), path.join(TREES_DIR)] {
        let first = match std::fs::read_dir(&dir) {
            Ok(mut entries) => entries.next(),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
            Err(e) => return Err(Error::io("open", dir, e)),
        };
        if first.is_some() {
            let manifest = Manifest::path(path);
            return Err(Error::corrupt(manifest, 0, "the manifest is missing"));
        }
    }
    Ok(())
}

/// A tree was whole before the manifest named it: where its files are gone it is not made anew. (What an Index Y from
/// outside keeps in its directory is its own affair; that it has one is not.)
fn refuse_lost_tree(core: &Core, entry: &TreeEntry) -> Result<()> {
    let dir = directory::tree_dir(&core.path, entry.id);
    let lost = match std::fs::read_dir(&dir) {
        Ok(mut entries) => match entry.index_y {
            IndexYKind::Custom(_) => false,
            IndexYKind::Lsm | IndexYKind::RocksDb | IndexYKind::BPlus { .. } => {
                entries.next().is_none()
            }
        },
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => true,
        Err(e) => return Err(Error::io("open", dir, e)),
    };
    match lost {
        true => Err(Error::corrupt(dir, 0, "the files of the tree are missing")),
        false => Ok(()),
    }
}

/// An id that no other database has: the process's hasher keys are random, time and pid tell them apart.
fn random_id() -> u128 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let half = || {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u32(std::process::id());
        hasher.write_u128(std::time::UNIX_EPOCH.elapsed().map_or(0, |d| d.as_nanos()));
        u128::from(hasher.finish())
    };
    (half() << 64) | half()
}

/// Removes folders of trees that the manifest does not name: a drop or a creation that was cut short.
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
fn owner(database_id: u128, id: u32) -> u64 {
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
    // The first tree of a kind makes its caches.
    core.budget
        .set(Holder::IndexY, core.y_shared.memory_bytes());
    let mounted = !y.is_empty()?;
    let x = match entry.index_x {
        IndexXKind::Art => AnyX::Art(Art::new(core.memory.clone(), mounted)),
        // A write buffer has no use for anything but density and order.
        IndexXKind::BPlus | IndexXKind::None => {
            AnyX::BPlus(BPlus::new(core.memory.clone(), mounted))
        }
    };
    let joined = Joined::new(entry.id, x, y, entry.resident, floor, core.shared.clone())
        .buffer_only(entry.index_x == IndexXKind::None);
    Ok(TreeCore::new(entry, Arc::new(joined)))
}

/// Replays the log into X and leaves it ready for appends. Without a log of its own a
/// database may still have one from earlier, which is replayed and then flushed away.
fn replay(core: &Core, manifest: &Manifest) -> Result<()> {
    let (durability, logged) = match core.options.durability {
        Durability::None => (LogDurability::Sync, false),
        Durability::Sync => (LogDurability::Sync, true),
        Durability::Buffered { interval_ms } => (
            LogDurability::Buffered {
                interval: Duration::from_millis(interval_ms),
            },
            true,
        ),
    };
    let (min_segment, max_segment) = SEGMENT_BYTES;
    let (min_buffer, max_buffer) = LOG_BUFFER_BYTES;
    let log_options = LogOptions {
        durability,
        segment_bytes: (core.options.log_limit() / SEGMENT_PART).clamp(min_segment, max_segment),
        buffer_bytes: (core.options.memory_budget_bytes / LOG_BUFFER_PART)
            .clamp(min_buffer, max_buffer),
        database_id: manifest.database_id,
    };
    let mut replayed = 0u64;
    let log = Log::open(
        core.storage.clone(),
        &core.log_dir(),
        log_options,
        Lsn(manifest.log_start),
        Lsn(manifest.log_durable),
        core.options.read_only,
        core.shared.poison.clone(),
        core.budget.clone(),
        &mut |lsn, record| {
            replayed += 1;
            // I6: everything below is applied.
            core.shared.replay_position.store(lsn.0, Ordering::Release);
            apply_record(core, record)
        },
    )?;
    if core.options.read_only {
        return Ok(());
    }
    if logged {
        // The cell was empty: this is the only place that fills it.
        let _ = core.shared.log.set(log);
        Ok(())
    } else if replayed > 0 {
        write_away(core, &log)
    } else {
        Ok(())
    }
}

/// Takes everything that the log had to Y: this time there is no log that keeps it.
fn write_away(core: &Core, log: &Log) -> Result<()> {
    for tree in core.all_joined() {
        tree.flush()?;
        tree.y.make_durable()?;
    }
    let mut manifest = core.manifest.lock();
    manifest.log_start = log.end().0;
    manifest.log_durable = manifest.log_start;
    manifest.write(&*core.storage, &core.path)?;
    log.truncate_below(log.end()).map(|_| ())
}

fn apply_record(core: &Core, record: RecordRef<'_>) -> Result<()> {
    match record {
        RecordRef::Put { tree, key, value } => apply(core, tree, key, Some(value)),
        RecordRef::Remove { tree, key } => apply(core, tree, key, None),
        RecordRef::Batch { ops, .. } => {
            for op in batch_ops(ops) {
                match op {
                    Ok(op) => apply_record(core, op)?,
                    Err(e) => {
                        return Err(Error::corrupt(
                            core.log_dir(),
                            0,
                            format!("operation of a batch: {e:?}"),
                        ));
                    }
                }
            }
            Ok(())
        }
    }
}

fn apply(core: &Core, tree: u32, key: &[u8], value: Option<&[u8]>) -> Result<()> {
    // Tree numbers are never reused: an unknown one was dropped.
    let Some(tree) = core.trees.read().get(&tree).map(|t| t.joined.clone()) else {
        return Ok(());
    };
    let bytes = key.len() + value.map_or(0, <[u8]>::len);
    if core.options.read_only {
        // Nothing can be written away: what the log holds has to fit.
        let minimum_bytes = core.budget.used() + bytes;
        if minimum_bytes > core.budget.limit() {
            return Err(Error::BudgetTooSmall {
                budget_bytes: core.budget.limit(),
                minimum_bytes,
            });
        }
        tree.apply(key, value);
        return Ok(());
    }
    // What X does not hold asks for nothing: its record alone may be more than the budget, and is held while this would wait.
    let _admitted = (bytes <= core.budget.limit() / 8)
        .then(|| core.shared.admit(bytes))
        .transpose()?;
    tree.replay(key, value)
}
