//! The removal of ranges: one new version without any of them, however many there are.
//!
//! Nothing is written, so all that can fail is that the tree takes no writes any more. That is
//! found out before anybody relies on the removal. The version is made when it is published:
//! merges go on until then.
//!
//! Threads: one, which keeps the lock of writers all the time, so that the files are not released.

use super::tree::LsmY;
use crate::{
    error::Result,
    y::contract::{KeyRange, RangeRemoval},
};
use parking_lot::MutexGuard;

/// See the module header.
pub(super) struct Removal<'y> {
    y: &'y LsmY,
    ranges: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    _one_writer: MutexGuard<'y, ()>,
}

impl<'y> Removal<'y> {
    pub(super) fn begin(y: &'y LsmY, ranges: &[KeyRange<'_>]) -> Result<Self> {
        let one_writer = y.writing.lock();
        y.writable()?;
        let own = |(from, to): &KeyRange<'_>| (from.to_vec(), to.map(<[u8]>::to_vec));
        Ok(Self {
            y,
            ranges: ranges.iter().map(own).collect(),
            _one_writer: one_writer,
        })
    }
}

impl RangeRemoval for Removal<'_> {
    fn publish(self: Box<Self>) -> Result<()> {
        let ranges = self.ranges.iter();
        let ranges: Vec<KeyRange<'_>> = ranges
            .map(|(from, to)| (&from[..], to.as_deref()))
            .collect();
        self.y.change(|version| {
            let nothing = ranges.iter().all(|range| version.has_nothing_in(*range));
            (!nothing).then(|| version.without_ranges(&ranges))
        });
        self.y.clock.wrote();
        Ok(())
    }
}
