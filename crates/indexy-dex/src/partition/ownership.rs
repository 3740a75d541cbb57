//! The ranges of one compute server.

use super::table::Table;
use crate::error::{Error, Result};

/// What a compute server owns in an epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ownership {
    epoch: u64,
    /// Ascending, not adjacent, ends included.
    ranges: Vec<(u64, u64)>,
}

impl Ownership {
    /// What `table` gives to `owner`.
    pub fn of(table: &Table, owner: u16) -> Self {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for (low, high, of) in table.segments() {
            if of != owner {
                continue;
            }
            match ranges.last_mut() {
                Some(last) if last.1.checked_add(1) == Some(low) => last.1 = high,
                _ => ranges.push((low, high)),
            }
        }
        Self {
            epoch: table.epoch(),
            ranges,
        }
    }

    /// The epoch of the table.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The same ranges in another epoch.
    pub fn at_epoch(self, epoch: u64) -> Self {
        Self { epoch, ..self }
    }

    /// The ranges, ends included.
    pub fn ranges(&self) -> &[(u64, u64)] {
        &self.ranges
    }

    /// The range with `key`.
    #[inline]
    pub fn range_of(&self, key: u64) -> Option<(u64, u64)> {
        let here = |range: &&(u64, u64)| range.0 <= key && key <= range.1;
        self.ranges.iter().find(here).copied()
    }

    /// [`Error::NotOwner`] unless `key` is owned.
    #[inline]
    pub fn check(&self, key: u64) -> Result<()> {
        let epoch = self.epoch;
        match self.range_of(key) {
            Some(_) => Ok(()),
            None => Err(Error::NotOwner { key, epoch }),
        }
    }

    /// All keys of `low..=high` are owned: a node with these fences is private.
    #[inline]
    pub fn contains(&self, low: u64, high: u64) -> bool {
        self.range_of(low).is_some_and(|range| high <= range.1)
    }

    /// Some key of `low..=high` is owned.
    pub fn overlaps(&self, low: u64, high: u64) -> bool {
        let mut ranges = self.ranges.iter();
        ranges.any(|range| low <= range.1 && range.0 <= high)
    }

    /// The same without `low..=high`.
    pub fn without(&self, low: u64, high: u64) -> Self {
        let mut ranges = Vec::new();
        for &(start, end) in &self.ranges {
            if end < low || high < start {
                ranges.push((start, end));
                continue;
            }
            if start < low {
                ranges.push((start, low - 1));
            }
            if high < end {
                ranges.push((high + 1, end));
            }
        }
        Self {
            epoch: self.epoch,
            ranges,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_joined_cut_and_compared() {
        let table = Table::new(vec![(0, 1), (10, 2), (20, 2), (30, 1)]).unwrap();
        let (one, two) = (Ownership::of(&table, 1), Ownership::of(&table, 2));
        assert_eq!(one.ranges(), [(0, 9), (30, u64::MAX)]);
        assert_eq!(two.ranges(), [(10, 29)]);
        assert!(two.contains(10, 29) && !two.contains(9, 12) && !two.contains(25, 30));
        assert!(!one.contains(0, 40) && one.overlaps(0, 40) && one.overlaps(9, 10));
        assert!(!one.overlaps(10, 29));
        assert!(matches!(
            two.check(30),
            Err(Error::NotOwner { key: 30, .. })
        ));
        assert_eq!(two.without(15, 19).ranges(), [(10, 14), (20, 29)]);
        assert_eq!(two.without(0, 100).ranges(), []);
        assert_eq!(one.without(0, 40).ranges(), [(41, u64::MAX)]);
        assert_eq!(
            one.without(u64::MAX, u64::MAX).ranges(),
            [(0, 9), (30, u64::MAX - 1)]
        );
    }
}
