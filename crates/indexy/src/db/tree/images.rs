//! Room for the images that a batch leaves while a snapshot is open.
//!
//! They are asked for together with the room of the batch. Where there is none for both, they go to
//! disk a part at a time before the batch is applied, in the room that it has until then. So the
//! largest batch of the smallest budget gives no snapshot up.
//!
//! Threads: that of the batch. It holds all its stripes in [`Request::admit`], and the run locks of
//! its trees and the gate in [`to_disk`], as where a range is removed. Keeps I7 and I10.

#![forbid(unsafe_code)]

use crate::{
    db::handle::{Core, TreeCore},
    error::{Error, Result},
    events,
    framework::{memory::Admitted, spill::RunLock},
    versions::Promise,
};
use std::sync::Arc;

/// Images on their way to disk take this part of the budget, or the room of their batch.
const ON_THE_WAY_DIVISOR: usize = 16;
/// The same where resident trees fill the budget, between the marks and its end.
const LEAST_ON_THE_WAY_DIVISOR: usize = 64;

/// How the images of a batch are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Images {
    InMemory,
    /// They go to disk each time that there are more than `chunk` bytes of them.
    ToDisk {
        chunk: usize,
    },
}

/// What a batch holds until it is applied.
#[derive(Default)]
pub(super) struct Admission<'a> {
    _memory: Option<Admitted<'a>>,
    _promise: Option<Promise<'a>>,
}

/// What a batch asks for.
pub(super) struct Request<'a> {
    pub(super) core: &'a Core,
    pub(super) trees: &'a [Arc<TreeCore>],
    /// Bytes of its own.
    pub(super) needed: usize,
    /// Bytes of images.
    pub(super) images: usize,
    /// It has a snapshot, whose end is its own.
    pub(super) conditional: bool,
}

impl<'a> Request<'a> {
    /// Waits for room. Where no image can be kept, the snapshots are given up. Where resident trees
    /// fill the budget, `may_shrink` says of a number of bytes whether the batch goes on with
    /// these, admitted or not.
    pub(super) fn admit(
        &self,
        may_shrink: impl Fn(usize) -> Result<bool>,
    ) -> Result<(Admission<'a>, Images)> {
        let &Self { needed, images, .. } = self;
        let (room, versions) = (&self.core.shared.room, &self.core.shared.versions);
        let has_disk = images > 0 && versions.disk().is_some();
        let fits = needed + images <= room.most_at_once();
        let mut promise = match has_disk && fits {
            true => versions.promise(images),
            false => None,
        };
        let (on_the_way, to_disk) = self.on_the_way(ON_THE_WAY_DIVISOR);
        let (mut admitted, mut way) = match has_disk && promise.is_none() {
            true => (self.wait_for(on_the_way), to_disk),
            false => (self.wait_for(needed + images), Images::InMemory),
        };
        if is_refused(&admitted) && has_disk && way == Images::InMemory {
            promise = None;
            (admitted, way) = (self.wait_for(on_the_way), to_disk);
        }
        // As long as there are snapshots: one of them may be that of the batch.
        let (least, shrinking) = match has_disk {
            true => self.on_the_way(LEAST_ON_THE_WAY_DIVISOR),
            false => (needed + images, Images::InMemory),
        };
        if is_filled(&admitted) && may_shrink(least)? {
            return Ok((Admission::default(), shrinking));
        }
        if is_refused(&admitted) && versions.give_up_all() {
            (admitted, way) = (room.admit(needed), Images::InMemory);
            if is_filled(&admitted) && !self.conditional && may_shrink(needed)? {
                return Ok((Admission::default(), way));
            }
        }
        let admission = Admission {
            _memory: Some(admitted?),
            _promise: promise,
        };
        Ok((admission, way))
    }

    /// Images that are there already may be what is in the way.
    fn wait_for(&self, bytes: usize) -> Result<Admitted<'a>> {
        let room = &self.core.shared.room;
        match (room.admit(bytes), self.trees.first()) {
            (Err(error), Some(tree)) => tree.joined.admit_after_spill(error, || room.admit(bytes)),
            (admitted, _) => admitted,
        }
    }

    /// The room in which images go to disk, at most this part of the budget.
    fn on_the_way(&self, divisor: usize) -> (usize, Images) {
        let most = self.core.budget.limit() / divisor;
        let bytes = self.needed.max(self.images.min(most));
        (bytes, Images::ToDisk { chunk: bytes / 2 })
    }
}

fn is_refused<T>(admitted: &Result<T>) -> bool {
    matches!(admitted, Err(error) if error.is_about_memory())
}

/// Resident trees fill the budget.
fn is_filled<T>(admitted: &Result<T>) -> bool {
    matches!(admitted, Err(Error::ResidentTreesTooLarge { .. }))
}

/// Brings the images of `trees` to disk. The caller holds their run locks. Where that fails, the
/// snapshots are given up; `conditional`: that of the caller, too, whose commit ends here.
pub(super) fn to_disk(core: &Core, trees: &[Arc<TreeCore>], conditional: bool) -> Result<()> {
    let spill = |tree: &Arc<TreeCore>| tree.joined.spill(RunLock::Held);
    if let Err(error) = trees.iter().try_for_each(spill) {
        events::refused(&error);
        core.shared.versions.give_up_all();
        if conditional {
            return Err(Error::SnapshotTooOld);
        }
    }
    Ok(())
}
