//! Sorted entries past runs: leaves that nobody knows of until a run takes them into the tree.
//!
//! Entries become full leaves of the file. The leaves' separators are put aside in inner pages. To
//! publish, a run goes through these and takes each leaf in as it stands (`graft.rs`): it reads and
//! writes inner pages, no leaves.
//!
//! I7: what grows with the load, a bit for each page of the file and the numbers of the pages that
//! were put aside, is in `load_bytes` of the tree.
//!
//! No version and no superblock names these pages, so a crash leaves them free, and a load that is
//! dropped frees them.
//! Threads: a load belongs to one; it takes no lock but that of the free pages before it is
//! published. Beside it runs and commits go on.

use super::{pages::Pages, run::Run};
use crate::{
    error::{Error, Result},
    key::successor,
    y::{
        contract::SortedLoad,
        page::{
            PageNo,
            build::{self, Bound, Child},
            filling::{Fill, common_prefix, next_page, raw_bytes},
            leaf_builder::LeafBuilder,
            node::{Far, ValueAt, max_near},
        },
        paged::{file::bits::Bits, tree::PagedY},
    },
};
use std::sync::atomic::Ordering::Relaxed;

/// Separators of so many pages wait before one page of them is put aside.
const WAITING_PAGES: usize = 3;

/// See the module header.
pub(crate) struct Load<'y> {
    pages: Pages<'y>,
    leaf: LeafBuilder,
    /// Where `leaf` begins.
    from: Bound,
    /// Leaves whose separators are not put aside.
    children: Vec<Child>,
    children_bytes: usize,
    /// Pages of separators. The first child of each stands for no leaf: a page has no separator of
    /// its first child.
    aside: Vec<PageNo>,
    /// Leaves and extents, but for those that are in the list of `pages`.
    taken: Bits,
    /// What `load_bytes` of the tree has of this load.
    counted: usize,
    first: Vec<u8>,
    last: Vec<u8>,
    entries: u64,
}

impl<'y> Load<'y> {
    pub(crate) fn begin(y: &'y PagedY) -> Result<Self> {
        // First, so that whoever releases or cuts the file sees it or is waited for here.
        y.loads.fetch_add(1, Relaxed);
        let load = Self {
            pages: Pages::new(y),
            leaf: LeafBuilder::new(y.pages.file.page_bytes),
            from: Bound::default(),
            children: Vec::new(),
            children_bytes: 0,
            aside: Vec::new(),
            taken: Bits::default(),
            counted: 0,
            first: Vec::new(),
            last: Vec::new(),
            entries: 0,
        };
        let _no_release_or_cut = y.writing.lock();
        y.writable().map(|()| load)
    }

    fn end_leaf(&mut self) -> Result<()> {
        let leaf = &mut self.leaf;
        let page = self.pages.output.add(|page| leaf.finish(page))?;
        let from = std::mem::take(&mut self.from);
        let child = Child { from, page };
        self.children_bytes += raw_bytes(&child);
        self.children.push(child);
        let most = WAITING_PAGES * self.pages.y.pages.file.page_bytes;
        if self.children_bytes > most {
            self.put_aside()?;
        }
        Ok(())
    }

    /// Puts the first of the waiting separators into a page.
    fn put_aside(&mut self) -> Result<()> {
        self.note_taken();
        let size = self.pages.y.pages.file.page_bytes;
        // Not all that fits: there is one reference more.
        let count = next_page(&self.children, size, Fill::Most);
        let rest = self.children.split_off(count.min(self.children.len()));
        let mut children = std::mem::replace(&mut self.children, rest);
        self.children_bytes = self.children.iter().map(raw_bytes).sum();
        let nobody = Child {
            from: Bound::default(),
            page: children.first().map_or(0, |child| child.page),
        };
        children.insert(0, nobody);
        let page = self
            .pages
            .output
            .add(|page| build::inner(page, 1, &children))?;
        // No part of the tree: it goes when the leaves have their place.
        self.pages.output.taken.clear();
        self.aside.push(page);
        Ok(())
    }

    /// Notes what was taken so far, which the output holds at eight bytes a page.
    fn note_taken(&mut self) {
        if self.pages.output.taken.is_empty() {
            return;
        }
        for page in self.pages.output.taken.drain(..) {
            self.taken.set(page, true);
        }
        let bytes = self.taken.bytes() + self.aside.capacity() * size_of::<PageNo>();
        if bytes != self.counted {
            let all = &self.pages.y.load_bytes;
            all.fetch_add(bytes, Relaxed);
            all.fetch_sub(self.counted, Relaxed);
            self.counted = bytes;
        }
    }

