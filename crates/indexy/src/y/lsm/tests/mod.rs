//! The conformance suite on real files, with sizes of real life and with tiny ones, and what is
//! special about this engine.

use super::tree::{LsmY, Sizes};
use crate::{
    error::{Error, Result},
    storage::{Direct, Storage, sim::Sim},
    x::Order,
    y::{
        Compression,
        conformance::{
            Entries, Model, Store, check, conformance_tests, del, put, settle, write, write_both,
        },
        contract::IndexY,
        crashes,
        pool::PageCache,
    },
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tempfile::TempDir;

mod crash;
mod damage;
mod due;
mod hanging;
mod merges;
mod reads;

/// Partitions and tables that a few hundred entries fill.
const TINY: Sizes = Sizes {
    partition_bytes: 24 << 10,
    table_bytes: 16 << 10,
    read_bytes: 32 << 10,
    quiet: Duration::ZERO,
};

/// A tree in a temporary directory.
pub(super) struct OnDisk {
    dir: TempDir,
    storage: Arc<dyn Storage>,
    cache: PageCache,
    sizes: Sizes,
    compression: Compression,
}

impl OnDisk {
    pub(super) fn new() -> Self {
        Self {
            // In memory where the system offers it: these tests sync thousands of times.
            dir: TempDir::new_in("/dev/shm")
                .or_else(|_| TempDir::new())
                .unwrap(),
            storage: Arc::new(Direct),
            cache: PageCache::new(4 << 20),
            sizes: Sizes::default(),
            compression: Compression::None,
        }
    }

    /// With tiny tables, and next to no cache.
    pub(super) fn tiny() -> Self {
        Self {
            cache: PageCache::new(0),
            sizes: TINY,
            ..Self::new()
        }
    }

    fn open_at(&self, path: &Path) -> LsmY {
        let y = LsmY::open_with(&self.storage, path, &self.cache, 1, false, self.sizes).unwrap();
        y.set_compression(self.compression).unwrap();
        y
    }
}

impl Store for OnDisk {
    type Y = LsmY;
    fn open(&self) -> LsmY {
        self.open_at(&self.dir.path().join("tree"))
    }
    fn open_copy(&self, dir: &Path) -> LsmY {
        self.open_at(dir)
    }
    fn copy_dir(&self) -> PathBuf {
        self.dir.path().join("copy")
    }
    fn dir(&self) -> Option<PathBuf> {
        Some(self.dir.path().join("tree"))
    }
    fn open_read_only(&self, dir: &Path) -> Option<Result<LsmY>> {
        Some(LsmY::open(&self.storage, dir, &self.cache, 1, true))
    }
}

mod suite {
    use super::*;
    conformance_tests!(OnDisk::new());
}

mod suite_with_tiny_tables {
    use super::*;
    conformance_tests!(OnDisk::tiny());
}

mod suite_with_packed_leaves {
    use super::*;
    conformance_tests!(OnDisk {
        compression: Compression::Lz4,
        ..OnDisk::tiny()
    });
}

const DIR: &str = "/tree";

fn open_sim(sim: &Sim) -> Result<LsmY> {
    let storage: Arc<dyn Storage> = Arc::new(sim.clone());
    LsmY::open_with(&storage, Path::new(DIR), &PageCache::new(0), 1, false, TINY)
}

/// Writers are never thought to rest, once they have written.
fn open_busy(sim: &Sim, sizes: Sizes) -> LsmY {
    let storage: Arc<dyn Storage> = Arc::new(sim.clone());
    let sizes = Sizes {
        quiet: Duration::from_secs(3600),
        ..sizes
    };
    LsmY::open_with(
        &storage,
        Path::new(DIR),
        &PageCache::new(0),
        1,
        false,
        sizes,
    )
    .unwrap()
}

fn open_sim_packed(sim: &Sim) -> Result<LsmY> {
    let y = open_sim(sim)?;
    y.set_compression(Compression::Lz4)?;
    Ok(y)
}
