//! Writing a run: one pass over the tree from left to right, on pages of its own.
//!
//! The pass holds the path to the present leaf open: decoded, with what was made of its children so far. Entries are
//! merged into the leaf; when the run is behind the leaf's end, the leaf becomes new pages (none, one, or as many
//! as it needs), its parent gets them in place of the old one, and so on upwards. A leaf or inner page that would be
//! less than a third full takes its right neighbour in, or joins its left one. So each page that the run touches
//! is read and written once, whatever number of entries falls into it.
//!
//! Pages of the tree are never written to: readers go on in the old version until the new root is published, and a run
//! that fails leaves nothing but pages to be freed (I4).
//! A chain belongs to the one entry or child that names it and goes when that goes.
//! Threads: one (the caller holds the lock of writers).

use super::{
    PagedY,
    build::{self, Bound, Child, Content, Entry, Fill, Filling, filled_bytes, next_page},
    node::{Far, Node, max_near},
    output::Output,
    overflow,
    page::PageNo,
    version::Version,
};
use crate::{
    error::{Error, Result},
    key::{Key, Value},
    limits::{MAX_KEY_BYTES, MAX_VALUE_BYTES},
    mem::aligned::AlignedBuffer,
};
use std::{cmp::Ordering, vec::IntoIter};

/// A page below one part in so many of its capacity is joined with a neighbour.
const JOIN_PART: usize = 3;
/// A leaf in memory above so many pages puts out its first ones.
const STREAM_PAGES: usize = 4;

/// An inner page of the open path.
struct Open {
    level: u8,
    /// The page, as long as nothing under it changed.
    unchanged: Option<PageNo>,
    /// Old children that the run has not come to.
    rest: IntoIter<Child>,
    /// Where the page ends; `None`: nowhere.
    to: Option<Vec<u8>>,
    /// What it consists of so far.
    made: Vec<Child>,
}

/// The leaf that the run is in.
struct OpenLeaf {
    unchanged: Option<PageNo>,
    from: Bound,
    to: Option<Vec<u8>>,
    /// Old entries that the run has not come to.
    rest: std::iter::Peekable<IntoIter<Entry>>,
    made: Vec<Entry>,
    /// Bytes of `made`, at most.
    bytes: usize,
    /// The pages are worth a frame: the leaf was in one.
    warm: bool,
}

/// What came of closing a page.
#[derive(PartialEq, Eq)]
enum Closed {
    Yes,
    /// It took its right neighbour in instead and is still open.
    Grew,
}

/// See the module header.
pub(super) struct Run<'y> {
    y: &'y PagedY,
    pub(super) output: Output<'y>,
    base: &'y Version,
    started: bool,
    /// From the root down.
    path: Vec<Open>,
    leaf: Option<OpenLeaf>,
    /// Where the pages of the topmost level go.
    top: Vec<Child>,
    /// Pages that the new version does not have: of the old one, or made by this run in vain.
    pub(super) removed: Vec<PageNo>,
    entries: u64,
    height: u8,
}

impl<'y> Run<'y> {
    pub(super) fn new(y: &'y PagedY, base: &'y Version) -> Self {
        Self {
            y,
            output: Output::new(y),
            base,
            started: false,
            path: Vec::new(),
            leaf: None,
            top: Vec::new(),
            removed: Vec::new(),
            entries: base.entries,
            height: base.height,
        }
    }

    /// Applies one entry; keys ascend.
    pub(super) fn push(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
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

    /// Closes everything; returns the new version, or `None` if nothing changed. All its pages are with the system then.
    pub(super) fn finish(&mut self) -> Result<Option<Version>> {
        if !self.started {
            return Ok(None);
        }
        while self.leaf.is_some() {
            self.close_leaf(None)?;
        }
        while !self.path.is_empty() {
            self.close_inner(None)?;
        }
        let root = self.make_root()?;
        self.output.flush()?;
        if root == self.base.root {
            return Ok(None);
        }
        Ok(Some(Version::new(root, self.height, self.entries)))
    }

    /// Makes the leaf of `key` the open one.
    fn go_to(&mut self, key: &[u8]) -> Result<()> {
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
        while let Some(open) = self.path.last() {
            if before(key, open.to.as_deref()) {
                return self.descend(key);
            }
            self.close_inner(Some(key))?;
        }
        Err(self.y.senseless(self.base.root))
    }

    fn open_root(&mut self, key: &[u8]) -> Result<()> {
        if self.base.root == 0 {
            self.leaf = Some(OpenLeaf {
                unchanged: None,
                from: Bound::default(),
                to: None,
                rest: Vec::new().into_iter().peekable(),
                made: Vec::new(),
                bytes: 0,
                warm: true,
            });
            self.height = 1;
            return Ok(());
        }
        let root = Child {
            from: Bound::default(),
            page: self.base.root,
        };
        self.open(root, self.base.height.saturating_sub(1), None)?;
        self.descend(key)
    }

    /// Opens pages from the last of the path down to the leaf of `key`.
    fn descend(&mut self, key: &[u8]) -> Result<()> {
        let y = self.y;
        while self.leaf.is_none() {
            let output = &self.output;
            let Some(open) = self.path.last_mut() else {
                return Err(y.senseless(self.base.root));
            };
            // The first one left may begin behind the key: its left neighbours are gone, and it takes their place.
            let Some(mut child) = open.rest.next() else {
                return Err(y.senseless(self.base.root));
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
                    None => return Err(y.senseless(self.base.root)),
                }
            }
            let level = open.level - 1;
            self.open(child, level, to)?;
        }
        Ok(())
    }

