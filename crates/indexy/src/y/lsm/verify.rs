//! Checking everything: each page of each table, the version log, and what all of it says together.

use super::{read::range::Range, tree::LsmY};
use crate::{
    error::{Error, Result},
    x::Order,
};

impl LsmY {
    /// Reads every table of the current version and the version log; returns the number of entries
    /// that a scan gives.
    pub(super) fn verify_all(&self) -> Result<u64> {
        self.versions.verify()?;
        let version = self.version();
        for table in version.tables().into_values() {
            table.table().verify()?;
        }
        Range::new(self, &[], None, Order::Ascending).try_fold(0, |n, entry| entry.map(|_| n + 1))
    }

    /// Tells `found` of every damaged place of the version log and of the current version's tables.
    pub(super) fn find_damage(&self, found: &mut dyn FnMut(Error)) {
        if let Err(error) = self.versions.verify() {
            found(error);
        }
        for table in self.version().tables().into_values() {
            table.table().find_damage(found);
        }
    }
}
