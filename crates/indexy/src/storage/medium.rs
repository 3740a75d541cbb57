//! What the files of a database lie on: what the system has there, or a modelled device before it.
//! Threads: any; it does not change.

#![forbid(unsafe_code)]

use super::Storage;
#[cfg(any(test, feature = "testing"))]
use super::modelled::ModelledDevice;
use std::sync::Arc;

/// See the module header. By default what the system has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Medium {
    #[cfg(any(test, feature = "testing"))]
    pub(crate) modelled: Option<ModelledDevice>,
}

impl Medium {
    /// `files` on this medium.
    pub(crate) fn holding(&self, files: Arc<dyn Storage>) -> Arc<dyn Storage> {
        #[cfg(any(test, feature = "testing"))]
        if let Some(device) = &self.modelled {
            return Arc::new(device.before(files));
        }
        files
    }
}
