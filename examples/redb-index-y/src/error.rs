//! The wall around redb: its errors become IndeXY's, its panics become `Corrupt`.

use indexy::{Error, Result};
use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

/// Runs one call into redb that concerns the file `path`; `op` is what is being done ("read",
/// "write").
pub(crate) fn contain<T, E: Into<redb::Error>>(
    path: &Path,
    op: &'static str,
    call: impl FnOnce() -> Result<T, E>,
) -> Result<T> {
    contain_panics(path, op, || call().map_err(|e| typed(path, op, e.into())))
}

/// As [`contain`], for code of ours that looks into redb's pages.
pub(crate) fn contain_panics<T>(
    path: &Path,
    op: &'static str,
    call: impl FnOnce() -> Result<T>,
) -> Result<T> {
    // What a panic leaves behind is redb's: a transaction that it aborts, or locks that it finds
    // poisoned.
    catch_unwind(AssertUnwindSafe(call))
        .unwrap_or_else(|_| Err(Error::corrupt(path, 0, format!("redb panicked in a {op}"))))
}

fn typed(path: &Path, op: &'static str, error: redb::Error) -> Error {
    match error {
        redb::Error::Corrupted(what) => Error::corrupt(path, 0, what),
        redb::Error::TableDoesNotExist(table) => {
            Error::corrupt(path, 0, format!("table {table} is missing"))
        }
        redb::Error::Io(e) => match e.kind() {
            // What redb says of bytes that it cannot read as a database.
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                Error::corrupt(path, 0, e.to_string())
            }
            _ => Error::io(op, path, e),
        },
        redb::Error::UpgradeRequired(found) => Error::FormatVersion {
            path: path.into(),
            found: found.into(),
            supported: REDB_FORMAT,
        },
        redb::Error::DatabaseAlreadyOpen => Error::Locked {
            path: path.into(),
            this_process: false,
        },
        other => Error::io(op, path, io::Error::other(other.to_string())),
    }
}

/// The file format of redb 3 and 4.
const REDB_FORMAT: u32 = 3;
