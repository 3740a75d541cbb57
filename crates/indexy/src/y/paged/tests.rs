//! The conformance suite on real files, and what is special about this engine.

use super::*;
use crate::y::conformance::{Store, conformance_tests};
use tempfile::TempDir;

mod crash;
mod damage;
mod decode;
mod stress;

/// A tree in a temporary directory.
pub(super) struct OnDisk {
    dir: TempDir,
    storage: Arc<dyn Storage>,
    shared: PagedShared,
    page_bytes: u32,
}

impl OnDisk {
    pub(super) fn new(page_bytes: u32, memory_bytes: usize) -> Self {
        Self {
            dir: TempDir::new().unwrap(),
            storage: device(),
            shared: PagedShared::new(memory_bytes),
            page_bytes,
        }
    }

    fn open_at(&self, path: &Path) -> PagedY {
        PagedY::open(&self.storage, path, self.page_bytes, &self.shared, 1, false).unwrap()
    }
}

impl Store for OnDisk {
    type Y = PagedY;
    fn open(&self) -> PagedY {
        self.open_at(&self.dir.path().join("tree"))
    }
    fn open_copy(&self, dir: &Path) -> PagedY {
        self.open_at(dir)
    }
    fn copy_dir(&self) -> PathBuf {
        self.dir.path().join("copy")
    }
}

mod pages_of_4_kib {
    use super::*;
    conformance_tests!(OnDisk::new(4096, 4 << 20));
}

/// With as few frames as a pool can have.
mod pages_of_16_kib_tiny_pool {
    use super::*;
    conformance_tests!(OnDisk::new(16384, 0));
}
