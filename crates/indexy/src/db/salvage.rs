//! `salvage`: what can be read of a damaged database, as a new one.
//!
//! Each tree's disk index is read past what is damaged (`y/lsm/salvage.rs`, `y/paged/salvage.rs`),
//! then the log over it, record by record (`wal/salvage.rs`). Nothing is invented: every entry of
//! the new database is a version that was written. Where the newest version of a key may be lost,
//! the key is *doubtful*; it is left out, or taken in the newest version that is there.
//!
//! A key is doubtful
//! - in an LSM tree, if a newer table cannot be read where the key would be, or if the version log
//!   is lost, so that nothing says which table is newer, and which keys were removed as a range;
//! - if the log lost records after one of the key, and the disk index has something else of it.
//!
//! Where the log lost records, any key may have had a newer version: the tree's report says so.
//! Threads: one. The source is locked as by a reader, and not written.

#![forbid(unsafe_code)]

use super::{
    database::Db,
    directory::{
        self, DirectoryLock, LOG_DIR, TREES_DIR,
        manifest::{Manifest, TreeEntry},
    },
    kinds::{IndexXKind, IndexYKind},
    open::{self, loads::Loads},
    options::Options,
    tree::Tree,
    tree_options::{TreeOptions, Ttl},
};
use crate::{
    error::{Error, Result},
    storage::{Buffered, FewOpen, OpenFiles, Storage},
    wal::{
        self, LoadAt, Lsn, RecordRef, batch_ops,
        salvage::{self as log, Known, Piece},
    },
    y::{Compression, lsm, paged, salvaged::Salvaged, tolerant::Hole},
};
use serde::{Deserialize, Serialize};
#[cfg(test)]
use std::cell::Cell;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    path::{Path, PathBuf},
    sync::Arc,
};

/// Files of the source that are open at once.
const MOST_OPEN_FILES: usize = 64;

#[cfg(test)]
mod tests;

#[cfg(test)]
thread_local! {
    /// What another program does just before the destination is claimed.
    static MEANWHILE: Cell<Option<Box<dyn FnOnce()>>> = const { Cell::new(None) };
}

#[cfg(test)]
fn meanwhile() {
    MEANWHILE.take().into_iter().for_each(|other| other());
}

/// What [`Db::salvage`] does with keys whose newest version may be lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Doubtful {
    /// They are counted.
    #[default]
    LeaveOut,
    /// They are counted, and written in the newest version that was found.
    Take,
}

/// What [`Db::salvage`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SalvageReport {
    /// One report a tree, in order of creation.
    pub trees: Vec<SalvagedTree>,
    /// What could not be read, in the order of reading. A thousand at most.
    pub losses: Vec<Loss>,
    /// How many there are.
    pub lost: u64,
}

/// What was read of one tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SalvagedTree {
    /// Name of the tree; `tree-N` where the manifest is lost, N being its number.
    pub name: String,
    /// Entries of the new tree.
    pub entries: u64,
    /// Keys of which a newer version, or a removal, may be lost.
    pub doubtful: u64,
    /// Records of the log are lost: any entry may be an older version, or have been removed.
    pub may_be_older: bool,
}

/// Something that could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Loss {
    /// The tree, if it is of one.
    pub tree: Option<String>,
    /// The file.
    pub path: PathBuf,
    /// Where in the file, in bytes.
    pub offset: u64,
    /// What does not hold.
    pub what: String,
    /// Keys from here on may be missing, if that is known.
    pub from: Option<Vec<u8>>,
    /// Keys up to here, exclusive; `None`: to the end.
    pub to: Option<Vec<u8>>,
}

impl SalvageReport {
    /// True when nothing is lost: every entry is there. Compression is not kept, nor is a merge
    /// operator of your own that `options` do not register.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.lost == 0
    }

    fn add(&mut self, loss: Loss) {
        self.lost += 1;
        if self.losses.len() < MAX_LOSSES {
            self.losses.push(loss);
        }
    }
}

/// Losses that are listed.
const MAX_LOSSES: usize = 1000;

