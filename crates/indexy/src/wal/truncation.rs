//! The list of segments on disk, and what removes them.
//!
//! Keeps: I6 (its part: a segment goes only when all of it lies below the floor, and never the
//! newest).
//! Threads: any. Locks: `holds`, then `segments`.

use super::{
    lsn::Lsn,
    segment::{SegmentInfo, segment_path},
};
use crate::{error::Result, storage::Storage};
use parking_lot::Mutex;
use std::{collections::VecDeque, path::Path};

/// See the module header.
#[derive(Default)]
pub(super) struct SegmentList {
    /// Oldest first. Never held across I/O: the writer takes it for every group.
    segments: Mutex<VecDeque<SegmentInfo>>,
    /// How many holds live. Held while files are removed, so that a hold begins after that.
    holds: Mutex<usize>,
}

impl SegmentList {
    pub(super) fn new(segments: VecDeque<SegmentInfo>) -> Self {
        Self {
            segments: Mutex::new(segments),
            holds: Mutex::new(0),
        }
    }

    pub(super) fn push(&self, segment: SegmentInfo) {
        self.segments.lock().push_back(segment);
    }

    pub(super) fn set_newest_bytes(&self, bytes: u64) {
        if let Some(newest) = self.segments.lock().back_mut() {
            newest.bytes = bytes;
        }
    }

    pub(super) fn all(&self) -> Vec<SegmentInfo> {
        self.segments.lock().iter().cloned().collect()
    }

    pub(super) fn first_lsn(&self) -> Option<Lsn> {
        self.segments.lock().front().map(|s| s.first_lsn)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.segments.lock().iter().map(|s| s.bytes).sum()
    }

    pub(super) fn hold(&self) {
        *self.holds.lock() += 1;
    }

    pub(super) fn unhold(&self) {
        *self.holds.lock() -= 1;
    }

    /// Removes the segments that lie wholly below `floor`; returns the bytes freed.
    pub(super) fn truncate_below(
        &self,
        storage: &dyn Storage,
        dir: &Path,
        floor: Lsn,
    ) -> Result<u64> {
        let holds = self.holds.lock();
        if *holds > 0 {
            return Ok(0);
        }
        let mut freed = 0;
        while let Some(oldest) = self.oldest_below(floor) {
            storage.remove(&segment_path(dir, oldest.sequence))?;
            freed += oldest.bytes;
            self.segments.lock().pop_front();
        }
        if freed > 0 {
            storage.sync_dir(dir)?;
        }
        Ok(freed)
    }

    /// I6: a segment ends where its successor begins; the newest has none and stays.
    fn oldest_below(&self, floor: Lsn) -> Option<SegmentInfo> {
        let segments = self.segments.lock();
        segments.get(1).filter(|next| next.first_lsn <= floor)?;
        segments.front().cloned()
    }
}
