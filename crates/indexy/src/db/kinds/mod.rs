//! Which indexes there are: the kinds of both, by what they are called in options and manifest.

#![forbid(unsafe_code)]

mod names;

pub(super) use names::Factories;
pub use names::IndexYName;

use crate::{error::Result, framework::policies::RadixEntries};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The memory index of a tree (Index X in the paper).
///
/// Which one: [`Art`](Self::Art) unless something speaks against it; [`BPlus`](Self::BPlus) where
/// memory is tight (a random key of 8 bytes with a value of 8 takes some percent less) or keys are
/// long; [`None`](Self::None) where hot keys are neighbours, so that a cache of pages does as well
/// as one of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum IndexXKind {
    /// Adaptive radix tree with packed leaves.
    #[default]
    Art,
    /// B+ tree with prefix-truncated nodes, normalized key heads and hints.
    #[serde(rename = "bplus")]
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
    /// None but a radix tree of where the disk index has keys: a read goes to page, frame and slot,
    /// or to the value itself if that is large. *Experimental*: it may go again. It pays for large
    /// values that are read in no order; small ones are read faster with [`None`](Self::None).
    ///
    /// For trees over [`IndexYKind::BPlus`], or over a disk index of your own that has
    /// [`locate`](crate::index_y::IndexY::locate). Memory is divided as with [`None`](Self::None);
    /// where no tree has a memory index, a quarter of the budget more is left to buffer and radix
    /// tree together. Reads of one key go by it; `multi_get`, `try_get` and scans do not.
    Radix,
    /// The same with an entry for each leaf of the disk index instead of each key.
    RadixLeaves,
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

impl IndexXKind {
    /// X is a write buffer: what is read from the disk index does not go there.
    pub(crate) fn is_buffer_only(self) -> bool {
        matches!(self, Self::None | Self::Radix | Self::RadixLeaves)
    }

    /// What its radix cache has entries for, if it has one.
    pub(crate) fn radix_entries(self) -> Option<RadixEntries> {
        match self {
            Self::Radix => Some(RadixEntries::Keys),
            Self::RadixLeaves => Some(RadixEntries::Leaves),
            Self::Art | Self::BPlus | Self::None => None,
        }
    }
}

impl fmt::Display for IndexXKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Art => "art",
            Self::BPlus => "bplus",
            Self::None => "none",
            Self::Radix => "radix",
            Self::RadixLeaves => "radix-leaves",
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