impl Db {
    /// Reads what can be read of the damaged database in `src` and writes it to a new one in
    /// `dest`, which is absent or an empty directory. Nothing is invented: every entry of the new
    /// database is one that was written, the newest as far as that can be known. The report says
    /// what is missing, by file, offset and, where it is known, range of keys. `src` is not
    /// changed.
    ///
    /// Keys of which a newer version, or a removal, may be lost are [`Doubtful`]. Trees of RocksDB
    /// and of disk indexes of other crates are not read, but for what the log has of them.
    ///
    /// Cost: reads all of `src`, the log twice; writes `dest` with `options`. Where the log has
    /// lost records, the keys of those before the loss are held in memory. Errors: `Locked`,
    /// `NoDatabase`, `DestinationNotEmpty` (also inside of `src`), `FormatVersion` and
    /// `Unsupported` (another build reads it), `Io` (it may not be read), and those of writing
    /// `dest`; damage is none. After an error `dest` is as it was before.
    ///
    /// A process that is killed meanwhile leaves a database in `dest` that opens, and has a part
    /// of what can be read. So the command `indexy salvage` writes beside `dest` and renames.
    ///
    /// ```
    /// # use indexy::{Db, Doubtful, Options};
    /// # let dir = tempfile::tempdir()?;
    /// # let (path, dest) = (dir.path().join("db"), dir.path().join("new"));
    /// let db = Db::open(&path, Options::new(4 << 20))?;
    /// db.tree("t")?.insert("key", "value")?;
    /// db.close()?;
    /// std::fs::remove_file(path.join("MANIFEST"))?;
    /// let report = Db::salvage(&path, &dest, Options::new(4 << 20), Doubtful::LeaveOut)?;
    /// assert!(!report.is_whole() && report.losses[0].path.ends_with("MANIFEST"));
    /// let saved = Db::open(&dest, Options::new(4 << 20))?;
    /// assert_eq!(saved.tree("tree-1")?.get("key")?.unwrap(), b"value");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn salvage(
        src: impl AsRef<Path>,
        dest: impl AsRef<Path>,
        options: Options,
        doubtful: Doubtful,
    ) -> Result<SalvageReport> {
        salvage(src.as_ref(), dest.as_ref(), options, doubtful)
    }
}

fn salvage(src: &Path, dest: &Path, options: Options, doubtful: Doubtful) -> Result<SalvageReport> {
    let (src, dest) = (&*directory::absolute(src)?, &*directory::absolute(dest)?);
    let _lock = lock(src)?;
    // A tree may have more tables than a process descriptors.
    let open = Arc::new(OpenFiles::new(MOST_OPEN_FILES));
    let storage = &FewOpen::new(Arc::new(Buffered), open) as &dyn Storage;
    let mut report = SalvageReport::default();
    let source = Source::read(storage, src, &mut report)?;
    let salvage = Salvage {
        storage,
        src,
        doubtful,
        report,
        trees: BTreeMap::new(),
        loads: Loads::default(),
        touched: HashMap::new(),
        merges_left: 0,
        lost_records: false,
        incomplete: BTreeSet::new(),
        unsure: HashSet::new(),
    };
    refuse_inside(src, dest)?;
    #[cfg(test)]
    meanwhile();
    let claim = directory::claim(dest)?;
    // Held to the end: what is there is nobody's but ours.
    let lock = Arc::new(claim.lock);
    let saved = open::open_claimed(dest, options, lock.clone()).and_then(|handle| {
        let handle = Arc::new(handle);
        let db = Db { handle };
        let report = salvage.write(&db, &source)?;
        db.close().map(|()| report)
    });
    // Nothing of the handle is left that could still write.
    let alone = Arc::into_inner(lock);
    if saved.is_err() && alone.is_some() {
        directory::remove_unfinished(dest, claim.made);
    }
    saved
}

