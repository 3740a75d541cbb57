//! Room for the images that a batch leaves while a snapshot is open.
//!
//! They are asked for together with the room of the batch. Where there is none for both, they go to
//! disk a part at a time before the batch is applied, in the room that it has until then. So the
//! largest batch of the smallest budget gives no snapshot up.
//!
//! Threads: that of the batch. It holds all its stripes in [`admit`], and the run locks of its
//! trees and the gate in [`to_disk`], as where a range is removed. Keeps I7 and I10.

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
pub(super) struct Admission<'a> {
    _memory: Admitted<'a>,
    _promise: Option<Promise<'a>>,
}

/// Waits for room for `needed` bytes, and for `images` bytes of images. Where no image can be kept,
/// the snapshots are given up.
pub(super) fn admit<'a>(
    core: &'a Core,
    trees: &[Arc<TreeCore>],
    needed: usize,
    images: usize,
) -> Result<(Admission<'a>, Images)> {
    let (room, versions) = (&core.shared.room, &core.shared.versions);
    let refused =
        |admitted: &Result<Admitted<'a>>| matches!(admitted, Err(error) if error.is_about_memory());
    // Images that are there already may be what is in the way.
    let admit = |bytes| match (room.admit(bytes), trees.first()) {
        (Err(error), Some(tree)) => tree.joined.admit_after_spill(error, || room.admit(bytes)),
        (admitted, _) => admitted,
    };
    let on_the_way = needed.max(images.min(core.budget.limit() / ON_THE_WAY_DIVISOR));
    let to_disk = Images::ToDisk {
        chunk: on_the_way / 2,
    };
    let has_disk = images > 0 && versions.disk().is_some();
    let fits = needed + images <= room.most_at_once();
    let mut promise = match has_disk && fits {
        true => versions.promise(images),
        false => None,
    };
    let (mut admitted, mut way) = match has_disk && promise.is_none() {
        true => (admit(on_the_way), to_disk),
        false => (admit(needed + images), Images::InMemory),
    };
    if refused(&admitted) && has_disk && way == Images::InMemory {
        promise = None;
        (admitted, way) = (admit(on_the_way), to_disk);
    }
    if refused(&admitted) && versions.give_up_all() {
        (admitted, way) = (room.admit(needed), Images::InMemory);
    }
    let admission = Admission {
        _memory: admitted?,
        _promise: promise,
    };
    Ok((admission, way))
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
