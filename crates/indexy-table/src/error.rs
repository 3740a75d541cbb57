//! Every error of the tables, and who acts next.

use crate::{tree_names::is_of_table, value::Type};
use indexy::error::ErrorKind;

/// The result of every fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong. Nothing of the call was applied, but for errors of the wait for
/// [`Durability::Sync`](indexy::Durability::Sync): see
/// [`Rejected::error`](indexy::Rejected::error).
///
/// ```
/// use indexy_table::Error;
/// let error = Error::DuplicateKey { table: "people".into(), index: "by_name".into() };
/// assert_eq!(error.to_string(), "duplicate key in index by_name of table people");
/// assert!(!error.is_retryable());
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No table of that name, or it was dropped.
    #[error("no table {table}")]
    UnknownTable {
        /// The name asked for.
        table: String,
    },
    /// The table has no such column.
    #[error("table {table} has no column {column}")]
    UnknownColumn {
        /// Name of the table.
        table: String,
        /// The name asked for.
        column: String,
    },
    /// The table has no such index.
    #[error("table {table} has no index {index}")]
    UnknownIndex {
        /// Name of the table.
        table: String,
        /// The name asked for.
        index: String,
    },
    /// A value is not of its column's type, or out of its range.
    #[error("column {column} of table {table} is {expected}: {found} does not fit")]
    WrongType {
        /// Name of the table.
        table: String,
        /// Name of the column.
        column: String,
        /// Type of the column.
        expected: Type,
        /// The value.
        found: String,
    },
    /// A row or a key has another number of values than there are columns.
    #[error("table {table} takes {expected} values here, not {found}")]
    WrongCount {
        /// Name of the table.
        table: String,
        /// Number of columns.
        expected: usize,
        /// Number of values.
        found: usize,
    },
    /// NULL, or no value, for a column that must have one.
    #[error("column {column} of table {table} must not be NULL")]
    NotNull {
        /// Name of the table.
        table: String,
        /// Name of the column.
        column: String,
    },
    /// Another row has this key.
    #[error("duplicate key in index {index} of table {table}")]
    DuplicateKey {
        /// Name of the table.
        table: String,
        /// Name of the unique index, or [`PRIMARY`](crate::PRIMARY).
        index: String,
    },
    /// The row takes more bytes than a value, or a transaction, may.
    #[error("a row of table {table} takes {len} bytes, more than the {limit} that fit")]
    RowTooLarge {
        /// Name of the table.
        table: String,
        /// Bytes of the row with its index entries.
        len: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// A key takes more bytes than the database allows.
    #[error("a key of table {table} takes {len} bytes, more than the {limit} that fit")]
    KeyTooLong {
        /// Name of the table.
        table: String,
        /// Bytes of the encoded key.
        len: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// A schema, or a change of one, that cannot work.
    #[error("schema of table {table}: {reason}")]
    InvalidSchema {
        /// Name of the table.
        table: String,
        /// Why it is refused.
        reason: String,
    },
    /// A table of this name exists with another schema.
    #[error("table {table} exists with another schema: {reason}")]
    SchemaMismatch {
        /// Name of the table.
        table: String,
        /// The first difference.
        reason: String,
    },
    /// The index is still being built: writes keep it, nothing reads it yet.
    #[error("index {index} of table {table} is being built")]
    IndexNotReady {
        /// Name of the table.
        table: String,
        /// Name of the index.
        index: String,
    },
    /// The catalogue was written by another version of this crate.
    #[error("the catalogue of tables has version {found}; this build reads {supported}")]
    CatalogueVersion {
        /// The version found.
        found: u32,
        /// The version this build reads.
        supported: u32,
    },
    /// Stored bytes are not what was written: a raw write to a tree of a table, or damage.
    #[error("corrupt data in table {table}: {what}")]
    Corrupt {
        /// Name of the table; the catalogue's tree for the catalogue itself.
        table: String,
        /// What does not hold.
        what: String,
    },
    /// The database below.
    #[error(transparent)]
    Db(#[from] indexy::Error),
}

impl Error {
    /// Whether a transaction that met it may succeed when it is begun anew: that of
    /// [`indexy::Error::is_retryable`], or an index that it knew was dropped.
    /// [`Tables::transact`](crate::Tables::transact) begins it anew in both cases.
    ///
    /// ```
    /// use indexy_table::Error;
    /// assert!(Error::from(indexy::Error::SnapshotTooOld).is_retryable());
    /// assert!(!Error::UnknownTable { table: "t".into() }.is_retryable());
    /// ```
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        let below = matches!(self, Self::Db(error) if error.is_retryable());
        below || self.is_of_a_dropped_tree()
    }

    /// It names a tree of a table that was dropped.
    pub(crate) fn is_of_a_dropped_tree(&self) -> bool {
        match self {
            Self::Db(indexy::Error::TreeDropped { name }) => is_of_table(name),
            _ => false,
        }
    }

    /// Who acts next.
    ///
    /// ```
    /// use indexy::error::ErrorKind;
    /// use indexy_table::Error;
    /// assert_eq!(Error::UnknownTable { table: "t".into() }.kind(), ErrorKind::Caller);
    /// assert_eq!(Error::from(indexy::Error::Closed).kind(), ErrorKind::Dead);
    /// ```
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            _ if self.is_retryable() => ErrorKind::Retry,
            Self::Db(error) => error.kind(),
            Self::Corrupt { .. } => ErrorKind::Damaged,
            Self::IndexNotReady { .. } => ErrorKind::Retry,
            _ => ErrorKind::Caller,
        }
    }

    pub(crate) fn corrupt(table: &str, what: impl Into<String>) -> Self {
        Self::Corrupt {
            table: table.into(),
            what: what.into(),
        }
    }
}
