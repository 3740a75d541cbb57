//! What a user may choose about cold data. The same for all trees of a database: a release compares
//! the regions of all of them.
//!
//! Nothing of it is stored: it may be another one at each open.

#![forbid(unsafe_code)]

use serde::{Deserialize, Serialize};

/// Which part of memory is released first. All of it goes by *regions*: stretches of keys of some
/// 1/128 of the budget, whose accesses are sampled (one of about a hundred).
///
/// ```
/// use indexy::{Options, Release};
/// let options = Options::new(256 << 20).release(Release::Lru);
/// ```
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Release {
    /// What has the fewest accesses for its keys, by Algorithm 1 of the IndeXY paper: of a tree
    /// over the regions, large subtrees of even density before small ones.
    #[default]
    AccessDensity,
    /// The same, region by region.
    Coldest,
    /// What was not accessed since a hand went over it last, which goes round all regions.
    Clock,
    /// What was accessed longest ago.
    Lru,
    /// What was released longest ago.
    Fifo,
    /// Any region.
    Random,
}

/// What is written to the disk index before its memory is needed, so that a release need not wait.
///
/// ```
/// use indexy::{Options, Precleaning};
/// let options = Options::new(256 << 20).precleaning(Precleaning::Oldest);
/// ```
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Precleaning {
    /// Regions that were written and have been quiet for a while: the check-back of the IndeXY
    /// paper. Where memory is short and nothing is quiet, the oldest ones.
    #[default]
    CheckBack,
    /// Regions that were written to disk longest ago.
    Oldest,
    /// Nothing, but for the log's limit: a release waits for what it needs.
    Off,
}

/// What was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Policies {
    pub(crate) release: Release,
    pub(crate) precleaning: Precleaning,
    /// A release spares what was read since the last one over it, as long as the rest suffices.
    pub(crate) second_chance: bool,
}

impl Default for Policies {
    fn default() -> Self {
        Self {
            release: Release::default(),
            precleaning: Precleaning::default(),
            second_chance: true,
        }
    }
}
