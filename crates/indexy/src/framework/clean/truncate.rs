//! Truncating the log: cleaning is the checkpointer.
//!
//! Keeps I6: the new start of the log is the smallest floor over all regions of all trees, taken
//! before every Y is made durable, so that what lies below it is durable in Y.
//! Threads: the cleaner, and `flush`; the log serializes truncation itself.

#![forbid(unsafe_code)]

use super::run::Pick;
use crate::{
    error::Result,
    events,
    framework::{host::Host, shared::Shared, tree::Joined},
    wal::Lsn,
};
use std::sync::Arc;

/// The LSN that nothing dirty lies below. `None` without a log.
pub(crate) fn floor(all: &dyn Host, shared: &Shared) -> Option<Lsn> {
    survey(all, shared).1
}

/// Every tree, and the floor over all of them.
fn survey(all: &dyn Host, shared: &Shared) -> (Vec<Arc<Joined>>, Option<Lsn>) {
    let Some(log) = shared.log.get() else {
        return (all.trees(), None);
    };
    // I6: the end first, the trees second: one that is not there yet logs its first record above
    // this end, and so does a batch that is not registered yet.
    let end = shared.log.floor();
    let trees = all.trees();
    let floor = trees
        .iter()
        .map(|t| t.regions.table().min_floor())
        .fold(end, Lsn::min);
    // What the manifest calls the start of the log is taken for durable: where nothing is dirty
    // (all trees dropped, say) the end may not be.
    let floor = floor.min(log.durable());
    // Of what was replayed with operands either all is kept or nothing.
    match floor < shared.log.first_cut() {
        true => (trees, Some(log.start().min(floor))),
        false => (trees, Some(floor)),
    }
}

/// Makes every Y durable, records the new start of the log durably, and deletes what lies
/// below it. Returns the new floor.
pub(crate) fn truncate(all: &dyn Host, shared: &Shared) -> Result<Option<Lsn>> {
    // I6: the floor first. Runs acknowledged by now are durable afterwards; later ones do not
    // count.
    let (trees, floor) = survey(all, shared);
    for tree in trees {
        tree.writer.make_durable()?;
    }
    if let (Some(log), Some(floor)) = (shared.log.get(), floor) {
        all.persist_log_start(floor)?;
        let freed = shared.guarded(log.truncate_below(floor))?;
        if freed > 0 {
            events::log_truncated(floor.0, freed);
        }
    }
    Ok(floor)
}

/// Writes everything that is dirty in any tree to Y, makes it durable there and truncates the log.
/// A tree that fails does not keep the others from being written; the first failure is returned.
pub(crate) fn flush_all(all: &dyn Host, shared: &Shared) -> Result<()> {
    let mut trees = all.trees();
    trees.retain(|tree| !tree.has_locators);
    let mut flushed = Ok(());
    for tree in &trees {
        // A tree that was dropped meanwhile has nothing to lose.
        let failed = tree.flush().err().filter(|_| !tree.discarded());
        flushed = flushed.and(failed.map_or(Ok(()), Err));
    }
    if flushed.is_err() && shared.log.get().is_none() {
        // No log has what went well.
        for tree in &trees {
            flushed = flushed.and(tree.writer.make_durable());
        }
    }
    flushed?;
    truncate(all, shared).map(|_| ())
}

/// Cleans every region that keeps the log from being cut at `target`.
pub(crate) fn clean_below(all: &dyn Host, target: Lsn) -> Result<()> {
    for tree in all.trees() {
        if tree.regions.table().min_floor() < target {
            tree.write_back(Pick::Below(target))?;
        }
    }
    Ok(())
}
