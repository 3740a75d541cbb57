//! `load_sorted`: sorted entries straight into the disk index, all of them or none.
//!
//! 1. The caller's entries go to Y piece by piece, into files or pages that nobody sees. No lock is
//!    held, so the caller's iterator may use the database, and take its time.
//! 2. They are brought to the device.
//! 3. Checkpoints are held off. Every stripe is taken, as by a batch that removes a range: nobody
//!    writes. If the range still holds no key, the load becomes the tree's (`framework/load.rs`).
//!
//! A writer into the range during 1 and 2 is not held up: its key is there in 3, and the load is
//! refused. So a load happens at one moment, in which its range is empty.
//!
//! Keeps I7 (what Y buffers for a load is counted, one entry of the caller's is held at a time) and
//! I8 (`framework/load.rs`). Locks: `loads`, then stripes, then the run lock.

#![forbid(unsafe_code)]

use super::{expiring::Life, reads::Tree};
use crate::{
    db::handle::updating,
    error::{Error, Result},
    framework::{expiry, load::Taken},
    key::{Key, successor},
    mem::budget::{Budget, Holder},
    y::SortedLoad,
};

/// What a load buffers, at most: a chunk of pages, the hashes of a filter, separators.
const LOAD_BYTES: usize = 2 << 20;
/// It is counted up to this part of the budget, as what a run takes is.
const LOAD_DIVISOR: usize = 32;
/// After so many entries a load looks whether the tree is still there.
const ENTRIES_A_LOOK: u64 = 4096;

impl Tree {
    /// Writes sorted entries straight into the disk index; returns how many. Their keys ascend, and
    /// the tree has no key from the first of them to the last.
    ///
    /// The fast way to fill a tree or a range of it: nothing goes through memory, and the log gets
    /// one record. All or nothing, also over a crash, and durable when the call returns; a reader
    /// at the moment in which the entries appear may find some of them and not others. After an
    /// error nothing was loaded; after `Poisoned`, or a failure of the device in the last moment,
    /// the next open finds all of it or nothing.
    ///
    /// Writers to other ranges and readers go on; all writers wait for a moment at the end. A key
    /// that is written into the range meanwhile stays, and the load is refused. `entries` may read
    /// and write this database.
    ///
    /// Errors: `NotSorted`, `RangeNotEmpty`, `Unsupported` where the disk index takes no loads
    /// (RocksDB, and one of your own unless it says so), and those of [`Tree::insert`].
    ///
    /// Where entries expire, each lives as long as the tree's default says. What has expired in the
    /// range is no key, except while an open snapshot sees it.
    ///
    /// Open snapshots do not see it. For transactions all of the range was written at that moment.
    ///
    /// Cost: each entry is written to the device once; a few syncs; a wait for a checkpoint.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// let sorted = (0..1000u32).map(|n| (n.to_be_bytes(), n.to_string()));
    /// assert_eq!(tree.load_sorted(sorted)?, 1000);
    /// assert_eq!(tree.get(7u32.to_be_bytes())?.unwrap(), b"7");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn load_sorted<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64> {
        self.try_load_sorted(entries.into_iter().map(Ok::<_, Error>))
    }

    /// As [`Tree::load_sorted`], of entries that may fail to come: after the first error nothing is
    /// loaded, and it is returned.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// let lines = ["a=1", "b"].map(|line| line.split_once('=').ok_or("no value"));
    /// let loaded: Result<u64, Box<dyn std::error::Error>> =
    ///     tree.try_load_sorted(lines.map(|line| Ok(line?)));
    /// assert!(loaded.is_err() && tree.is_empty()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_load_sorted<K: AsRef<[u8]>, V: AsRef<[u8]>, E: From<Error>>(
        &self,
        entries: impl IntoIterator<Item = Result<(K, V), E>>,
    ) -> Result<u64, E> {
        self.check_load()?;
        let _counted = Counted::new(&self.at.core().budget);
        let Some(load) = self.at.alive(self.at.joined().y.begin_load())? else {
            return Err(E::from(Error::Unsupported {
                what: "to load sorted entries into this index_y".into(),
            }));
        };
        let mut loading = Loading::new(self, load);
        for entry in entries {
            let (key, value) = entry?;
            loading.add(key.as_ref(), value.as_ref())?;
        }
        Ok(loading.finish()?)
    }

    /// As every write.
    fn check_load(&self) -> Result<()> {
        let core = self.at.core();
        self.at.live()?;
        core.directory.check_process()?;
        core.check_writable()?;
        updating::check(&**core)
    }

    /// Puts a sealed load into the tree; see the module header.
    fn take_load(&self, load: Box<dyn SortedLoad + '_>, first: &[u8], last: &[u8]) -> Result<()> {
        let core = self.at.core();
        let joined = self.at.joined();
        let _no_checkpoint = core.loads.lock();
        // A full device, a run in flight and what Y has not synced: met while writers still write.
        core.shared.log.wait_durable()?;
        joined.writer.make_durable()?;
        drop(joined.writer.lock());
        let _no_writer = core.stripes.lock_every();
        self.check_load()?;
        match self
            .at
            .alive(joined.take_load(load, first, &successor(last)))?
        {
            Taken::Yes => Ok(()),
            Taken::NotEmpty => Err(self.not_empty()),
        }
    }

    fn not_empty(&self) -> Error {
        Error::RangeNotEmpty {
            name: self.name().to_string(),
        }
    }
}

