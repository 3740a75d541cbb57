//! What salvage reads out of the files of one disk index.

#![forbid(unsafe_code)]

use super::tolerant::Hole;
use crate::error::Result;

/// One thing that was read.
#[derive(Debug)]
pub(crate) enum Salvaged {
    /// A key with its value. Keys ascend, each once.
    Entry {
        key: Vec<u8>,
        value: Vec<u8>,
        /// A newer version, or a removal, may have been lost.
        doubtful: bool,
    },
    /// What could not be read.
    Lost(Hole),
}

/// Takes what is read. An error ends the reading.
pub(crate) type Visit<'a> = dyn FnMut(Salvaged) -> Result<()> + 'a;
