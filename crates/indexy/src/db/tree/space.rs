//! What a tree takes in memory and on disk, and giving it back.

#![forbid(unsafe_code)]

use super::{bounds, reads::Tree};
use crate::{
    db::handle::updating,
    error::{Error, Result},
    framework::release::by_hand::release_range,
    x::IndexX,
    y::Maintained,
};
use serde::Serialize;
use std::ops::RangeBounds;

/// A compaction may take so many steps, and eight for each so many bytes.
const FEWEST_STEPS: u64 = 64;
const STEP_BYTES: u64 = 8 << 20;

/// What one tree holds; see [`Tree::stats`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TreeStats {
    /// Entries in memory, tombstones included.
    pub x_keys: u64,
    /// Tombstones among them.
    pub x_tombstones: u64,
    /// Entries in memory that the disk index does not have yet.
    pub x_dirty_keys: u64,
    /// Bytes of them in memory.
    pub x_bytes: u64,
    /// Entries on disk, about.
    pub y_keys: u64,
    /// Bytes on disk.
    pub y_bytes_on_disk: u64,
    /// Bytes on disk that hold nothing of use, as far as the disk index knows. What was overwritten
    /// is known when it is merged. The rest of `y_bytes_on_disk` is live.
    pub y_dead_bytes: u64,
    /// Sorted runs that a read may have to look at.
    pub y_runs: u64,
    /// Damaged places on disk that merges have met since the open, and leave alone. More than 0:
    /// look at `Db::verify`.
    pub y_damaged: u64,
}

/// What [`Tree::compact`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Compacted {
    /// Bytes of the tree on disk before.
    pub bytes_before: u64,
    /// And after; while it is under way, at the moment.
    pub bytes_after: u64,
    /// Steps that it took.
    pub steps: u64,
}

impl Tree {
    /// Figures of this tree. Cost: no I/O.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// tree.insert("key", "value")?;
    /// assert_eq!(tree.stats().x_dirty_keys, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> TreeStats {
        let joined = self.at.joined();
        let (x, y) = (joined.x.stats(), &joined.y);
        TreeStats {
            x_keys: x.keys as u64,
            x_tombstones: x.tombstones as u64,
            x_dirty_keys: x.dirty as u64,
            x_bytes: x.bytes as u64,
            y_keys: y.approximate_len(),
            y_bytes_on_disk: y.disk_bytes(),
            y_dead_bytes: y.dead_bytes(),
            y_runs: y.run_count() as u64,
            y_damaged: y.damaged(),
        }
    }

    /// Releases a range of keys from memory: writes to the disk index what that does not have of
    /// the range, and drops all of it from the memory index. Returns the bytes of the memory index
    /// that became free, for other keys of all trees;
    /// [`Stats::memory_used_bytes`](crate::Stats::memory_used_bytes) falls where whole slabs became
    /// free.
    ///
    /// Nothing is lost, and no answer changes: the next read of each key asks the disk index. For
    /// ranges that will not be read soon, which the [policy](crate::Release) would find out later.
    /// Reads and writes go on; what they put into the range meanwhile may stay. Open snapshots and
    /// transactions are as they were. [`Stats::releases`](crate::Stats::releases) counts it; what
    /// the policy knows of accesses is not halved by it, as by its own releases.
    ///
    /// A resident tree stays in memory, and a tree without a memory index
    /// ([`IndexXKind::None`](crate::IndexXKind::None)) keeps its write buffer: there nothing is
    /// done, and the answer is 0. A read-only database drops what it has read.
    ///
    /// Cost: writes each entry of the range that is not on disk yet, after a sync of the log; a
    /// visit of each part of the range in memory. Waits for a run to the disk index that is under
    /// way. Errors: those of [`Tree::insert`]; what was written until then is clean, and nothing
    /// was dropped.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// let events = db.tree("events")?;
    /// events.insert("2025-12-31/1", "late")?;
    /// events.insert("2026-01-01/1", "early")?;
    /// assert!(events.release(.."2026")? > 0);
    /// assert_eq!(events.stats().x_keys, 1);
    /// assert_eq!(events.get("2025-12-31/1")?.unwrap(), b"late");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn release<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<u64> {
        let core = self.at.core();
        self.at.live()?;
        let _open = core.operation()?;
        let (from, to) = bounds::of(range);
        let joined = self.at.joined();
        let nothing = to.as_ref().is_some_and(|to| *to <= from);
        if nothing || joined.resident || joined.buffer_only {
            return Ok(0);
        }
        let to = to.as_deref();
        if !core.options.read_only {
            core.check_writable()?;
            self.at.alive(joined.relieve_y())?;
            self.at.alive(joined.write_back_range(&from, to))?;
        }
        let freed = release_range(joined, (&from, to));
        core.memory.collect();
        core.shared.room.look_at_live();
        core.shared.room.announce_freed();
        Ok(freed)
    }

    /// Gives space on disk back: writes what is in memory of the tree to the disk index, and has
    /// that merge the range until nothing of it is overwritten, removed or expired.
    ///
    /// Reads and writes go on. A range of an LSM tree grows to whole partitions of some 32 MiB. A
    /// paged tree moves the pages at the end of its file to free places in front, whatever the
    /// range, and cuts the end off.
    ///
    /// Cost: up to a read and a write of all that the range has on disk. Errors: those of
    /// [`Tree::insert`]; `Corrupt` for damage, which stays as it is. An LSM tree tells damage in
    /// the range after everything else was done. A paged tree ends at the first damage that it
    /// meets, wherever in the tree that lies, and keeps what was done by then. The handle goes on
    /// after that.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// tree.insert("key", "value")?;
    /// let done = tree.compact::<&str>(..)?;
    /// println!("{} of {} bytes are left", done.bytes_after, done.bytes_before);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compact<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<Compacted> {
        self.compact_with(range, |_| {})
    }

    /// [`Tree::compact`], and calls `progress` with what was done so far after each step that is
    /// not the last: a small tree has no other.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// tree.compact_with::<&str>(.., |done| eprintln!("step {}", done.steps))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compact_with<K: AsRef<[u8]>>(
        &self,
        range: impl RangeBounds<K>,
        mut progress: impl FnMut(Compacted),
    ) -> Result<Compacted> {
        let core = self.at.core();
        self.at.live()?;
        core.check_writable()?;
        updating::check(&**core)?;
        let (from, to) = bounds::of(range);
        let joined = self.at.joined();
        let mut done = Compacted {
            bytes_before: joined.y.disk_bytes(),
            bytes_after: 0,
            steps: 0,
        };
        self.at.alive(joined.flush())?;
        // What is new must be durable before what it replaces goes.
        self.at.alive(joined.writer.make_durable())?;
        // What has expired goes first. Damage is told when the rest is done.
        let swept = match self
            .at
            .alive(joined.sweep(&from, to.as_deref(), || self.at.live()))
        {
            Err(error) if !matches!(error, Error::Corrupt { .. }) => return Err(error),
            swept => swept,
        };
        // Writers that go on make new work: this ends all the same.
        let most = FEWEST_STEPS + 8 * (joined.y.disk_bytes() / STEP_BYTES);
        while done.steps < most
            && self.at.alive(joined.compact(&from, to.as_deref()))? == Maintained::More
        {
            done.steps += 1;
            done.bytes_after = joined.y.disk_bytes();
            progress(done);
            self.at.live()?;
        }
        // A disk index that was told to end does no more steps.
        self.at.live()?;
        done.bytes_after = joined.y.disk_bytes();
        swept.map(|()| done)
    }
}
