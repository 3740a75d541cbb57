//! From memory to the device: writing, group commit, and the flusher thread.
//!
//! The first thread that needs durability becomes the *leader*. It seals the active buffer, writes
//! everything and syncs once for all waiters; the others sleep. So a lone writer pays no thread
//! switch. The flusher writes full buffers, syncs at the interval (`Buffered`), and repeats a write
//! that found no space, descriptor or memory.
//!
//! Failures. A write that may be repeated loses nothing: until it succeeds, appends and waiters get
//! its error. Any other failed write poisons. A failed sync always poisons and is never repeated.
//! The flusher ends with its log.
//!
//! What ends each wait: for a leader (`progress`), the leader's end, panics included; for more that
//! is durable (`progress` too), a leader's end, the timeout, `close` or within a second the poison;
//! for room (`append.rs`), a written piece, a refusal or the poison; of the flusher, work, the
//! interval or `close`.
//!
//! Locks, in this order: `commit` (who leads; not held across I/O), `out` (held across writes, not
//! across the leader's sync), `SyncGate` (held across a sync), `AppendSide::line`.
//! Keeps: I5 (`durable` only grows, and only after the sync).
//! Threads: any, and the flusher.

use super::{
    append::AppendSide,
    line::Piece,
    lsn::Lsn,
    options::LogDurability,
    truncation::SegmentList,
    writer::{SegmentWriter, SyncGate, WriteError},
};
use crate::{
    error::{Error, Result},
    poison::Poison,
    storage::StorageFile,
};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Acquire, Release},
        },
    },
    time::{Duration, Instant},
};

/// How often a write is repeated that found no space, descriptor or memory.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// A sync that somebody waits for, and that makes less than this durable, in bytes: more of its
/// kind may follow, and each would have to make the file's new length durable as well.
const SMALL_SYNC_BYTES: u64 = 64 << 10;

/// How often those who follow the log look whether it was poisoned.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The writer and what it has fetched but not written.
pub(super) struct Out {
    pub(super) writer: SegmentWriter,
    pending: VecDeque<Piece>,
    /// Everything below is in the files.
    written: Lsn,
}

#[derive(Default)]
struct Commit {
    /// Somebody writes and syncs.
    led: bool,
}

/// What the threads of a log share.
pub(super) struct Shared {
    pub(super) side: AppendSide,
    pub(super) out: Mutex<Out>,
    pub(super) segments: Arc<SegmentList>,
    durable: AtomicU64,
    commit: Mutex<Commit>,
    /// `durable` grew or something failed. Partner of `commit`.
    progress: Condvar,
    /// A write or sync of this log failed: no byte is written any more, and the poison is set. (A
    /// poison set by somebody else does not keep the log from making durable what was appended.)
    dead: AtomicBool,
    gate: Arc<SyncGate>,
    poison: Arc<Poison>,
}

impl Shared {
    pub(super) fn new(
        side: AppendSide,
        writer: SegmentWriter,
        segments: Arc<SegmentList>,
        end: Lsn,
        poison: Arc<Poison>,
    ) -> Self {
        Self {
            side,
            gate: writer.gate(),
            out: Mutex::new(Out {
                writer,
                pending: VecDeque::new(),
                written: end,
            }),
            dead: AtomicBool::new(false),
            segments,
            durable: AtomicU64::new(end.0),
            commit: Mutex::new(Commit::default()),
            progress: Condvar::new(),
            poison,
        }
    }

    pub(super) fn durable(&self) -> Lsn {
        // Acquire: partner is the Release in `raise_durable`.
        Lsn(self.durable.load(Acquire))
    }

    fn raise_durable(&self, lsn: Lsn) {
        // I5: called only after a sync that covers `lsn`.
        self.durable.fetch_max(lsn.0, Release);
    }

    fn check_alive(&self) -> Result<()> {
        // Acquire: partner is the Release in `fail`.
        if self.dead.load(Acquire) {
            self.poison.check()
        } else {
            Ok(())
        }
    }

    /// See [`super::Log::wait_durable`].
    pub(super) fn wait_durable(&self, lsn: Lsn) -> Result<()> {
        self.make_durable(lsn, true)
    }

    /// `asked`: somebody waits for it.
    fn make_durable(&self, lsn: Lsn, asked: bool) -> Result<()> {
        loop {
            if self.durable() >= lsn {
                return Ok(());
            }
            self.check_alive()?;
            if let Some(error) = self.side.refused_for_now() {
                return Err(error);
            }
            let mut commit = self.commit.lock();
            if commit.led {
                // The leader is a thread of the parent.
                self.side.check_process()?;
                self.progress.wait(&mut commit);
                continue;
            }
            if self.durable() >= lsn {
                return Ok(());
            }
            commit.led = true;
            drop(commit);
            let _lead = Lead {
                shared: self,
                panicked: std::thread::panicking(),
            };
            // Those who woke up from the round before get a chance to append first, and so share
            // this sync: 1.8 times the throughput at 2 threads, for 0.3 us of a lone one.
            std::thread::yield_now();
            // What was appended before this call is durable then, even if `lsn` lies beyond.
            return self.write_and_sync(asked);
        }
    }

    /// See [`super::Log::wait_beyond`].
    pub(super) fn wait_beyond(&self, lsn: Lsn, timeout: Duration) -> Result<bool> {
        let end = Instant::now().checked_add(timeout);
        let mut commit = self.commit.lock();
        loop {
            if self.durable() > lsn {
                return Ok(true);
            }
            self.poison.check()?;
            if self.side.is_closed() {
                return Err(Error::Closed);
            }
            let now = Instant::now();
            let left = end.map_or(LOOK_AGAIN, |end| end.saturating_duration_since(now));
            if left.is_zero() {
                return Ok(false);
            }
            self.progress.wait_for(&mut commit, left.min(LOOK_AGAIN));
        }
    }

