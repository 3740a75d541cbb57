//! Checking everything: each page of each table, the version log, and what all of it says together.

use super::{read::range::Range, tree::LsmY};
use crate::{error::Result, x::Order};

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
}
