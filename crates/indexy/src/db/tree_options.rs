//! Options of a tree: a plain builder, validated when the tree is opened.

#![forbid(unsafe_code)]

use super::kinds::{IndexXKind, IndexYKind};
use crate::{
    error::{Error, Result},
    framework::{
        evicted, expiry,
        operators::MergeOperator,
        policies::{Admission, Evicted},
    },
    versions::time::{Millis, millis_up},
    y::Compression,
};
use std::time::Duration;

/// Bits of a filter for each key: with fewer it denies hardly anything, with more hardly more.
const FILTER_BITS: std::ops::RangeInclusive<u8> = 4..=32;

/// How long entries of a tree live; see [`TreeOptions::ttl`].
///
/// ```
/// use indexy::{TreeOptions, Ttl};
/// use std::time::Duration;
/// let hour = Ttl::Default(Duration::from_secs(3600));
/// let options = TreeOptions::new().ttl(hour);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ttl {
    /// For so long, unless its writer says otherwise. In milliseconds, rounded up.
    Default(Duration),
    /// For as long as its writer says; for ever if he says nothing.
    PerEntry,
}

impl Ttl {
    /// As the manifest has it.
    pub(crate) fn millis(self) -> u64 {
        match self {
            Self::Default(ttl) => millis_up(ttl).min(expiry::NEVER - 1),
            Self::PerEntry => 0,
        }
    }

    /// The same back.
    pub(crate) fn of(default: Millis) -> Self {
        match default {
            expiry::NEVER => Self::PerEntry,
            ttl => Self::Default(Duration::from_millis(ttl)),
        }
    }
}

/// Options of one tree; what is not set is taken from the database's options.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
/// use indexy::{IndexXKind, IndexYKind, TreeOptions};
/// let archive = TreeOptions::new()
///     .index_x(IndexXKind::None)
///     .index_y(IndexYKind::BPlus { page_bytes: 16384 });
/// db.tree_with("archive", archive)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeOptions {
    pub(crate) index_x: Option<IndexXKind>,
    pub(crate) index_y: Option<IndexYKind>,
    pub(crate) resident: Option<bool>,
    pub(crate) compression: Option<Compression>,
    pub(crate) admission: Option<Admission>,
    pub(crate) merge: Option<MergeOperator>,
    pub(crate) evicted: Option<Evicted>,
    pub(crate) ttl: Option<Ttl>,
}

impl TreeOptions {
    /// The database's defaults. [`TreeOptions`] has an example.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Memory index of this tree.
    ///
    /// ```
    /// use indexy::{IndexXKind, TreeOptions};
    /// let options = TreeOptions::new().index_x(IndexXKind::BPlus);
    /// ```
    #[must_use]
    pub fn index_x(mut self, kind: IndexXKind) -> Self {
        self.index_x = Some(kind);
        self
    }

    /// Disk index of this tree.
    ///
    /// ```
    /// use indexy::{IndexYKind, TreeOptions};
    /// let options = TreeOptions::new().index_y(IndexYKind::Lsm);
    /// ```
    #[must_use]
    pub fn index_y(mut self, kind: IndexYKind) -> Self {
        self.index_y = Some(kind);
        self
    }

    /// A resident tree is never released from memory; it still counts against the budget, and
    /// writes fail with `ResidentTreesTooLarge` when it no longer fits. Removals from it go on.
    /// Default: false.
    ///
    /// ```
    /// let options = indexy::TreeOptions::new().resident(true);
    /// ```
    #[must_use]
    pub fn resident(mut self, resident: bool) -> Self {
        self.resident = Some(resident);
        self
    }

