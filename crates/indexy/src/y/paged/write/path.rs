//! The open path of a run: inner pages from the root to the leaf, each with what was made of its
//! children so far.
//!
//! A page is closed when the run is behind its end: it becomes new pages (none, one, or as many as
//! it needs), and its parent gets them in place of the old one. One that would be less than a third
//! full takes its right neighbour in, or joins its left one. Threads: one (the run's).

use super::pages::Pages;
use crate::y::page::{
    PageNo,
    build::{self, Child},
    filling::{Fill, filled_bytes, next_page},
};
use crate::{error::Result, y::paged::tree::PagedY};
use std::{cmp::Ordering, vec::IntoIter};

/// Children of an open page above which it puts out full pages while whole leaves come.
const MOST_MADE: usize = 4096;

/// An inner page of the open path.
pub(crate) struct Open {
    pub(crate) level: u8,
    /// The page, as long as nothing under it changed.
    pub(crate) unchanged: Option<PageNo>,
    /// Old children that the run has not come to.
    pub(crate) rest: IntoIter<Child>,
    /// Where the page ends; `None`: nowhere.
    pub(crate) to: Option<Vec<u8>>,
    /// What it consists of so far.
    pub(crate) made: Vec<Child>,
}

/// What came of closing a page.
#[derive(PartialEq, Eq)]
pub(crate) enum Closed {
    Yes,
    /// It took its right neighbour in instead and is still open.
    Grew,
}

/// See the module header.
pub(crate) struct Path<'y> {
    pub(crate) pages: Pages<'y>,
    /// From the root down.
    pub(crate) open: Vec<Open>,
    /// Where the pages of the topmost level go.
    top: Vec<Child>,
    pub(crate) height: u8,
}

impl<'y> Path<'y> {
    pub(crate) fn new(y: &'y PagedY, height: u8) -> Self {
        Self {
            pages: Pages::new(y),
            open: Vec::new(),
            top: Vec::new(),
            height,
        }
    }

    /// Closes the last inner page of the path, whose end the run is behind; `next` is where the run
    /// goes on.
    pub(crate) fn close_inner(&mut self, next: Option<&[u8]>) -> Result<Closed> {
        let Some(mut open) = self.open.pop() else {
            return Ok(Closed::Yes);
        };
        open.made.extend(open.rest.by_ref());
        if let (Some(page), Some(first)) = (open.unchanged, open.made.first()) {
            let from = first.from.clone();
            self.put_up(Child { from, page }, false);
            return Ok(Closed::Yes);
        }
        self.pages.removed.extend(open.unchanged.take());
        if open.made.is_empty() {
            self.mark_changed();
            return Ok(Closed::Yes);
        }
        let bytes = filled_bytes(&open.made);
        let carry = bytes > self.pages.capacity() && self.right_is_next(next)?;
        if carry {
            while filled_bytes(&open.made) > self.pages.capacity() {
                open.made = self.put_inner_page(open.made, open.level, Fill::Most)?;
            }
        }
        if carry || self.pages.is_small(bytes) {
            if let Some((right, to)) = self.right_neighbour(&open.to)? {
                let children = self.pages.children_of(&right, open.level)?;
                self.pages.removed.push(right.page);
                open.rest = children.into_iter();
                open.to = to;
                self.open.push(open);
                return Ok(Closed::Grew);
            }
            if let Some(left) = self.left_neighbour() {
                let mut children = self.pages.children_of(&left, open.level)?;
                self.pages.removed.push(left.page);
                children.append(&mut open.made);
                open.made = children;
            }
        }
        let fill = fill_before(open.to.as_deref());
        self.put_inner(open.made, open.level, fill)?;
        Ok(Closed::Yes)
    }

    /// Puts out pages of `level` that consist of `children`.
    pub(crate) fn put_inner(
        &mut self,
        mut children: Vec<Child>,
        level: u8,
        fill: Fill,
    ) -> Result<()> {
        while !children.is_empty() {
            children = self.put_inner_page(children, level, fill)?;
        }
        Ok(())
    }

