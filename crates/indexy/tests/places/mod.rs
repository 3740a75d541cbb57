//! Where tests keep their databases.
//!
//! A test whose time goes to a disk and that is not about one takes a directory in memory.
//! `INDEXY_TEST_DISK=1` puts every database on the disk: the nightly campaigns run so.

use rustix::fs::statvfs;
use tempfile::TempDir;

const MEMORY: &str = "/dev/shm";
/// What must be free there: several times what the tests that run at once write.
const ROOM: u64 = 4 << 30;

/// A directory in memory where there is one with room, else on the disk.
pub fn fast_dir() -> TempDir {
    let on_disk = std::env::var_os("INDEXY_TEST_DISK").is_some_and(|v| v == "1");
    let in_memory = (!on_disk && has_room()).then(|| tempfile::tempdir_in(MEMORY));
    match in_memory {
        Some(Ok(dir)) => dir,
        _ => tempfile::tempdir().unwrap(),
    }
}

fn has_room() -> bool {
    statvfs(MEMORY).is_ok_and(|at| at.f_bavail * at.f_frsize >= ROOM)
}
