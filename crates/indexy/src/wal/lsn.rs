//! Positions in the log.

/// A position in the log: a byte offset in its logical stream, never reused.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Lsn(pub u64);
