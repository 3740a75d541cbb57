//! The conformance suite on real files, and what is special about this engine.

use super::*;
use crate::y::conformance::{Store, conformance_tests};
use tempfile::TempDir;

/// A tree in a temporary directory.
struct OnDisk {
    dir: TempDir,
    shared: Arc<LsmShared>,
}

impl OnDisk {
    fn new() -> Self {
        Self {
            dir: TempDir::new().unwrap(),
            shared: Arc::new(LsmShared::new(4 << 20)),
        }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("tree")
    }
}

impl Store for OnDisk {
    type Y = LsmY;
    fn open(&self) -> LsmY {
        LsmY::open(&self.path(), &self.shared, false).unwrap()
    }
    fn open_copy(&self, dir: &Path) -> LsmY {
        LsmY::open(dir, &self.shared, false).unwrap()
    }
    fn copy_dir(&self) -> PathBuf {
        self.dir.path().join("copy")
    }
}

mod suite {
    use super::*;
    conformance_tests!(OnDisk::new());
}