    /// How the disk index stores this tree. Default: [`Compression::None`].
    ///
    /// The database remembers it. Opened again with another one, a tree keeps its files as they
    /// are and writes new ones so. `Unsupported` for a disk index that does not compress: of those
    /// of this crate only the [LSM tree](IndexYKind::Lsm) does.
    ///
    /// ```
    /// use indexy::{Compression, TreeOptions};
    /// let options = TreeOptions::new().compression(Compression::Lz4);
    /// ```
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = Some(compression);
        self
    }

    /// Which values read from disk go into memory. Default: [`Admission::Always`].
    ///
    /// The database does not remember it: it holds for all handles of the tree until the database
    /// is closed, or the tree is opened with another one; then it is again what
    /// [`Options::device`] says, or the default. `InvalidOption` for a percent of 0 or
    /// over 100, for [`Admission::Top`] of a tree that keeps nothing it reads
    /// ([`IndexXKind::None`]), and for a resident tree, which keeps all.
    ///
    /// ```
    /// use indexy::{Admission, TreeOptions};
    /// let options = TreeOptions::new().admission(Admission::OnUpdate);
    /// ```
    ///
    /// [`Options::device`]: crate::Options::device
    #[must_use]
    pub fn admission(mut self, admission: Admission) -> Self {
        self.admission = Some(admission);
        self
    }

    /// What [`Tree::merge`](crate::Tree::merge) does. Default: nothing can be merged.
    ///
    /// The database remembers it; a tree that has none yet gets it. Opened again with another one,
    /// the tree is a `TreeMismatch`. `MergeOperatorMissing` for one of your own that is not
    /// [registered](crate::Options::register_merge). A tree opened without this option merges as
    /// before.
    /// `InvalidOption` for a tree whose entries expire ([`TreeOptions::ttl`]).
    ///
    /// ```
    /// use indexy::{MergeOperator, TreeOptions};
    /// let log = TreeOptions::new().merge_operator(MergeOperator::Append {
    ///     separator: b"\n".to_vec(),
    ///     limit: 64 << 10,
    /// });
    /// ```
    #[must_use]
    pub fn merge_operator(mut self, operator: MergeOperator) -> Self {
        self.merge = Some(operator);
        self
    }

    /// What is kept in memory about keys that left it. Default: [`Evicted::Ranges`].
    ///
    /// A [filter](Evicted::Filter) makes absent keys cheap over any disk index. (An LSM tree has
    /// filters of its own, in its cache.) It is built in the background by a scan of the disk
    /// index, a part at a time, after each open, and again where keys came or went;
    /// [`Stats::filters_building`](crate::Stats::filters_building) says whether parts are missing,
    /// and of keys of these the disk is asked as without. A sorted load has the parts that it
    /// touches built anew. Filters of all trees take an eighth of the memory budget at most; what
    /// does not fit is not built.
    ///
    /// The database does not remember it: it holds for all handles of the tree until the database
    /// is closed, or the tree is opened with another one. `InvalidOption` for less than 4 or more
    /// than 32 bits a key, for a resident tree, which never asks the disk, and where the filter of
    /// the keys on disk would not fit.
    ///
    /// ```
    /// use indexy::{Evicted, TreeOptions};
    /// let options = TreeOptions::new().evicted(Evicted::Filter { bits_per_key: 12 });
    /// ```
    #[must_use]
    pub fn evicted(mut self, evicted: Evicted) -> Self {
        self.evicted = Some(evicted);
        self
    }

    /// `InvalidOption` where a tree with about `keys` keys on disk cannot have the filter. Filters
    /// may take `room` bytes more.
    pub(crate) fn check_evicted(&self, resident: bool, keys: u64, room: usize) -> Result<()> {
        let Some(Evicted::Filter { bits_per_key }) = self.evicted else {
            return Ok(());
        };
        let bytes = evicted::bytes_for(keys, bits_per_key);
        let reason = match bits_per_key {
            bits if !FILTER_BITS.contains(&bits) => {
                let (least, most) = FILTER_BITS.into_inner();
                format!("{bits} bits a key: {least} to {most}")
            }
            _ if resident => "a resident tree has all of its keys in memory".into(),
            _ if bytes > room => format!(
                "a filter of {keys} keys takes {bytes} bytes; filters of all trees take an eighth \
                 of the memory budget, of which {room} bytes are left"
            ),
            _ => return Ok(()),
        };
        Err(Error::InvalidOption {
            option: "evicted",
            reason,
        })
    }

    /// Makes entries expire: from its moment on an entry is absent for every read. Default: no
    /// entry expires.
    ///
    /// Each entry has its own time to live: that of its writer
    /// ([`Tree::insert_with_ttl`](crate::Tree::insert_with_ttl)), or the default of the tree at the
    /// time of the write. A write begins a new life, with the default; only
    /// [`Tree::update`](crate::Tree::update) of what is there leaves the moment as it was.
    ///
    /// A snapshot and a transaction see what they began with, however long they are open.
    /// What has expired is dropped later, in the background: from memory when that is released,
    /// from disk by sweeps, each of which reads the tree once. They come when half as much was
    /// written to disk as the tree takes there, or when a quarter of what the last one left has
    /// expired; after an open, when the default has passed, or ten minutes. [`Tree::compact`] has
    /// one at once. What an open snapshot still sees stays.
    ///
    /// The database remembers it. A tree opened again with another default gives it to what is
    /// written from then on; what is there keeps its moment. A tree that was made without cannot
    /// get expiry later (`TreeMismatch`), nor lose it. `InvalidOption` for a default of 0, and for
    /// a resident tree, which drops nothing from memory. A value takes 8 bytes more.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// use indexy::{TreeOptions, Ttl};
    /// use std::time::Duration;
    /// let hour = Duration::from_secs(3600);
    /// let sessions = db.tree_with("sessions", TreeOptions::new().ttl(Ttl::Default(hour)))?;
    /// sessions.insert("ann", "token")?;
    /// assert!(sessions.contains_key("ann")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// [`Tree::compact`]: crate::Tree::compact
    #[must_use]
    pub fn ttl(mut self, ttl: Ttl) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// What [`TreeOptions::ttl`] was told; `None`: nothing.
    ///
    /// ```
    /// use indexy::{TreeOptions, Ttl};
    /// let options = TreeOptions::new().ttl(Ttl::PerEntry);
    /// assert_eq!(options.time_to_live(), Some(Ttl::PerEntry));
    /// ```
    #[must_use]
    pub fn time_to_live(&self) -> Option<Ttl> {
        self.ttl
    }

    /// `InvalidOption` where a tree cannot have the time to live.
    pub(crate) fn check_ttl(&self, resident: bool) -> Result<()> {
        let reason = match self.ttl {
            Some(Ttl::Default(Duration::ZERO)) => "an entry that lives for no time",
            Some(_) if resident => "a resident tree drops nothing from memory",
            _ => return Ok(()),
        };
        Err(Error::InvalidOption {
            option: "ttl",
            reason: reason.into(),
        })
    }

    /// `InvalidOption` where a tree of kind `x` cannot have the admission.
    pub(crate) fn check_admission(&self, x: IndexXKind, resident: bool) -> Result<()> {
        let reason = match self.admission {
            Some(Admission::Top { percent: 0 }) => "to load nothing is Admission::Never".into(),
            Some(Admission::Top { percent }) if percent > 100 => {
                format!("{percent} of a hundred values cannot be loaded")
            }
            Some(Admission::Top { .. }) if x.is_buffer_only() => {
                "a tree without an Index X keeps nothing that it reads".into()
            }
            None | Some(Admission::Always) => return Ok(()),
            Some(_) if resident => "a resident tree keeps all that it reads".into(),
            Some(_) => return Ok(()),
        };
        Err(Error::InvalidOption {
            option: "admission",
            reason,
        })
    }
}
