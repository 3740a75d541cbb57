//! A snapshot that is held open. It ends when the last holder drops it.
//!
//! Threads: any. It keeps the database's handle, so that the directory stays locked.

#![forbid(unsafe_code)]

use super::ending::Handle;
use crate::{
    error::{Error, Result},
    versions::{Epoch, Pin, Spared, time::Millis},
};
use std::sync::Arc;

/// See the module header.
pub(crate) struct Pinned {
    pin: Arc<Pin>,
    pub(crate) handle: Arc<Handle>,
}

impl Pinned {
    /// Begins a snapshot. Errors: `Closed`, `Unsupported` in a forked child.
    pub(crate) fn begin(handle: &Arc<Handle>) -> Result<Arc<Self>> {
        handle.core.directory.check_process()?;
        handle.core.check_open()?;
        Ok(Arc::new(Self {
            pin: handle.core.shared.versions.begin(),
            handle: handle.clone(),
        }))
    }

    #[inline]
    pub(crate) fn epoch(&self) -> Epoch {
        self.pin.epoch()
    }

    /// When it began: what had expired by then is absent.
    pub(crate) fn time(&self) -> Millis {
        self.pin.time()
    }

    /// `SnapshotTooOld` if the snapshot was given up.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        match self.pin.is_expired() {
            true => Err(Error::SnapshotTooOld),
            false => Ok(()),
        }
    }

    /// For a commit; see [`Spared`].
    pub(crate) fn spare(&self) -> Result<Spared<'_>> {
        let spared = self.handle.core.shared.versions.spare(&self.pin);
        spared.ok_or(Error::SnapshotTooOld)
    }

    /// `read`, if the snapshot was not given up meanwhile: then it may be wrong.
    #[inline]
    pub(crate) fn checked<R>(&self, read: Result<R>) -> Result<R> {
        match self.check() {
            Ok(()) => read,
            Err(too_old) => read.and(Err(too_old)),
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // A forked child has copies of locks that nobody gives back.
        if !self.handle.core.directory.is_forked() {
            self.handle.core.shared.versions.end(&self.pin);
        }
    }
}
