//! Reading a tree of pages of which some are damaged: what can be read, in order, and between it
//! the ranges of keys of which something cannot.
//!
//! For salvage, and for counting damage. Works on tables of the run store and on paged trees, whose
//! nodes have one format. A value that does not lie in its leaf is read when it is asked for
//! ([`Found::read`]), so whoever drops one before the next holds one, however large they are.
//! Memory: the bounds of one inner page a level, and one leaf with its long keys. Threads: one.

#![forbid(unsafe_code)]

use super::page::{
    PageNo, PageSource,
    build::{self, Bound, Content},
    node::Node,
};
use crate::{
    error::{Error, Result},
    key::{prefix_end, successor},
};
use std::{collections::VecDeque, vec::IntoIter};

/// One thing that was found.
pub(crate) enum Found<'s, S> {
    Entry(Unread<'s, S>),
    Hole(Hole),
}

/// A key whose value was not read yet.
pub(crate) struct Unread<'s, S> {
    pub(crate) key: Vec<u8>,
    value: Content,
    source: &'s S,
}

/// A key with its value, `None` for a delete.
pub(crate) type Entry = (Vec<u8>, Option<Vec<u8>>);

/// Keys of `[from, to)` may be missing, because of `error`.
#[derive(Debug, Clone)]
pub(crate) struct Hole {
    pub(crate) from: Vec<u8>,
    pub(crate) to: Option<Vec<u8>>,
    pub(crate) error: Error,
}

impl<S: PageSource> Found<'_, S> {
    /// Where it begins.
    pub(crate) fn from(&self) -> &[u8] {
        match self {
            Self::Entry(entry) => &entry.key,
            Self::Hole(hole) => &hole.from,
        }
    }

    /// All of it, in memory. Cost: none, or the reads of a large value. Errors: what is missing.
    pub(crate) fn read(self) -> std::result::Result<Entry, Hole> {
        let Unread { key, value, source } = match self {
            Self::Entry(entry) => entry,
            Self::Hole(hole) => return Err(hole),
        };
        let value = match value {
            Content::Near(value) => Ok(Some(value.to_vec())),
            Content::Far(far) => source.fetch(far).map(Some),
            Content::Deleted => Ok(None),
        };
        match value {
            Ok(value) => Ok((key, value)),
            Err(error) => Err(Hole {
                to: Some(successor(&key)),
                from: key,
                error,
            }),
        }
    }
}

/// A page with the keys that may be under it.
struct Child {
    from: Vec<u8>,
    to: Option<Vec<u8>>,
    page: PageNo,
}

/// See the module header.
pub(crate) struct Tolerant<'s, S> {
    source: &'s S,
    /// What is still to be read, from the root down: children, and their level.
    stack: Vec<(IntoIter<Child>, u8)>,
    ready: VecDeque<Found<'s, S>>,
    from: Vec<u8>,
    to: Option<Vec<u8>>,
}

impl<'s, S: PageSource> Tolerant<'s, S> {
    /// What `[from, to)` has in the tree of `height` levels under page `root`.
    pub(crate) fn new(
        source: &'s S,
        root: PageNo,
        height: u8,
        from: &[u8],
        to: Option<&[u8]>,
    ) -> Self {
        let child = Child {
            from: Vec::new(),
            to: None,
            page: root,
        };
        let stack = match height.checked_sub(1) {
            Some(level) if root != 0 => vec![(vec![child].into_iter(), level)],
            _ => Vec::new(),
        };
        Self {
            source,
            stack,
            ready: VecDeque::new(),
            from: from.to_vec(),
            to: to.map(<[u8]>::to_vec),
        }
    }

    /// What cannot be read, values included. Reads them one at a time, and keeps none.
    pub(crate) fn holes(self) -> impl Iterator<Item = Hole> {
        self.filter_map(|found| found.read().err())
    }

    fn is_wanted(&self, from: &[u8], to: Option<&[u8]>) -> bool {
        to.is_none_or(|to| *to > *self.from) && self.to.as_deref().is_none_or(|end| from < end)
    }

