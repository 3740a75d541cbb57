//! Every error of the library, and [`Error::kind`]: who acts next.
//!
//! Each variant belongs to one [`ErrorKind`]: the caller made a mistake, a retry may help, room is
//! needed, a device or the data on it needs an operator, or the handle is of no further use.

#![forbid(unsafe_code)]

use crate::key::Key;
use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The result of every fallible call of this library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong.
///
/// [`Error::kind`] says what to do about it; the text says what happened, with the operating
/// system's reason where there is one. (So [`std::error::Error::source`] is always `None`: a report
/// that prints the chain of sources would print that reason twice. It is in [`Error::Io`].)
///
/// `Clone`, so that the first cause of a poisoned handle can be given to every later caller.
///
/// ```
/// use indexy::{Db, Error, Options, error::ErrorKind};
/// let error = Db::open("/absent", Options::new(4 << 20).create_if_missing(false)).unwrap_err();
/// assert!(matches!(error, Error::NoDatabase { .. }));
/// assert_eq!(error.kind(), ErrorKind::Caller);
/// assert_eq!(error.to_string(), "no database in /absent");
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Error {
    // --- the caller's mistake: nothing was written, fix the call ---------------------------------
    /// The key is longer than [`MAX_KEY_BYTES`](crate::limits::MAX_KEY_BYTES), or than the tree's
    /// disk index takes.
    KeyTooLong {
        /// Length of the refused key in bytes.
        len: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The value is longer than [`MAX_VALUE_BYTES`](crate::limits::MAX_VALUE_BYTES), or than the
    /// tree's disk index takes.
    ValueTooLong {
        /// Length of the refused value in bytes.
        len: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// A tree name must be UTF-8 of 1..=255 bytes.
    InvalidTreeName {
        /// Length of the refused name in bytes.
        len: usize,
    },
    /// An option has a value that cannot work.
    InvalidOption {
        /// Name of the option.
        option: &'static str,
        /// Why it is refused.
        reason: String,
    },
    /// A batch is larger than [`Batch::limit`](crate::Batch::limit).
    BatchTooLarge {
        /// Size of the batch in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// A batch, a snapshot or a transaction was given a tree of another database.
    ForeignTree,
    /// A tree exists with another pair of indexes, residence or merge operator than asked for, or
    /// without the expiry that was asked for.
    TreeMismatch {
        /// Name of the tree.
        name: String,
        /// What the manifest says.
        found: String,
        /// What the options say.
        asked: String,
    },
    /// No tree of that name.
    NoSuchTree {
        /// The name asked for.
        name: String,
    },
    /// A tree of that name exists already.
    TreeExists {
        /// The name asked for.
        name: String,
    },
    /// There is no database here and `create_if_missing` is false (or the open is read-only).
    NoDatabase {
        /// The directory.
        path: PathBuf,
    },
    /// A database is a directory; this path, or one above it, is a file.
    NotADirectory {
        /// The path asked for.
        path: PathBuf,
    },
    /// `checkpoint` only writes into a directory that is absent or empty, and a new database is not
    /// made among other files.
    DestinationNotEmpty {
        /// The destination.
        path: PathBuf,
    },
    /// The keys of a sorted load must ascend, each once. Nothing was loaded.
    NotSorted {
        /// Number of the entry whose key is not greater than the one before, the first being 0.
        entry: u64,
    },
    /// A sorted load goes where the tree has no key between its first and its last. Nothing was
    /// loaded.
    RangeNotEmpty {
        /// Name of the tree.
        name: String,
    },
    /// A merge of something that cannot be merged: the operand is none of the tree's operator, or
    /// the value of the key does not suit. Nothing was written.
    MergeRefused {
        /// What does not suit.
        reason: String,
    },
    /// The tree has no merge operator, or one of the program's own that is not registered; see
    /// [`TreeOptions::merge_operator`](crate::TreeOptions::merge_operator).
    MergeOperatorMissing {
        /// Name of the tree, and of the operator where it has one.
        tree: String,
    },
    /// The log does not have the changes from that position on, or not yet. Copy the trees, and
    /// follow from [`Db::newest_change`](crate::Db::newest_change) of before the copy; see
    /// [`Db::changes`](crate::Db::changes).
    ChangesGone {
        /// The position asked for.
        position: u64,
        /// The oldest one that the log has.
        oldest: u64,
        /// The newest one.
        newest: u64,
    },
    /// The tree was made without [`TreeOptions::ttl`](crate::TreeOptions::ttl): its entries do not
    /// expire.
    NoExpiry {
        /// Name of the tree.
        name: String,
    },
    /// An entry that lives for no time.
    ZeroTtl,
    /// A write on a database opened read-only.
    ReadOnly,
    /// The closure of [`Tree::update`](crate::Tree::update) called something of its own database
    /// that could wait for the very lock that it holds: a write, or a call that opens, drops,
    /// flushes, copies, verifies or closes. Reads are fine.
    Reentrant,
    /// This build, this index or this process does not do that.
    Unsupported {
        /// What was asked for.
        what: String,
    },
    /// The file was written by another version of the format.
    FormatVersion {
        /// The file.
        path: PathBuf,
        /// The version found.
        found: u32,
        /// The version this build reads.
        supported: u32,
    },

    // --- retry -----------------------------------------------------------------------------------
    /// The directory is open already, in this process or in another one.
    Locked {
        /// The lock file.
        path: PathBuf,
        /// It is this process that has it open, through another handle.
        this_process: bool,
    },
    /// Memory did not become free within the bounded wait.
    MemoryStalled {
        /// The budget.
        budget_bytes: usize,
        /// How long the writer waited.
        waited_ms: u64,
    },

    /// A transaction read or wrote what another write has changed since it began. Nothing was
    /// written; begun anew it may succeed.
    Conflict {
        /// Name of the tree.
        tree: String,
        /// The key that was changed.
        key: Key,
    },
    /// The snapshot, or that of a transaction, was given up: there was no room for what it needs,
    /// or it could not be written
    /// ([`Options::snapshot_disk_bytes`](crate::Options::snapshot_disk_bytes)). Begin another one.
    SnapshotTooOld,
    /// [`Db::transact`](crate::Db::transact) met a conflict in every attempt.
    RetriesExhausted {
        /// How often the closure ran.
        attempts: u32,
    },

    // --- make room -------------------------------------------------------------------------------
    /// The memory budget is below what the database needs to work at all: when it is opened, or of
    /// a write, when what the disk index holds in memory for its data (the longest keys of an LSM
    /// tree, above all) has left the memory index no room. Reads go on;
    /// [`Db::set_memory_budget`](crate::Db::set_memory_budget) helps.
    BudgetTooSmall {
        /// The budget asked for.
        budget_bytes: usize,
        /// The least that works, or of a write about that.
        minimum_bytes: usize,
    },
    /// Trees opened as resident do not fit the budget any more.
    ResidentTreesTooLarge {
        /// Bytes that the resident trees would take.
        needed_bytes: usize,
        /// Bytes that the budget leaves for them.
        available_bytes: usize,
    },
    /// The device is full. Nothing acknowledged is lost; make room and go on.
    OutOfSpace {
        /// The file that could not grow.
        path: PathBuf,
    },

    // --- an operator looks -----------------------------------------------------------------------
    /// The operating system failed an I/O.
    Io {
        /// The file.
        path: PathBuf,
        /// What was being done: "open", "read", "write", "sync", ...
        op: &'static str,
        /// The system's answer.
        source: Arc<io::Error>,
    },
    /// Bytes on disk are not what was written. Never returned as data.
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Offset in the file in bytes.
        offset: u64,
        /// What does not hold.
        what: String,
    },

    // --- the handle is dead ----------------------------------------------------------------------
    /// The tree was dropped; the handle is of no further use.
    TreeDropped {
        /// Name that the tree had.
        name: String,
    },
    /// The database was closed through this or another handle.
    Closed,
    /// The directory was renamed, removed or replaced while the database was open. Nothing was
    /// written to what is there instead, and nothing more is written. What was acknowledged is
    /// where the directory is now.
    DirectoryMoved {
        /// The directory, as it was called when it was opened.
        path: PathBuf,
    },
    /// An earlier failure (a failed fsync, a panic in the background) ended writing. Reads go on.
    Poisoned {
        /// The first cause.
        cause: Arc<str>,
    },
}

/// Who acts next after an [`Error`].
///
/// ```
/// use indexy::error::{Error, ErrorKind};
/// # let write = || Err::<(), _>(Error::MemoryStalled { budget_bytes: 0, waited_ms: 0 });
/// if let Err(error) = write() {
///     match error.kind() {
///         ErrorKind::Retry => { /* the same call again, later */ }
///         ErrorKind::NoRoom => { /* free disk space or raise the budget; then the same call */ }
///         ErrorKind::Caller => { /* a mistake in the program: fix the call */ }
///         _ => { /* tell an operator */ }
///     }
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A mistake in the call or its options. Nothing was written; the same call fails again.
    Caller,
    /// A passing state. The same call may succeed later, on the same handle; what was done in a
    /// transaction or through a snapshot, in another one.
    Retry,
    /// Disk space or memory is missing. After there is room (a larger disk, a larger budget, less
    /// in resident trees) the same call succeeds, on the same handle.
    NoRoom,
    /// The operating system failed an I/O: an operator looks at the device, its permissions or
    /// limits. After a failed write or sync the handle is poisoned.
    Io,
    /// Data on disk is damaged: an operator restores it. Whatever else is undamaged can still be
    /// read.
    Damaged,
    /// This handle writes no more, or does nothing more. Open the database, or the tree, again.
    Dead,
}

impl Error {
    /// Who acts next. Cost: none.
    ///
    /// ```
    /// use indexy::{Error, error::ErrorKind};
    /// assert_eq!(Error::ReadOnly.kind(), ErrorKind::Caller);
    /// assert_eq!(Error::Closed.kind(), ErrorKind::Dead);
    /// ```
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::KeyTooLong { .. }
            | Self::ValueTooLong { .. }
            | Self::InvalidTreeName { .. }
            | Self::InvalidOption { .. }
            | Self::BatchTooLarge { .. }
            | Self::ForeignTree
            | Self::TreeMismatch { .. }
            | Self::NoSuchTree { .. }
            | Self::TreeExists { .. }
            | Self::NoDatabase { .. }
            | Self::NotADirectory { .. }
            | Self::DestinationNotEmpty { .. }
            | Self::NotSorted { .. }
            | Self::RangeNotEmpty { .. }
            | Self::MergeRefused { .. }
            | Self::MergeOperatorMissing { .. }
            | Self::ChangesGone { .. }
            | Self::NoExpiry { .. }
            | Self::ZeroTtl
            | Self::ReadOnly
            | Self::Reentrant
            | Self::Unsupported { .. }
            | Self::FormatVersion { .. } => ErrorKind::Caller,
            Self::Locked { .. }
            | Self::MemoryStalled { .. }
            | Self::Conflict { .. }
            | Self::SnapshotTooOld
            | Self::RetriesExhausted { .. } => ErrorKind::Retry,
            Self::BudgetTooSmall { .. }
            | Self::ResidentTreesTooLarge { .. }
            | Self::OutOfSpace { .. } => ErrorKind::NoRoom,
            Self::Io { .. } if self.is_transient() => ErrorKind::Retry,
            Self::Io { .. } => ErrorKind::Io,
            Self::Corrupt { .. } => ErrorKind::Damaged,
            Self::TreeDropped { .. }
            | Self::Closed
            | Self::DirectoryMoved { .. }
            | Self::Poisoned { .. } => ErrorKind::Dead,
        }
    }

    /// Whether a transaction that met it may succeed when it is begun anew.
    ///
    /// ```
    /// use indexy::Error;
    /// assert!(Error::SnapshotTooOld.is_retryable());
    /// assert!(!Error::ReadOnly.is_retryable());
    /// ```
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Conflict { .. } | Self::SnapshotTooOld)
    }

    /// It says that memory did not suffice.
    pub(crate) fn is_about_memory(&self) -> bool {
        matches!(
            self,
            Self::MemoryStalled { .. }
                | Self::BudgetTooSmall { .. }
                | Self::ResidentTreesTooLarge { .. }
        )
    }

    /// True when the system was short of file descriptors or memory, or a signal came between: the
    /// call changed nothing that matters and may succeed when it is repeated, so it does not
    /// poison. Never true of a sync: nobody knows what a failed one left on the device.
    ///
    /// ```
    /// use indexy::Error;
    /// use std::io;
    /// const EMFILE: i32 = 24;
    /// let error = Error::io("open", "/data/t", io::Error::from_raw_os_error(EMFILE));
    /// assert!(error.is_transient());
    /// ```
    #[must_use]
    pub fn is_transient(&self) -> bool {
        use rustix::io::Errno;
        const PASSING: [Errno; 5] = [
            Errno::MFILE,
            Errno::NFILE,
            Errno::NOMEM,
            Errno::AGAIN,
            Errno::INTR,
        ];
        let Self::Io { op, source, .. } = self else {
            return false;
        };
        let code = source.raw_os_error();
        !op.starts_with("sync") && PASSING.iter().any(|e| code == Some(e.raw_os_error()))
    }

    /// It says nothing about what the file holds: another program, another user or another moment
    /// reads it.
    pub(crate) fn is_no_damage(&self) -> bool {
        match self {
            Self::FormatVersion { .. } => true,
            Self::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => true,
            error => error.is_transient(),
        }
    }

    /// Wraps an I/O error with its file and operation (`"open"`, `"write"`, ...); a full device
    /// becomes [`Error::OutOfSpace`]. For implementers of [`IndexY`](crate::index_y::IndexY).
    ///
    /// ```
    /// use indexy::Error;
    /// use std::io;
    /// let full = Error::io("write", "/data/t", io::ErrorKind::StorageFull.into());
    /// assert!(matches!(full, Error::OutOfSpace { .. }));
    /// ```
    pub fn io(op: &'static str, path: impl AsRef<Path>, source: io::Error) -> Self {
        let path = path.as_ref().to_path_buf();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::OutOfSpace { path },
            _ => Self::Io {
                path,
                op,
                source: Arc::new(source),
            },
        }
    }

    /// Data on disk that breaks its format: file, offset in bytes (0 if unknown), and what does not
    /// hold. For implementers of [`IndexY`](crate::index_y::IndexY).
    ///
    /// ```
    /// use indexy::{Error, error::ErrorKind};
    /// let error = Error::corrupt("/data/t", 4096, "checksum");
    /// assert_eq!(error.kind(), ErrorKind::Damaged);
    /// assert_eq!(error.to_string(), "corrupt data in /data/t at byte 4096: checksum");
    /// ```
    pub fn corrupt(path: impl AsRef<Path>, offset: u64, what: impl Into<String>) -> Self {
        Self::Corrupt {
            path: path.as_ref().to_path_buf(),
            offset,
            what: what.into(),
        }
    }
}

