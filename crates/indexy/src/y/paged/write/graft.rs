//! Taking whole leaves into the tree, which were written before (`load.rs`).
//!
//! The tree has no key between the first and the last of the leaves. So they all go into one place
//! of it: between two entries of a leaf, or between two leaves. A leaf that lies on both sides of a
//! place where a leaf of the tree ends is read, and its entries are pushed one by one: there is at
//! most one.
//! Threads: one (the run's).

use super::run::{OpenLeaf, Run};
use crate::{
    error::Result,
    y::page::{
        PageSource,
        build::{Child, Content},
        filling::Fill,
    },
};
use std::cmp::Ordering;

impl Run<'_> {
    /// Leaves with `entries` entries follow, the first of which has the key `first`.
    pub(super) fn begin_graft(&mut self, first: &[u8], entries: u64) {
        self.entries += entries;
        self.grafted_to = first.to_vec();
    }

    /// Takes `leaf` in, whose keys lie below `end`, and behind those of the leaf before. Where
    /// there are `more`, the next one begins at `end`.
    pub(super) fn graft(&mut self, leaf: Child, end: &[u8], more: bool) -> Result<()> {
        let from = std::mem::replace(&mut self.grafted_to, end.to_vec());
        self.go_to(&from)?;
        let output = &self.path.pages.output;
        let fetch = |far| output.fetch(far);
        let Some(open) = &mut self.leaf else {
            return Err(self.path.pages.y.pages.file.senseless(self.base.root.page));
        };
        while let Some(entry) = open.rest.peek()
            && entry.key.compare(&from, &fetch)? == Ordering::Less
        {
            let entry = open.rest.next();
            entry.into_iter().for_each(|entry| open.add(entry));
        }
        let inside = open.to.as_deref().is_none_or(|to| end <= to);
        let alone = match open.rest.peek() {
            Some(entry) => entry.key.compare(end, &fetch)? != Ordering::Less,
            None => true,
        };
        match inside && alone {
            true => self.put_between(leaf, end, more),
            false => self.push_entries(leaf),
        }
    }

    /// Puts `leaf` behind what the open leaf has so far, and before what is left of it.
    fn put_between(&mut self, leaf: Child, end: &[u8], more: bool) -> Result<()> {
        let Some(OpenLeaf {
            unchanged,
            from,
            made,
            bytes,
            warm,
            ..
        }) = &mut self.leaf
        else {
            return Ok(());
        };
        let (gone, warm) = (unchanged.take(), *warm);
        let (before, mut made) = (std::mem::take(from), std::mem::take(made));
        *bytes = 0;
        self.path.pages.removed.extend(gone);
        let from = if made.is_empty() {
            // It begins where the open leaf began.
            self.path.pages.remove_bound(&leaf.from)?;
            before
        } else {
            let mut at = before;
            while !made.is_empty() {
                at = self.put_leaf(&mut made, at, warm, Fill::Half)?;
            }
            leaf.from
        };
        let page = leaf.page;
        self.path.put_up(Child { from, page }, true);
        self.path.put_full()?;
        self.begin_rest(end, more)
    }

    /// The open leaf goes on behind what was put before the rest of it.
    fn begin_rest(&mut self, end: &[u8], more: bool) -> Result<()> {
        let output = &self.path.pages.output;
        let Some(open) = &mut self.leaf else {
            return Ok(());
        };
        let from = match open.rest.peek() {
            _ if more => Some(end.to_vec()),
            // Not `end`, which may be longer than a key.
            Some(entry) => Some(entry.key.whole(&|far| output.fetch(far))?),
            // Nothing comes: it closes without an entry.
            None => None,
        };
        let from = from.map(|from| self.path.pages.bound(&from)).transpose()?;
        if let (Some(open), Some(from)) = (&mut self.leaf, from) {
            open.from = from;
        }
        Ok(())
    }

    fn push_entries(&mut self, leaf: Child) -> Result<()> {
        let entries = self.path.pages.entries_of(leaf.page)?;
        // They are counted again when they are pushed.
        self.entries = self.entries.saturating_sub(entries.len() as u64);
        for entry in entries {
            let fetch = |far| self.path.pages.output.fetch(far);
            let key = entry.key.whole(&fetch)?;
            let value = match &entry.value {
                Content::Near(value) => value.to_vec(),
                Content::Far(far) => fetch(*far)?,
                Content::Deleted => continue,
            };
            self.push(&key, Some(&value))?;
            if let Content::Far(far) = entry.value {
                self.path.pages.remove_far(far)?;
            }
            self.path.pages.remove_bound(&entry.key)?;
        }
        self.path.pages.removed.push(leaf.page);
        self.path.pages.remove_bound(&leaf.from)
    }
}
