//! Which records of the log count for nothing, because a later sorted load says what their keys
//! are.
//!
//! A load leaves one record behind: from there on, replay begins for its range with what Y has. So
//! these records are read before anything is replayed. Keeps I8. Threads: one; no I/O.

#![forbid(unsafe_code)]

use crate::wal::{LoadAt, Lsn};
use std::{
    collections::{BTreeMap, HashMap},
    ops::Bound::{Excluded, Included, Unbounded},
};

/// Ranges by tree that records below an LSN say nothing of.
#[derive(Debug, Default)]
pub(in crate::db) struct Loads(HashMap<u32, Ranges>);

/// Ranges that do not overlap: where each ends, and the LSN of the newest load over it.
type Ranges = BTreeMap<Vec<u8>, (Option<Vec<u8>>, Lsn)>;

/// From the first, up to the second; `None`: to the end.
pub(in crate::db) type KeyRange = (Vec<u8>, Option<Vec<u8>>);

impl Loads {
    /// `loads` in the order of the log.
    pub(in crate::db) fn new(loads: Vec<LoadAt>) -> Self {
        let mut all = Self::default();
        for load in loads {
            let ranges = all.0.entry(load.tree).or_default();
            put_over(ranges, load.from, load.to, load.lsn);
        }
        all
    }

    /// Whether a record at `lsn` says nothing of `key`.
    pub(in crate::db) fn hides(&self, lsn: Lsn, tree: u32, key: &[u8]) -> bool {
        let Some(ranges) = self.0.get(&tree) else {
            return false;
        };
        let mut at = ranges.range::<[u8], _>((Unbounded, Included(key)));
        at.next_back()
            .is_some_and(|(_, (to, load))| *load > lsn && to.as_deref().is_none_or(|to| key < to))
    }

    /// The parts of `[from, to)` that a record at `lsn` says something of. `None`: all of it.
    pub(in crate::db) fn shown(
        &self,
        lsn: Lsn,
        tree: u32,
        from: &[u8],
        to: Option<&[u8]>,
    ) -> Option<Vec<KeyRange>> {
        let ranges = self.0.get(&tree)?;
        let (mut shown, mut at) = (Vec::new(), from.to_vec());
        for (start, (end, load)) in ranges {
            if to.is_some_and(|to| **start >= *to) {
                break;
            }
            let behind = end.as_ref().is_some_and(|end| *end <= at);
            if behind || *load <= lsn {
                continue;
            }
            if at < *start {
                shown.push((at, Some(start.clone())));
            }
            match end {
                Some(end) => at = end.clone(),
                None => return Some(shown),
            }
        }
        if to.is_none_or(|to| *at < *to) {
            shown.push((at, to.map(<[u8]>::to_vec)));
        }
        Some(shown)
    }
}

/// Puts a range over those that are there.
fn put_over(ranges: &mut Ranges, from: Vec<u8>, to: Option<Vec<u8>>, lsn: Lsn) {
    if to.as_ref().is_some_and(|to| *to <= from) {
        return;
    }
    // What the one before loses, and what is left of it behind the new one.
    let mut before = ranges.range_mut::<[u8], _>((Unbounded, Excluded(&*from)));
    let mut rest = None;
    if let Some((_, (end, load))) = before.next_back()
        && end.as_ref().is_none_or(|end| *end > from)
    {
        rest = Some((end.clone(), *load));
        *end = Some(from.clone());
    }
    let upper = to.as_deref().map_or(Unbounded, Excluded);
    let inside = ranges.range::<[u8], _>((Included(&*from), upper));
    let inside: Vec<Vec<u8>> = inside.map(|(start, _)| start.clone()).collect();
    for start in inside {
        rest = ranges.remove(&start);
    }
    if let (Some(to), Some((end, load))) = (&to, rest)
        && end.as_ref().is_none_or(|end| end > to)
    {
        ranges.insert(to.clone(), (end, load));
    }
    ranges.insert(from, (to, lsn));
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::StdRng};

    /// Keys of one byte against an array that says for each the newest load.
    #[test]
    fn ranges_hide_what_the_newest_load_over_each_key_hides() {
        let mut random = StdRng::seed_from_u64(1);
        for _ in 0..500 {
            let mut newest = [0u64; 256];
            let mut loads = Vec::new();
            for n in 1..random.random_range(2..12u64) {
                let from: u8 = random.random_range(0..40);
                let to: Option<u8> =
                    (random.random_range(0..6) > 0).then(|| random.random_range(0..44));
                let lsn = n * 10;
                let end = to.map_or(256, usize::from);
                newest[from.into()..end.max(from.into())].fill(lsn);
                loads.push(LoadAt {
                    lsn: Lsn(lsn),
                    tree: 7,
                    from: vec![from],
                    to: to.map(|to| vec![to]),
                });
            }
            let loads = Loads::new(loads);
            let lsn = Lsn(random.random_range(0..130));
            for key in 0..=255u8 {
                let hidden = newest[usize::from(key)] > lsn.0;
                assert_eq!(
                    loads.hides(lsn, 7, &[key]),
                    hidden,
                    "{key} {lsn:?} {loads:?}"
                );
                assert!(!loads.hides(lsn, 8, &[key]));
            }
            let (from, to) = (random.random_range(0..50u8), random.random_range(0..60u8));
            let to = (to > 5).then_some([to]);
            let shown = loads.shown(lsn, 7, &[from], to.as_ref().map(|to| &to[..]));
            for key in 0..=255u8 {
                let asked = key >= from && to.is_none_or(|[to]| key < to);
                let expected = asked && newest[usize::from(key)] <= lsn.0;
                let is_in = |(from, to): &KeyRange| {
                    **from <= [key][..] && to.as_ref().is_none_or(|to| [key][..] < **to)
                };
                let times = shown.as_ref().unwrap().iter().filter(|r| is_in(r)).count();
                assert_eq!(
                    times,
                    usize::from(expected),
                    "{key} {from} {to:?} {shown:?}"
                );
            }
        }
    }
}