/// `source` stays `None`: see [`Error`].
impl std::error::Error for Error {}

impl fmt::Display for Error {
    #[allow(clippy::too_many_lines, reason = "a table, one entry per variant")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeyTooLong { len, limit } => {
                write!(f, "key of {len} bytes is over the limit of {limit}")
            }
            Self::ValueTooLong { len, limit } => {
                write!(f, "value of {len} bytes is over the limit of {limit}")
            }
            Self::InvalidTreeName { len } => {
                write!(f, "tree name of {len} bytes: a name has 1 to 255 bytes")
            }
            Self::InvalidOption { option, reason } => write!(f, "option {option}: {reason}"),
            Self::BatchTooLarge { bytes, limit } => {
                write!(f, "batch of {bytes} bytes is over the limit of {limit}")
            }
            Self::ForeignTree => f.write_str("the tree is of another database"),
            Self::TreeMismatch { name, found, asked } => {
                write!(f, "tree {name:?} is {found}, asked for {asked}")
            }
            Self::NoSuchTree { name } => write!(f, "no tree named {name:?}"),
            Self::TreeExists { name } => write!(f, "a tree named {name:?} exists"),
            Self::NoDatabase { path } => write!(f, "no database in {}", path.display()),
            Self::NotADirectory { path } => {
                write!(f, "{} is a file; a database is a directory", path.display())
            }
            Self::DestinationNotEmpty { path } => {
                write!(f, "{} exists and is not empty", path.display())
            }
            Self::NotSorted { entry } => {
                write!(f, "sorted load: the key of entry {entry} does not ascend")
            }
            Self::RangeNotEmpty { name } => {
                write!(f, "sorted load: tree {name:?} has keys in its range")
            }
            Self::MergeRefused { reason } => write!(f, "merge: {reason}"),
            Self::MergeOperatorMissing { tree } => {
                write!(
                    f,
                    "tree {tree} has no merge operator that this program knows"
                )
            }
            Self::ChangesGone {
                position,
                oldest,
                newest,
            } => write!(
                f,
                "changes from position {position} on: the log has those from {oldest} to {newest}"
            ),
            Self::NoExpiry { name } => {
                write!(f, "tree {name:?} was made without a time to live")
            }
            Self::ZeroTtl => f.write_str("a time to live of 0"),
            Self::ReadOnly => f.write_str("the database is open read-only"),
            Self::Reentrant => {
                f.write_str("the closure of an update may only read its own database")
            }
            Self::Unsupported { what } => write!(f, "not supported: {what}"),
            Self::FormatVersion {
                path,
                found,
                supported,
            } => {
                let path = path.display();
                let way_out = match found < supported {
                    true => ": `dump` it with the build that wrote it, and `load` it",
                    false => ": a newer build wrote it",
                };
                write!(
                    f,
                    "{path} has format version {found}, this build reads {supported}{way_out}"
                )
            }
            Self::Locked { path, this_process } => {
                let who = match this_process {
                    true => "this process, through another handle",
                    false => "another process",
                };
                write!(f, "{} is in use by {who}", path.display())
            }
            Self::MemoryStalled {
                budget_bytes,
                waited_ms,
            } => write!(
                f,
                "memory budget of {budget_bytes} bytes: no room became free within {waited_ms} ms"
            ),
            Self::Conflict { tree, key } => {
                write!(f, "conflict: tree {tree:?}, key {key:?} was changed")
            }
            Self::SnapshotTooOld => {
                f.write_str("the snapshot was given up: no room for what it needs")
            }
            Self::RetriesExhausted { attempts } => {
                write!(f, "the transaction met conflicts in {attempts} attempts")
            }
            Self::BudgetTooSmall {
                budget_bytes,
                minimum_bytes,
            } => write!(
                f,
                "memory budget of {budget_bytes} bytes is below the minimum of {minimum_bytes}"
            ),
            Self::ResidentTreesTooLarge {
                needed_bytes,
                available_bytes,
            } => write!(
                f,
                "resident trees need {needed_bytes} bytes, the budget leaves them {available_bytes}"
            ),
            Self::OutOfSpace { path } => {
                write!(f, "no space left on the device for {}", path.display())
            }
            Self::Io { path, op, source } => write!(f, "{op} {}: {source}", path.display()),
            Self::Corrupt { path, offset, what } => {
                write!(
                    f,
                    "corrupt data in {} at byte {offset}: {what}",
                    path.display()
                )
            }
            Self::TreeDropped { name } => write!(f, "tree {name:?} was dropped"),
            Self::Closed => f.write_str("the database is closed"),
            Self::DirectoryMoved { path } => write!(
                f,
                "{} was renamed, removed or replaced while the database was open",
                path.display()
            ),
            Self::Poisoned { cause } => {
                write!(f, "database is poisoned by an earlier failure: {cause}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    /// Says things once, whether the chain of sources is printed or not.
    #[test]
    fn the_systems_reason_is_in_the_text_and_only_there() {
        let reason = io::Error::from_raw_os_error(13);
        let text = reason.to_string();
        let error = Error::io("open", "/data/LOCK", reason);
        assert_eq!(error.to_string(), format!("open /data/LOCK: {text}"));
        assert!(error.source().is_none());
    }

    fn name() -> String {
        "n".to_string()
    }

    fn path() -> PathBuf {
        PathBuf::from("/p")
    }

    fn mistakes_of_the_caller() -> Vec<(ErrorKind, Error)> {
        use ErrorKind::Caller;
        vec![
            (Caller, Error::KeyTooLong { len: 2, limit: 1 }),
            (Caller, Error::ValueTooLong { len: 2, limit: 1 }),
            (Caller, Error::InvalidTreeName { len: 0 }),
            (
                Caller,
                Error::InvalidOption {
                    option: "o",
                    reason: name(),
                },
            ),
            (Caller, Error::BatchTooLarge { bytes: 2, limit: 1 }),
            (Caller, Error::ForeignTree),
            (
                Caller,
                Error::TreeMismatch {
                    name: name(),
                    found: name(),
                    asked: name(),
                },
            ),
            (Caller, Error::NoSuchTree { name: name() }),
            (Caller, Error::TreeExists { name: name() }),
            (Caller, Error::NoDatabase { path: path() }),
            (Caller, Error::NotADirectory { path: path() }),
            (Caller, Error::DestinationNotEmpty { path: path() }),
            (Caller, Error::NotSorted { entry: 1 }),
            (Caller, Error::RangeNotEmpty { name: name() }),
            (Caller, Error::MergeRefused { reason: name() }),
            (Caller, Error::MergeOperatorMissing { tree: name() }),
            (
                Caller,
                Error::ChangesGone {
                    position: 1,
                    oldest: 2,
                    newest: 3,
                },
            ),
            (Caller, Error::NoExpiry { name: name() }),
            (Caller, Error::ZeroTtl),
            (Caller, Error::ReadOnly),
            (Caller, Error::Reentrant),
            (Caller, Error::Unsupported { what: name() }),
            (
                Caller,
                Error::FormatVersion {
                    path: path(),
                    found: 2,
                    supported: 1,
                },
            ),
        ]
    }

    fn others() -> Vec<(ErrorKind, Error)> {
        use ErrorKind::{Damaged, Dead, Io, NoRoom, Retry};
        vec![
            (
                Retry,
                Error::Locked {
                    path: path(),
                    this_process: false,
                },
            ),
            (
                Retry,
                Error::MemoryStalled {
                    budget_bytes: 1,
                    waited_ms: 2,
                },
            ),
            (
                NoRoom,
                Error::BudgetTooSmall {
                    budget_bytes: 1,
                    minimum_bytes: 2,
                },
            ),
            (
                NoRoom,
                Error::ResidentTreesTooLarge {
                    needed_bytes: 2,
                    available_bytes: 1,
                },
            ),
            (NoRoom, Error::OutOfSpace { path: path() }),
            (Io, Error::io("write", "/p", io::Error::other("it"))),
            (Damaged, Error::corrupt("/p", 0, "it")),
            (Dead, Error::TreeDropped { name: name() }),
            (Dead, Error::Closed),
            (Dead, Error::DirectoryMoved { path: path() }),
            (Dead, Error::Poisoned { cause: "it".into() }),
        ]
    }

    /// Who acts next, of every variant. A new one is added above and in [`Error::kind`].
    #[test]
    fn every_error_has_a_kind_and_a_text() {
        let mut texts = std::collections::BTreeSet::new();
        for (kind, error) in mistakes_of_the_caller().into_iter().chain(others()) {
            assert_eq!(error.kind(), kind, "{error:?}");
            assert!(texts.insert(error.to_string()), "{error}");
        }
    }

    #[test]
    fn too_few_descriptors_are_a_reason_to_retry_and_a_failed_device_is_not() {
        let io = |code| Error::io("open", "/f", io::Error::from_raw_os_error(code));
        let (emfile, enfile, eio, eacces) = (io(24), io(23), io(5), io(13));
        assert_eq!(emfile.kind(), ErrorKind::Retry);
        assert_eq!(enfile.kind(), ErrorKind::Retry);
        assert_eq!(eio.kind(), ErrorKind::Io);
        assert_eq!(eacces.kind(), ErrorKind::Io);
        assert_eq!(io(28).kind(), ErrorKind::NoRoom);
    }
}
