//! Truncating the log: pre-cleaning is the checkpointer.
//!
//! Source: design 3 ("Checkpoint") and 5. Keeps I6: the new start of the log is the smallest floor over all
//! regions of all trees, taken before every Y is made durable, so that what lies below it is durable in Y.
//! Threads: the cleaner, and `flush`; the log serializes truncation itself.

#![forbid(unsafe_code)]

use super::{joined::Joined, shared::Shared, transfer::Pick};
use crate::{error::Result, wal::Lsn};
use std::sync::Arc;

/// The LSN that nothing dirty lies below. `None` without a log.
pub(crate) fn floor(trees: &[Arc<Joined>], shared: &Shared) -> Option<Lsn> {
    shared.log.get()?;
    // Taken first: a tree without regions in the way bounds it, and so does a batch in flight.
    let end = shared.sweep_floor();
    Some(
        trees
            .iter()
            .map(|t| t.regions.table().min_floor())
            .fold(end, Lsn::min),
    )
}

/// Makes every Y durable, lets `persist` record the new start of the log, and deletes what lies
/// below it. Returns the new floor.
pub(crate) fn truncate(
    trees: &[Arc<Joined>],
    shared: &Shared,
    persist: &dyn Fn(Lsn) -> Result<()>,
) -> Result<Option<Lsn>> {
    // I6: the floor first. Runs acknowledged by now are durable afterwards; later ones do not count.
    let floor = floor(trees, shared);
    for tree in trees {
        if let Err(error) = tree.y.make_durable() {
            if !tree.discarded() {
                return Err(error);
            }
        }
    }
    if let (Some(log), Some(floor)) = (shared.log.get(), floor) {
        persist(floor)?;
        log.truncate_below(floor)?;
    }
    Ok(floor)
}

/// Cleans every region that keeps the log from being cut at `target`.
pub(crate) fn clean_below(trees: &[Arc<Joined>], target: Lsn) -> Result<()> {
    for tree in trees {
        if tree.regions.table().min_floor() < target {
            tree.write_back(Pick::Below(target))?;
        }
    }
    Ok(())
}
