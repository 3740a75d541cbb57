//! What a transaction has read, as far as its commit looks at it.
//!
//! Keys and intervals of each tree. Where they take more memory than a limit, neighbours are
//! joined: then a commit may find a conflict where there is none, and misses none that there is.

#![forbid(unsafe_code)]

use crate::{
    db::handle::TreeCore,
    key::{Key, successor},
    versions::time::Millis,
};
use std::{collections::BTreeSet, sync::Arc};

/// Memory beside the bytes of a key.
const ENTRY_BYTES: usize = 48;

/// `[from, to)`; `None`: to the end.
pub(super) type Interval = (Vec<u8>, Option<Vec<u8>>);

/// What was read of one tree.
pub(super) struct TreeReads {
    pub(super) tree: Arc<TreeCore>,
    pub(super) keys: BTreeSet<Key>,
    /// In the order in which they were read, until they are joined.
    pub(super) intervals: Vec<Interval>,
    bytes: usize,
}

impl TreeReads {
    fn new(tree: &Arc<TreeCore>) -> Self {
        Self {
            tree: tree.clone(),
            keys: BTreeSet::new(),
            intervals: Vec::new(),
            bytes: 0,
        }
    }

    pub(super) fn contains(&self, key: &[u8]) -> bool {
        let inside =
            |(from, to): &Interval| from[..] <= *key && to.as_ref().is_none_or(|to| *key < to[..]);
        self.keys.contains(key) || self.intervals.iter().any(inside)
    }

    fn add_interval(&mut self, from: &[u8], to: Option<&[u8]>) {
        // Nothing depends on a range without keys, and it goes on from no other: its end lies
        // before it.
        if to.is_some_and(|to| to <= from) {
            return;
        }
        if let Some(last) = self.intervals.last_mut() {
            let before = bytes_of(&last.0, last.1.as_deref());
            if goes_on(last, from, to) {
                self.bytes -= before;
                self.bytes += bytes_of(&last.0, last.1.as_deref());
                return;
            }
        }
        self.bytes += bytes_of(from, to);
        self.intervals.push((from.to_vec(), to.map(<[u8]>::to_vec)));
    }

    /// Joins neighbours until all take half of `limit` at most.
    fn join(&mut self, limit: usize) {
        let keys = std::mem::take(&mut self.keys);
        let points = keys.iter().map(|key| (key.to_vec(), Some(successor(key))));
        self.intervals.extend(points);
        self.intervals.sort_unstable();
        self.join_if(|_, _| false);
        while self.bytes > limit / 2 && self.intervals.len() > 1 {
            // Every second one with the next.
            self.join_if(|at, _| at % 2 == 1);
        }
    }

    /// Joins sorted intervals that overlap, and each of which `with_last` says so, by its number.
    fn join_if(&mut self, with_last: impl Fn(usize, &Interval) -> bool) {
        let mut joined: Vec<Interval> = Vec::with_capacity(self.intervals.len());
        for (at, interval) in std::mem::take(&mut self.intervals).into_iter().enumerate() {
            let last = joined.last_mut().filter(|(_, to)| {
                with_last(at, &interval) || to.as_ref().is_none_or(|to| interval.0 <= *to)
            });
            match last {
                Some((_, to)) => {
                    let later = |a: Vec<u8>, b: Vec<u8>| a.max(b);
                    *to = to.take().zip(interval.1).map(|(a, b)| later(a, b));
                }
                None => joined.push(interval),
            }
        }
        let bytes = joined
            .iter()
            .map(|(from, to)| bytes_of(from, to.as_deref()));
        self.bytes = bytes.sum();
        self.intervals = joined;
    }
}

/// Takes `[from, to)` into `last` if a scan goes on there where it was.
fn goes_on((last_from, last_to): &mut Interval, from: &[u8], to: Option<&[u8]>) -> bool {
    if last_to.as_deref() == Some(from) {
        match (last_to.as_mut(), to) {
            (Some(last), Some(to)) => {
                last.clear();
                last.extend_from_slice(to);
            }
            _ => *last_to = None,
        }
        return true;
    }
    if to == Some(&last_from[..]) {
        *last_from = from.to_vec();
        return true;
    }
    false
}

