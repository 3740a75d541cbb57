//! Reading a tree of pages of which some are damaged: what can be read, in order, and between it
//! the ranges of keys of which something cannot.
//!
//! For salvage, and for counting damage. Works on tables of the run store and on paged trees, whose
//! nodes have one format. Memory: the bounds of one inner page a level, and one leaf. Threads: one.

#![forbid(unsafe_code)]

use super::page::{
    PageNo, PageSource,
    build::{self, Bound},
    node::Node,
};
use crate::{
    error::{Error, Result},
    key::{prefix_end, successor},
};
use std::{collections::VecDeque, vec::IntoIter};

/// One thing that was found.
#[derive(Debug)]
pub(crate) enum Found {
    /// A key with its value, `None` for a delete.
    Entry(Vec<u8>, Option<Vec<u8>>),
    Hole(Hole),
}

/// Keys of `[from, to)` may be missing, because of `error`.
#[derive(Debug, Clone)]
pub(crate) struct Hole {
    pub(crate) from: Vec<u8>,
    pub(crate) to: Option<Vec<u8>>,
    pub(crate) error: Error,
}

impl Found {
    /// Where it begins.
    pub(crate) fn from(&self) -> &[u8] {
        match self {
            Self::Entry(key, _) => key,
            Self::Hole(hole) => &hole.from,
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
    ready: VecDeque<Found>,
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
            found.push(self.entry(key, entry.value));
        }
        let wanted = |found: &Found| match found {
            Found::Entry(key, _) => self.is_wanted(key, Some(&successor(key))),
            Found::Hole(hole) => self.is_wanted(&hole.from, hole.to.as_deref()),
        };
        found.retain(wanted);
        self.ready.extend(found);
        Ok(())
    }

    fn entry(&self, key: Vec<u8>, value: build::Content) -> Found {
        let value = match value {
            build::Content::Near(value) => Ok(Some(value.to_vec())),
            build::Content::Far(far) => self.source.fetch(far).map(Some),
            build::Content::Deleted => Ok(None),
        };
        match value {
            Ok(value) => Found::Entry(key, value),
            Err(error) => Found::Hole(Hole {
                to: Some(successor(&key)),
                from: key,
                error,
            }),
        }
    }
}

/// The lesser of two ends.
fn least(one: Option<Vec<u8>>, other: Option<Vec<u8>>) -> Option<Vec<u8>> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

impl<S: PageSource> Iterator for Tolerant<'_, S> {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
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
