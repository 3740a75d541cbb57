//! Every error of the library. Each variant says who acts next: the caller
//! (a mistake), the caller (retry or make room), an operator (corrupt data, a
//! device), or nobody (the handle is dead).

#![forbid(unsafe_code)]

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The result of every fallible call of this library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong. `Clone`, so that the first cause of a poisoned handle can
/// be given to every later caller.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    // --- the caller's mistake: nothing was written, fix the call -------------
    /// The key is longer than [`MAX_KEY_BYTES`](crate::limits::MAX_KEY_BYTES), or than the tree's Index Y takes.
    #[error("key of {len} bytes is over the limit of {limit}")]
    KeyTooLong {
        /// Length of the refused key in bytes.
        len: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The value is longer than [`MAX_VALUE_BYTES`](crate::limits::MAX_VALUE_BYTES), or than the tree's Index Y takes.
    #[error("value of {len} bytes is over the limit of {limit}")]
    ValueTooLong {
        /// Length of the refused value in bytes.
        len: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// A tree name must be UTF-8 of 1..=255 bytes.
    #[error("tree name of {len} bytes: a name has 1 to 255 bytes")]
    InvalidTreeName {
        /// Length of the refused name in bytes.
        len: usize,
    },
    /// An option has a value that cannot work.
    #[error("option {option}: {reason}")]
    InvalidOption {
        /// Name of the option.
        option: &'static str,
        /// Why it is refused.
        reason: String,
    },
    /// The memory budget is below what the database needs to work at all: when it is opened, or of a write, when what Index Y holds in
    /// memory for its data (the longest keys of an LSM tree, above all) has left Index X no room. Reads go on;
    /// [`Db::set_memory_budget`](crate::Db::set_memory_budget) helps.
    #[error("memory budget of {budget_bytes} bytes is below the minimum of {minimum_bytes}")]
    BudgetTooSmall {
        /// The budget asked for.
        budget_bytes: usize,
        /// The least that works, or of a write about that.
        minimum_bytes: usize,
    },
    /// Trees opened as resident do not fit the budget any more.
    #[error("resident trees need {needed_bytes} bytes, the budget leaves them {available_bytes}")]
    ResidentTreesTooLarge {
        /// Bytes that the resident trees would take.
        needed_bytes: usize,
        /// Bytes that the budget leaves for them.
        available_bytes: usize,
    },
    /// A batch is too large to be logged and applied as one.
    #[error("batch of {bytes} bytes is over the limit of {limit}")]
    BatchTooLarge {
        /// Size of the batch in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// A batch names a tree of another database.
    #[error("a batch takes trees of its own database only")]
    ForeignTree,
    /// A tree exists with another pair of indexes than the one asked for.
    #[error("tree {name:?} is {found}, asked for {asked}")]
    TreeMismatch {
        /// Name of the tree.
        name: String,
        /// What the manifest says.
        found: String,
        /// What the options say.
        asked: String,
    },
    /// No tree of that name.
    #[error("no tree named {name:?}")]
    NoSuchTree {
        /// The name asked for.
        name: String,
    },
    /// A tree of that name exists already.
    #[error("a tree named {name:?} exists")]
    TreeExists {
        /// The name asked for.
        name: String,
    },
    /// There is no database here and `create_if_missing` is false (or the open is read-only).
    #[error("no database in {}", path.display())]
    NoDatabase {
        /// The directory.
        path: PathBuf,
    },
    /// `checkpoint` only writes into a directory that is absent or empty.
    #[error("{} exists and is not empty", path.display())]
    DestinationNotEmpty {
        /// The destination.
        path: PathBuf,
    },
    /// A write on a database opened read-only.
    #[error("the database is open read-only")]
    ReadOnly,
    /// This build or this index does not do that.
    #[error("not supported: {what}")]
    Unsupported {
        /// What was asked for.
        what: String,
    },
    /// The tree was dropped; the handle is of no further use.
    #[error("tree {name:?} was dropped")]
    TreeDropped {
        /// Name that the tree had.
        name: String,
    },
    /// The database was closed through this or another handle.
    #[error("the database is closed")]
    Closed,

    // --- make room or retry ---------------------------------------------------
    /// Another process (or another handle of this one) has the directory open.
    #[error("{} is in use by another process", path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// The device is full. Nothing acknowledged is lost; make room and go on.
    #[error("no space left on the device for {}", path.display())]
    OutOfSpace {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// Memory did not become free within the bounded wait.
    #[error("memory budget of {budget_bytes} bytes: no room became free within {waited_ms} ms")]
    MemoryStalled {
        /// The budget.
        budget_bytes: usize,
        /// How long the writer waited.
        waited_ms: u64,
    },

    // --- an operator looks --------------------------------------------------
    /// The operating system failed an I/O.
    #[error("{op} {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was being done: "open", "read", "write", "sync", ...
        op: &'static str,
        /// The system's answer.
        source: Arc<io::Error>,
    },
    /// Bytes on disk are not what was written. Never returned as data.
    #[error("corrupt data in {} at byte {offset}: {what}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Offset in the file in bytes.
        offset: u64,
        /// What does not hold.
        what: String,
    },
    /// The file was written by another version of the format.
    #[error("{} has format version {found}, this build reads {supported}", path.display())]
    FormatVersion {
        /// The file.
        path: PathBuf,
        /// The version found.
        found: u32,
        /// The version this build reads.
        supported: u32,
    },

    // --- the handle is dead ---------------------------------------------------
    /// An earlier failure (a failed fsync, a panic in the background) ended writing. Reads go on.
    #[error("database is poisoned by an earlier failure: {cause}")]
    Poisoned {
        /// The first cause.
        cause: Arc<str>,
    },
}

impl Error {
    /// Wraps an I/O error with its file and operation (`"open"`, `"write"`, ...); a full device becomes
    /// [`Error::OutOfSpace`]. For implementers of [`IndexY`](crate::index_y::IndexY).
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

    /// Data on disk that breaks its format: file, offset in bytes (0 if unknown), and what does not hold. For
    /// implementers of [`IndexY`](crate::index_y::IndexY).
    pub fn corrupt(path: impl AsRef<Path>, offset: u64, what: impl Into<String>) -> Self {
        Self::Corrupt {
            path: path.as_ref().to_path_buf(),
            offset,
            what: what.into(),
        }
    }
}
