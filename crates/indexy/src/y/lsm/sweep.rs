//! Cleans up after failures: files of runs and compactions that did not come to be.
//!
//! The engine removes such files only when it opens a tree. They may go earlier once nobody can be using them: no
//! run and no compaction in progress, and no old snapshot read.
//!
//! A failure after the manifest was replaced (the last fsync, say) leaves the engine behind its own
//! directory: it would write the next version over the file that `current` names. The tree is poisoned then.

#![forbid(unsafe_code)]

use super::{LsmY, contain::contain_any, manifest, manifest::TABLES};
use crate::error::{Error, Result};
use lsm_tree::{AbstractTree, AnyTree};
use std::{collections::HashSet, fs, io, path::Path, sync::atomic::Ordering::Relaxed};

impl LsmY {
    /// After a failed run or compaction: decides whether the tree may be written again, if that can be found out now.
    pub(super) fn after_failure(&self, tree: &AnyTree) {
        self.litter.store(true, Relaxed);
        self.unsure.store(true, Relaxed);
        // What it says is said again by the next call that writes.
        let _ = self.compare_with_disk(tree);
    }

    /// Poisons the tree if the engine is behind its own directory. A transient error leaves the question open.
    pub(super) fn compare_with_disk(&self, tree: &AnyTree) -> Result<()> {
        // Under the engine's lock, so that no other change is halfway between disk and memory.
        let on_disk = contain_any(&self.dir, || {
            let _no_change = tree.get_version_history_lock();
            manifest::read_current(&self.dir)
        })
        .and_then(|current| current);
        // The engine may hold more than what was published (it failed after its manifest change).
        let compared = on_disk.and_then(|current| self.publish(tree).map(|()| current));
        match compared {
            Ok(Some((version, _))) if version <= self.snapshot().version => {
                self.unsure.store(false, Relaxed);
                Ok(())
            }
            Err(cause) if cause.is_transient() => Err(cause),
            Err(cause) => Err(self.poison.set(&cause)),
            Ok(_) => Err(self
                .poison
                .set(&"the tree's manifest on disk is not the one in memory; open again")),
        }
    }

    /// Removes files that belong to nothing, if no one may be using such files. The caller holds
    /// `maintaining` and `writing`.
    pub(super) fn sweep(&self, tree: &AnyTree) -> Result<()> {
        self.publish(tree)?;
        self.reap();
        if !self.retired.lock().is_empty() {
            return Ok(());
        }
        let snapshot = self.snapshot();
        let live: HashSet<String> = snapshot
            .tables()
            .map(|table| table.id().to_string())
            .collect();
        let version = format!("v{}", snapshot.version);
        remove_all(&self.dir.join(TABLES), |name| {
            name.parse::<u64>().is_ok() && !live.contains(name)
        })?;
        remove_all(&self.dir, |name| {
            let number = name.strip_prefix('v');
            number.is_some_and(|n| n.parse::<u64>().is_ok()) && name != version
        })?;
        self.litter.store(false, Relaxed);
        Ok(())
    }
}

/// Removes what a crash left of the atomic replacement of `current`; the engine does not.
pub(super) fn stale_temporaries(dir: &Path) -> Result<()> {
    remove_all(dir, |name| name.starts_with(".tmp"))
}

fn remove_all(dir: &Path, unwanted: impl Fn(&str) -> bool) -> Result<()> {
    for entry in fs::read_dir(dir).map_err(|e| Error::io("list", dir, e))? {
        let entry = entry.map_err(|e| Error::io("list", dir, e))?;
        if !entry.file_name().to_str().is_some_and(&unwanted) {
            continue;
        }
        match fs::remove_file(entry.path()) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io("remove", entry.path(), e));
            }
            _ => {}
        }
    }
    Ok(())
}
