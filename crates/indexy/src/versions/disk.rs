//! Where images are spilled, and how much of them.

#![forbid(unsafe_code)]

use crate::y::lsm::Scratch;
use std::sync::{Arc, OnceLock};

/// See the module header.
pub(crate) struct Disk {
    make: Box<dyn Fn() -> Arc<Scratch> + Send + Sync>,
    scratch: OnceLock<Arc<Scratch>>,
    /// Limit of the files in bytes; 0: nothing is spilled.
    pub(super) limit: u64,
}

impl Disk {
    /// `make` is called when the first image is spilled.
    pub(crate) fn new(limit: u64, make: impl Fn() -> Arc<Scratch> + Send + Sync + 'static) -> Self {
        Self {
            make: Box::new(make),
            scratch: OnceLock::new(),
            limit,
        }
    }

    /// Where to write.
    pub(crate) fn scratch(&self) -> &Arc<Scratch> {
        self.scratch.get_or_init(|| (self.make)())
    }
}
