//! What of a table lies in a range, about: for the choice of what to merge.

use super::{file::TableFile, read::Table};
use crate::{
    error::Result,
    y::{
        page::{PageSource, node::Node},
        pool::search::Route,
    },
};

impl Table {
    /// Entries and bytes of the file in `[from, to)`, about: as if all leaves under an inner page
    /// had equally many. Cost: none where the range goes past the ends of the table, else the pages
    /// on the way to each bound, through the pool.
    pub(crate) fn estimate(&self, from: &[u8], to: Option<&[u8]>) -> Result<(u64, u64)> {
        let end = to.map_or(Ok(1.0), |to| self.rank(to))?;
        let share = (end - self.rank(from)?).max(0.0);
        let of = |whole: u64| (whole as f64 * share).round() as u64;
        Ok((of(self.meta().entries), of(self.meta().file_bytes())))
    }

    /// A key inside `(from, to)` that halves what the table has there, about: where a segment of
    /// the filter begins, else what an inner page or a leaf has there. `None` if there is none.
    /// Cost: none where a segment begins inside, else the pages on the way to three leaves, through
    /// the pool.
    pub(crate) fn middle(&self, from: &[u8], to: Option<&[u8]>) -> Result<Option<Box<[u8]>>> {
        let inside = |key: &[u8]| *key > *from && to.is_none_or(|to| *key < *to);
        let starts = self.meta().segments.iter().map(|s| &*s.from);
        let starts: Vec<&[u8]> = starts.filter(|key| inside(key)).collect();
        if let Some(start) = starts.get(starts.len() / 2) {
            return Ok(Some(Box::from(*start)));
        }
        let end = to.map_or(Ok(1.0), |to| self.rank(to))?;
        let mut route = Middle {
            before: f64::midpoint(self.rank(from)?, end),
            inside: &inside,
            found: None,
        };
        let in_leaf = self.pages.at_leaf(self.root(), &mut route, |leaf| {
            let keys = (0..leaf.keys()).filter_map(|i| stub(leaf, i));
            let keys: Vec<Box<[u8]>> = keys.filter(|key| inside(key)).collect();
            Ok(Some(keys.get(keys.len() / 2).cloned()))
        })?;
        Ok(route.found.or(in_leaf.flatten()))
    }

    /// Which part of the entries lies before `key`.
    fn rank(&self, key: &[u8]) -> Result<f64> {
        let meta = self.meta();
        if *key <= *meta.min {
            return Ok(0.0);
        }
        if *key > *meta.max {
            return Ok(1.0);
        }
        let mut route = Rank {
            file: self.file(),
            key,
            before: 0.0,
            width: 1.0,
        };
        let fetch = |far| self.file().fetch(far);
        let in_leaf = self.pages.at_leaf(self.root(), &mut route, |leaf| {
            let found = leaf.search(key, &fetch)?;
            Ok(found.map(|(at, _)| at as f64 / leaf.keys().max(1) as f64))
        })?;
        Ok(route.before + route.width * in_leaf.unwrap_or_default())
    }
}

/// To the leaf that has a key; adds up what lies before.
struct Rank<'a> {
    file: &'a TableFile,
    key: &'a [u8],
    before: f64,
    /// What lies under the present page.
    width: f64,
}

impl Route for Rank<'_> {
    const KEEPS_LEAVES: bool = false;

    fn child(&mut self, node: &Node<'_>) -> Result<Option<usize>> {
        let child = node.child_for(self.key, &|far| self.file.fetch(far))?;
        if let Some(i) = child {
            self.width /= node.children() as f64;
            self.before += self.width * i as f64;
        }
        Ok(child)
    }
}

/// The key at `i`, or the first bytes of a long one.
fn stub(node: &Node<'_>, i: usize) -> Option<Box<[u8]>> {
    let mut key = Vec::new();
    node.key(i)?.append_to(&mut key);
    Some(key.into())
}

/// To the leaf that has so much of the table before it; keeps the key next to it that lies inside.
struct Middle<'a> {
    /// What lies before the leaf, as a part of what lies under the present page.
    before: f64,
    inside: &'a dyn Fn(&[u8]) -> bool,
    /// Of the lowest page that has one.
    found: Option<Box<[u8]>>,
}

impl Route for Middle<'_> {
    const KEEPS_LEAVES: bool = false;

    fn child(&mut self, node: &Node<'_>) -> Result<Option<usize>> {
        let at = self.before.clamp(0.0, 1.0) * node.children() as f64;
        let child = (at as usize).min(node.keys());
        self.before = at - child as f64;
        // Key `i` bounds child `i + 1` from below.
        let below = child.checked_sub(1);
        let near = below.into_iter().chain([child]);
        let keys = near.filter_map(|i| stub(node, i));
        if let Some(key) = keys.into_iter().find(|key| (self.inside)(key)) {
            self.found = Some(key);
        }
        Ok(Some(child))
    }
}
