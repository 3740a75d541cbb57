//! The LSM tree as a disk index that another one is built on.

#![forbid(unsafe_code)]

use super::{WORK_BYTES, tree::LsmY};
use crate::{
    error::Result,
    storage::{Buffered, FewOpen, OpenFiles, Storage},
    y::{
        contract::IndexY,
        factory::{IndexYFactory, IndexYShared},
        pool::PageCache,
    },
};
use std::{path::Path, sync::Arc};

/// Tables that are kept open.
const MOST_OPEN_TABLES: usize = 64;
/// Trees of these factories are not told from each other by their files.
const OWNER: u64 = 0;

/// IndexY's own LSM tree, for a disk index of one's own that keeps its durable state in one.
///
/// Trees of a database take it by [`IndexYKind::Lsm`](crate::IndexYKind::Lsm) instead: such a tree
/// also notices a directory that was moved, and files of another tree.
#[derive(Debug, Clone, Copy, Default)]
pub struct LsmFactory;

struct Shared {
    storage: Arc<dyn Storage>,
    cache: PageCache,
}

impl IndexYFactory for LsmFactory {
    fn share(&self, cache_bytes: usize) -> Result<Arc<dyn IndexYShared>> {
        let open = Arc::new(OpenFiles::new(MOST_OPEN_TABLES));
        Ok(Arc::new(Shared {
            storage: Arc::new(FewOpen::new(Arc::new(Buffered), open)),
            cache: PageCache::new(cache_bytes),
        }))
    }

    fn work_bytes(&self) -> usize {
        WORK_BYTES
    }
}

impl IndexYShared for Shared {
    fn open(&self, dir: &Path, read_only: bool) -> Result<Arc<dyn IndexY>> {
        let y = LsmY::open(&self.storage, dir, &self.cache, OWNER, read_only)?;
        Ok(Arc::new(y))
    }

    fn memory_bytes(&self) -> usize {
        self.cache.memory_bytes()
    }

    fn set_memory(&self, cache_bytes: usize) {
        self.cache.set_memory(cache_bytes);
    }
}
