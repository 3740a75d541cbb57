//! The trees of a database: made, opened with options, renamed and dropped.
//!
//! Who changes which trees there are, or what the manifest says of one, holds the manifest's lock
//! from its first look until the new manifest is in place.

#![forbid(unsafe_code)]

use super::{
    database::Db,
    directory::{
        self,
        manifest::{Manifest, TreeEntry},
    },
    handle::{Status, TreeCore},
    kinds::IndexYKind,
    open,
    tree::Tree,
    tree_options::{TreeOptions, Ttl},
};
use crate::{
    error::{Error, Result},
    events,
    framework::{
        operators::{MergeOperator, Operator},
        policies::{Admission, Evicted},
    },
    limits::MAX_TREE_NAME_BYTES,
    y::Compression,
};
use std::{fmt, sync::Arc, time::Duration};

impl Db {
    /// Opens the tree `name`, or creates it with the database's default pair of indexes.
    ///
    /// `name`: any UTF-8 of 1..=255 bytes. Cost of a creation: a few fsyncs.
    ///
    /// Errors: `InvalidTreeName`, `NoSuchTree` (read-only), and those of a creation.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// let orders = db.tree("orders")?;
    /// let customers = db.tree("customers")?;
    /// assert_eq!(db.tree_names(), ["orders", "customers"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tree(&self, name: &str) -> Result<Tree> {
        self.tree_with(name, TreeOptions::new())
    }

    /// Opens the tree `name`, or creates it with `options`. The pair is remembered: asking an
    /// existing tree for another one is a `TreeMismatch`; what `options` leaves open is taken as it
    /// is.
    ///
    /// Cost and errors: as [`Db::tree`], and `TreeMismatch`, `Unsupported`, `InvalidOption`,
    /// `MergeOperatorMissing`, and `ReadOnly` where an option would be changed.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// use indexy::{IndexYKind, TreeOptions};
    /// let paged = TreeOptions::new().index_y(IndexYKind::BPlus { page_bytes: 4096 });
    /// db.tree_with("events", paged)?;
    /// // Opened later, it is what it was made as.
    /// let (_, on_disk) = db.tree("events")?.pair();
    /// assert_eq!(on_disk, IndexYKind::BPlus { page_bytes: 4096 });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tree_with(&self, name: &str, options: TreeOptions) -> Result<Tree> {
        check_name(name)?;
        let _open = self.core().operation()?;
        let tree = self.find_or_make(name, &options)?;
        self.set_evicted(&tree, options.evicted)?;
        Ok(Tree::new(self.handle.clone(), tree))
    }

    fn find_or_make(&self, name: &str, options: &TreeOptions) -> Result<Arc<TreeCore>> {
        // Held while the tree is made, so that two callers do not make it twice.
        let mut manifest = self.core().manifest.lock();
        let known = manifest.trees.iter().find(|t| t.name == name).map(|t| t.id);
        let existing = known.and_then(|id| self.core().trees.read().get(&id).cloned());
        if let Some(tree) = existing {
            check_match(name, &tree.entry, options)?;
            self.set_options(&mut manifest, &tree, options)?;
            return Ok(tree);
        }
        if self.core().options.read_only {
            return Err(Error::NoSuchTree { name: name.into() });
        }
        self.core().check_writable()?;
        let entry = TreeEntry {
            id: manifest.next_tree_id,
            name: name.into(),
            index_x: options.index_x.unwrap_or(self.core().options.index_x),
            index_y: options.index_y.unwrap_or(self.core().options.index_y),
            resident: options.resident.unwrap_or(false),
            compression: options.compression.unwrap_or_default(),
            merge: options.merge.clone(),
            ttl_ms: options.ttl.map(Ttl::millis),
        };
        check_merge(entry.merge.as_ref(), entry.ttl_ms)?;
        if let Some(merge) = &entry.merge {
            self.operator(name, merge)?;
        }
        self.core()
            .options
            .check_pair(entry.index_x, entry.index_y)?;
        options.check_admission(entry.index_x, entry.resident)?;
        options.check_evicted(entry.resident, 0, self.core().shared.filters.left())?;
        options.check_ttl(entry.resident)?;
        if entry.resident && entry.index_x.is_buffer_only() {
            return Err(Error::InvalidOption {
                option: "resident",
                reason: "a tree without an Index X has nowhere to be resident".into(),
            });
        }
        // A tree's records all have higher LSNs than this.
        let floor = self.core().shared.log.floor();
        let dir = directory::tree_dir(&self.core().path, entry.id);
        let opened = open::open_tree(self.core(), manifest.database_id, entry.clone(), floor)
            .and_then(|tree| match entry.index_y {
                IndexYKind::Custom(_) => {
                    directory::keep_tree(&*self.core().storage, &dir).map(|()| tree)
                }
                _ => Ok(tree),
            });
        let id = entry.id;
        let named = opened.and_then(|tree| {
            let mut next = manifest.clone();
            next.next_tree_id += 1;
            next.trees.push(entry);
            next.check_room()?;
            // Durable before the first record of the tree can be logged.
            self.core().replace_manifest(&mut manifest, next)?;
            Ok(Arc::new(tree))
        });
        let tree = named.inspect_err(|_| {
            // What is there may look whole and not be durable (a failed sync), or be of another
            // kind than what is asked for next: no later attempt takes it for its own.
            manifest.next_tree_id += 1;
            // Poisoned, the manifest on disk may name the tree.
            let not_named = self.core().shared.poison.check().is_ok();
            if not_named && self.core().directory.check().is_ok() {
                let _ = directory::remove_tree(&dir);
            }
        })?;
        events::tree_created(id, name);
        self.set_admission(&tree, options.admission);
        self.core().trees.write().insert(id, tree.clone());
        // Whoever changed the budget before has not seen the tree.
        let misses = &tree.joined.misses;
        misses.follow_budget(&self.core().shared.miss_counts);
        self.core().divide_memory();
        Ok(tree)
    }

    /// Gives `tree`, which is there, what it is opened with.
    fn set_options(
        &self,
        manifest: &mut Manifest,
        tree: &TreeCore,
        options: &TreeOptions,
    ) -> Result<()> {
        let entry = &tree.entry;
        options.check_admission(entry.index_x, entry.resident)?;
        self.check_evicted(options, tree)?;
        options.check_ttl(entry.resident)?;
        self.set_merge(manifest, tree, options.merge.as_ref())?;
        self.set_ttl(manifest, tree, options.ttl)?;
        self.set_compression(manifest, tree, options.compression)?;
        self.set_admission(tree, options.admission);
        Ok(())
    }

    /// Whether `tree`, which is there, can have what is asked for; what it has it can.
    fn check_evicted(&self, options: &TreeOptions, tree: &TreeCore) -> Result<()> {
        let joined = &tree.joined;
        if options.evicted == Some(joined.writer.evicted().chosen()) {
            return Ok(());
        }
        // Its filter of now goes before another one is built.
        let room = self.core().shared.filters.left() + joined.writer.evicted().bytes();
        options.check_evicted(tree.entry.resident, joined.y.approximate_len(), room)
    }

    /// What is known from now on of the keys of `tree` that left memory, if that was asked for and
    /// is something else. Waits for a run in flight.
    fn set_evicted(&self, tree: &TreeCore, asked: Option<Evicted>) -> Result<()> {
        let writer = &tree.joined.writer;
        let Some(asked) = asked.filter(|asked| *asked != writer.evicted().chosen()) else {
            return Ok(());
        };
        // Before: a filter that nobody builds is not chosen.
        self.build_filters()?;
        {
            let _no_run = writer.lock();
            writer.evicted().choose(asked);
        }
        self.build_filters()
    }

    fn build_filters(&self) -> Result<()> {
        let begun = self.handle.background.build_filters();
        begun.map_err(|e| Error::io("start a thread for", &self.core().path, e))
    }

    /// How long what is written to `tree` from now on lives, if that was asked for and is something
    /// else.
    fn set_ttl(&self, manifest: &mut Manifest, tree: &TreeCore, asked: Option<Ttl>) -> Result<()> {
        let mut next = manifest.clone();
        let entry = next
            .trees
            .iter_mut()
            .find(|entry| entry.id == tree.entry.id);
        let (Some(asked), Some(entry), Some(expiry)) = (asked, entry, &tree.joined.expiry) else {
            return Ok(());
        };
        let before = entry.ttl_ms.replace(asked.millis());
        if before == entry.ttl_ms {
            return Ok(());
        }
        self.core().check_writable()?;
        let ttl = entry.ttl().unwrap_or(expiry.default_ttl());
        self.core().replace_manifest(manifest, next.with_room()?)?;
        expiry.set_default_ttl(ttl);
        Ok(())
    }

    /// What `tree` is stored as from now on, if that was asked for and is something else.
    fn set_compression(
        &self,
        manifest: &mut Manifest,
        tree: &TreeCore,
        asked: Option<Compression>,
    ) -> Result<()> {
        let mut next = manifest.clone();
        let entry = next
            .trees
            .iter_mut()
            .find(|entry| entry.id == tree.entry.id);
        let (Some(asked), Some(entry)) = (asked, entry) else {
            return Ok(());
        };
        if asked == entry.compression {
            return Ok(());
        }
        if self.core().options.read_only {
            return Err(Error::ReadOnly);
        }
        self.core().check_writable()?;
        tree.joined.y.set_compression(asked)?;
        entry.compression = asked;
        self.core().replace_manifest(manifest, next.with_room()?)
    }

    /// The program can run `merge`.
    pub(super) fn knows_merge(&self, merge: &MergeOperator) -> bool {
        merge.check().is_ok() && self.operator("", merge).is_ok()
    }

    /// What runs `merge`. Errors: `InvalidOption`, `MergeOperatorMissing`.
    fn operator(&self, name: &str, merge: &MergeOperator) -> Result<Operator> {
        merge.check()?;
        let operator = self.core().options.merge_operators.operator(merge);
        operator.ok_or_else(|| Error::MergeOperatorMissing {
            tree: format!("{name:?} ({merge})"),
        })
    }

    /// How `tree` merges from now on, if that was asked for.
    fn set_merge(
        &self,
        manifest: &mut Manifest,
        tree: &TreeCore,
        asked: Option<&MergeOperator>,
    ) -> Result<()> {
        let mut next = manifest.clone();
        let entry = next
            .trees
            .iter_mut()
            .find(|entry| entry.id == tree.entry.id);
        let (Some(asked), Some(entry)) = (asked, entry) else {
            return Ok(());
        };
        if let Some(found) = entry.merge.as_ref().filter(|found| *found != asked) {
            return Err(Error::TreeMismatch {
                name: entry.name.clone(),
                found: format!("merged by {found}"),
                asked: format!("{asked}"),
            });
        }
        check_merge(Some(asked), entry.ttl_ms)?;
        let operator = self.operator(&entry.name, asked)?;
        if entry.merge.is_none() {
            if self.core().options.read_only {
                return Err(Error::ReadOnly);
            }
            self.core().check_writable()?;
            entry.merge = Some(asked.clone());
            // Durable before the first operand can be logged.
            self.core().replace_manifest(manifest, next.with_room()?)?;
        }
        tree.joined.set_operator(operator);
        Ok(())
    }

    /// What `tree` loads from now on, if that was asked for and is something else.
    fn set_admission(&self, tree: &TreeCore, asked: Option<Admission>) {
        let misses = &tree.joined.misses;
        if let Some(asked) = asked.filter(|asked| *asked != misses.admission()) {
            misses.choose(asked, &self.core().shared.miss_counts);
        }
    }

    /// Names of all trees, in order of creation. No I/O.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// db.tree("a")?;
    /// assert_eq!(db.tree_names(), ["a"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn tree_names(&self) -> Vec<String> {
        self.core()
            .trees
            .read()
            .values()
            .filter(|t| !t.is_dropped())
            .map(|t| t.name().to_string())
            .collect()
    }

    /// Drops a tree with everything in it. Its handles return `TreeDropped` from now on.
    ///
    /// Cost: a few fsyncs, and the removal of its files. Waits for a run of this tree that is being
    /// written to the disk index, and for no writer longer than a moment.
    ///
    /// Errors: `NoSuchTree`, `ReadOnly`, `Poisoned`, `Closed`, `Reentrant`, `Io`, `OutOfSpace`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// let tree = db.tree("scratch")?;
    /// db.drop_tree("scratch")?;
    /// assert!(tree.insert("key", "value").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn drop_tree(&self, name: &str) -> Result<()> {
        let _open = self.core().operation()?;
        self.core().check_writable()?;
        let mut manifest = self.core().manifest.lock();
        let Some(at) = manifest.trees.iter().position(|t| t.name == name) else {
            return Err(Error::NoSuchTree { name: name.into() });
        };
        let mut next = manifest.clone();
        let entry = next.trees.remove(at);
        self.core().replace_manifest(&mut manifest, next)?;
        drop(manifest);
        let tree = self.core().trees.read().get(&entry.id).cloned();
        if let Some(tree) = tree {
            tree.set_status(Status::Dropped);
            tree.joined.y.interrupt();
            // So that X stays empty once it is. A writer that holds its stripe for longer waits for
            // memory, and looks again whether its tree is there when it gets some.
            let unpassed = self.core().stripes.barrier_for(DROP_LIMIT);
            self.core().trees.write().remove(&entry.id);
            tree.joined.discard();
            self.core()
                .dropped
                .watch(Arc::clone(&tree.joined), unpassed);
            self.core().divide_memory();
        }
        events::tree_dropped(entry.id, name);
        self.core().directory.check()?;
        directory::remove_tree(&directory::tree_dir(&self.core().path, entry.id))
    }

    /// Gives the tree `old` the name `new`. The new name is durable when the call returns; after a
    /// crash during the call the tree has one of the two names. Renaming a tree to its own name
    /// changes nothing.
    ///
    /// Handles, ranges and batches of the tree go on working. [`Tree::name`] of a handle is the
    /// name under which that handle was opened; a handle opened afterwards has the new one.
    ///
    /// Cost: a few fsyncs, whatever the size of the tree. Writers are not held up. Errors:
    /// `InvalidTreeName` (the new one), `NoSuchTree` (the old one), `TreeExists` (another tree has
    /// the new name), `InvalidOption` (the manifest has no room for it), `ReadOnly`, `Poisoned`,
    /// `OutOfSpace`, `Io`, `Closed`. After `OutOfSpace` the tree has its old name, and the call may
    /// be repeated.
    ///
    /// ```
    /// # fn main() -> indexy::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// let orders = db.tree("orders")?;
    /// orders.insert("42", "two chairs")?;
    /// db.rename_tree("orders", "orders-2025")?;
    /// assert_eq!(db.tree_names(), ["orders-2025"]);
    /// assert_eq!(orders.get("42")?.unwrap(), *b"two chairs");
    /// assert_eq!(db.tree("orders-2025")?.len()?, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn rename_tree(&self, old: &str, new: &str) -> Result<()> {
        check_name(new)?;
        let _open = self.core().operation()?;
        self.core().check_writable()?;
        // Held to the end: the names in the manifest and in memory change together for whoever
        // looks a tree up by its name.
        let mut manifest = self.core().manifest.lock();
        let Some(at) = manifest.trees.iter().position(|t| t.name == old) else {
            return Err(Error::NoSuchTree { name: old.into() });
        };
        if old == new {
            return Ok(());
        }
        if manifest.trees.iter().any(|t| t.name == new) {
            return Err(Error::TreeExists { name: new.into() });
        }
        let mut next = manifest.clone();
        next.trees[at].name = new.into();
        let id = next.trees[at].id;
        next.check_room()?;
        self.core().replace_manifest(&mut manifest, next)?;
        if let Some(tree) = self.core().trees.read().get(&id) {
            tree.set_name(new);
        }
        Ok(())
    }
}