    fn open(&mut self, child: Child, level: u8, to: Option<Vec<u8>>) -> Result<()> {
        let unchanged = Some(child.page);
        if level > 0 {
            let children = self.children_of(&child, level)?;
            self.path.push(Open {
                level,
                unchanged,
                rest: children.into_iter(),
                to,
                made: Vec::new(),
            });
        } else {
            let warm = self.y.pool.contains(self.y.tag(child.page));
            let entries = self.entries_of(child.page)?;
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
        let output = &self.output;
        let Some(leaf) = &mut self.leaf else {
            return Err(self.y.senseless(self.base.root));
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
        self.removed.extend(gone);
        let old_key = old.as_ref().map(|e| e.key.clone());
        if let Some(old) = old {
            self.entries = self.entries.saturating_sub(1);
            if let Content::Far(far) = old.value {
                self.remove_chain(far)?;
            }
        }
        match (value, old_key) {
            (None, Some(Bound { far: Some(far), .. })) => self.remove_chain(far),
            (None, _) => Ok(()),
            (Some(value), old_key) => {
                let key = match old_key {
                    Some(key) => key,
                    None => self.bound(key)?,
                };
                let value = self.content(&key, value)?;
                self.entries += 1;
                self.made(Entry { key, value })
            }
        }
    }

    /// Adds an entry to the open leaf, which puts out pages when it is far too large.
    fn made(&mut self, entry: Entry) -> Result<()> {
        let limit = STREAM_PAGES * self.y.file.page_bytes;
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
        while filled_bytes(&entries) > 2 * self.y.file.page_bytes {
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
            self.put_up(child, false);
            return Ok(Closed::Yes);
        }
        while let Some(entry) = leaf.rest.next() {
            leaf.add(entry);
        }
        if leaf.made.is_empty() {
            self.mark_changed();
            self.remove_bound(&leaf.from)?;
            return Ok(Closed::Yes);
        }
        let bytes = filled_bytes(&leaf.made);
        let carry = bytes > self.capacity() && self.right_is_next(next)?;
        if carry {
            // The right neighbour is about to be changed: full pages instead of halves, and it takes what is left.
            while filled_bytes(&leaf.made) > self.capacity() {
                leaf.from = self.put_leaf(&mut leaf.made, leaf.from, leaf.warm, Fill::Most)?;
            }
        }
        if carry || self.is_small(bytes) {
            if let Some((right, to)) = self.right_neighbour(&leaf.to)? {
                leaf.warm = self.y.pool.contains(self.y.tag(right.page));
                let entries = self.entries_of(right.page)?;
                self.removed.push(right.page);
                self.remove_bound(&right.from)?;
                leaf.bytes = leaf.made.iter().map(raw_bytes).sum();
                leaf.rest = entries.into_iter().peekable();
                leaf.to = to;
                self.leaf = Some(leaf);
                return Ok(Closed::Grew);
            }
            if let Some(left) = self.left_neighbour() {
                let mut entries = self.entries_of(left.page)?;
                self.removed.push(left.page);
                self.remove_bound(&leaf.from)?;
                entries.append(&mut leaf.made);
                leaf.made = entries;
                leaf.from = left.from;
            }
        }
        let fill = fill_before(leaf.to.as_deref());
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

    /// Puts out one page of the first of `entries`; returns where the next one begins.
    fn put_leaf(
        &mut self,
        entries: &mut Vec<Entry>,
        from: Bound,
        warm: bool,
        fill: Fill,
    ) -> Result<Bound> {
        let count = next_page(entries, self.y.file.page_bytes, fill);
        let behind = match entries.get(count) {
            Some(next) => {
                let next = next.key.clone();
                self.separator(entries.get(count - 1).map(|e| e.key.clone()), &next)?
            }
            None => Bound::default(),
        };
        let rest = entries.split_off(count.min(entries.len()));
        let page = self.output.add(|page| build::leaf(page, entries))?;
        if warm {
            self.y.pool.insert(self.y.tag(page), self.output.last());
        }
        *entries = rest;
        self.put_up(Child { from, page }, true);
        Ok(behind)
    }

    /// Closes the last inner page of the path, whose end the run is behind; `next` is where the run goes on.
    fn close_inner(&mut self, next: Option<&[u8]>) -> Result<Closed> {
        let Some(mut open) = self.path.pop() else {
            return Ok(Closed::Yes);
        };
        open.made.extend(open.rest.by_ref());
        if let (Some(page), Some(first)) = (open.unchanged, open.made.first()) {
            let from = first.from.clone();
            self.put_up(Child { from, page }, false);
            return Ok(Closed::Yes);
        }
        self.removed.extend(open.unchanged.take());
        if open.made.is_empty() {
            self.mark_changed();
            return Ok(Closed::Yes);
        }
        let bytes = filled_bytes(&open.made);
        let carry = bytes > self.capacity() && self.right_is_next(next)?;
        if carry {
            while filled_bytes(&open.made) > self.capacity() {
                open.made = self.put_inner_page(open.made, open.level, Fill::Most)?;
            }
        }
        if carry || self.is_small(bytes) {
            if let Some((right, to)) = self.right_neighbour(&open.to)? {
                let children = self.children_of(&right, open.level)?;
                self.removed.push(right.page);
                open.rest = children.into_iter();
                open.to = to;
                self.path.push(open);
                return Ok(Closed::Grew);
            }
            if let Some(left) = self.left_neighbour() {
                let mut children = self.children_of(&left, open.level)?;
                self.removed.push(left.page);
                children.append(&mut open.made);
                open.made = children;
            }
        }
        let fill = fill_before(open.to.as_deref());
        self.put_inner(open.made, open.level, fill)?;
        Ok(Closed::Yes)
    }

    /// Puts out pages of `level` that consist of `children`.
    fn put_inner(&mut self, mut children: Vec<Child>, level: u8, fill: Fill) -> Result<()> {
        while !children.is_empty() {
            children = self.put_inner_page(children, level, fill)?;
        }
        Ok(())
    }

    /// Puts out one page of the first of `children`; returns the others.
    fn put_inner_page(
        &mut self,
        mut children: Vec<Child>,
        level: u8,
        fill: Fill,
    ) -> Result<Vec<Child>> {
        let mut count = next_page(&children, self.y.file.page_bytes, fill);
        // A single child makes no page: the one before leaves it company.
        if count + 1 == children.len() && count > 2 {
            count -= 1;
        }
        let rest = children.split_off(count.min(children.len()));
        let page = self
            .output
            .add(|page| build::inner(page, level, &children))?;
        self.y.pool.insert(self.y.tag(page), self.output.last());
        if let Some(first) = children.first_mut() {
            let from = std::mem::take(&mut first.from);
            self.put_up(Child { from, page }, true);
        }
        Ok(rest)
    }

    /// Gives a page to its parent.
    fn put_up(&mut self, child: Child, changed: bool) {
        if changed {
            self.mark_changed();
        }
        match self.path.last_mut() {
            Some(parent) => parent.made.push(child),
            None => self.top.push(child),
        }
    }

    /// The parent of what was closed is not what it was.
    fn mark_changed(&mut self) {
        if let Some(parent) = self.path.last_mut() {
            self.removed.extend(parent.unchanged.take());
        }
    }

    /// Makes one page of the topmost ones; returns it, 0 if there is none.
    fn make_root(&mut self) -> Result<PageNo> {
        while self.top.len() > 1 {
            let children = std::mem::take(&mut self.top);
            self.put_inner(children, self.height, Fill::Full)?;
            self.height += 1;
        }
        let Some(mut root) = self.top.pop() else {
            self.height = 0;
            return Ok(0);
        };
        while self.height > 1 {
            let only = {
                let mut children = self.children_of(&root, self.height - 1)?;
                if children.len() > 1 {
                    break;
                }
                children.pop()
            };
            let Some(only) = only else { break };
            self.removed.push(root.page);
            self.height -= 1;
            root = only;
        }
        self.remove_bound(&root.from)?;
        Ok(root.page)
    }

    fn capacity(&self) -> usize {
        build::capacity(self.y.file.page_bytes)
    }

    /// Whether a page of `bytes` should join a neighbour.
    fn is_small(&self, bytes: usize) -> bool {
        bytes < self.capacity() / JOIN_PART
    }

    /// Whether the run, which goes on at `next`, comes to the next child of the last page of the path.
    fn right_is_next(&self, next: Option<&[u8]>) -> Result<bool> {
        let output = &self.output;
        let (Some(parent), Some(next)) = (self.path.last(), next) else {
            return Ok(false);
        };
        match parent.rest.as_slice() {
            [] => Ok(false),
            [_] => Ok(before(next, parent.to.as_deref())),
            [_, behind, ..] => {
                let order = behind.from.compare(next, &|far| output.fetch(far))?;
                Ok(order == Ordering::Greater)
            }
        }
    }

    /// Takes the next child of the last page of the path, and where it ends.
    fn right_neighbour(
        &mut self,
        to: &Option<Vec<u8>>,
    ) -> Result<Option<(Child, Option<Vec<u8>>)>> {
        let output = &self.output;
        let Some(parent) = self.path.last_mut().filter(|_| to.is_some()) else {
            return Ok(None);
        };
        let Some(right) = parent.rest.next() else {
            return Ok(None);
        };
        let end = match parent.rest.as_slice().first() {
            Some(next) => Some(next.from.whole(&|far| output.fetch(far))?),
            None => parent.to.clone(),
        };
        self.mark_changed();
        Ok(Some((right, end)))
    }

    /// Takes back the last child that was given to the last page of the path.
    fn left_neighbour(&mut self) -> Option<Child> {
        self.path.last_mut()?.made.pop()
    }

    fn read(&self, number: PageNo) -> Result<AlignedBuffer> {
        let mut page = AlignedBuffer::new(self.y.file.page_bytes);
        let guard = self.y.pool.frames.enter();
        let tag = self.y.tag(number);
        if let Some((view, _)) = self.y.pool.find(&guard, tag, 0, false) {
            super::copy_frame(view, &mut page);
            return Ok(page);
        }
        drop(guard);
        self.output.read(number, &mut page)?;
        Ok(page)
    }

    fn entries_of(&self, page: PageNo) -> Result<Vec<Entry>> {
        let bytes = self.read(page)?;
        let node = Node::of_page(&bytes).filter(Node::is_leaf);
        let entries = node.and_then(|node| build::entries(&node));
        entries.ok_or_else(|| self.y.senseless(page))
    }

    fn children_of(&self, child: &Child, level: u8) -> Result<Vec<Child>> {
        let bytes = self.read(child.page)?;
        let node = Node::of_page(&bytes).filter(|n| n.level == level && level > 0);
        let children = node.and_then(|node| build::children(&node, child.from.clone()));
        children.ok_or_else(|| self.y.senseless(child.page))
    }

    /// The shortest key that is greater than `left` and not greater than `right`.
    fn separator(&mut self, left: Option<Bound>, right: &Bound) -> Result<Bound> {
        let output = &self.output;
        let left = match left {
            Some(left) => left.whole(&|far| output.fetch(far))?,
            None => Vec::new(),
        };
        let right = right.whole(&|far| output.fetch(far))?;
        let shortest = build::common_prefix(&left, &right) + 1;
        self.bound(right.get(..shortest).unwrap_or(&right))
    }

    /// `key` as a page holds it, its chain written if it needs one.
    fn bound(&mut self, key: &[u8]) -> Result<Bound> {
        let size = self.y.file.page_bytes;
        let stub = Bound::stub_of(key, size);
        let far = if stub.len() < key.len() {
            Some(overflow::write(&mut self.output, size, key)?)
        } else {
            None
        };
        let stub = Key::new(stub);
        Ok(Bound { stub, far })
    }

    fn content(&mut self, key: &Bound, value: &[u8]) -> Result<Content> {
        let size = self.y.file.page_bytes;
        if key.stub.len() + value.len() <= max_near(size) {
            return Ok(Content::Near(Value::new(value)));
        }
        overflow::write(&mut self.output, size, value).map(Content::Far)
    }

    fn remove_bound(&mut self, bound: &Bound) -> Result<()> {
        bound.far.map_or(Ok(()), |far| self.remove_chain(far))
    }

    fn remove_chain(&mut self, far: Far) -> Result<()> {
        let Self {
            y, output, removed, ..
        } = self;
        overflow::walk(
            &y.file,
            far,
            |number, to| output.read(number, to),
            |number, _| removed.push(number),
        )
    }
}

impl OpenLeaf {
    fn add(&mut self, entry: Entry) {
        self.bytes += raw_bytes(&entry);
        self.made.push(entry);
    }
}

/// Bytes of an entry in a page of its own.
fn raw_bytes(entry: &Entry) -> usize {
    Filling::default().add(entry)
}

/// How the pages of a node that ends at `to` are filled: nothing comes behind the last one.
fn fill_before(to: Option<&[u8]>) -> Fill {
    if to.is_some() { Fill::Half } else { Fill::Full }
}

/// Whether `key` lies before the end `to`.
fn before(key: &[u8], to: Option<&[u8]>) -> bool {
    to.is_none_or(|to| key < to)
}
