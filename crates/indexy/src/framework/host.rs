//! What the framework asks of the database.

#![forbid(unsafe_code)]

use super::{memory::Holdings, tree::Joined};
use crate::{error::Result, wal::Lsn};
use std::sync::Arc;

/// The database, as its background threads see it.
pub(crate) trait Host: Holdings {
    /// The trees that are open now.
    fn trees(&self) -> Vec<Arc<Joined>>;
    /// Records the new start of the log durably, before the log is cut there.
    fn persist_log_start(&self, start: Lsn) -> Result<()>;
    /// Log bytes above which regions are cleaned by age.
    fn log_limit_bytes(&self) -> u64;
    /// Gives retired memory back where possible.
    fn collect_garbage(&self);
    /// Moves what is in the way of slabs going back, some `bytes` bytes of them.
    fn empty_slabs(&self, bytes: usize);
    /// Empties dropped trees again to which a writer has written late. Waits for nobody.
    fn empty_dropped(&self);
    /// Gives X and the caches of Y their parts of the budget, as they are now.
    fn divide_memory(&self);
}
