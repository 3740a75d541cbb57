//! Writing a run: one pass over the tree from left to right, on pages of its own.
//!
//! The pass holds the path to the present leaf open: decoded, with what was made of its children so
//! far. Entries are merged into the leaf. When the run is behind the leaf's end, the leaf becomes
//! new pages (none, one, or as many as it needs), and its parent gets them in place of the old one
//! (`path.rs`). A page that would be less than a third full takes its right neighbour in, or joins
//! its left one. So each page that the run touches is read and written once, whatever number of
//! entries falls into it.
//!
//! I4: pages of the tree are never written to. Readers go on in the old version until the new root
//! is published, and a run that fails leaves nothing but pages to be freed.
//! Threads: one (the caller holds the lock of writers).

use super::path::{Closed, Open, Path, before, fill_before};
use crate::y::page::PageSource;
use crate::y::page::{
    PageNo,
    build::{Bound, Child, Content, Entry},
    filling::{Fill, filled_bytes, next_page, raw_bytes},
    leaf_builder,
};
use crate::{
    error::{Error, Result},
    limits::{MAX_KEY_BYTES, MAX_VALUE_BYTES},
    y::paged::{file::page_set::PageSet, tree::PagedY, version::Version},
};
use std::{cmp::Ordering, vec::IntoIter};

/// A leaf in memory above so many pages puts out its first ones.
const STREAM_PAGES: usize = 4;

/// The leaf that the run is in.
pub(super) struct OpenLeaf {
    pub(super) unchanged: Option<PageNo>,
    pub(super) from: Bound,
    pub(super) to: Option<Vec<u8>>,
    /// Old entries that the run has not come to.
    pub(super) rest: std::iter::Peekable<IntoIter<Entry>>,
    pub(super) made: Vec<Entry>,
    /// Bytes of `made`, at most.
    pub(super) bytes: usize,
    /// The pages are worth a frame: the leaf was in one.
    pub(super) warm: bool,
}

/// See the module header.
pub(crate) struct Run<'y> {
    pub(super) path: Path<'y>,
    pub(super) base: &'y Version,
    started: bool,
    pub(super) leaf: Option<OpenLeaf>,
    pub(super) entries: u64,
    /// Where the next leaf that is taken in whole begins (`graft.rs`).
    pub(super) grafted_to: Vec<u8>,
}

impl<'y> Run<'y> {
    pub(crate) fn new(y: &'y PagedY, base: &'y Version) -> Self {
        Self {
            path: Path::new(y, base.root.height),
            base,
            started: false,
            leaf: None,
            entries: base.entries,
            grafted_to: Vec::new(),
        }
    }

    /// Every page that the run took, and those that the new version does not have: of the old one,
    /// or made by this run in vain.
    pub(crate) fn into_pages(self) -> (Vec<PageNo>, PageSet) {
        let pages = self.path.pages;
        (pages.output.taken, pages.removed)
    }

    /// Applies one entry; keys ascend.
    pub(crate) fn push(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        if key.len() > MAX_KEY_BYTES {
            return Err(Error::KeyTooLong {
                len: key.len(),
                limit: MAX_KEY_BYTES,
            });
        }
        if let Some(len) = value.map(<[u8]>::len).filter(|l| *l > MAX_VALUE_BYTES) {
            return Err(Error::ValueTooLong {
                len,
                limit: MAX_VALUE_BYTES,
            });
        }
        self.go_to(key)?;
        self.apply(key, value)
    }

    /// Removes every entry of `[from, to)`, behind all that was done before. Cost: a read of each
    /// leaf of the range.
    pub(crate) fn remove_range(&mut self, from: &[u8], to: Option<&[u8]>) -> Result<()> {
        if self.base.root.page == 0 || to.is_some_and(|to| to <= from) {
            return Ok(());
        }
        let mut at = from.to_vec();
        loop {
            self.go_to(&at)?;
            let end = self.remove_from_leaf(from, to)?;
            match end {
                Some(next) if before(&next, to) => at = next,
                _ => return Ok(()),
            }
        }
    }

