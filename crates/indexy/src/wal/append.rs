//! The memory side of the log: where appends go, and in which order they reach the file.
//!
//! The stream is a sequence of *pieces* (`line.rs`): sealed append buffers, and between them owned
//! byte vectors, one for each record longer than a buffer and for what arrived while no buffer was
//! free. An append takes no lock while the active buffer has room. The thread that finds it full
//! rotates it under `line`. Nothing here does I/O, and `append` waits for none: it holds the lock
//! for a rotation, or for the copy of a small record while buffers are short.
//!
//! Memory: `BUFFERS` buffers, always, and owned pieces, which `admit` bounds. Long records enter
//! one at a time, or more while they fit in two buffers. Short ones enter while a buffer is open.
//! The overshoot is one short record for each thread that was admitted just before.
//! Keeps: I8 (the order of LSNs is the order of pieces).
//! Threads: any.

use super::{
    line::{Line, Piece, Refusal},
    lsn::Lsn,
    record::RecordRef,
    segment::{GROUP_ALIGN, GROUP_HEADER_BYTES},
};
use crate::{
    error::{Error, Result},
    mem::{
        append_buffer::AppendBuffer,
        budget::{Budget, Holder},
    },
    poison::Poison,
};
use parking_lot::{Condvar, Mutex};
use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicUsize,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    time::Duration,
};

/// Append buffers of a log: one fills, one is written, one is in hand for when a sync overlaps
/// both.
pub(super) const BUFFERS: usize = 3;
/// `active` when no buffer is open.
const NONE: usize = usize::MAX;
/// A waiter for room looks at the poison again after this long.
const RECHECK: Duration = Duration::from_millis(50);

/// See the module header.
pub(super) struct AppendSide {
    pub(super) buffers: Vec<AppendBuffer>,
    active: AtomicUsize,
    /// `line.refusal` is set. Release in `refuse`, Acquire in `append`.
    refused: AtomicBool,
    /// Bytes in sealed pieces that are not written yet; changes once per piece.
    backlog: AtomicUsize,
    /// Memory of owned pieces.
    owned: AtomicUsize,
    line: Mutex<Line>,
    /// A buffer became free, or a refusal came or went. Partner of `line`.
    room: Condvar,
    /// A piece is in the queue, or the flusher is to look. Partner of `line`.
    work: Condvar,
    poison: Arc<Poison>,
    budget: Arc<Budget>,
    /// The process that opened the log. A forked child has the file at the parent's position, and
    /// no thread that writes what waits.
    process: u32,
}

impl AppendSide {
    pub(super) fn new(
        buffer_bytes: usize,
        start: Lsn,
        read_only: bool,
        poison: Arc<Poison>,
        budget: Arc<Budget>,
    ) -> Self {
        let count = if read_only { 0 } else { BUFFERS };
        let buffers: Vec<_> = (0..count)
            .map(|_| AppendBuffer::new(GROUP_HEADER_BYTES, buffer_bytes, GROUP_ALIGN))
            .collect();
        budget.take(Holder::Log, count * buffer_memory(buffer_bytes));
        let this = Self {
            active: AtomicUsize::new(NONE),
            refused: AtomicBool::new(read_only),
            backlog: AtomicUsize::new(0),
            owned: AtomicUsize::new(0),
            line: Mutex::new(Line {
                queue: VecDeque::new(),
                free: (0..count).collect(),
                next: start,
                promised: 0,
                refusal: read_only.then_some(Refusal::ReadOnly),
                stop: false,
                kick: false,
            }),
            room: Condvar::new(),
            work: Condvar::new(),
            buffers,
            poison,
            budget,
            process: std::process::id(),
        };
        this.activate(&mut this.line.lock());
        this
    }

    #[inline]
    pub(super) fn buffer_bytes(&self) -> usize {
        self.buffers.first().map_or(0, AppendBuffer::capacity)
    }