/// A load on its way.
struct Loading<'t> {
    tree: &'t Tree,
    load: Box<dyn SortedLoad + 't>,
    first: Vec<u8>,
    last: Vec<u8>,
    /// The tree's first key behind `first`, when the load began: a mistake is met early.
    next: Option<Key>,
    count: u64,
    bytes: u64,
}

impl<'t> Loading<'t> {
    fn new(tree: &'t Tree, load: Box<dyn SortedLoad + 't>) -> Self {
        Self {
            tree,
            load,
            first: Vec::new(),
            last: Vec::new(),
            next: None,
            count: 0,
            bytes: 0,
        }
    }

    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.tree.at.check_key(key)?;
        self.tree.at.check_value(value.len())?;
        if self.count.is_multiple_of(ENTRIES_A_LOOK) {
            self.tree.check_load()?;
        }
        if self.count == 0 {
            self.first.extend_from_slice(key);
            let next = self.tree.range(key..).next().transpose()?;
            self.next = next.map(|(key, _)| key);
        } else if *key <= *self.last {
            return Err(Error::NotSorted { entry: self.count });
        }
        if self.next.as_deref().is_some_and(|next| key >= next) {
            return Err(self.tree.not_empty());
        }
        let added = match self.tree.at.expiry() {
            Some(_) => {
                let expires = self.tree.at.expires(Life::Default)?;
                expiry::with_stored(expires, value, |stored| self.load.add(key, stored))
            }
            None => self.load.add(key, value),
        };
        self.written(added)?;
        self.last.clear();
        self.last.extend_from_slice(key);
        self.count += 1;
        self.bytes += (key.len() + value.len()) as u64;
        Ok(())
    }

    /// A write or a sync that failed poisons the database, unless the tree was dropped: then its
    /// files are gone.
    fn written(&self, written: Result<()>) -> Result<()> {
        match self.tree.at.alive(written) {
            Err(error @ (Error::Io { .. } | Error::Poisoned { .. })) => {
                self.tree.at.core().shared.guarded(Err(error))
            }
            written => written,
        }
    }

    fn finish(mut self) -> Result<u64> {
        if self.count > 0 {
            let sealed = self.load.seal();
            self.written(sealed)?;
            self.tree.take_load(self.load, &self.first, &self.last)?;
            if let Some(expiry) = self.tree.at.expiry() {
                expiry.wrote(self.bytes);
            }
        }
        Ok(self.count)
    }
}

/// What a load buffers, taken from the budget while it lives.
struct Counted<'a> {
    budget: &'a Budget,
    bytes: usize,
}

impl<'a> Counted<'a> {
    fn new(budget: &'a Budget) -> Self {
        let bytes = LOAD_BYTES.min(budget.limit() / LOAD_DIVISOR);
        budget.take(Holder::Transfer, bytes);
        Self { budget, bytes }
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.budget.give(Holder::Transfer, self.bytes);
    }
}
