//! How a log is kept.

use std::time::Duration;

/// When appended records become durable by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogDurability {
    /// At the latest about one interval (and one sync) after the append.
    Buffered { interval: Duration },
    /// When somebody waits for it.
    Sync,
}

/// How a log is kept.
#[derive(Debug, Clone)]
pub(crate) struct LogOptions {
    pub durability: LogDurability,
    /// Nominal size of a segment file in bytes; at least `MIN_SEGMENT_BYTES`.
    pub segment_bytes: u64,
    /// Size of one append buffer in bytes, brought into `MIN_BUFFER_BYTES..=MAX_BUFFER_BYTES`. A
    /// log has three of them.
    pub buffer_bytes: usize,
    pub database_id: u128,
    /// Of what the log does not need any more at least so many bytes stay, for followers.
    pub keep_bytes: u64,
}