/// Longest time that `drop_tree` waits for writers in progress. What one of the dropped tree leaves
/// in memory after that is seen by nobody and goes when the writer is done (`handle/dropped.rs`);
/// its log record names a tree that recovery does not know.
const DROP_LIMIT: Duration = Duration::from_millis(250);

/// Errors: `InvalidTreeName`.
fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > MAX_TREE_NAME_BYTES {
        return Err(Error::InvalidTreeName { len: name.len() });
    }
    Ok(())
}

/// An operand has no moment at which it expires, and what it waits for must not go from Y
/// meanwhile.
fn check_merge(merge: Option<&MergeOperator>, ttl_ms: Option<u64>) -> Result<()> {
    match (merge, ttl_ms) {
        (Some(_), Some(_)) => Err(Error::InvalidOption {
            option: "merge_operator",
            reason: "entries of the tree expire".into(),
        }),
        _ => Ok(()),
    }
}

/// An existing tree is what it is.
fn check_match(name: &str, entry: &TreeEntry, options: &TreeOptions) -> Result<()> {
    let x = options.index_x.unwrap_or(entry.index_x);
    let y = options.index_y.unwrap_or(entry.index_y);
    let resident = options.resident.unwrap_or(entry.resident);
    if options.ttl.is_some() && entry.ttl_ms.is_none() {
        return Err(Error::TreeMismatch {
            name: name.into(),
            found: "without a time to live".into(),
            asked: "one".into(),
        });
    }
    if (x, y, resident) == (entry.index_x, entry.index_y, entry.resident) {
        return Ok(());
    }
    let pair = |x: &dyn fmt::Display, y: &dyn fmt::Display, r| {
        format!("{x}-{y}{}", if r { ", resident" } else { "" })
    };
    Err(Error::TreeMismatch {
        name: name.into(),
        found: pair(&entry.index_x, &entry.index_y, entry.resident),
        asked: pair(&x, &y, resident),
    })
}