    /// Removes the entries of `[from, to)` from the open leaf; returns where the leaf ends.
    fn remove_from_leaf(&mut self, from: &[u8], to: Option<&[u8]>) -> Result<Option<Vec<u8>>> {
        let output = &self.path.pages.output;
        let fetch = |far| output.fetch(far);
        let Some(leaf) = &mut self.leaf else {
            return Err(self.path.pages.y.pages.file.senseless(self.base.root.page));
        };
        let mut gone = Vec::new();
        while let Some(entry) = leaf.rest.peek() {
            if let Some(to) = to
                && entry.key.compare(to, &fetch)? != Ordering::Less
            {
                break;
            }
            let stays = entry.key.compare(from, &fetch)? == Ordering::Less;
            let Some(entry) = leaf.rest.next() else { break };
            match stays {
                true => leaf.add(entry),
                false => gone.push(entry),
            }
        }
        if !gone.is_empty() {
            let replaced = leaf.unchanged.take();
            self.path.pages.removed.extend(replaced);
        }
        let end = leaf.to.clone();
        self.entries = self.entries.saturating_sub(gone.len() as u64);
        for entry in gone {
            if let Content::Far(far) = entry.value {
                self.path.pages.remove_far(far)?;
            }
            if let Some(far) = entry.key.far {
                self.path.pages.remove_far(far)?;
            }
        }
        Ok(end)
    }

    /// Closes everything; returns the new version, or `None` if nothing changed. All its pages are
    /// with the system then.
    pub(crate) fn finish(&mut self) -> Result<Option<Version>> {
        if !self.started {
            return Ok(None);
        }
        while self.leaf.is_some() {
            self.close_leaf(None)?;
        }
        while !self.path.open.is_empty() {
            self.path.close_inner(None)?;
        }
        let root = self.path.make_root()?;
        self.path.pages.output.flush()?;
        if root == self.base.root.page {
            return Ok(None);
        }
        Ok(Some(Version::new(root, self.path.height, self.entries)))
    }

    /// Makes the leaf of `key` the open one.
    pub(super) fn go_to(&mut self, key: &[u8]) -> Result<()> {
        while let Some(leaf) = &self.leaf {
            if before(key, leaf.to.as_deref()) {
                return Ok(());
            }
            self.close_leaf(Some(key))?;
        }
        if !self.started {
            self.started = true;
            return self.open_root(key);
        }
        while let Some(open) = self.path.open.last() {
            if before(key, open.to.as_deref()) {
                return self.descend(key);
            }
            self.path.close_inner(Some(key))?;
        }
        Err(self.path.pages.y.pages.file.senseless(self.base.root.page))
    }

    fn open_root(&mut self, key: &[u8]) -> Result<()> {
        if self.base.root.page == 0 {
            self.leaf = Some(OpenLeaf {
                unchanged: None,
                from: Bound::default(),
                to: None,
                rest: Vec::new().into_iter().peekable(),
                made: Vec::new(),
                bytes: 0,
                warm: true,
            });
            self.path.height = 1;
            return Ok(());
        }
        let root = Child {
            from: Bound::default(),
            page: self.base.root.page,
        };
        self.open(root, self.base.root.height.saturating_sub(1), None)?;
        self.descend(key)
    }

    /// Opens pages from the last of the path down to the leaf of `key`.
    fn descend(&mut self, key: &[u8]) -> Result<()> {
        let y = self.path.pages.y;
        while self.leaf.is_none() {
            let output = &self.path.pages.output;
            let Some(open) = self.path.open.last_mut() else {
                return Err(y.pages.file.senseless(self.base.root.page));
            };
            // The first one left may begin behind the key: its left neighbours are gone, and it
            // takes their place.
            let Some(mut child) = open.rest.next() else {
                return Err(y.pages.file.senseless(self.base.root.page));
            };
            let mut to = open.to.clone();
            while let Some(next) = open.rest.as_slice().first() {
                if next.from.compare(key, &|far| output.fetch(far))? == Ordering::Greater {
                    to = Some(next.from.whole(&|far| output.fetch(far))?);
                    break;
                }
                open.made.push(child);
                match open.rest.next() {
                    Some(next) => child = next,
                    None => return Err(y.pages.file.senseless(self.base.root.page)),
                }
            }
            let level = open.level - 1;
            self.open(child, level, to)?;
        }
        Ok(())
    }

