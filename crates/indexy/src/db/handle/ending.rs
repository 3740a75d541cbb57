//! The open database with its threads, and how it ends: by `close`, or by the drop of the last
//! handle.
//!
//! Order: keys that wait to be read are given up, writers are refused and waited for, everything is
//! flushed (`close` alone), the threads stop, the log is closed, the hot set is saved, the memory
//! is given back, the Index Ys let go of their files, the directory is unlocked.
//!
//! Threads: any; the first `close` does it, others wait for it. What ends that wait is in
//! `closing.rs`. A waker may call `close` too, and may be called by the thread that ends the
//! database or by one that it joins: there nothing is waited for.

#![forbid(unsafe_code)]

use super::{
    core::{Core, Status},
    updating,
};
use crate::{
    db::options::Durability,
    error::{Error, Result},
    events,
    framework::worker::Background,
    mem::budget::Holder,
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// Longest time that `close` waits for reads in progress, before it leaves the directory locked
/// until they end.
const READERS_LIMIT: Duration = Duration::from_secs(2);
const READERS_POLL: Duration = Duration::from_millis(1);
/// For all caches of Index Ys together once the database is closed, in bytes.
const CACHES_AT_END: usize = 64 << 10;

/// The open database with its threads: what handles hold. The last one to go stops everything.
///
/// It does not unlock the directory: whatever may write there holds the lock itself, and may
/// outlive this (`directory/owned.rs`).
pub(crate) struct Handle {
    pub core: Arc<Core>,
    pub background: Arc<Background>,
}

impl Handle {
    /// Flushes, stops the threads and unlocks the directory. The second call waits for the first
    /// and does nothing; where the first one waits for its thread, it is told `Closed` at once.
    ///
    /// Whatever fails, the handle is closed and the directory free; the first failure is returned.
    pub(crate) fn close(&self) -> Result<()> {
        updating::check(&*self.core)?;
        self.core.directory.check_process()?;
        self.finish(true)
    }

    /// As [`Handle::close`]. Unless it is to `release` them, the memory stays, and the directory
    /// locked, until the last holder drops.
    fn finish(&self, release: bool) -> Result<()> {
        let core = &self.core;
        let Some(_in_progress) = core.closing.begin() else {
            let joined = self.background.owns_this_thread();
            return match core.closing.wait(joined) {
                true => Ok(()),
                false => Err(Error::Closed),
            };
        };
        core.shared.room.begin_closing();
        // A writer that is waited for may itself wait for such a key, and this may be the thread
        // that reads it.
        self.background.close_fetches();
        // Waits for flushes, checkpoints and the like; later ones are refused.
        let _alone = core.operations.write();
        for tree in core.all_trees() {
            tree.set_status(Status::Closed);
        }
        core.stripes.barrier();
        let flushed = if core.options.read_only || core.shared.poison.check().is_err() {
            core.shared.poison.check()
        } else {
            core.flush()
        };
        let stopped = self.stop();
        self.save_hot_set();
        // Snapshots are over; their files go while they are ours.
        core.shared.versions.give_up_all();
        if release {
            self.give_memory_back();
            self.release_directory();
        }
        events::closed(&core.path);
        flushed.and(stopped)
    }

    /// Ends a database that could not be opened: nothing is flushed.
    pub(crate) fn abandon(&self) {
        self.end_without_flush(|| ());
    }

    fn end_without_flush(&self, then: impl FnOnce()) {
        if let Some(_in_progress) = self.core.closing.begin() {
            // The error of recovery, or of what came before, is the one to report.
            let _ = self.stop();
            then();
            events::closed(&self.core.path);
        }
    }

    /// When the threads have ended, and the directory is still locked.
    fn save_hot_set(&self) {
        if let Some(hot) = &self.core.hot
            && self.core.shared.poison.check().is_ok()
        {
            hot.save_at_end(&*self.core);
        }
    }

    /// Handles may live for long: what Y has leaves Index X, and the caches of Y shrink. A read in
    /// progress finds in Y what it does not find in X any more.
    fn give_memory_back(&self) {
        let core = &self.core;
        core.all_joined().iter().for_each(|tree| tree.forget());
        core.dropped.empty(&core.stripes);
        core.memory.collect();
        core.y_shared.set_memory(CACHES_AT_END);
        core.y_shared.lend(0);
        core.shared.room.lend_to_y(0);
        let caches = core.y_shared.memory_bytes();
        core.budget.set(Holder::IndexY, caches);
    }

    fn stop(&self) -> Result<()> {
        self.background.stop();
        self.core.shared.log.get().map_or(Ok(()), |log| log.close())
    }

    /// Unlocks the directory although handles live, once every Index Y has promised to touch no
    /// file any more: those of dropped trees too, which a handle or a read may still hold.
    ///
    /// Files that were replaced go when their last reader does. The next owner might give a new
    /// file the same name, so a reader that takes too long keeps the directory locked until the
    /// last handle and the last Index Y are gone.
    fn release_directory(&self) {
        let deadline = Instant::now() + READERS_LIMIT;
        while !self.core.y_shared.release_files() {
            if Instant::now() >= deadline {
                events::still_read(&self.core.path);
                return;
            }
            std::thread::sleep(READERS_POLL);
        }
        // A log that could not be closed would go on when the last handle goes.
        if let Some(log) = self.core.shared.log.get() {
            log.give_up();
        }
        self.core.directory.release();
    }
}

impl Drop for Handle {
    /// Without `close`: nothing that the durability promised is lost. Without a log nothing was
    /// promised; what is in memory is saved all the same, as far as that works.
    fn drop(&mut self) {
        if self.core.directory.is_forked() {
            // Threads, files and lock are the parent's: in the child nothing is stopped or written.
            std::mem::forget((Arc::clone(&self.core), Arc::clone(&self.background)));
            return;
        }
        let unlogged = matches!(self.core.options.durability, Durability::None);
        if unlogged && !std::thread::panicking() && self.core.check_open().is_ok() {
            let _ = self.finish(false);
        }
        self.end_without_flush(|| {
            if !std::thread::panicking() {
                self.save_hot_set();
            }
        });
    }
}
