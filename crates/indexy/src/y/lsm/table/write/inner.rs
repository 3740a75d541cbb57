//! The inner pages over the leaves: level by level, in as few pages as hold them, evenly filled.

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

/// Writes the levels over `children`, the leaves, with `buffer` to gather pages in; returns the
/// root and the number of levels, that of the leaves included.
pub(super) fn put(
    mut children: Vec<Child>,
    output: &mut Output,
    buffer: &mut AlignedBuffer,
) -> Result<(PageNo, u8)> {
    let mut level = 0;
    while children.len() > 1 {
        level += 1;
        children = put_level(level, &children, output, buffer)?;
    }
    let root = children.first().map_or(0, |child| child.page);
    Ok((root, level + 1))
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
