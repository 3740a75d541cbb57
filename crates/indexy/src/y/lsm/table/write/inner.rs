//! The inner pages over the leaves: level by level, in as few pages as hold them, evenly filled.
//!
//! They come when all leaves are there. Where these are many or have long separators, which would
//! take too much memory until then (I7), inner pages of some come between leaves.

use super::{super::PAGE_BYTES, output::Output};
use crate::{
    error::Result,
    mem::aligned::AlignedBuffer,
    y::page::{
        PageNo,
        build::{self, Child},
        filling::{Fill, next_page},
    },
};

/// Children that wait for their pages take so much memory, and what one more takes.
const MOST_BYTES: usize = 768 << 10;
/// So many children of a level wait on: no page has a single one.
const LEFT: usize = 2;

/// The levels of a table, from the leaves on, as far as no page has them.
#[derive(Default)]
pub(super) struct Levels {
    waiting: Vec<Vec<Child>>,
    /// Leaves so far.
    leaves: usize,
    /// What the children take in memory, about.
    bytes: usize,
}

fn bytes_of(child: &Child) -> usize {
    size_of::<Child>() + child.from.stub.len()
}

impl Levels {
    /// Adds a leaf behind all before.
    pub(super) fn push(&mut self, leaf: Child) {
        self.leaves += 1;
        self.bytes += bytes_of(&leaf);
        match self.waiting.first_mut() {
            Some(leaves) => leaves.push(leaf),
            None => self.waiting.push(vec![leaf]),
        }
    }

    fn add(&mut self, level: usize, children: Vec<Child>) {
        self.bytes += children.iter().map(bytes_of).sum::<usize>();
        match self.waiting.get_mut(level) {
            Some(waiting) => waiting.extend(children),
            None => self.waiting.push(children),
        }
    }

    /// Takes the children of `level` that wait, but for the last `left`.
    fn take(&mut self, level: usize, left: usize) -> Vec<Child> {
        let Some(waiting) = self.waiting.get_mut(level) else {
            return Vec::new();
        };
        let rest = waiting.split_off(waiting.len().saturating_sub(left));
        let taken = std::mem::replace(waiting, rest);
        self.bytes -= taken.iter().map(bytes_of).sum::<usize>();
        taken
    }

    /// Leaves so far.
    pub(super) fn leaves(&self) -> usize {
        self.leaves
    }

    /// The last `count` leaves, which wait.
    pub(super) fn last_leaves(&mut self, count: usize) -> impl Iterator<Item = &mut Child> {
        let leaves = self.waiting.first_mut().into_iter();
        leaves.flat_map(move |leaves| leaves.iter_mut().rev().take(count))
    }

    /// What the children take in memory, about.
    #[cfg(test)]
    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// There are so many children that some are to be put aside.
    pub(super) fn is_crowded(&self) -> bool {
        self.bytes > MOST_BYTES
    }

    /// Writes inner pages of most that waits, level by level, until that takes little memory. All
    /// leaves are written.
    pub(super) fn put_aside(
        &mut self,
        output: &mut Output,
        buffer: &mut AlignedBuffer,
    ) -> Result<()> {
        let mut level = 0;
        while self.bytes > MOST_BYTES / 2 && level < self.waiting.len() {
            let children = self.take(level, LEFT);
            level += 1;
            let parents = put_level(level as u8, &children, output, buffer)?;
            self.add(level, parents);
        }
        Ok(())
    }

    /// Writes the levels over what waits, with `buffer` to gather pages in; returns the root and
    /// the number of levels, that of the leaves included.
    pub(super) fn put(
        mut self,
        output: &mut Output,
        buffer: &mut AlignedBuffer,
    ) -> Result<(PageNo, u8)> {
        let mut level = 0;
        loop {
            let children = self.take(level, 0);
            let is_last = level + 1 >= self.waiting.len();
            level += 1;
            if is_last && children.len() < LEFT {
                let root = children.first().map_or(0, |child| child.page);
                return Ok((root, level as u8));
            }
            let parents = put_level(level as u8, &children, output, buffer)?;
            self.add(level, parents);
        }
    }
}

/// Writes the inner pages that have `children`; returns them as children of the next level.
fn put_level(
    level: u8,
    children: &[Child],
    output: &mut Output,
    buffer: &mut AlignedBuffer,
) -> Result<Vec<Child>> {
    let mut parents: Vec<Child> = Vec::new();
    let pages = pages_for(children);
    let mut rest = children;
    while !rest.is_empty() {
        let mut used = 0;
        let gathered = parents.len();
        while let Some(first) = rest.first()
            && let Some(page) = buffer.get_mut(used..used + PAGE_BYTES)
        {
            // Evenly, so that the place of a page in its parent says about what lies before it.
            let share = rest
                .len()
                .div_ceil(pages.saturating_sub(parents.len()).max(1));
            let count = next_page(rest, PAGE_BYTES, Fill::Full).min(share);
            let (these, later) = rest.split_at(count);
            page.fill(0);
            build::inner(page, level, these);
            parents.push(Child {
                from: first.from.clone(),
                page: (used / PAGE_BYTES) as PageNo,
            });
            used += PAGE_BYTES;
            rest = later;
        }
        let pages = buffer.get_mut(..used).unwrap_or_default();
        let first = output.put_pages(pages)?;
        for parent in parents.iter_mut().skip(gathered) {
            parent.page += first;
        }
    }
    Ok(parents)
}

/// Pages that hold `children`.
fn pages_for(children: &[Child]) -> usize {
    let mut rest = children;
    let mut pages = 0;
    while !rest.is_empty() {
        let count = next_page(rest, PAGE_BYTES, Fill::Full);
        rest = rest.get(count..).unwrap_or_default();
        pages += 1;
    }
    pages
}