/// Nobody writes the source meanwhile. One whose lock file is gone is nobody's.
fn lock(src: &Path) -> Result<Option<DirectoryLock>> {
    if !src.is_dir() {
        let path = src.to_path_buf();
        return Err(Error::NoDatabase { path });
    }
    match DirectoryLock::take(src, true) {
        Ok(lock) => Ok(Some(lock)),
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The source is not written: nothing is put into it.
fn refuse_inside(src: &Path, dest: &Path) -> Result<()> {
    match directory::real(dest).starts_with(directory::real(src)) {
        true => Err(Error::DestinationNotEmpty {
            path: dest.to_path_buf(),
        }),
        false => Ok(()),
    }
}

/// What the source says that it has.
struct Source {
    database_id: Option<u128>,
    trees: Vec<TreeEntry>,
    manifest: Option<Manifest>,
}

impl Source {
    fn read(storage: &dyn Storage, src: &Path, report: &mut SalvageReport) -> Result<Self> {
        wal::check_format(storage, &src.join(LOG_DIR))?;
        let error = match Manifest::salvage(storage, src)? {
            Ok(manifest) => {
                return Ok(Self {
                    database_id: Some(manifest.database_id),
                    trees: manifest.trees.clone(),
                    manifest: Some(manifest),
                });
            }
            Err(error) => error,
        };
        let trees = found_trees(storage, src)?;
        if trees.is_empty() && !src.join(LOG_DIR).is_dir() {
            let path = src.to_path_buf();
            return Err(Error::NoDatabase { path });
        }
        report.add(loss(None, &error));
        Ok(Self {
            database_id: log::database_id(storage, &src.join(LOG_DIR)),
            trees,
            manifest: None,
        })
    }

    fn known(&self) -> Known {
        Known {
            database_id: self.database_id,
            from: self.manifest.as_ref().map(|m| Lsn(m.log_start)),
            durable: Lsn(self.manifest.as_ref().map_or(0, |m| m.log_durable)),
        }
    }
}

/// The trees that have a folder, by what is in it. Their names are lost.
fn found_trees(storage: &dyn Storage, src: &Path) -> Result<Vec<TreeEntry>> {
    let dir = src.join(TREES_DIR);
    let entries = match std::fs::read_dir(&dir).map_err(|e| Error::io("list", &dir, e)) {
        Err(error) if error.is_no_damage() => return Err(error),
        Err(_) => return Ok(Vec::new()),
        Ok(entries) => entries,
    };
    let number = |entry: std::io::Result<std::fs::DirEntry>| -> Option<u32> {
        entry.ok()?.file_name().to_str()?.parse().ok()
    };
    let mut numbers: Vec<u32> = entries.filter_map(number).collect();
    numbers.sort_unstable();
    let tree = |id: u32| {
        let dir = directory::tree_dir(src, id);
        let index_y = match paged::page_bytes(storage, &dir) {
            Ok(page_bytes) => IndexYKind::BPlus { page_bytes },
            Err(error) if error.is_no_damage() => return Err(error),
            Err(_) => IndexYKind::Lsm,
        };
        Ok(TreeEntry {
            id,
            name: format!("tree-{id}"),
            index_x: IndexXKind::default(),
            index_y,
            resident: false,
            compression: Compression::None,
            merge: None,
            ttl_ms: None,
        })
    };
    numbers.into_iter().map(tree).collect()
}

fn loss(tree: Option<&str>, error: &Error) -> Loss {
    let (path, offset, what) = match error {
        Error::Corrupt { path, offset, what } => (path.clone(), *offset, what.clone()),
        Error::Io { path, .. } | Error::FormatVersion { path, .. } => {
            (path.clone(), 0, error.to_string())
        }
        error => (PathBuf::new(), 0, error.to_string()),
    };
    Loss {
        tree: tree.map(str::to_string),
        path,
        offset,
        what,
        ..Loss::default()
    }
}

/// What the records of the log so far, before the last of them that is lost, made of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Touched {
    Written,
    /// The disk index has something else, which may be newer.
    Contested,
}

struct Salvage<'s> {
    storage: &'s dyn Storage,
    src: &'s Path,
    doubtful: Doubtful,
    report: SalvageReport,
    /// New trees by the number of the old ones.
    trees: BTreeMap<u32, Tree>,
    loads: Loads,
    /// Where the log has lost records: the keys of those before.
    touched: HashMap<(u32, Vec<u8>), Touched>,
    /// Merges that were not applied.
    merges_left: u64,
    lost_records: bool,
    /// Trees of which a key may be lost that is absent.
    incomplete: BTreeSet<u32>,
    /// Where merges are kept: keys whose newer version may be lost.
    unsure: HashSet<(u32, Vec<u8>)>,
}

