//! The order of the stream: pieces that wait to be written, and what refuses more.
//!
//! Not here: the lock around it, the buffers, who waits (`append.rs`).
//! Keeps: I8 (the order of LSNs is the order of pieces).

use super::lsn::Lsn;
use crate::error::Error;
use std::collections::VecDeque;

/// A stretch of the stream on its way to the file; holds whole records.
pub(super) enum Piece {
    Buffer {
        index: usize,
        first_lsn: Lsn,
        len: usize,
    },
    Owned {
        first_lsn: Lsn,
        bytes: Vec<u8>,
        long: bool,
    },
}

impl Piece {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Buffer { len, .. } => *len,
            Self::Owned { bytes, .. } => bytes.len(),
        }
    }

    pub(super) fn first_lsn(&self) -> Lsn {
        match self {
            Self::Buffer { first_lsn, .. } | Self::Owned { first_lsn, .. } => *first_lsn,
        }
    }
}

/// Why the log takes no appends just now.
#[derive(Clone)]
pub(super) enum Refusal {
    Closed,
    ReadOnly,
    /// A write found no space, descriptor or memory; the flusher repeats it.
    ForNow(Error),
}

impl Refusal {
    /// What callers get.
    pub(super) fn error(&self) -> Error {
        match self {
            Self::Closed => Error::Closed,
            Self::ReadOnly => Error::ReadOnly,
            Self::ForNow(error) => error.clone(),
        }
    }
}

/// What waits to be written, and who may append. [`AppendSide`](super::append::AppendSide) has it
/// under a lock.
pub(super) struct Line {
    /// Sealed pieces that the writer has not fetched, in order.
    pub(super) queue: VecDeque<Piece>,
    pub(super) free: Vec<usize>,
    /// Where the active buffer starts or, without one, where the next append goes.
    pub(super) next: Lsn,
    /// Bytes of long records that were admitted and whose admission lives.
    pub(super) promised: usize,
    pub(super) refusal: Option<Refusal>,
    /// The flusher is asked to stop.
    pub(super) stop: bool,
    /// Somebody asks for a write although no buffer is full.
    pub(super) kick: bool,
}

impl Line {
    /// A record that a buffer would hold, copied; joins the last piece if there is room of
    /// `capacity` bytes. Returns whether it made a piece.
    pub(super) fn push_copied(&mut self, parts: &[&[u8]; 3], len: usize, capacity: usize) -> bool {
        let first_lsn = self.advance(len);
        let parts = parts.iter().copied().flatten();
        match self.queue.back_mut() {
            Some(Piece::Owned {
                bytes, long: false, ..
            }) if bytes.len() + len <= capacity => {
                bytes.extend(parts);
                false
            }
            _ => {
                let mut bytes = Vec::with_capacity(capacity);
                bytes.extend(parts);
                self.queue.push_back(Piece::Owned {
                    first_lsn,
                    bytes,
                    long: false,
                });
                true
            }
        }
    }

    /// A record longer than a buffer. Returns where it ends.
    pub(super) fn push_long(&mut self, bytes: Vec<u8>) -> Lsn {
        let first_lsn = self.advance(bytes.len());
        self.queue.push_back(Piece::Owned {
            first_lsn,
            bytes,
            long: true,
        });
        self.next
    }

    /// A sealed buffer with `len` bytes.
    pub(super) fn push_buffer(&mut self, index: usize, len: usize) {
        let first_lsn = self.advance(len);
        self.queue.push_back(Piece::Buffer {
            index,
            first_lsn,
            len,
        });
    }

    /// Moves the end of the stream; returns where it was.
    fn advance(&mut self, len: usize) -> Lsn {
        let first = self.next;
        self.next = Lsn(first.0 + len as u64);
        first
    }
}
