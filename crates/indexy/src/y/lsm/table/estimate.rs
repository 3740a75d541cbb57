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
    /// the filter begins. `None` if there is none. No I/O.
    pub(crate) fn middle(&self, from: &[u8], to: Option<&[u8]>) -> Option<Box<[u8]>> {
        let inside = |key: &&[u8]| *key > from && to.is_none_or(|to| *key < to);
        let starts = self.meta().segments.iter().map(|s| &*s.from);
        let starts: Vec<&[u8]> = starts.filter(inside).collect();
        starts.get(starts.len() / 2).map(|key| Box::from(*key))
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
