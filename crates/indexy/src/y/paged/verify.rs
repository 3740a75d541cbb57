//! Checking everything: each page of the newest version, the order of all keys, extents, the map of
//! used pages, and what the next open starts from: both copies of the superblock and the stored
//! map.

use super::{
    file::{bits::Bits, extent, map::StoredMap, superblock::Superblock},
    tree::PagedY,
    version::Version,
};
use crate::y::page::PageSource;
use crate::y::page::{
    PageNo,
    build::{self, Bound},
    leaf_entries::LeafEntries,
    node::{Far, Node, ValueAt},
};
use crate::{
    error::{Error, Result},
    mem::aligned::AlignedBuffer,
    y::tolerant::Tolerant,
};
use std::cmp::Ordering;

/// What was seen so far.
struct Walk<'y> {
    y: &'y PagedY,
    pages: Bits,
    entries: u64,
    last: Option<Vec<u8>>,
}

impl PagedY {
    /// Reads every page of the newest version from the device; returns the number of entries.
    pub(crate) fn verify_all(&self) -> Result<u64> {
        let (version, used) = {
            let space = self.space.lock();
            (self.version.load_full(), space.current().clone())
        };
        let mut walk = Walk {
            y: self,
            pages: Bits::default(),
            entries: 0,
            last: None,
        };
        walk.tree(&version)?;
        if walk.entries != version.entries {
            let what = format!(
                "{} entries found, {} counted",
                walk.entries, version.entries
            );
            return Err(self.pages.file.corrupt(version.root.page, &what));
        }
        let lost = used.pages().find(|page| !walk.pages.get(*page));
        let unmarked = walk.pages.pages().find(|page| !used.get(*page));
        if let Some(page) = lost.or(unmarked) {
            let what = "the tree and the map of used pages differ";
            return Err(self.pages.file.corrupt(page, what));
        }
        self.verify_durable()?;
        Ok(walk.entries)
    }

    /// Tells `found` of every damaged page and extent of the newest version; of what is under a
    /// damaged inner page, of that page alone. Then of what the next open starts from.
    pub(crate) fn find_damage(&self, found: &mut dyn FnMut(Error)) {
        let version = self.version.load_full();
        let (root, height) = (version.root.page, version.root.height);
        let tree = Tolerant::new(&self.pages.file, root, height, &[], None);
        tree.holes().for_each(|hole| found(hole.error));
        drop(version);
        if let Err(error) = self.verify_durable() {
            found(error);
        }
    }

    /// Reads what the next open will. Free pages are all that nobody looks at.
    fn verify_durable(&self) -> Result<()> {
        // Held: no commit changes it meanwhile.
        let committed = self.committed.lock();
        if committed.doubtful() || self.poison.check().is_err() {
            // After a commit that failed either copy may be anything, as its caller was told.
            return Ok(());
        }
        let found = Superblock::copies(&*self.pages.file.storage)?;
        // The other one is older after a crash in a commit, in a tree that was opened to be read
        // only.
        let mut newest = false;
        for copy in found {
            newest |= copy? == committed.superblock;
        }
        if !newest {
            let what = "superblock: not the one that was written".to_string();
            return Err(Error::corrupt(self.pages.file.path(), 0, what));
        }
        let superblock = &committed.superblock;
        let (map, bits) = StoredMap::load(&self.pages.file, superblock.map, superblock.end)?;
        if map != committed.map || !bits.pages().eq(self.space.lock().committed().pages()) {
            let what = "the stored map is not the one that was written";
            return Err(self.pages.file.corrupt(superblock.map, what));
        }
        Ok(())
    }
}

impl Walk<'_> {
    fn tree(&mut self, version: &Version) -> Result<()> {
        if version.root.page == 0 {
            return Ok(());
        }
        let level = version.root.height.saturating_sub(1);
        self.node(version.root.page, level, &Bound::default(), None)
    }

    /// Everything under `page` lies in `[from, to)`.
    fn node(&mut self, page: PageNo, level: u8, from: &Bound, to: Option<&Bound>) -> Result<()> {
        self.mark(page)?;
        let mut bytes = AlignedBuffer::new(self.y.pages.file.page_bytes);
        self.y.pages.file.read(page, &mut bytes)?;
        let node = Node::of_page(&bytes)
            .filter(|n| n.level == level)
            .ok_or_else(|| self.y.pages.file.senseless(page))?;
        if node.is_leaf() {
            return self.leaf(page, &node, from, to);
        }
        let children = build::children(&node, from.clone());
        let children = children.ok_or_else(|| self.y.pages.file.senseless(page))?;
        for (i, child) in children.iter().enumerate() {
            if i > 0 {
                self.far(child.from.far)?;
            }
            let end = children.get(i + 1).map(|next| &next.from).or(to);
            self.node(child.page, level - 1, &child.from, end)?;
        }
        Ok(())
    }

    fn leaf(
        &mut self,
        page: PageNo,
        node: &Node<'_>,
        from: &Bound,
        to: Option<&Bound>,
    ) -> Result<()> {
        let fetch = |far| self.y.pages.file.fetch(far);
        let senseless = || self.y.pages.file.senseless(page);
        let mut entries = LeafEntries::default();
        entries.read(node).ok_or_else(senseless)?;
        for i in 0..entries.len() {
            let entry = entries.get(i, node.bytes()).ok_or_else(senseless)?;
            let key = match entry.far_key {
                Some(far) => fetch(far)?,
                None => entry.stub.to_vec(),
            };
            let before = from.compare(&key, &fetch)? == Ordering::Greater;
            let behind = match to {
                Some(to) => to.compare(&key, &fetch)? != Ordering::Greater,
                None => false,
            };
            if before || behind || self.last.as_ref().is_some_and(|last| *last >= key) {
                return Err(self.y.pages.file.corrupt(page, "keys are out of order"));
            }
            self.last = Some(key);
            self.far(entry.far_key)?;
            match entry.value {
                ValueAt::Near(_) => {}
                ValueAt::Far(far) => self.far(Some(far))?,
                ValueAt::Deleted => {
                    return Err(self.y.pages.file.corrupt(page, "it holds a delete"));
                }
            }
            self.entries += 1;
        }
        Ok(())
    }

    /// A key or value that does not lie near.
    fn far(&mut self, far: Option<Far>) -> Result<()> {
        let Some(far) = far else { return Ok(()) };
        let mut pages = Vec::new();
        extent::check(&self.y.pages.file, far, |page| pages.push(page))?;
        pages.into_iter().try_for_each(|page| self.mark(page))
    }

    fn mark(&mut self, page: PageNo) -> Result<()> {
        if self.pages.set(page, true) {
            return Err(self.twice(page));
        }
        Ok(())
    }

    fn twice(&self, page: PageNo) -> Error {
        self.y.pages.file.corrupt(page, "the page is used twice")
    }
}