    fn open(&mut self, child: Child, level: u8, to: Option<Vec<u8>>) -> Result<()> {
        let mut unchanged = Some(child.page);
        if level > 0 {
            let children = self.path.pages.children_of(&child, level)?;
            if self.path.pages.moves_page(child.page) {
                self.path.pages.removed.extend(unchanged.take());
            }
            self.path.open.push(Open {
                level,
                unchanged,
                rest: children.into_iter(),
                to,
                made: Vec::new(),
            });
        } else {
            let warm = self
                .path
                .pages
                .y
                .pages
                .pool
                .contains(self.path.pages.y.pages.tag(child.page));
            let entries = self.path.pages.entries_of(child.page)?;
            self.leaf = Some(OpenLeaf {
                unchanged,
                from: child.from,
                to,
                made: Vec::with_capacity(entries.len()),
                rest: entries.into_iter().peekable(),
                bytes: 0,
                warm,
            });
        }
        Ok(())
    }

    /// Merges one entry of the run into the open leaf.
    fn apply(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        let output = &self.path.pages.output;
        let Some(leaf) = &mut self.leaf else {
            return Err(self.path.pages.y.pages.file.senseless(self.base.root.page));
        };
        let mut old = None;
        while let Some(entry) = leaf.rest.peek() {
            match entry.key.compare(key, &|far| output.fetch(far))? {
                Ordering::Greater => break,
                Ordering::Less => {
                    if let Some(entry) = leaf.rest.next() {
                        leaf.add(entry);
                    }
                }
                Ordering::Equal => {
                    old = leaf.rest.next();
                    break;
                }
            }
        }
        if old.is_none() && value.is_none() {
            return Ok(());
        }
        let gone = leaf.unchanged.take();
        self.path.pages.removed.extend(gone);
        let old_key = old.as_ref().map(|e| e.key.clone());
        if let Some(old) = old {
            self.entries = self.entries.saturating_sub(1);
            if let Content::Far(far) = old.value {
                self.path.pages.remove_far(far)?;
            }
        }
        match (value, old_key) {
            (None, Some(Bound { far: Some(far), .. })) => self.path.pages.remove_far(far),
            (None, _) => Ok(()),
            (Some(value), old_key) => {
                let key = match old_key {
                    Some(key) => key,
                    None => self.path.pages.bound(key)?,
                };
                let value = self.path.pages.content(&key, value)?;
                self.entries += 1;
                self.made(Entry { key, value })
            }
        }
    }

    /// Adds an entry to the open leaf, which puts out pages when it is far too large.
    fn made(&mut self, entry: Entry) -> Result<()> {
        let limit = STREAM_PAGES * self.path.pages.y.pages.file.page_bytes;
        let Some(leaf) = &mut self.leaf else {
            return Ok(());
        };
        leaf.add(entry);
        if leaf.bytes <= limit {
            return Ok(());
        }
        let mut entries = std::mem::take(&mut leaf.made);
        let (mut from, warm) = (std::mem::take(&mut leaf.from), leaf.warm);
        // The last two pages' worth stays: its end is not known yet.
        while filled_bytes(&entries) > 2 * self.path.pages.y.pages.file.page_bytes {
            from = self.put_leaf(&mut entries, from, warm, Fill::Full)?;
        }
        if let Some(leaf) = &mut self.leaf {
            leaf.bytes = filled_bytes(&entries);
            leaf.made = entries;
            leaf.from = from;
        }
        Ok(())
    }

