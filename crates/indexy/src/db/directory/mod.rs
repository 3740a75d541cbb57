//! The directory of a database: its names, its lock, its manifest, and who may touch it.
//!
//! `names` what lies where; `lock` against other owners; `claim` takes one for a database that is
//! to be made there; `owned` who holds the lock for how long,
//! and the storage of the log and the manifest; `guarded_y` an Index Y with its hold on the
//! directory; `manifest` what the database is made of; `unfinished` removes what failed
//! half way.

mod claim;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod fuzzing;
mod guarded_y;
mod lock;
pub(super) mod manifest;
mod names;
mod owned;
mod unfinished;

pub(super) use claim::claim;
pub(super) use guarded_y::GuardedY;
pub(super) use lock::DirectoryLock;
pub(super) use names::{
    HOT, HOT_NEXT, IMAGES_DIR, LOCK_FILE, LOG_DIR, TREES_DIR, absolute, create_lasting, keep_tree,
    real, remove_tree, tree_dir,
};
pub(super) use owned::{OwnedDirectory, OwnedStorage};
pub(super) use unfinished::remove_unfinished;
