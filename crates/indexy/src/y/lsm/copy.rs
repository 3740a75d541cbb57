//! A consistent copy: the tables of one version, and a version log that lists them.

use super::{
    tree::LsmY,
    version::{TABLES, write_copy},
};
use crate::error::Result;
use std::path::Path;

impl LsmY {
    /// Copies the current version into the absent directory `dest` and makes it durable. Runs,
    /// merges and commits go on beside it: the version keeps its tables. Cost: a read and a write
    /// of every table, a sync each.
    pub(super) fn copy_current(&self, dest: &Path) -> Result<()> {
        let version = self.version();
        let (storage, tables) = (&*self.storage, dest.join(TABLES));
        storage.create_dir_all(&tables)?;
        for table in version.tables().into_values() {
            table.table().copy_to(storage, &tables)?;
        }
        storage.sync_dir(&tables)?;
        write_copy(storage, dest, self.owner, &version)?;
        dest.parent()
            .map_or(Ok(()), |parent| storage.sync_dir(parent))
    }
}
