//! The list of segments on disk, and what removes them.
//!
//! A segment that the log does not need any more is *kept* for those who follow the changes, as far
//! as [`LogOptions::keep_bytes`](super::LogOptions) goes, and removed then.
//!
//! Keeps: I6 (its part: a segment goes only when all of it lies below the floor, and never the
//! newest).
//! Threads: any. Locks: `holds`, then `lists`.

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
    /// Never held across I/O: the writer takes it for every group.
    lists: Mutex<Lists>,
    /// How many holds live. Held while files are removed, so that a hold begins after that.
    holds: Mutex<usize>,
    keep_bytes: u64,
}

/// Oldest first; every kept segment is older than every needed one, and they follow each other.
#[derive(Default)]
pub(super) struct Lists {
    pub(super) kept: VecDeque<SegmentInfo>,
    pub(super) needed: VecDeque<SegmentInfo>,
}

impl Lists {
    fn all(&self) -> impl DoubleEndedIterator<Item = &SegmentInfo> {
        self.kept.iter().chain(&self.needed)
    }
}

fn sum(segments: &VecDeque<SegmentInfo>) -> u64 {
    segments.iter().map(|s| s.bytes).sum()
}

impl SegmentList {
    pub(super) fn new(lists: Lists, keep_bytes: u64) -> Self {
        Self {
            lists: Mutex::new(lists),
            holds: Mutex::new(0),
            keep_bytes,
        }
    }

    pub(super) fn push(&self, segment: SegmentInfo) {
        self.lists.lock().needed.push_back(segment);
    }

    pub(super) fn set_newest_bytes(&self, bytes: u64) {
        if let Some(newest) = self.lists.lock().needed.back_mut() {
            newest.bytes = bytes;
        }
    }

    /// Those that the log needs, oldest first.
    pub(super) fn needed(&self) -> Vec<SegmentInfo> {
        self.lists.lock().needed.iter().cloned().collect()
    }

    /// Where the oldest one that the log needs begins.
    pub(super) fn first_needed(&self) -> Option<Lsn> {
        self.lists.lock().needed.front().map(|s| s.first_lsn)
    }

    /// Where the oldest one on disk begins.
    pub(super) fn first_on_disk(&self) -> Option<Lsn> {
        self.lists.lock().all().next().map(|s| s.first_lsn)
    }

    /// The newest one that begins at or below `lsn`.
    pub(super) fn at(&self, lsn: Lsn) -> Option<SegmentInfo> {
        let lists = self.lists.lock();
        lists.all().rev().find(|s| s.first_lsn <= lsn).cloned()
    }

    /// The one after number `sequence`.
    pub(super) fn after(&self, sequence: u64) -> Option<SegmentInfo> {
        let lists = self.lists.lock();
        lists.all().find(|s| s.sequence > sequence).cloned()
    }

    pub(super) fn needed_bytes(&self) -> u64 {
        sum(&self.lists.lock().needed)
    }

    pub(super) fn kept_bytes(&self) -> u64 {
        sum(&self.lists.lock().kept)
    }

    pub(super) fn hold(&self) {
        *self.holds.lock() += 1;
    }

    pub(super) fn unhold(&self) {
        *self.holds.lock() -= 1;
    }

    /// The segments that lie wholly below `floor` are not needed any more; removes those that are
    /// not kept either. Returns the bytes that the log needs less, 0 while a hold lives.
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
        let freed = self.keep_below(floor);
        let mut removed = false;
        while let Some(oldest) = self.take_surplus() {
            // Nobody finds it in the list from here on: whoever looks for it is told that it went.
            let gone = storage.remove(&segment_path(dir, oldest.sequence));
            if let Err(error) = gone {
                self.lists.lock().kept.push_front(oldest);
                return Err(error);
            }
            removed = true;
        }
        if removed {
            storage.sync_dir(dir)?;
        }
        Ok(freed)
    }

    /// I6: a segment ends where its successor begins; the newest has none and stays.
    fn keep_below(&self, floor: Lsn) -> u64 {
        let lists = &mut *self.lists.lock();
        let mut freed = 0;
        while lists
            .needed
            .get(1)
            .is_some_and(|next| next.first_lsn <= floor)
        {
            let Some(oldest) = lists.needed.pop_front() else {
                break;
            };
            freed += oldest.bytes;
            lists.kept.push_back(oldest);
        }
        freed
    }

    /// Takes the oldest kept one out, where what stays without it is enough.
    fn take_surplus(&self) -> Option<SegmentInfo> {
        let kept = &mut self.lists.lock().kept;
        let left = sum(kept) - kept.front()?.bytes;
        match left >= self.keep_bytes {
            true => kept.pop_front(),
            false => None,
        }
    }
}
