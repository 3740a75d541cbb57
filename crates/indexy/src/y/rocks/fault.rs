//! RocksDB's errors as ours. It reports a text alone; kind, file and offset are read out of that.

#![forbid(unsafe_code)]

use crate::error::Error;
use rocksdb::ErrorKind;
use rustix::io::Errno;
use std::{
    io,
    path::{Path, PathBuf},
};

/// An error of RocksDB, met while doing `op` with the tree in `dir`.
pub(super) fn typed(dir: &Path, op: &'static str, error: &rocksdb::Error) -> Error {
    let text: &str = error.as_ref();
    let path = file(dir, text).unwrap_or_else(|| dir.to_path_buf());
    let has = |part| text.contains(part);
    if has("No space left on device") || has("Disk quota exceeded") {
        return Error::OutOfSpace { path };
    }
    // It passes: the database asks again.
    for (message, code) in [
        ("Too many open files in system", Errno::NFILE),
        ("Too many open files", Errno::MFILE),
    ] {
        if has(message) {
            return Error::io(op, path, code.into());
        }
    }
    match error.kind() {
        ErrorKind::IOError if has("No such file or directory") => {
            Error::corrupt(path, 0, format!("a file is missing: {text}"))
        }
        ErrorKind::IOError => Error::io(op, path, io::Error::other(text)),
        ErrorKind::ShutdownInProgress => Error::Closed,
        // Of a run: keys that do not ascend. Of an open or a read: bytes that say so.
        ErrorKind::InvalidArgument if op == "write" => Error::Unsupported { what: text.into() },
        ErrorKind::Busy | ErrorKind::TryAgain | ErrorKind::Aborted | ErrorKind::TimedOut => {
            Error::io(op, path, io::Error::other(text))
        }
        _ => Error::corrupt(path, offset(text).unwrap_or(0), text),
    }
}

/// The file of the tree that a message names, if it names one.
fn file(dir: &Path, text: &str) -> Option<PathBuf> {
    let name = text
        .split(|c: char| c.is_whitespace() || ":,;'\"()[]".contains(c))
        .map(|word| word.rsplit('/').next().unwrap_or(word))
        .map(|name| name.trim_end_matches('.'))
        .find(|name| is_file_name(name))?;
    Some(dir.join(name))
}

fn is_file_name(name: &str) -> bool {
    let numbered = |stem: &str| !stem.is_empty() && stem.bytes().all(|b| b.is_ascii_digit());
    name == "CURRENT"
        || ["MANIFEST-", "OPTIONS-"]
            .iter()
            .any(|prefix| name.strip_prefix(prefix).is_some_and(numbered))
        || [".sst", ".log", ".run"]
            .iter()
            .any(|suffix| name.strip_suffix(suffix).is_some_and(numbered))
}

/// The number after the word "offset".
fn offset(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once("offset ")?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_offsets_are_found() {
        let dir = Path::new("/d/trees/1");
        for (text, name, at) in [
            (
                "Corruption: block checksum mismatch: stored = 1, computed = 2, type = 4  \
                 in /d/trees/1/000009.sst offset 4096 size 4084",
                Some("000009.sst"),
                Some(4096),
            ),
            (
                "Corruption: Can't access /000012.sst: IO error: No such file",
                Some("000012.sst"),
                None,
            ),
            (
                "IO error: While open a file for appending: /d/trees/1/incoming/3.run: x",
                Some("3.run"),
                None,
            ),
            (
                "Corruption: in MANIFEST-000005.",
                Some("MANIFEST-000005"),
                None,
            ),
            ("Corruption: a.sst b.log MANIFEST-", None, None),
        ] {
            assert_eq!(file(dir, text), name.map(|n| dir.join(n)), "{text}");
            assert_eq!(offset(text), at, "{text}");
        }
    }
}
