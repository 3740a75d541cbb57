//! The write-ahead log: one per database, shared by all trees.
//!
//! The bytes are in `docs/formats/wal.md`. An [`Lsn`] is a byte offset in the stream of records;
//! headers of groups and segments do not count.
//!
//! - `record.rs`: bytes of records and batches. `segment.rs`: bytes of segments and groups.
//! - `append.rs`: the memory that appends go to. `line.rs`: the order of what waits to be written.
//! - `writer.rs`: the newest segment. `group_commit.rs`: who writes and syncs, and when.
//! - `reader.rs`, `recovery.rs`, `secure.rs`: opening. `truncation.rs`: the segments on disk, and
//!   their removal. `copy.rs`: copies of the log. `follow.rs`: its records, for those who follow
//!   the changes.
//!
//! Keeps: I5, I6, I8 (its part: the order of LSNs is the order of appends).
//! Threads: every method from any; one flusher, joined by `close` and by drop.
//! Not here: who may truncate (`framework/`), what a record means (`db/`).

#![forbid(unsafe_code)]

mod append;
mod copy;
mod follow;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod fuzzing;
mod group_commit;
mod line;
mod lsn;
mod options;
mod reader;
mod record;
mod recovery;
pub(crate) mod salvage;
mod secure;
mod segment;
mod truncation;
mod writer;

#[cfg(test)]
mod tests;

pub(crate) use append::Admission;
pub(crate) use follow::Follower;
pub(crate) use lsn::Lsn;
pub(crate) use options::{LogDurability, LogOptions};
#[cfg(test)]
pub(crate) use record::Malformed;
pub(crate) use record::{BatchEncoder, MAX_BATCH_BYTES, RecordRef, batch_ops, records};
pub(crate) use recovery::{LoadAt, check_format};

use crate::{
    error::{Error, Result},
    mem::budget::Budget,
    poison::Poison,
    storage::Storage,
};
use append::AppendSide;
use group_commit::Shared;
use parking_lot::Mutex;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    thread::JoinHandle,
    time::Duration,
};
use truncation::SegmentList;
use writer::SegmentWriter;

/// Smallest segment, in bytes.
const MIN_SEGMENT_BYTES: u64 = 4 << 10;
/// Smallest append buffer, in bytes.
const MIN_BUFFER_BYTES: usize = 4 << 10;
/// Largest append buffer, in bytes: it is written as one group.
const MAX_BUFFER_BYTES: usize = segment::MAX_GROUP_PAYLOAD;

/// See the module header.
pub(crate) struct Log {
    shared: Arc<Shared>,
    end: Mutex<End>,
    storage: Arc<dyn Storage>,
    dir: PathBuf,
    database_id: u128,
    read_only: bool,
}

/// How far a log is from its end.
struct End {
    /// `None`: joined, or never started.
    flusher: Option<JoinHandle<()>>,
    /// Everything appended is durable and the mark of the close is written, or nothing ever will
    /// be.
    finished: bool,
}

