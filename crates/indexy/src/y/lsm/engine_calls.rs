//! The wall around the engine: its errors become ours, its panics become `Corrupt`.
//!
//! The engine asserts on bytes that it reads, so a damaged table may panic it. A panic that
//! comes out of a *write* may leave the engine's locks poisoned; later calls then
//! panic again and end here again, as typed errors. Reads do not take these locks (`snapshot.rs`).

#![forbid(unsafe_code)]

use crate::error::{Error, Result};
use std::{
    any::Any,
    io::ErrorKind,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

/// Runs one call into the engine that concerns the file or directory `at`.
pub(super) fn contain<T>(
    at: &Path,
    op: &'static str,
    call: impl FnOnce() -> lsm_tree::Result<T>,
) -> Result<T> {
    contain_any(at, || call().map_err(|e| typed(at, op, e)))?
}

/// As [`contain`], for our own code around the engine's decoders.
pub(super) fn contain_decoding<T>(at: &Path, call: impl FnOnce() -> Result<T>) -> Result<T> {
    contain_any(at, call)?
}

/// As [`contain`], for calls that cannot return an error.
pub(super) fn contain_any<T>(at: &Path, call: impl FnOnce() -> T) -> Result<T> {
    // Whatever the call touched is dropped or never used again by the callers of this function,
    // except the engine's own locks, which remember the panic themselves.
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| {
        Error::corrupt(
            at,
            0,
            format!("the engine gave up: {}", panic_text(panic.as_ref())),
        )
    })
}

/// An engine error as ours.
pub(super) fn typed(at: &Path, op: &'static str, error: lsm_tree::Error) -> Error {
    match error {
        lsm_tree::Error::Io(e) if e.kind() == ErrorKind::UnexpectedEof => {
            Error::corrupt(at, 0, format!("the file ends too early: {e}"))
        }
        lsm_tree::Error::Io(e) if e.kind() == ErrorKind::NotFound => {
            Error::corrupt(at, 0, "a file is missing")
        }
        lsm_tree::Error::Io(e) => Error::io(op, at, e),
        lsm_tree::Error::ChecksumMismatch { .. } => {
            Error::corrupt(at, 0, "a block does not match its checksum")
        }
        other => Error::corrupt(at, 0, format!("{other:?}")),
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    if let Some(text) = panic.downcast_ref::<&str>() {
        text
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text
    } else {
        "panic"
    }
}