    /// What the load holds for each page that it took: pages in a list, and counted bytes.
    #[cfg(test)]
    pub(crate) fn held(&self) -> (usize, usize) {
        (self.pages.output.taken.len(), self.counted)
    }

    /// Has a run take the leaves in; the caller publishes what it makes.
    fn graft(&mut self, run: &mut Run<'_>) -> Result<()> {
        let end = successor(&self.last);
        run.begin_graft(&self.first, self.entries);
        // Each leaf with where the next one begins.
        let mut waiting: Option<Child> = None;
        for i in 0..=self.aside.len() {
            let (children, nobody) = match self.aside.get(i) {
                Some(&page) => {
                    let from = Bound::default();
                    (self.pages.children_of(&Child { from, page }, 1)?, 1)
                }
                None => (std::mem::take(&mut self.children), 0),
            };
            for child in children.into_iter().skip(nobody) {
                let begins = child.from.whole(&|far| self.pages.output.fetch(far))?;
                if let Some(leaf) = waiting.replace(child) {
                    run.graft(leaf, &begins, true)?;
                }
            }
        }
        waiting.map_or(Ok(()), |leaf| run.graft(leaf, &end, false))
    }
}

impl SortedLoad for Load<'_> {
    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if self.entries > 0 && *key <= *self.last {
            let what = "a load whose keys do not ascend".into();
            return Err(Error::Unsupported { what });
        }
        let size = self.pages.y.pages.file.page_bytes;
        let stub = Bound::stub_of(key, size);
        let far_key: Option<Far> = match stub.len() < key.len() {
            true => Some(self.pages.output.add_extent(key)?),
            false => None,
        };
        let value = match stub.len() + value.len() <= max_near(size) {
            true => ValueAt::Near(value),
            false => ValueAt::Far(self.pages.output.add_extent(value)?),
        };
        if self.entries == 0 {
            self.first.extend_from_slice(key);
            self.from = self.pages.bound(key)?;
        }
        if !self.leaf.add(stub, far_key, value) {
            self.end_leaf()?;
            // One byte more than what the last key before shares with `key`, which is greater.
            let separator = key.get(..common_prefix(&self.last, key) + 1);
            self.from = self.pages.bound(separator.unwrap_or(key))?;
            let added = self.leaf.add(stub, far_key, value);
            debug_assert!(added, "an empty leaf has room for any entry");
        }
        self.entries += 1;
        self.last.clear();
        self.last.extend_from_slice(key);
        self.note_taken();
        Ok(())
    }

    fn seal(&mut self) -> Result<()> {
        if !self.leaf.is_empty() {
            self.end_leaf()?;
        }
        self.pages.output.flush()?;
        self.note_taken();
        let y = self.pages.y;
        // The system tells one sync alone of what was lost, pages of runs too: a commit would take
        // its own one for good.
        let _no_commit = y.committed.lock();
        y.writable()?;
        let synced = y.pages.file.storage.sync();
        synced.map_err(|error| y.poison.set(&error))
    }

    fn publish(mut self: Box<Self>) -> Result<()> {
        let y = self.pages.y;
        let _one_writer = y.writing.lock();
        y.writable()?;
        if self.entries == 0 {
            return Ok(());
        }
        let base = y.version.load_full();
        let mut run = Run::new(y, &base);
        let outcome = self.graft(&mut run).and_then(|()| run.finish());
        let (taken, removed) = run.into_pages();
        match outcome {
            Ok(Some(next)) => {
                let loaded = std::mem::take(&mut self.taken);
                let added = loaded.pages().chain(taken);
                y.publish(base, next, added, &removed);
            }
            Ok(None) => y.release(&taken),
            Err(error) => {
                y.release(&taken);
                return Err(error);
            }
        }
        y.commit()
    }
}

impl Drop for Load<'_> {
    fn drop(&mut self) {
        // What no version has is free at once.
        self.note_taken();
        let y = self.pages.y;
        y.release_each(self.taken.pages());
        y.release(&self.aside);
        y.load_bytes.fetch_sub(self.counted, Relaxed);
        y.loads.fetch_sub(1, Relaxed);
    }
}