impl Log {
    /// Opens the log in the directory `dir`, which exists, and replays every intact record with an
    /// LSN of at least `from`, in order, through `visit`. What is replayed is made durable before;
    /// a torn tail is cut off durably; a log without a segment starts at `from`.
    ///
    /// `from`: the manifest's floor, made durable before anything below it was truncated.
    /// `durable_hint`: an LSN known to be durable; `Lsn(0)` if none. What is missing or damaged
    /// below either is corruption. `read_only`: nothing is written, not even the cut; appends are
    /// refused with `ReadOnly`.
    /// Cost: reads the segments from `from` on, the newest one twice; writes the end of that again
    /// if nothing proves it durable. Errors: `Corrupt`, `FormatVersion`, `Io`, `OutOfSpace`, and
    /// those of `visit`.
    #[expect(clippy::too_many_arguments, reason = "one call, in db/open")]
    pub(crate) fn open(
        storage: Arc<dyn Storage>,
        dir: &Path,
        options: LogOptions,
        from: Lsn,
        durable_hint: Lsn,
        read_only: bool,
        poison: Arc<Poison>,
        budget: Arc<Budget>,
        visit: &mut dyn FnMut(Lsn, RecordRef<'_>) -> Result<()>,
    ) -> Result<Self> {
        let request = recovery::Request {
            storage: &*storage,
            dir,
            database_id: options.database_id,
            from,
            durable_hint,
            read_only,
            keep_bytes: options.keep_bytes,
            budget: &budget,
        };
        let recovered = recovery::recover(&request, visit)?;
        let segments = Arc::new(SegmentList::new(recovered.segments, options.keep_bytes));
        let buffer_bytes = options
            .buffer_bytes
            .clamp(MIN_BUFFER_BYTES, MAX_BUFFER_BYTES);
        let writer = SegmentWriter::new(
            storage.clone(),
            dir.to_path_buf(),
            options.database_id,
            options.segment_bytes.max(MIN_SEGMENT_BYTES),
            buffer_bytes,
            options.durability == LogDurability::Sync,
            recovered.next_sequence,
            segments.clone(),
        );
        let side = AppendSide::new(
            buffer_bytes,
            recovered.end,
            read_only,
            poison.clone(),
            budget,
        );
        let shared = Arc::new(Shared::new(side, writer, segments, recovered.end, poison));
        let flusher = if read_only {
            None
        } else {
            Some(start_flusher(&shared, options.durability)?)
        };
        Ok(Self {
            shared,
            end: Mutex::new(End {
                flusher,
                finished: read_only,
            }),
            storage,
            dir: dir.to_path_buf(),
            database_id: options.database_id,
            read_only,
        })
    }

    /// The records of loads that [`Log::open`] with the same arguments is going to replay, in their
    /// order. Cost: reads the segments from `from` on; writes nothing. Errors: `Corrupt`,
    /// `FormatVersion`, `Io`.
    pub(crate) fn loads(
        storage: &dyn Storage,
        dir: &Path,
        database_id: u128,
        from: Lsn,
        budget: &Budget,
    ) -> Result<Vec<LoadAt>> {
        recovery::loads(&recovery::Request {
            storage,
            dir,
            database_id,
            from,
            durable_hint: from,
            read_only: true,
            keep_bytes: 0,
            budget,
        })
    }

    /// Waits until `bytes` more may be appended: while two buffers wait to be written, or a long
    /// record does. Called before any latch is taken; the admission is kept until after the append,
    /// for only then long records (over one buffer) of many threads are let in one after the other.
    /// Cost: four loads while there is room; a short lock for a long record.
    /// Errors: `Poisoned`, `OutOfSpace`, `Closed`, `ReadOnly`.
    #[inline]
    pub(crate) fn admit(&self, bytes: usize) -> Result<Admission<'_>> {
        self.shared.side.admit(bytes)
    }