    /// Closes the open leaf, whose end the run is behind; `next` is where the run goes on.
    fn close_leaf(&mut self, next: Option<&[u8]>) -> Result<Closed> {
        let Some(mut leaf) = self.leaf.take() else {
            return Ok(Closed::Yes);
        };
        if let Some(page) = leaf.unchanged {
            let child = Child {
                from: leaf.from,
                page,
            };
            self.path.put_up(child, false);
            return Ok(Closed::Yes);
        }
        while let Some(entry) = leaf.rest.next() {
            leaf.add(entry);
        }
        if leaf.made.is_empty() {
            self.path.mark_changed();
            self.path.pages.remove_bound(&leaf.from)?;
            return Ok(Closed::Yes);
        }
        let bytes = filled_bytes(&leaf.made);
        let moves = self.path.pages.moves;
        let dense = moves.filter(|moves| moves.joins(bytes, self.path.pages.capacity()));
        let carry = bytes > self.path.pages.capacity() && self.path.right_is_next(next)?;
        if carry {
            // The right neighbour is about to be changed: full pages instead of halves, and it
            // takes what is left.
            while filled_bytes(&leaf.made) > self.path.pages.capacity() {
                leaf.from = self.put_leaf(&mut leaf.made, leaf.from, leaf.warm, Fill::Most)?;
            }
        }
        let small = self.path.pages.is_small(bytes);
        if carry || small || dense.is_some() {
            if let Some((right, to)) = self.path.right_neighbour(&leaf.to)? {
                self.leaf = Some(self.with_right(leaf, &right, to)?);
                return Ok(Closed::Grew);
            }
            let left = match carry || small {
                true => self.path.left_neighbour(),
                false => None,
            };
            if let Some(left) = left {
                let mut entries = self.path.pages.entries_of(left.page)?;
                self.path.pages.removed.push(left.page);
                self.path.pages.remove_bound(&leaf.from)?;
                entries.append(&mut leaf.made);
                leaf.made = entries;
                leaf.from = left.from;
            }
        }
        let fill = match self.path.pages.moves {
            Some(_) => Fill::Full,
            None => fill_before(leaf.to.as_deref()),
        };
        let OpenLeaf {
            mut made,
            mut from,
            warm,
            ..
        } = leaf;
        while !made.is_empty() {
            from = self.put_leaf(&mut made, from, warm, fill)?;
        }
        Ok(Closed::Yes)
    }

    /// `leaf`, which goes on with the entries of `right`, up to `to`.
    fn with_right(
        &mut self,
        mut leaf: OpenLeaf,
        right: &Child,
        to: Option<Vec<u8>>,
    ) -> Result<OpenLeaf> {
        let pages = &mut self.path.pages;
        leaf.warm = pages.y.pages.pool.contains(pages.y.pages.tag(right.page));
        let entries = pages.entries_of(right.page)?;
        pages.removed.push(right.page);
        pages.remove_bound(&right.from)?;
        leaf.bytes = leaf.made.iter().map(raw_bytes).sum();
        leaf.rest = entries.into_iter().peekable();
        leaf.to = to;
        Ok(leaf)
    }

    /// Puts out one page of the first of `entries`; returns where the next one begins.
    pub(super) fn put_leaf(
        &mut self,
        entries: &mut Vec<Entry>,
        from: Bound,
        warm: bool,
        fill: Fill,
    ) -> Result<Bound> {
        let count = next_page(entries, self.path.pages.y.pages.file.page_bytes, fill);
        let behind = match entries.get(count) {
            Some(next) => {
                let next = next.key.clone();
                self.path
                    .pages
                    .separator(entries.get(count - 1).map(|e| e.key.clone()), &next)?
            }
            None => Bound::default(),
        };
        let rest = entries.split_off(count.min(entries.len()));
        let page = self
            .path
            .pages
            .output
            .add(|page| leaf_builder::leaf(page, entries))?;
        if warm {
            self.path.pages.y.pages.pool.insert(
                self.path.pages.y.pages.tag(page),
                self.path.pages.output.last(),
            );
        }
        *entries = rest;
        self.path.put_up(Child { from, page }, true);
        Ok(behind)
    }
}

impl OpenLeaf {
    pub(super) fn add(&mut self, entry: Entry) {
        self.bytes += raw_bytes(&entry);
        self.made.push(entry);
    }
}
