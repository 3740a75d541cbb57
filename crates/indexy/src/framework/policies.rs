//! What a user may choose about hot and cold data. The same for all trees of a database: a release
//! compares the regions of all of them.
//!
//! Nothing of it is stored: it may be another one at each open.

#![forbid(unsafe_code)]

use serde::{Deserialize, Serialize};
use std::time::Duration;

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

/// Whether the keys that are worth their memory outlive the process, so that the next open brings
/// them back before they are asked for.
///
/// What is kept are keys, never values: those that the memory index holds, up to 1 KiB long.
/// Sampled reads, counted in 1/256 of the budget (8 MiB at most), say which come first. They lie in
/// one file, `HOT`, of half the memory budget at most, in the directory of the database; a program
/// that keeps none opens the database as ever.
///
/// ```
/// use indexy::{HotSet, Options};
/// use std::time::Duration;
/// let every = Duration::from_secs(600);
/// let options = Options::new(256 << 20).hot_set(HotSet::Keep { every });
/// ```
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum HotSet {
    /// Memory is empty after an open, and misses fill it. A file that is there stays as it is.
    #[default]
    Off,
    /// Saved by [`Db::close`](crate::Db::close), by the drop of the last handle, and from time to
    /// time; loaded in the background after each open. A database with fewer reads of keys and
    /// writes than a tenth of the keys in the file leaves it as it is; with fewer than memory has
    /// keys, where that was full before half of the file was loaded.
    Keep {
        /// Time between two saves of an open database, at least; nothing is saved while nobody
        /// reads or writes. It says how old the keys may be after a crash. `Duration::MAX`: they
        /// are saved at the end alone. Zero is refused.
        every: Duration,
    },
}

/// Which of the values that reads find on disk go into the memory index, so that the next read
/// finds them there. What is not admitted is answered all the same, and read from disk again.
///
/// A policy of one tree, asked on a miss only: a hit costs the same under each. Writes always go to
/// memory. Scans load nothing under any policy; `multi_get`, snapshots and transactions load as
/// single reads do. That a key is absent is remembered under none.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
/// use indexy::{Admission, TreeOptions};
/// let options = TreeOptions::new().admission(Admission::Top { percent: 20 });
/// let tree = db.tree_with("pages", options)?;
/// assert_eq!(tree.admission(), Admission::Top { percent: 20 });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Admission {
    /// All.
    #[default]
    Always,
    /// Those that are read from disk most: of the misses that came lately, the part with the
    /// highest counts. Fewer values go into memory, so fewer have to leave it.
    ///
    /// Misses of each key are counted, roughly, in 1/128 of the memory budget for all trees
    /// together, 8 MiB at most; the counts age, and begin anew when the database is opened or its
    /// budget changes. Where more keys have the same count than may go, some of them go. So an
    /// empty memory fills with this part of the misses.
    Top {
        /// Of a hundred values read from disk, how many go into memory: 1 to 100.
        percent: u8,
    },
    /// Only those that are read to be written: by [`Tree::update`](crate::Tree::update) and
    /// [`Tree::compare_and_swap`](crate::Tree::compare_and_swap), whether they write in the end or
    /// not, and by [`Tree::merge`](crate::Tree::merge) when many operands wait.
    OnUpdate,
    /// None.
    Never,
}

/// What is kept in memory about keys that have left it. A policy of one tree.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
/// use indexy::{Evicted, TreeOptions};
/// let filter = Evicted::Filter { bits_per_key: 10 };
/// let tree = db.tree_with("pages", TreeOptions::new().evicted(filter))?;
/// assert_eq!(tree.evicted(), filter);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Evicted {
    /// The ranges of keys of which some left. A key of such a range that is not in memory is looked
    /// for on disk, absent or not.
    #[default]
    Ranges,
    /// Beside the ranges, a filter over the keys on disk: of absent keys it tells most, without
    /// I/O. With 10 bits a key it asks the disk for about one absent key in a hundred, with 14 for
    /// one in seven hundred, with 8 for one in forty.
    Filter {
        /// Memory for each key on disk, in bits: 4 to 32; a third more until a part of the filter
        /// is full.
        bits_per_key: u8,
    },
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

/// What a radix cache has an entry for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RadixEntries {
    /// Each key that was read.
    Keys,
    /// Each leaf of the disk index in which a key was read.
    Leaves,
}