impl Salvage<'_> {
    /// Writes everything to `db`.
    fn write(mut self, db: &Db, source: &Source) -> Result<SalvageReport> {
        for entry in &source.trees {
            self.tree(db, entry, source.database_id)?;
        }
        self.log(source.known())?;
        for (id, tree) in &self.trees {
            let entries = tree.len()?;
            let at = source.trees.iter().position(|entry| entry.id == *id);
            if let Some(report) = at.and_then(|at| self.report.trees.get_mut(at)) {
                report.entries = entries;
            }
        }
        Ok(self.report)
    }

    /// Reads the disk index of a tree.
    fn tree(&mut self, db: &Db, entry: &TreeEntry, database_id: Option<u128>) -> Result<()> {
        let dir = directory::tree_dir(self.src, entry.id);
        let (readable, index_y) = match entry.index_y {
            kind @ (IndexYKind::Lsm | IndexYKind::BPlus { .. }) => (true, kind),
            IndexYKind::RocksDb | IndexYKind::Custom(_) => (false, IndexYKind::default()),
        };
        let mut options = TreeOptions::new().index_x(entry.index_x).index_y(index_y);
        if let Some(ttl) = entry.ttl() {
            options = options.ttl(Ttl::of(ttl));
        }
        // Without its operator the values can be had all the same.
        options.merge = entry.merge.clone().filter(|merge| db.knows_merge(merge));
        let tree = db.tree_with(&entry.name, options.resident(entry.resident))?;
        let mut found = SalvagedTree {
            name: entry.name.clone(),
            ..SalvagedTree::default()
        };
        let (report, take) = (&mut self.report, self.doubtful == Doubtful::Take);
        let (unsure, merges, mut incomplete) = (&mut self.unsure, entry.merge.is_some(), false);
        let mut visit = |salvaged: Salvaged| match salvaged {
            Salvaged::Entry {
                key,
                value,
                doubtful,
            } => {
                found.doubtful += u64::from(doubtful);
                if doubtful && !take {
                    incomplete = true;
                    return Ok(());
                }
                tree.insert_stored(&key, &value)?;
                if doubtful && merges {
                    unsure.insert((entry.id, key));
                }
                Ok(())
            }
            Salvaged::Lost(Hole { from, to, error }) => {
                incomplete = true;
                report.add(Loss {
                    from: Some(from),
                    to,
                    ..loss(Some(&entry.name), &error)
                });
                Ok(())
            }
        };
        let owner = database_id.map(|id| open::owner(id, entry.id));
        match entry.index_y {
            _ if !readable => {
                let what = format!("salvage does not read an index_y {}", entry.index_y);
                let error = Error::corrupt(&dir, 0, what);
                let (from, to) = (Vec::new(), None);
                visit(Salvaged::Lost(Hole { from, to, error }))?;
            }
            IndexYKind::Lsm => lsm::salvage(self.storage, &dir, owner, &mut visit)?,
            _ => paged::salvage(self.storage, &dir, owner, &mut visit)?,
        }
        if incomplete {
            self.incomplete.insert(entry.id);
        }
        self.report.trees.push(found);
        self.trees.insert(entry.id, tree);
        Ok(())
    }

    /// Reads the log, twice: what was lost, and what loads hide, is known before the first record
    /// is applied.
    fn log(&mut self, known: Known) -> Result<()> {
        let (storage, dir) = (self.storage, &self.src.join(LOG_DIR));
        let (mut pieces, mut lost_at) = (0u64, None);
        let mut loads = Vec::new();
        log::salvage(storage, dir, known, &mut |piece| {
            pieces += 1;
            match piece {
                Piece::Lost(error) => {
                    lost_at = Some(pieces);
                    self.report.add(loss(None, &error));
                }
                Piece::Record(lsn, RecordRef::Load { tree, from, to }) => loads.push(LoadAt {
                    lsn,
                    tree,
                    from: from.to_vec(),
                    to: to.map(<[u8]>::to_vec),
                }),
                Piece::Record(..) => {}
            }
            Ok(())
        })?;
        self.loads = Loads::new(loads);
        self.lost_records = lost_at.is_some();
        if lost_at.is_some() {
            let trees = self.report.trees.iter_mut();
            trees.for_each(|tree| tree.may_be_older = true);
        }
        let mut pieces = 0u64;
        log::salvage(storage, dir, known, &mut |piece| {
            pieces += 1;
            match piece {
                Piece::Record(lsn, record) => {
                    let unsure = lost_at.is_some_and(|lost| pieces < lost);
                    self.record(lsn, record, unsure)
                }
                Piece::Lost(_) => Ok(()),
            }
        })?;
        if self.merges_left > 0 {
            let n = self.merges_left;
            let what = format!("{n} merges that may be in the values already, or cannot be done");
            self.report.add(loss(None, &Error::corrupt(dir, 0, what)));
        }
        Ok(())
    }

    /// `unsure`: later records are lost.
    fn record(&mut self, lsn: Lsn, record: RecordRef<'_>, unsure: bool) -> Result<()> {
        match record {
            RecordRef::Put { tree, key, value } if !self.loads.hides(lsn, tree, key) => {
                self.change(tree, key, Some(value), unsure)
            }
            RecordRef::Remove { tree, key } if !self.loads.hides(lsn, tree, key) => {
                self.change(tree, key, None, unsure)
            }
            RecordRef::RemoveRange { tree, from, to } => {
                let whole = || vec![(from.to_vec(), to.map(<[u8]>::to_vec))];
                let parts = self.loads.shown(lsn, tree, from, to);
                for (from, to) in parts.unwrap_or_else(whole) {
                    self.remove_range(tree, &from, to.as_deref(), unsure)?;
                }
                Ok(())
            }
            RecordRef::Batch { ops, .. } => batch_ops(ops)
                .map_while(Result::ok)
                .try_for_each(|op| self.record(lsn, op, unsure)),
            RecordRef::Merge { tree, key, operand } if !self.loads.hides(lsn, tree, key) => {
                self.merge(tree, key, operand)
            }
            RecordRef::Resolved {
                tree,
                key,
                value: Some(value),
            } if !self.loads.hides(lsn, tree, key) => self.change(tree, key, Some(value), unsure),
            RecordRef::Put { .. }
            | RecordRef::Remove { .. }
            | RecordRef::Merge { .. }
            | RecordRef::Resolved { .. }
            | RecordRef::Load { .. } => Ok(()),
        }
    }

    /// A merge counts once. Where records are lost, the value may have it already. Merged into what
    /// is not the newest value, or into nothing where the value is lost, it would invent one.
    fn merge(&mut self, id: u32, key: &[u8], operand: &[u8]) -> Result<()> {
        let Some(tree) = self.trees.get(&id) else {
            return Ok(());
        };
        let is_lost = self.lost_records
            || self.unsure.contains(&(id, key.to_vec()))
            || self.incomplete.contains(&id) && tree.get_stored(key)?.is_none();
        let merged = match is_lost {
            true => Ok(false),
            false => tree.merge(key, operand).map(|()| true),
        };
        match merged {
            Ok(true) => {}
            Ok(false) | Err(Error::MergeOperatorMissing { .. }) => self.merges_left += 1,
            // It makes no difference to such a value.
            Err(Error::MergeRefused { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn remove_range(
        &mut self,
        id: u32,
        from: &[u8],
        to: Option<&[u8]>,
        unsure: bool,
    ) -> Result<()> {
        let Some(tree) = self.trees.get(&id).cloned() else {
            return Ok(());
        };
        let range = (
            std::ops::Bound::Included(from),
            to.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded),
        );
        for entry in tree.range::<&[u8]>(range) {
            self.change(id, &entry?.0, None, unsure)?;
        }
        Ok(())
    }

    fn change(&mut self, id: u32, key: &[u8], value: Option<&[u8]>, unsure: bool) -> Result<()> {
        let Some(tree) = self.trees.get(&id) else {
            return Ok(());
        };
        let name = (id, key.to_vec());
        let touched = self.touched.get(&name).copied();
        let mut contested = touched == Some(Touched::Contested);
        if unsure && touched.is_none() {
            let found = tree.get_stored(key)?;
            contested = found.is_some() && found.as_deref() != value;
        }
        if contested && touched.is_none() {
            self.count_doubtful(id, 1);
        }
        self.unsure.remove(&name);
        if !unsure {
            // The newest record of the key is here, whatever was before it.
            if self.touched.remove(&name) == Some(Touched::Contested) {
                self.count_doubtful(id, -1);
            }
        } else {
            let now = match contested {
                true => Touched::Contested,
                false => Touched::Written,
            };
            self.touched.insert(name, now);
        }
        let Some(tree) = self.trees.get(&id) else {
            return Ok(());
        };
        match value {
            Some(value) if !unsure || !contested || self.doubtful == Doubtful::Take => {
                tree.insert_stored(key, value)
            }
            _ => tree.remove(key),
        }
    }

    fn count_doubtful(&mut self, id: u32, more: i64) {
        let at = self.trees.keys().position(|other| *other == id);
        if let Some(tree) = at.and_then(|at| self.report.trees.get_mut(at)) {
            tree.doubtful = tree.doubtful.saturating_add_signed(more);
        }
    }
}