    /// Reads one page.
    fn read(&mut self, child: Child, level: u8) {
        if let Err(error) = self.try_read(&child, level) {
            self.ready.push_back(Found::Hole(Hole {
                from: child.from.max(self.from.clone()),
                to: least(child.to, self.to.clone()),
                error,
            }));
        }
    }

    fn try_read(&mut self, child: &Child, level: u8) -> Result<()> {
        let mut bytes = self.source.page_buffer();
        self.source.read(child.page, &mut bytes)?;
        let node = Node::of_page(&bytes).filter(|node| node.level == level);
        let node = node.ok_or_else(|| self.source.senseless(child.page))?;
        match level {
            0 => self.leaf(child, &node),
            _ => {
                let children = self.children(child, &node)?;
                self.stack.push((children.into_iter(), level - 1));
                Ok(())
            }
        }
    }

    fn children(&self, child: &Child, node: &Node<'_>) -> Result<Vec<Child>> {
        let senseless = || self.source.senseless(child.page);
        let found = build::children(node, Bound::default()).ok_or_else(senseless)?;
        let mut children: Vec<Child> = Vec::with_capacity(found.len());
        for (i, next) in found.into_iter().enumerate() {
            let from = match i {
                0 => child.from.clone(),
                _ => next.from.whole(&|far| self.source.fetch(far))?,
            };
            if let Some(before) = children.last_mut() {
                if before.from >= from {
                    return Err(senseless());
                }
                before.to = Some(from.clone());
            }
            children.push(Child {
                from,
                to: child.to.clone(),
                page: next.page,
            });
        }
        let behind = |child: &Child| child.to.as_ref().is_some_and(|to| *to <= child.from);
        if children.iter().any(behind) {
            return Err(senseless());
        }
        Ok(children)
    }

    fn leaf(&mut self, child: &Child, node: &Node<'_>) -> Result<()> {
        let senseless = || self.source.senseless(child.page);
        let entries = build::entries(node).ok_or_else(senseless)?;
        let mut found = Vec::with_capacity(entries.len());
        let mut last: Option<Vec<u8>> = None;
        for entry in entries {
            let stub = entry.key.stub.to_vec();
            let key = match entry.key.whole(&|far| self.source.fetch(far)) {
                Ok(key) => key,
                Err(error) => {
                    // The key begins so, and that is all that is known of it.
                    let to = prefix_end(&stub);
                    found.push(Found::Hole(Hole {
                        from: stub,
                        to,
                        error,
                    }));
                    continue;
                }
            };
            let inside = child.from <= key && child.to.as_ref().is_none_or(|to| key < *to);
            if !inside || last.as_ref().is_some_and(|last| *last >= key) {
                return Err(senseless());
            }
            last = Some(key.clone());
            found.push(Found::Entry(Unread {
                key,
                value: entry.value,
                source: self.source,
            }));
        }
        let wanted = |found: &Found<'s, S>| match found {
            Found::Entry(Unread { key, .. }) => self.is_wanted(key, Some(&successor(key))),
            Found::Hole(hole) => self.is_wanted(&hole.from, hole.to.as_deref()),
        };
        found.retain(wanted);
        self.ready.extend(found);
        Ok(())
    }
}

/// The lesser of two ends.
fn least(one: Option<Vec<u8>>, other: Option<Vec<u8>>) -> Option<Vec<u8>> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

impl<'s, S: PageSource> Iterator for Tolerant<'s, S> {
    type Item = Found<'s, S>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(found) = self.ready.pop_front() {
                return Some(found);
            }
            let (children, level) = self.stack.last_mut()?;
            let level = *level;
            match children.next() {
                None => drop(self.stack.pop()),
                Some(child) if self.is_wanted(&child.from, child.to.as_deref()) => {
                    self.read(child, level);
                }
                Some(_) => {}
            }
        }
    }
}
