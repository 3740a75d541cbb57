//! Publishing a version to readers, and making it durable.
//!
//! 1. The version's pages, which are with the system since its run ended, and the map of used pages
//!    are synced.
//! 2. The first copy of the superblock is written and synced.
//! 3. Pages that only older versions have may be reused.
//!
//! So a crash at any moment finds a whole version: the last durable one, or the one that was about
//! to be. I6: the log is cut only after [`PagedY::commit`].
//!
//! A failed sync poisons the tree, because nobody knows what reached the device. A failed write (no
//! space: a file system that copies on write needs some for a superblock too) can be repeated.
//! While the first copy is doubtful, the second is that of the durable version, and the pages that
//! the doubtful one may name are held until another one has taken its place.

use super::{output::Output, run::Run};
use crate::y::page::PageNo;
use crate::{
    error::{Error, Result},
    y::{
        contract::RunSource,
        paged::{
            file::{
                bits::Bits,
                committed::Committed,
                map::StoredMap,
                page_set::PageSet,
                superblock::{self, Superblock},
            },
            tree::PagedY,
            version::Version,
        },
    },
};
use std::sync::Arc;

impl PagedY {
    /// Writes a run and shows it to readers. The caller holds the lock of writers.
    pub(crate) fn apply_run(&self, source: &mut dyn RunSource) -> Result<()> {
        self.apply(|run| {
            source.drain(&mut |(key, value)| run.push(key, value))?;
            let next = run.finish()?;
            // I5: nothing of the run can be seen or become durable before the log is.
            source.before_publish()?;
            Ok(next)
        })
    }

    pub(super) fn apply(
        &self,
        write: impl FnOnce(&mut Run<'_>) -> Result<Option<Version>>,
    ) -> Result<()> {
        let base = self.version.load_full();
        let mut run = Run::new(self, &base);
        let outcome = write(&mut run);
        let (taken, removed) = run.into_pages();
        match outcome {
            Ok(Some(next)) => {
                self.publish(base, next, taken.into_iter(), &removed);
            }
            Ok(None) => self.release(&taken),
            Err(error) => {
                self.release(&taken);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Shows `next` to readers, which has the pages `taken` and not those `removed`.
    pub(super) fn publish(
        &self,
        replaced: Arc<Version>,
        next: Version,
        taken: impl Iterator<Item = PageNo>,
        removed: &PageSet,
    ) {
        let unseen = {
            // Under the lock, so that a commit takes a version with its pages.
            let mut space = self.space.lock();
            let show = || self.version.store(Arc::new(next));
            match self.turns.get() {
                Some(turns) => {
                    let tags = removed.pages().map(|page| self.pages.tag(page));
                    turns.change(tags, show);
                }
                None => show(),
            }
            space.publish(replaced, taken, removed)
        };
        self.release_each(unseen.pages());
        self.reap();
    }

    /// Frees what only versions had that nobody reads any more. Cost: a few instructions, and those
    /// for each page.
    pub(crate) fn reap(&self) {
        let unread = self.space.lock().unread();
        self.release_each(unread.pages());
    }

    /// Frees pages that nothing needs.
    pub(crate) fn release(&self, pages: &[PageNo]) {
        self.release_each(pages.iter().copied());
    }

    pub(super) fn release_each(&self, pages: impl Iterator<Item = PageNo> + Clone) {
        // First, while nobody else can get them.
        for page in pages.clone() {
            self.pages.pool.forget(self.pages.tag(page));
        }
        self.space.lock().free(pages);
    }

    /// Makes the present version durable. Cost: two syncs, and the map's pages that changed.
    pub(crate) fn commit(&self) -> Result<()> {
        let mut committed = self.committed.lock();
        self.writable()?;
        let (version, bits, end) = {
            let mut space = self.space.lock();
            if !space.changed {
                return Ok(());
            }
            let bits = space.begin_commit();
            (self.version.load_full(), bits, space.end())
        };
        let (stored, taken) = self.write_map(&committed, &bits, end);
        let prepared = stored.and_then(|map| self.prepare(&mut committed).map(|()| map));
        let map = match prepared {
            Ok(map) => map,
            Err(error) => {
                let free = self.space.lock().abort_commit(None);
                self.release_each(free.pages());
                self.release(&taken);
                return Err(error);
            }
        };
        let superblock = Superblock {
            version: superblock::VERSION,
            generation: committed.tried + 1,
            root: version.root.page,
            height: version.root.height,
            entries: version.entries,
            // The pages of the map, too, lie before it.
            end: self.space.lock().end(),
            map: map.first(),
            ..committed.superblock
        };
        drop(version);
        let file = &*self.pages.file.storage;
        // From here on pages of this generation may be named by a superblock.
        committed.tried = superblock.generation;
        self.pages.file.set_committed(superblock.generation);
        if let Err(error) = superblock.write(file, 0) {
            let free = self.space.lock().abort_commit(Some(&taken));
            self.release_each(free.pages());
            return Err(error);
        }
        file.sync().map_err(|error| self.poisoned(&error))?;
        // It is durable; the second copy can follow later.
        let stale = superblock.write(file, 1).is_err();
        let gone = committed.map.without(&map);
        *committed = Committed {
            stale,
            ..Committed::new(superblock, map)
        };
        let free = self.space.lock().end_commit();
        self.release_each(free.pages());
        self.release(&gone);
        Ok(())
    }

    /// Writes the map of a commit; returns also the pages that were taken for it.
    fn write_map(
        &self,
        committed: &Committed,
        bits: &Bits,
        end: PageNo,
    ) -> (Result<StoredMap>, Vec<PageNo>) {
        let mut output = Output::new(self);
        let (before, movable) = {
            let space = self.space.lock();
            (space.committed().clone(), space.wanted_end())
        };
        let movable = movable.unwrap_or(PageNo::MAX);
        let page_bytes = self.pages.file.page_bytes;
        let mut add = |fill: &mut dyn FnMut(&mut [u8])| output.add(fill);
        let stored = committed
            .map
            .write(page_bytes, &mut add, &before, bits, end, movable);
        let stored = stored.and_then(|map| output.flush().map(|()| map));
        (stored, std::mem::take(&mut output.taken))
    }

    /// Makes the pages durable, and with them the second copy, which is the one that counts while
    /// the first one is written.
    fn prepare(&self, committed: &mut Committed) -> Result<()> {
        let file = &*self.pages.file.storage;
        if committed.stale {
            committed.superblock.write(file, 1)?;
            committed.stale = false;
        }
        file.sync().map_err(|error| self.poisoned(&error))
    }

    fn poisoned(&self, error: &Error) -> Error {
        self.poison.set(error)
    }
}
