//! How a disk index stores what it writes.

use serde::{Deserialize, Serialize};
use std::fmt;

/// How the disk index of a tree stores leaves and long values.
///
/// A choice of disk bytes against processor time: a read that misses every cache also decodes one
/// leaf, or a value that stands outside of its leaf. A value over 1 MiB is stored as it is, and so
/// is what would not become smaller. Files say by themselves how they are stored, so the choice can
/// be changed at any time; it applies to what is written from then on, and merges rewrite the rest
/// as they come to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Compression {
    /// As it is.
    #[default]
    None,
    /// LZ4: fast, and a little smaller.
    Lz4,
    /// Zstandard, in builds with the cargo feature `zstd`; in others it is `Unsupported`. Smaller
    /// than LZ4, and several times slower.
    Zstd,
}

impl Compression {
    /// Whether nothing is compressed.
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::None
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        })
    }
}
