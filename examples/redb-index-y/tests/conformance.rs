//! What every Index Y must do.

use indexy::{Result, index_y::conformance::Store};
use redb_index_y::{RedbShared, RedbY};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A tree in a temporary directory.
struct OnDisk {
    dir: TempDir,
    shared: RedbShared,
}

impl OnDisk {
    fn new(cache_bytes: usize) -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            shared: RedbShared::new(cache_bytes),
        }
    }
}

impl Store for OnDisk {
    type Y = RedbY;

    fn open(&self) -> RedbY {
        self.open_copy(&self.dir.path().join("tree"))
    }

    fn open_copy(&self, dir: &Path) -> RedbY {
        self.shared.open_tree(dir, false).unwrap()
    }

    fn copy_dir(&self) -> PathBuf {
        self.dir.path().join("copy")
    }

    fn dir(&self) -> Option<PathBuf> {
        Some(self.dir.path().join("tree"))
    }

    fn open_read_only(&self, dir: &Path) -> Option<Result<RedbY>> {
        Some(self.shared.open_tree(dir, true))
    }
}

mod suite {
    use super::OnDisk;
    indexy::index_y::conformance::conformance_tests!(OnDisk::new(4 << 20));
}

mod next_to_no_cache {
    use super::OnDisk;
    indexy::index_y::conformance::conformance_tests!(OnDisk::new(0));
}
