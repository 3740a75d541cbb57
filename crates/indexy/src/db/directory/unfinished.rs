//! A database that was not finished: a copy or a salvage that failed half way.

#![forbid(unsafe_code)]

use super::{
    manifest::{MANIFEST_NEXT, Manifest},
    names::{HOT, HOT_NEXT, IMAGES_DIR, LOCK_FILE, LOG_DIR, TREES_DIR},
};
use std::{fs, path::Path};

/// Removes from `dir` what a database has there, and then `dir` itself if it was `made` for it. The
/// caller holds its lock. What cannot be removed stays: the error that led here is the one to
/// report.
pub(crate) fn remove_unfinished(dir: &Path, made: bool) {
    // Without it there is no database any more, whatever stops what follows.
    let _ = fs::remove_file(Manifest::path(dir));
    for name in [TREES_DIR, LOG_DIR, IMAGES_DIR] {
        let _ = fs::remove_dir_all(dir.join(name));
    }
    for name in [HOT, HOT_NEXT, MANIFEST_NEXT, LOCK_FILE] {
        let _ = fs::remove_file(dir.join(name));
    }
    if made {
        let _ = fs::remove_dir(dir);
    }
}