    /// Puts out one page of the first of `children`; returns the others.
    pub(crate) fn put_inner_page(
        &mut self,
        mut children: Vec<Child>,
        level: u8,
        fill: Fill,
    ) -> Result<Vec<Child>> {
        let mut count = next_page(&children, self.pages.y.pages.file.page_bytes, fill);
        // A single child makes no page: the one before leaves it company.
        if count + 1 == children.len() && count > 2 {
            count -= 1;
        }
        let rest = children.split_off(count.min(children.len()));
        let page = self
            .pages
            .output
            .add(|page| build::inner(page, level, &children))?;
        self.pages
            .y
            .pages
            .pool
            .insert(self.pages.y.pages.tag(page), self.pages.output.last());
        if let Some(first) = children.first_mut() {
            let from = std::mem::take(&mut first.from);
            self.put_up(Child { from, page }, true);
        }
        Ok(rest)
    }

    /// Puts out what the last page of the path has too much of, so that memory holds little of it
    /// however many pages come. A tree of which all pages are on the topmost level grows.
    pub(crate) fn put_full(&mut self) -> Result<()> {
        let made = self.open.last().map_or(&self.top, |open| &open.made);
        if made.len() < MOST_MADE {
            return Ok(());
        }
        let mut open = match self.open.pop() {
            Some(open) => open,
            None => self.grow(),
        };
        // The last two pages' worth stays: its end is not known yet.
        while filled_bytes(&open.made) > 2 * self.pages.y.pages.file.page_bytes {
            open.made = self.put_inner_page(open.made, open.level, Fill::Full)?;
        }
        self.open.push(open);
        Ok(())
    }

    /// A new topmost page, of all that were the topmost ones.
    fn grow(&mut self) -> Open {
        let level = self.height;
        self.height += 1;
        Open {
            level,
            unchanged: None,
            rest: Vec::new().into_iter(),
            to: None,
            made: std::mem::take(&mut self.top),
        }
    }

    /// Gives a page to its parent.
    pub(crate) fn put_up(&mut self, child: Child, changed: bool) {
        if changed {
            self.mark_changed();
        }
        match self.open.last_mut() {
            Some(parent) => parent.made.push(child),
            None => self.top.push(child),
        }
    }

    /// The parent of what was closed is not what it was.
    pub(crate) fn mark_changed(&mut self) {
        if let Some(parent) = self.open.last_mut() {
            self.pages.removed.extend(parent.unchanged.take());
        }
    }

    /// Makes one page of the topmost ones; returns it, 0 if there is none.
    pub(crate) fn make_root(&mut self) -> Result<PageNo> {
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
                let mut children = self.pages.children_of(&root, self.height - 1)?;
                if children.len() > 1 {
                    break;
                }
                children.pop()
            };
            let Some(only) = only else { break };
            self.pages.removed.push(root.page);
            self.height -= 1;
            root = only;
        }
        self.pages.remove_bound(&root.from)?;
        Ok(root.page)
    }

    /// Whether the run, which goes on at `next`, comes to the next child of the last page of the
    /// path.
    pub(crate) fn right_is_next(&self, next: Option<&[u8]>) -> Result<bool> {
        let output = &self.pages.output;
        let (Some(parent), Some(next)) = (self.open.last(), next) else {
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
    pub(crate) fn right_neighbour(
        &mut self,
        to: &Option<Vec<u8>>,
    ) -> Result<Option<(Child, Option<Vec<u8>>)>> {
        let output = &self.pages.output;
        let Some(parent) = self.open.last_mut().filter(|_| to.is_some()) else {
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
    pub(crate) fn left_neighbour(&mut self) -> Option<Child> {
        self.open.last_mut()?.made.pop()
    }
}

/// How the pages of a node that ends at `to` are filled: nothing comes behind the last one.
pub(crate) fn fill_before(to: Option<&[u8]>) -> Fill {
    if to.is_some() { Fill::Half } else { Fill::Full }
}

/// Whether `key` lies before the end `to`.
#[inline]
pub(crate) fn before(key: &[u8], to: Option<&[u8]>) -> bool {
    to.is_none_or(|to| key < to)
}
