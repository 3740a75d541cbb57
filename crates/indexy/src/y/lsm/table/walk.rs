//! The leaves of a table one after the other, from its inner pages, past the pool.
//!
//! Holds one page a level. Cost: a read of the device for each inner page, which speaks of some
//! 200 leaves.

use super::{PAGE_BYTES, file::TableFile};
use crate::{
    error::Result,
    mem::aligned::AlignedBuffer,
    y::page::{
        PageNo, PageSource,
        build::{self, Bound},
        node::Node,
    },
};

/// See the module header.
pub(super) struct LeafWalk {
    file: TableFile,
    /// Where to begin, with its level.
    root: Option<(PageNo, u8)>,
    from: Vec<u8>,
    to: Option<Vec<u8>>,
    /// From the root down; the last one has leaves for children.
    path: Vec<Inner>,
}

/// An inner page, and the children that are still to come.
struct Inner {
    number: PageNo,
    level: u8,
    page: AlignedBuffer,
    next: usize,
    end: usize,
}

impl LeafWalk {
    /// The leaves that may have keys in `[from, to)`, of a tree of `height` levels.
    pub(super) fn new(
        file: TableFile,
        (root, height): (PageNo, u8),
        from: &[u8],
        to: Option<&[u8]>,
    ) -> Self {
        Self {
            file,
            root: Some((root, height.saturating_sub(1))),
            from: from.to_vec(),
            to: to.map(<[u8]>::to_vec),
            path: Vec::new(),
        }
    }

    /// The next leaf.
    pub(super) fn next(&mut self) -> Result<Option<PageNo>> {
        let mut entering = self.root.take();
        loop {
            match entering {
                Some((leaf, 0)) => return Ok(Some(leaf)),
                Some((inner, level)) => self.enter(inner, level)?,
                None => {}
            }
            let Some(last) = self.path.last_mut() else {
                return Ok(None);
            };
            if last.next >= last.end {
                self.path.pop();
                entering = None;
                continue;
            }
            let child = node_of(&self.file, last)?.child(last.next);
            let (child, _) = child.ok_or_else(|| self.file.senseless(last.number))?;
            last.next += 1;
            entering = Some((child, last.level - 1));
        }
    }

    /// The inner pages above the leaf that came last.
    pub(super) fn inner_pages(&self) -> impl Iterator<Item = PageNo> {
        self.path.iter().map(|inner| inner.number)
    }

    /// The separator in front of the leaf that came last; `None` before the first leaf of the
    /// table.
    pub(super) fn separator(&self) -> Result<Option<Bound>> {
        let turn = self.path.iter().rev().find(|inner| inner.next > 1);
        let Some(inner) = turn else {
            return Ok(None);
        };
        let node = node_of(&self.file, inner)?;
        let bound = build::bound(&node, inner.next - 2, &mut Vec::new());
        bound
            .map(Some)
            .ok_or_else(|| self.file.senseless(inner.number))
    }

    fn enter(&mut self, number: PageNo, level: u8) -> Result<()> {
        let mut inner = Inner {
            number,
            level,
            page: AlignedBuffer::new(PAGE_BYTES),
            next: 0,
            end: 0,
        };
        self.file.read(number, &mut inner.page)?;
        let node = node_of(&self.file, &inner)?;
        let fetch = |far| self.file.fetch(far);
        let senseless = || self.file.senseless(number);
        let next = node.child_for(&self.from, &fetch)?;
        let end = match &self.to {
            None => node.children(),
            Some(to) => 1 + node.search(to, &fetch)?.ok_or_else(senseless)?.0,
        };
        inner.next = next.ok_or_else(senseless)?;
        inner.end = end;
        self.path.push(inner);
        Ok(())
    }
}

/// The node in `inner`, if it is one of its level, so that no walk goes round in circles.
fn node_of<'a>(file: &TableFile, inner: &'a Inner) -> Result<Node<'a>> {
    Node::of_page(&inner.page)
        .filter(|node| node.level == inner.level && inner.level > 0)
        .ok_or_else(|| file.senseless(inner.number))
}