fn bytes_of(from: &[u8], to: Option<&[u8]>) -> usize {
    ENTRY_BYTES + from.len() + to.map_or(0, <[u8]>::len)
}

/// Everything that was read.
pub(super) struct Reads {
    pub(super) trees: Vec<TreeReads>,
    /// Memory of one tree above which neighbours are joined.
    limit: usize,
    /// What of it expires first. To expire is to be removed by somebody else.
    soonest: Option<(Millis, Arc<TreeCore>, Key)>,
}

impl Reads {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            trees: Vec::new(),
            limit,
            soonest: None,
        }
    }

    /// `key` was read, and expires at `expires`.
    pub(super) fn add_expiry(&mut self, tree: &Arc<TreeCore>, key: &[u8], expires: Millis) {
        if expires < self.soonest.as_ref().map_or(Millis::MAX, |(at, ..)| *at) {
            self.soonest = Some((expires, tree.clone(), Key::new(key)));
        }
    }

    /// What was there when it was read, and has expired at `now`.
    pub(super) fn expired(&self, now: impl FnOnce() -> Millis) -> Option<(&TreeCore, &Key)> {
        let (expires, tree, key) = self.soonest.as_ref()?;
        (*expires <= now()).then_some((&**tree, key))
    }

    pub(super) fn of(&self, tree: &TreeCore) -> Option<&TreeReads> {
        self.trees
            .iter()
            .find(|reads| std::ptr::eq(&*reads.tree, tree))
    }

    fn of_mut(&mut self, tree: &Arc<TreeCore>) -> &mut TreeReads {
        let known = self
            .trees
            .iter()
            .position(|reads| Arc::ptr_eq(&reads.tree, tree));
        let at = known.unwrap_or_else(|| {
            self.trees.push(TreeReads::new(tree));
            self.trees.len() - 1
        });
        &mut self.trees[at]
    }

    pub(super) fn add_key(&mut self, tree: &Arc<TreeCore>, key: &[u8]) {
        let limit = self.limit;
        let reads = self.of_mut(tree);
        if reads.keys.insert(Key::new(key)) {
            reads.bytes += ENTRY_BYTES + key.len();
            if reads.bytes > limit {
                reads.join(limit);
            }
        }
    }

    pub(super) fn add_interval(&mut self, tree: &Arc<TreeCore>, from: &[u8], to: Option<&[u8]>) {
        let limit = self.limit;
        let reads = self.of_mut(tree);
        reads.add_interval(from, to);
        if reads.bytes > limit {
            reads.join(limit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Db, Options};

    /// Scans that begin at short keys and end at long ones, each of two steps.
    #[test]
    fn a_scan_that_goes_on_counts_with_its_new_end() {
        const LIMIT: usize = 64 << 10;
        const LONG: usize = 20_000;
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path(), Options::new(4 << 20)).unwrap();
        db.tree("t").unwrap();
        let tree = db.core().trees.read().values().next().unwrap().clone();
        for backwards in [false, true] {
            let mut reads = Reads::new(LIMIT);
            for n in 0..200u32 {
                let at = if backwards { 1000 - n } else { n };
                let start = [at.to_be_bytes(), [0; 4]].concat();
                let middle = [at.to_be_bytes(), [1; 4]].concat();
                let end = [&at.to_be_bytes()[..], &[2; LONG]].concat();
                let steps = match backwards {
                    true => [(&middle, &end), (&start, &middle)],
                    false => [(&start, &middle), (&middle, &end)],
                };
                for (from, to) in steps {
                    reads.add_interval(&tree, from, Some(to));
                }
                let reads = reads.of(&tree).unwrap();
                let all = reads.intervals.iter();
                let held: usize = all.map(|(from, to)| bytes_of(from, to.as_deref())).sum();
                assert_eq!(reads.bytes, held);
                assert!(held <= LIMIT + LONG + 100, "{held} after {n}");
                assert!(reads.contains(&start) && reads.contains(&middle));
            }
        }
    }
}
