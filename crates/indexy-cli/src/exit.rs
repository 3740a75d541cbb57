//! Exit codes of the program. A signal's is in `interrupt.rs`.

/// A failure, or an answer that is no: a key that is not there, a damaged database.
pub const FAILED: u8 = 1;
/// The command line makes no sense; nothing was done.
pub const USAGE: u8 = 2;
