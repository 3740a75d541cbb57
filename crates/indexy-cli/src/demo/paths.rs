//! The paths of this machine's file systems, found by a thread of its own in bounded memory.
//!
//! What the kernel makes up (/proc, /sys, /dev) and the demo's own directory are left out; what
//! cannot be read is counted. A thread that hangs on a dead network mount does not hang the demo:
//! it ends with the process.

use crossbeam_channel::{Receiver, Sender, bounded};
use std::{
    io,
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
};
use walkdir::WalkDir;

const LEFT_OUT: [&str; 3] = ["/proc", "/sys", "/dev"];
const BATCH: usize = 256;
const BATCHES_AHEAD: usize = 16;
/// Directories that the walk holds open at a time.
const OPEN_DIRECTORIES: usize = 16;

/// A file, directory or link.
#[derive(Debug)]
pub struct Found {
    pub path: Vec<u8>,
    pub size: u64,
    /// Seconds since 1970.
    pub mtime: i64,
}

/// A walk under way.
#[derive(Debug)]
pub struct Walk {
    /// What was found; closed at the end.
    pub batches: Receiver<Vec<Found>>,
    unreadable: Arc<AtomicU64>,
}

impl Walk {
    /// Starts at `root`, leaving out `own`.
    pub fn start(root: PathBuf, own: PathBuf) -> io::Result<Self> {
        let (send, batches) = bounded(BATCHES_AHEAD);
        let unreadable = Arc::new(AtomicU64::new(0));
        let counter = unreadable.clone();
        thread::Builder::new()
            .name("walk".into())
            .spawn(move || walk(&root, &own, &send, &counter))?;
        Ok(Self {
            batches,
            unreadable,
        })
    }

    /// Directories and files that could not be read so far.
    pub fn unreadable(&self) -> u64 {
        self.unreadable.load(Relaxed)
    }
}

fn walk(root: &Path, own: &Path, send: &Sender<Vec<Found>>, unreadable: &AtomicU64) {
    let mut batch = Vec::with_capacity(BATCH);
    let entries = WalkDir::new(root)
        .max_open(OPEN_DIRECTORIES)
        .into_iter()
        .filter_entry(|entry| {
            entry.path() != own
                && !LEFT_OUT
                    .iter()
                    .any(|left_out| entry.path() == Path::new(left_out))
        });
    for entry in entries {
        let Ok((entry, meta)) = entry.and_then(|entry| entry.metadata().map(|meta| (entry, meta)))
        else {
            unreadable.fetch_add(1, Relaxed);
            continue;
        };
        batch.push(Found {
            path: entry.path().as_os_str().as_bytes().to_vec(),
            size: meta.size(),
            mtime: meta.mtime(),
        });
        if batch.len() == BATCH
            && send
                .send(std::mem::replace(&mut batch, Vec::with_capacity(BATCH)))
                .is_err()
        {
            return;
        }
    }
    // Nobody listens when the time for paths is over.
    let _ = send.send(batch);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn finds_what_is_there_and_leaves_out_its_own() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        fs::create_dir_all(dir.path().join("own")).unwrap();
        fs::write(dir.path().join("a/b/file"), "12345").unwrap();
        fs::write(dir.path().join("own/file"), "").unwrap();
        let walk = Walk::start(dir.path().to_path_buf(), dir.path().join("own")).unwrap();
        let mut found: Vec<_> = walk.batches.iter().flatten().collect();
        found.sort_by(|a, b| a.path.cmp(&b.path));
        assert_eq!(found.len(), 4);
        assert!(found[3].path.ends_with(b"/a/b/file"));
        assert_eq!(found[3].size, 5);
        assert!(found[3].mtime > 0);
        assert_eq!(walk.unreadable(), 0);
    }
}
