//! Which indexes there are: the kinds of both, by what they are called in options and manifest.

#![forbid(unsafe_code)]

mod names;

pub(super) use names::Factories;
pub use names::IndexYName;

use crate::error::Result;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The memory index of a tree (Index X in the paper).
///
/// Which one: [`Art`](Self::Art) unless something speaks against it; [`BPlus`](Self::BPlus) where
/// memory is tight (a random key of 8 bytes with a value of 8 takes a fifth less) or keys are long;
/// [`None`](Self::None) where hot keys are neighbours, so that a cache of pages does as well as one
/// of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum IndexXKind {
    /// Adaptive radix tree with packed leaves.
    #[default]
    Art,
    /// B+ tree with prefix-truncated nodes, normalized key heads and hints.
    BPlus,
    /// None: the disk index alone, as a system of one structure. Writes are gathered in a small
    /// sorted buffer in memory; reads that miss it are answered by the disk index and not kept
    /// there.
    ///
    /// When no tree of a database has a memory index, the caches of the disk index (block cache of
    /// an LSM tree, pages of a paged one) get most of the budget, the buffer an eighth (LSM) or a
    /// sixteenth (paged); beside trees that have one, these caches stay small. Such a tree cannot
    /// be resident.
    None,
}

/// The disk index of a tree (Index Y in the paper).
///
/// Which one: [`Lsm`](Self::Lsm) for writes in random order; [`BPlus`](Self::BPlus) for scans of
/// cold ranges and more reads than writes, with larger pages where writes are many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum IndexYKind {
    /// Log-structured merge tree.
    #[default]
    Lsm,
    /// RocksDB, in builds with the cargo feature `rocksdb`; in others opening a tree with it is
    /// `Unsupported`.
    RocksDb,
    /// Paged B+ tree with its own buffer pool.
    BPlus {
        /// Bytes of a page: 4096, 8192 or 16384.
        page_bytes: u32,
    },
    /// One of your own, registered with
    /// [`Options::register_index_y`](crate::Options::register_index_y); see
    /// [`index_y`](crate::index_y).
    Custom(IndexYName),
}

impl IndexYKind {
    /// The kind registered as `name` with
    /// [`Options::register_index_y`](crate::Options::register_index_y).
    ///
    /// `name`: as [`IndexYName::new`] takes it. Errors: `InvalidOption`.
    ///
    /// ```
    /// use indexy::IndexYKind;
    /// assert_eq!(IndexYKind::custom("redb")?.to_string(), "custom:redb");
    /// # Ok::<(), indexy::Error>(())
    /// ```
    pub fn custom(name: &str) -> Result<Self> {
        IndexYName::new(name).map(Self::Custom)
    }
}

impl fmt::Display for IndexXKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Art => "art",
            Self::BPlus => "bplus",
            Self::None => "none",
        })
    }
}

impl fmt::Display for IndexYKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lsm => f.write_str("lsm"),
            Self::RocksDb => f.write_str("rocksdb"),
            Self::BPlus { page_bytes } => write!(f, "bplus:{page_bytes}"),
            Self::Custom(name) => write!(f, "custom:{name}"),
        }
    }
}