    /// The log is closed: [`Shared::wait_beyond`] looks again.
    pub(super) fn wake_followers(&self) {
        drop(self.commit.lock());
        self.progress.notify_all();
    }

    fn sync_all(&self) -> Result<()> {
        self.make_durable(self.side.end(), false)
    }

    /// Writes everything appended so far and syncs. Only the leader calls it.
    fn write_and_sync(&self, asked: bool) -> Result<()> {
        let before = self.durable();
        let mut out = self.lock_out()?;
        let (file, upto) = self.write_pending(&mut out, true)?;
        if asked && upto.0.saturating_sub(before.0) < SMALL_SYNC_BYTES {
            out.writer.allocate_ahead();
        }
        drop(out);
        if let Some(file) = file
            && upto > self.durable()
        {
            self.gate.sync(&*file).map_err(|e| self.fail(&e))?;
            self.raise_durable(upto);
        }
        Ok(())
    }

    fn lock_out(&self) -> Result<MutexGuard<'_, Out>> {
        self.side.check_process()?;
        let out = self.out.lock();
        self.check_alive()?;
        Ok(out)
    }

    /// Writes the pieces that are sealed; with `seal`, also what the active buffer holds. Returns
    /// the file to sync and the LSN that the sync makes durable.
    fn write_pending(
        &self,
        out: &mut Out,
        seal: bool,
    ) -> Result<(Option<Arc<dyn StorageFile>>, Lsn)> {
        self.side.fetch(seal, &mut out.pending);
        while let Some(piece) = out.pending.front() {
            match self.write_piece(&mut out.writer, piece) {
                Ok(started) => {
                    if started {
                        self.raise_durable(piece.first_lsn());
                    }
                    out.written = Lsn(piece.first_lsn().0 + piece.len() as u64);
                    if let Some(piece) = out.pending.pop_front() {
                        self.side.written(piece);
                    }
                }
                Err(WriteError::Retry(e)) => {
                    self.side.refuse_for_now(e.clone());
                    return Err(e);
                }
                Err(WriteError::Fatal(e)) => return Err(self.fail(&e)),
            }
        }
        self.side.accept_again();
        Ok((out.writer.file(), out.written))
    }

    fn write_piece(&self, writer: &mut SegmentWriter, piece: &Piece) -> Result<bool, WriteError> {
        match piece {
            Piece::Owned {
                first_lsn, bytes, ..
            } => writer.write_copied(bytes, *first_lsn, self.durable()),
            Piece::Buffer {
                index, first_lsn, ..
            } => {
                let Some(mut filled) = self.side.buffers.get(*index).and_then(|b| b.take()) else {
                    // Not to be reached. To go on would leave a hole in the log.
                    let what = Error::Unsupported {
                        what: "a sealed buffer of the log that cannot be taken".into(),
                    };
                    return Err(WriteError::Fatal(what));
                };
                let len = filled.len();
                let started =
                    writer.write_in_place(filled.bytes_mut(), len, *first_lsn, self.durable())?;
                filled.release();
                Ok(started)
            }
        }
    }

    fn fail(&self, cause: &dyn std::fmt::Display) -> Error {
        let error = self.poison.set(cause);
        // Release: partner is the Acquire in `check_alive`, which then finds the poison set.
        self.dead.store(true, Release);
        self.side.wake();
        error
    }

    /// Makes everything durable and marks the end. The flusher has stopped, appends are refused.
    pub(super) fn finish(&self) -> Result<()> {
        self.sync_all()?;
        self.out.lock().writer.mark_close(self.durable());
        Ok(())
    }

    /// See [`super::Log::give_up`]. The flusher has stopped.
    pub(super) fn give_up(&self) {
        // No write is under way, and the next one finds the log dead.
        let _out = self.out.lock();
        self.fail(&"the log was closed before all of it could be written");
    }

    /// The flusher thread.
    pub(super) fn run_flusher(&self, durability: LogDurability) {
        let ran = catch_unwind(AssertUnwindSafe(|| self.flush_until_stopped(durability)));
        if ran.is_err() {
            self.fail(&"the log flusher panicked");
        }
    }

    fn write_sealed(&self) -> Result<()> {
        let mut out = self.lock_out()?;
        self.write_pending(&mut out, false).map(drop)
    }

    fn flush_until_stopped(&self, durability: LogDurability) {
        let interval = match durability {
            LogDurability::Buffered { interval } => Some(interval),
            LogDurability::Sync => None,
        };
        let mut due = interval.map(|i| Instant::now() + i);
        loop {
            let refused = self.side.refused_for_now().is_some();
            let until_due = due.map(|d| d.saturating_duration_since(Instant::now()));
            let timeout = if refused {
                Some(RETRY_INTERVAL)
            } else {
                until_due
            };
            if !self.side.wait_for_work(timeout, refused) {
                return;
            }
            if self.check_alive().is_err() {
                // What is queued stays there: waiting for work would not wait.
                return;
            }
            let is_due = !refused && due.is_some_and(|d| Instant::now() >= d);
            // Errors reach the users through the poison and the refusal.
            let _ = if is_due {
                self.sync_all()
            } else {
                self.write_sealed()
            };
            if is_due {
                due = interval.map(|i| Instant::now() + i);
            }
        }
    }
}

/// Leadership of one round; ends also when the leader panics.
struct Lead<'a> {
    shared: &'a Shared,
    /// It did so before: a write in a destructor.
    panicked: bool,
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        if !self.panicked && std::thread::panicking() {
            self.shared
                .fail(&"a thread panicked while it wrote the log");
        }
        self.shared.commit.lock().led = false;
        self.shared.progress.notify_all();
    }
}
