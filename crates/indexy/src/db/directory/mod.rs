//! The directory of a database: its names, its lock, its manifest, and who may touch it.
//!
//! `names` what lies where; `lock` against other owners; `owned` who holds the lock for how long,
//! and the storage of the log and the manifest; `guarded_y` an Index Y with its hold on the
//! directory; `manifest` what the database is made of.

#[cfg(any(test, feature = "testing"))]
pub(crate) mod fuzzing;
mod guarded_y;
mod lock;
pub(super) mod manifest;
mod names;
mod owned;

pub(super) use guarded_y::GuardedY;
pub(super) use lock::DirectoryLock;
pub(super) use names::{
    IMAGES_DIR, LOCK_FILE, LOG_DIR, TREES_DIR, absolute, create_lasting, keep_tree, remove_tree,
    tree_dir,
};
pub(super) use owned::{OwnedDirectory, OwnedStorage};
