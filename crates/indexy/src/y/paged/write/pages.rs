//! What a run does with single pages: reads old ones, and makes keys and values for new ones.
//!
//! An extent belongs to the one entry or child that names it, and goes when that goes.
//! Threads: one (the run's).

use super::output::Output;
use crate::y::page::PageSource;
use crate::y::page::{
    PageNo,
    build::{self, Bound, Child, Content, Entry},
    filling,
    node::{Far, Node, max_near},
};
use crate::y::pool::copy_frame;
use crate::{
    error::Result,
    key::{Key, Value},
    mem::aligned::AlignedBuffer,
    y::paged::{
        file::{chain, extent, page_set::PageSet},
        tree::PagedY,
    },
};

/// A page below one part in so many of its capacity is joined with a neighbour.
const JOIN_DIVISOR: usize = 3;

/// A leaf that is less full than this many parts of [`PARTS`] is joined with those behind it, when
/// the tree is compacted.
const SPARSE: usize = 7;
const PARTS: usize = 10;

/// What a run that compacts does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moves {
    /// Pages from here on move.
    pub(crate) aim: PageNo,
    /// Pages of nodes move from here on, if there is a place for them before it.
    pub(crate) nodes: PageNo,
    /// Extents that end behind it move to a place in front of theirs.
    pub(crate) extents: PageNo,
    /// Extents behind the aim that find no such place go to the end of the file.
    pub(crate) makes_way: bool,
    /// Leaves are filled.
    pub(crate) dense: bool,
}

impl Moves {
    /// Whether a leaf of `bytes` is joined with the one behind it, where pages have `capacity`.
    pub(crate) fn joins(&self, bytes: usize, capacity: usize) -> bool {
        self.dense && bytes < capacity / PARTS * SPARSE
    }
}

/// Old pages, new pages, and those that the new version does not have.
pub(crate) struct Pages<'y> {
    pub(crate) y: &'y PagedY,
    pub(crate) output: Output<'y>,
    /// Pages of the old version, or made by this run in vain.
    pub(crate) removed: PageSet,
    /// It is compaction that writes.
    pub(crate) moves: Option<Moves>,
    /// Pages of extents that compaction moved.
    pub(crate) moved_pages: u64,
    /// Pages of extents that it came by.
    pub(crate) extent_pages: u64,
}

impl<'y> Pages<'y> {
    pub(crate) fn new(y: &'y PagedY) -> Self {
        Self {
            y,
            output: Output::new(y),
            removed: PageSet::default(),
            moves: None,
            moved_pages: 0,
            extent_pages: 0,
        }
    }

    /// Whether the page `number` is to be written anew, and there is a place for it.
    pub(crate) fn moves_page(&self, number: PageNo) -> bool {
        self.moves.is_some_and(|moves| {
            let mut aims = [moves.nodes, moves.aim].into_iter();
            aims.any(|aim| number >= aim && self.y.space.lock().has_free_below(aim))
        })
    }

    pub(crate) fn read(&self, number: PageNo) -> Result<AlignedBuffer> {
        let mut page = AlignedBuffer::new(self.y.pages.file.page_bytes);
        let guard = self.y.pages.pool.frames.enter();
        let tag = self.y.pages.tag(number);
        if let Some((view, _)) = self.y.pages.pool.find(&guard, tag, 0, 0) {
            copy_frame(view, &mut page);
            return Ok(page);
        }
        drop(guard);
        self.output.read(number, &mut page)?;
        Ok(page)
    }

    pub(crate) fn entries_of(&self, page: PageNo) -> Result<Vec<Entry>> {
        let bytes = self.read(page)?;
        let node = Node::of_page(&bytes).filter(Node::is_leaf);
        let entries = node.and_then(|node| build::entries(&node));
        entries.ok_or_else(|| self.y.pages.file.senseless(page))
    }

    pub(crate) fn children_of(&self, child: &Child, level: u8) -> Result<Vec<Child>> {
        let bytes = self.read(child.page)?;
        let node = Node::of_page(&bytes).filter(|n| n.level == level && level > 0);
        let children = node.and_then(|node| build::children(&node, child.from.clone()));
        children.ok_or_else(|| self.y.pages.file.senseless(child.page))
    }

    /// The shortest key that is greater than `left` and not greater than `right`.
    pub(crate) fn separator(&mut self, left: Option<Bound>, right: &Bound) -> Result<Bound> {
        let output = &self.output;
        let left = match left {
            Some(left) => left.whole(&|far| output.fetch(far))?,
            None => Vec::new(),
        };
        let right = right.whole(&|far| output.fetch(far))?;
        self.bound(build::separator(&left, &right))
    }

    /// `key` as a page holds it, its extent written if it needs one.
    pub(crate) fn bound(&mut self, key: &[u8]) -> Result<Bound> {
        let size = self.y.pages.file.page_bytes;
        let stub = Bound::stub_of(key, size);
        let far = if stub.len() < key.len() {
            Some(self.output.add_extent(key)?)
        } else {
            None
        };
        let stub = Key::new(stub);
        Ok(Bound { stub, far })
    }

    pub(crate) fn content(&mut self, key: &Bound, value: &[u8]) -> Result<Content> {
        let size = self.y.pages.file.page_bytes;
        if key.stub.len() + value.len() <= max_near(size) {
            return Ok(Content::Near(Value::new(value)));
        }
        self.output.add_extent(value).map(Content::Far)
    }

    pub(crate) fn remove_bound(&mut self, bound: &Bound) -> Result<()> {
        bound.far.map_or(Ok(()), |far| self.remove_far(far))
    }

    /// The key or value at `far` goes.
    pub(crate) fn remove_far(&mut self, far: Far) -> Result<()> {
        let file = &self.y.pages.file;
        if let Some(pages) = extent::pages(file, far) {
            self.removed.extend(pages);
            return Ok(());
        }
        let read = |number, to: &mut [u8]| file.read(number, to);
        chain::walk(file, far, read, |number, _| self.removed.push(number))
    }

    pub(crate) fn capacity(&self) -> usize {
        filling::capacity(self.y.pages.file.page_bytes)
    }

    /// Whether a page of `bytes` should join a neighbour.
    pub(crate) fn is_small(&self, bytes: usize) -> bool {
        bytes < self.capacity() / JOIN_DIVISOR
    }
}