    /// The same for whoever does not wait: `None` where it would. Long records are not let in.
    pub(crate) fn try_admit(&self, bytes: usize) -> Option<Admission<'_>> {
        self.shared.side.try_admit(bytes)
    }

    /// Memory that a record of `bytes` takes beside the buffers until it is written.
    #[inline]
    pub(crate) fn extra_bytes(&self, bytes: usize) -> usize {
        if bytes > self.shared.side.buffer_bytes() {
            bytes
        } else {
            0
        }
    }

    /// Appends one record; returns the LSN just behind it. Never does or awaits I/O.
    ///
    /// Cost: two atomic additions and the copy; once per buffer a short lock; a record longer than
    /// a buffer, an allocation of its size.
    /// Errors, nothing appended: `Poisoned`, `OutOfSpace`, `Closed`, `ReadOnly`, and broken limits.
    #[inline]
    pub(crate) fn append(&self, record: RecordRef<'_>) -> Result<Lsn> {
        self.shared.side.append(record)
    }

    /// Every record appended before this call starts below the LSN returned. Cost: a short lock.
    pub(crate) fn end(&self) -> Lsn {
        self.shared.side.end()
    }

    /// Every record that ends at or below this LSN is durable. Cost: one load.
    pub(crate) fn durable(&self) -> Lsn {
        self.shared.durable()
    }

    /// Waits until every record that ends at or below `lsn` is durable; the first to wait does the
    /// I/O for all.
    /// Errors: `Poisoned`, `OutOfSpace` (the record may still become durable once there is room),
    /// `Closed`.
    pub(crate) fn wait_durable(&self, lsn: Lsn) -> Result<()> {
        self.shared.wait_durable(lsn)
    }

    /// [`Log::wait_durable`] for everything appended so far.
    #[cfg(test)]
    pub(crate) fn sync(&self) -> Result<()> {
        self.wait_durable(self.end())
    }

    /// I6: the segments that lie wholly below `floor` are needed no more, but for the newest; those
    /// that are not kept for followers either are removed. Returns the bytes that the log needs
    /// less, 0 while a hold lives. The manifest durably says `floor` before this is called.
    pub(crate) fn truncate_below(&self, floor: Lsn) -> Result<u64> {
        if self.read_only {
            return Err(Error::ReadOnly);
        }
        self.shared
            .segments
            .truncate_below(&*self.storage, &self.dir, floor)
    }

    /// First LSN of what the log needs.
    pub(crate) fn start(&self) -> Lsn {
        self.shared
            .segments
            .first_needed()
            .unwrap_or_else(|| self.durable())
    }

    /// Length of all segment files that the log needs.
    pub(crate) fn bytes_on_disk(&self) -> u64 {
        self.shared.segments.needed_bytes()
    }

    /// Length of those that are kept for followers alone.
    pub(crate) fn kept_bytes(&self) -> u64 {
        self.shared.segments.kept_bytes()
    }

    /// The oldest LSN that can be followed from.
    pub(crate) fn oldest(&self) -> Lsn {
        self.shared
            .segments
            .first_on_disk()
            .unwrap_or_else(|| self.durable())
    }

    /// Waits until more than what ends at `lsn` is durable, for `timeout` at most; returns whether
    /// it is. Errors: `Poisoned`, `Closed`.
    pub(crate) fn wait_beyond(&self, lsn: Lsn, timeout: Duration) -> Result<bool> {
        self.shared.wait_beyond(lsn, timeout)
    }

    /// While the guard lives, no segment is removed.
    pub(crate) fn hold(&self) -> LogHold<'_> {
        self.shared.segments.hold();
        LogHold(&self.shared.segments)
    }

    /// Copies what the log needs up to `upto`, a durable LSN between two records, into `dest`
    /// (created if absent), where it opens by itself. Everything is synced, `dest` included. Cost:
    /// reads and writes every segment once.
    pub(crate) fn copy_to(&self, dest: &Path, upto: Lsn) -> Result<()> {
        let _hold = self.hold();
        if !self.read_only {
            self.wait_durable(upto)?;
        }
        copy::copy_segments(
            &*self.storage,
            &self.shared.segments.needed(),
            &self.dir,
            dest,
            self.database_id,
            upto,
        )
    }

    /// Makes everything durable, stops and joins the flusher. Appends get `Closed` from here on.
    ///
    /// After an error another call, or the drop, tries again what can be repeated; after `Ok` it
    /// does nothing.
    pub(crate) fn close(&self) -> Result<()> {
        let mut end = self.end.lock();
        self.shared.side.close();
        self.shared.wake_followers();
        if let Some(thread) = end.flusher.take() {
            // Its panics are contained and have poisoned the log.
            let _ = thread.join();
        }
        if !end.finished {
            self.shared.finish()?;
            end.finished = true;
        }
        Ok(())
    }

    /// The directory is about to be somebody else's: not a byte is written any more. What a close
    /// could not write is lost, and whoever waits for it gets `Poisoned`.
    pub(crate) fn give_up(&self) {
        let mut end = self.end.lock();
        if !end.finished {
            self.shared.give_up();
            end.finished = true;
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // An error here has nobody to go to; durability that was promised was waited for.
        let _ = self.close();
    }
}

fn start_flusher(shared: &Arc<Shared>, durability: LogDurability) -> Result<JoinHandle<()>> {
    let shared = shared.clone();
    std::thread::Builder::new()
        .name("indexy-log".into())
        .spawn(move || shared.run_flusher(durability))
        .map_err(|e| Error::io("start a thread for", "the log", e))
}

/// Keeps segments from being removed; see [`Log::hold`].
pub(crate) struct LogHold<'a>(&'a SegmentList);

impl Drop for LogHold<'_> {
    fn drop(&mut self) {
        self.0.unhold();
    }
}
