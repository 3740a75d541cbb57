//! Damage that merges met. They leave it alone and go on elsewhere.
//!
//! A merge that cannot read a part of a table has nothing to put in its place, and to leave out
//! what it cannot read would lose keys in silence. So the part stays: its keys are `Corrupt` to
//! reads, all others are read as before. The place is remembered until the tree is closed, by the
//! table and the bounds of the partition, so that the same merge is not begun again. A partition
//! that is cut afterwards is tried once more: the damage lies in one of its pieces.
//!
//! Threads: any; held for a moment. Not here: what is merged instead (`compact/policy.rs`).

use super::{
    stored::Stored,
    version::{Part, Partition, TableFile, Version},
};
use crate::{
    error::{Error, Result},
    events,
};
use parking_lot::Mutex;
use std::{
    path::Path,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// See the module header.
#[derive(Default)]
pub(super) struct Damaged {
    places: Mutex<Vec<Place>>,
    met: AtomicU64,
}

/// What of a table could not be read.
struct Place {
    table: u64,
    from: Box<[u8]>,
    to: Option<Box<[u8]>>,
    found: Error,
}

impl Place {
    /// Whether it lies in `[from, to)`.
    fn is_inside(&self, from: &[u8], to: Option<&[u8]>) -> bool {
        *from <= *self.from && ends_by(self.to.as_deref(), to)
    }

    /// Whether something of `[from, to)` lies in it.
    fn meets(&self, from: &[u8], to: Option<&[u8]>) -> bool {
        self.to.as_deref().is_none_or(|end| from < end) && to.is_none_or(|to| *self.from < *to)
    }
}

/// Whether a range that ends at `end` ends at `to` or before; `None` is behind all keys.
fn ends_by(end: Option<&[u8]>, to: Option<&[u8]>) -> bool {
    match (end, to) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(end), Some(to)) => end <= to,
    }
}

impl Damaged {
    /// Remembers what stopped a merge of `part`, if that was a table of it in the folder `tables`;
    /// else it is the caller's error.
    pub(super) fn note(
        &self,
        part: &Part<Stored>,
        major: bool,
        tables: &Path,
        error: Error,
    ) -> Result<()> {
        let inputs = part.layers().iter().chain(part.base(major));
        let unreadable = unreadable(&error).filter(|path| path.parent() == Some(tables));
        let name = unreadable.and_then(|path| path.file_name()?.to_str()?.parse().ok());
        let Some(table) = inputs
            .map(|table| table.facts().number)
            .find(|number| Some(*number) == name)
        else {
            return Err(error);
        };
        events::damage_left_alone(&error);
        let place = Place {
            table,
            from: part.partition.from.clone(),
            to: part.partition.to.clone(),
            found: error,
        };
        let mut places = self.places.lock();
        // A smaller place says more.
        places.retain(|known| {
            known.table != table || !place.is_inside(&known.from, known.to.as_deref())
        });
        places.push(place);
        self.met.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Whether a merge of `partition` would meet damage of `table`.
    pub(super) fn is_in(&self, partition: &Partition<Stored>, table: &Stored) -> bool {
        let number = table.facts().number;
        let (from, to) = (&*partition.from, partition.to.as_deref());
        let places = self.places.lock();
        places
            .iter()
            .any(|place| place.table == number && place.is_inside(from, to))
    }

    /// What a merge of all of `partition` would meet.
    pub(super) fn of(&self, partition: &Partition<Stored>) -> Option<Error> {
        let (from, to) = (&*partition.from, partition.to.as_deref());
        let places = self.places.lock();
        let mut met = places.iter().filter(|place| place.is_inside(from, to));
        let is_there = |place: &&Place| {
            let mut tables = partition.tables();
            tables.any(|table| table.facts().number == place.table)
        };
        met.find(is_there).map(|place| place.found.clone())
    }

    /// Forgets what `version` does not have any more.
    pub(super) fn keep(&self, version: &Version<Stored>) {
        let mut places = self.places.lock();
        if places.is_empty() {
            return;
        }
        let is_left = |place: &Place| {
            let in_range = version
                .partitions()
                .iter()
                .filter(|partition| place.meets(&partition.from, partition.to.as_deref()));
            let mut tables = in_range.flat_map(|partition| partition.tables());
            tables.any(|table| table.facts().number == place.table)
        };
        places.retain(is_left);
    }

    /// What was met first in `[from, to)`, if it is still there.
    pub(super) fn first(&self, from: &[u8], to: Option<&[u8]>) -> Option<Error> {
        let places = self.places.lock();
        let mut met = places.iter().filter(|place| place.meets(from, to));
        met.next().map(|place| place.found.clone())
    }

    pub(super) fn count(&self) -> u64 {
        self.places.lock().len() as u64
    }

    /// How often damage was met.
    pub(super) fn met(&self) -> u64 {
        self.met.load(Relaxed)
    }
}

/// The file that cannot be read, if that is what the error says, and not that reading was refused
/// for a while.
pub(super) fn unreadable(error: &Error) -> Option<&Path> {
    match error {
        Error::Corrupt { path, .. } => Some(path),
        Error::Io {
            op: "read" | "open",
            path,
            ..
        } if !error.is_transient() => Some(path),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn a_file_that_cannot_be_opened_is_unreadable_and_want_of_descriptors_is_not() {
        for op in ["open", "read"] {
            let failed = |errno: Errno| Error::io(op, "/tables/7", errno.into());
            assert!(unreadable(&failed(Errno::IO)).is_some());
            assert!(unreadable(&failed(Errno::NOENT)).is_some());
            assert!(unreadable(&failed(Errno::MFILE)).is_none());
        }
        let write = Error::io("write", "/tables/7", Errno::IO.into());
        assert!(unreadable(&write).is_none());
    }
}