    /// See [`super::Log::try_admit`].
    pub(super) fn try_admit(&self, bytes: usize) -> Option<Admission<'_>> {
        self.check().ok()?;
        let short = bytes <= self.buffer_bytes();
        (short && self.has_room(bytes)).then_some(Admission {
            side: self,
            promised: 0,
        })
    }

    /// See [`super::Log::admit`].
    #[inline]
    pub(super) fn admit(&self, bytes: usize) -> Result<Admission<'_>> {
        self.check()?;
        let long = bytes > self.buffer_bytes();
        if !long && self.has_room(bytes) {
            return Ok(Admission {
                side: self,
                promised: 0,
            });
        }
        self.check_process()?;
        let mut line = self.line.lock();
        loop {
            self.check_in(&line)?;
            if long {
                let ahead = line.promised + self.owned.load(Relaxed);
                if ahead == 0 || ahead + bytes <= self.backlog_limit() {
                    line.promised += bytes;
                    return Ok(Admission {
                        side: self,
                        promised: bytes,
                    });
                }
            } else if self.has_room(bytes) {
                return Ok(Admission {
                    side: self,
                    promised: 0,
                });
            }
            line.kick = true;
            self.work.notify_one();
            self.room.wait_for(&mut line, RECHECK);
        }
    }

    /// `Unsupported` in a forked child: there who is woken may be a thread of the parent, to which
    /// a lock is then handed for ever.
    pub(super) fn check_process(&self) -> Result<()> {
        if std::process::id() != self.process {
            let what = "a log that another process opened (the caller is a forked child)";
            return Err(Error::Unsupported { what: what.into() });
        }
        Ok(())
    }

    #[inline]
    fn has_room(&self, bytes: usize) -> bool {
        let backlog = self.backlog.load(Relaxed);
        let open = self.active.load(Relaxed) != NONE;
        backlog == 0 || (open && backlog + bytes <= self.backlog_limit())
    }

    /// Bytes that may wait to be written while more is admitted: all buffers but the active one.
    #[inline]
    fn backlog_limit(&self) -> usize {
        self.buffer_bytes() * (BUFFERS - 1)
    }

    #[inline]
    fn check(&self) -> Result<()> {
        self.poison.check()?;
        if self.refused.load(Acquire) {
            return self.check_in(&self.line.lock());
        }
        Ok(())
    }

    fn check_in(&self, line: &Line) -> Result<()> {
        self.poison.check()?;
        line.refusal.as_ref().map_or(Ok(()), |r| Err(r.error()))
    }

    /// See [`super::Log::append`].
    #[inline]
    pub(super) fn append(&self, record: RecordRef<'_>) -> Result<Lsn> {
        self.check()?;
        record.check()?;
        let (head, a, b) = record.parts();
        let parts = [head.as_slice(), a, b];
        // Acquire: partner is the Release in `activate`.
        if let Some(buffer) = self.buffers.get(self.active.load(Acquire))
            && let Ok(end) = buffer.append(&parts)
        {
            return Ok(Lsn(end));
        }
        self.append_slowly(&parts)
    }

    #[cold]
    fn append_slowly(&self, parts: &[&[u8]; 3]) -> Result<Lsn> {
        self.check_process()?;
        let len: usize = parts.iter().map(|p| p.len()).sum();
        if len > self.buffer_bytes() {
            return self.append_long(parts, len);
        }
        let mut line = self.line.lock();
        loop {
            self.check_in(&line)?;
            let Some(buffer) = self.buffers.get(self.active.load(Relaxed)) else {
                return Ok(self.append_owned(&mut line, parts, len));
            };
            if let Ok(end) = buffer.append(parts) {
                return Ok(Lsn(end));
            }
            self.seal_active(&mut line);
            self.activate(&mut line);
            self.work.notify_one();
        }
    }

    /// No buffer is free: the record joins the piece at the end of the queue.
    fn append_owned(&self, line: &mut Line, parts: &[&[u8]; 3], len: usize) -> Lsn {
        self.backlog.fetch_add(len, Relaxed);
        if line.push_copied(parts, len, self.buffer_bytes()) {
            self.take_owned(self.buffer_bytes());
            self.work.notify_one();
        }
        line.next
    }

    /// A record longer than a buffer gets a piece of its own, copied before the lock is taken.
    fn append_long(&self, parts: &[&[u8]; 3], len: usize) -> Result<Lsn> {
        self.take_owned(len);
        let bytes = parts.concat();
        let mut line = self.line.lock();
        if let Err(e) = self.check_in(&line) {
            self.give_owned(len);
            return Err(e);
        }
        self.seal_active(&mut line);
        self.backlog.fetch_add(len, Relaxed);
        let end = line.push_long(bytes);
        self.activate(&mut line);
        self.work.notify_one();
        Ok(end)
    }

    fn take_owned(&self, bytes: usize) {
        self.owned.fetch_add(bytes, Relaxed);
        self.budget.take(Holder::LogPieces, bytes);
    }

    fn give_owned(&self, bytes: usize) {
        self.owned.fetch_sub(bytes, Relaxed);
        self.budget.give(Holder::LogPieces, bytes);
    }

    /// Puts the active buffer into the queue, if there is one.
    fn seal_active(&self, line: &mut Line) {
        let index = self.active.load(Relaxed);
        let Some(buffer) = self.buffers.get(index) else {
            return;
        };
        self.active.store(NONE, Release);
        let len = buffer.seal().unwrap_or(0) as usize;
        if len > 0 {
            self.backlog.fetch_add(len, Relaxed);
            line.push_buffer(index, len);
        } else if let Some(empty) = buffer.take() {
            empty.release();
            line.free.push(index);
        }
    }

    /// Opens a free buffer, if there is one and none is open.
    fn activate(&self, line: &mut Line) {
        if self.active.load(Relaxed) == NONE
            && let Some(index) = line.free.pop()
            && let Some(buffer) = self.buffers.get(index)
        {
            let opened = buffer.open(line.next.0);
            debug_assert!(opened, "a buffer in the free list is free");
            // Release: partner is the Acquire in `append`.
            self.active.store(index, Release);
        }
    }

    /// Everything appended so far starts below this.
    pub(super) fn end(&self) -> Lsn {
        let line = self.line.lock();
        let active = self.buffers.get(self.active.load(Relaxed));
        active
            .and_then(AppendBuffer::reserved_end)
            .map_or(line.next, Lsn)
    }

    /// Moves the sealed pieces to `pending`; with `seal`, also what is in the active buffer.
    pub(super) fn fetch(&self, seal: bool, pending: &mut VecDeque<Piece>) {
        let mut line = self.line.lock();
        if seal {
            let active = self.buffers.get(self.active.load(Relaxed));
            if active
                .and_then(AppendBuffer::reserved_end)
                .is_some_and(|end| Lsn(end) > line.next)
            {
                self.seal_active(&mut line);
                self.activate(&mut line);
            }
        }
        pending.append(&mut line.queue);
    }

    /// `piece` is written: its memory is free again.
    pub(super) fn written(&self, piece: Piece) {
        let mut line = self.line.lock();
        self.backlog.fetch_sub(piece.len(), Relaxed);
        match piece {
            Piece::Buffer { index, .. } => {
                line.free.push(index);
                self.activate(&mut line);
            }
            Piece::Owned { bytes, long, .. } => {
                let held = if long {
                    bytes.len()
                } else {
                    self.buffer_bytes()
                };
                self.give_owned(held);
            }
        }
        self.room.notify_all();
    }

    /// Appends are refused with `error` until the flusher has repeated the write that failed with
    /// it.
    pub(super) fn refuse_for_now(&self, error: Error) {
        let mut line = self.line.lock();
        if line.refusal.is_none() {
            line.refusal = Some(Refusal::ForNow(error));
            self.refused.store(true, Release);
            // The flusher tries again from time to time.
            line.kick = true;
            self.work.notify_one();
        }
        self.room.notify_all();
    }

    /// The write that failed has succeeded.
    pub(super) fn accept_again(&self) {
        let mut line = self.line.lock();
        if matches!(line.refusal, Some(Refusal::ForNow(_))) {
            line.refusal = None;
            self.refused.store(false, Release);
            self.room.notify_all();
        }
    }

    pub(super) fn refused_for_now(&self) -> Option<Error> {
        if !self.refused.load(Acquire) {
            return None;
        }
        match &self.line.lock().refusal {
            Some(Refusal::ForNow(e)) => Some(e.clone()),
            _ => None,
        }
    }

    /// No appends any more; asks the flusher to stop.
    pub(super) fn close(&self) {
        let mut line = self.line.lock();
        if !matches!(line.refusal, Some(Refusal::ReadOnly)) {
            line.refusal = Some(Refusal::Closed);
        }
        self.refused.store(true, Release);
        line.stop = true;
        self.work.notify_all();
        self.room.notify_all();
    }

    pub(super) fn is_closed(&self) -> bool {
        matches!(self.line.lock().refusal, Some(Refusal::Closed))
    }

    /// Wakes whoever waits for room, to look at the poison.
    pub(super) fn wake(&self) {
        let _line = self.line.lock();
        self.room.notify_all();
    }

    /// The flusher's wait: until pieces are there, somebody asks (unless it must be `patient`),
    /// `timeout` passes, or it must stop (then false).
    pub(super) fn wait_for_work(&self, timeout: Option<Duration>, patient: bool) -> bool {
        let mut line = self.line.lock();
        if !line.stop && (patient || (line.queue.is_empty() && !line.kick)) {
            match timeout {
                Some(timeout) => {
                    self.work.wait_for(&mut line, timeout);
                }
                None => self.work.wait(&mut line),
            }
        }
        line.kick = false;
        !line.stop
    }
}

/// Room for one record, see [`super::Log::admit`]; lives until after the append.
pub(crate) struct Admission<'a> {
    side: &'a AppendSide,
    promised: usize,
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        if self.promised > 0 {
            self.side.line.lock().promised -= self.promised;
            self.side.room.notify_all();
        }
    }
}

impl Drop for AppendSide {
    fn drop(&mut self) {
        let buffers = self.buffers.len() * buffer_memory(self.buffer_bytes());
        self.budget.give(Holder::Log, buffers);
        self.budget
            .give(Holder::LogPieces, self.owned.load(Relaxed));
    }
}

fn buffer_memory(buffer_bytes: usize) -> usize {
    AppendBuffer::memory_bytes(GROUP_HEADER_BYTES, buffer_bytes, GROUP_ALIGN)
}
