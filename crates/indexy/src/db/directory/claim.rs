//! Taking a directory for a database that is made there by somebody else than its user: a copy, or
//! what was saved of a damaged one.
//!
//! It is locked first and looked at then, so that what was not there then is the caller's own as
//! long as he holds the lock.

#![forbid(unsafe_code)]

use super::{
    lock::DirectoryLock,
    names::{LOCK_FILE, create_lasting},
};
use crate::{
    error::{Error, Result},
    storage::Buffered,
};
use std::{fs, path::Path};

/// A directory that nobody else makes a database in.
pub(crate) struct Claim {
    pub(crate) lock: DirectoryLock,
    /// The directory was not there before.
    pub(crate) made: bool,
}

/// Makes the destination, which is absent or an empty directory, and locks it. Whoever else claims
/// it, or opens a database there, is refused meanwhile, and neither removes what the other made.
///
/// Errors: `DestinationNotEmpty`, `Locked`, `Io`.
pub(crate) fn claim(dest: &Path) -> Result<Claim> {
    let made = !dest.exists();
    let lock = lock_empty(dest);
    if lock.is_err() && made {
        // Fails, as it should, if there is something in it.
        let _ = fs::remove_dir(dest);
    }
    lock.map(|lock| Claim { lock, made })
}

fn lock_empty(dest: &Path) -> Result<DirectoryLock> {
    prepare(dest)?;
    let lock = DirectoryLock::take(dest, false)?;
    let mut locked = false;
    for entry in fs::read_dir(dest).map_err(|e| Error::io("open", dest, e))? {
        let entry = entry.map_err(|e| Error::io("open", dest, e))?;
        if entry.file_name() != LOCK_FILE {
            return Err(not_empty(dest));
        }
        locked = true;
    }
    if !locked {
        // What was locked is gone: another claim failed at this moment, and took it away.
        return Err(Error::Locked {
            path: dest.join(LOCK_FILE),
            this_process: false,
        });
    }
    Ok(lock)
}

/// The destination is absent or an empty directory.
fn prepare(dest: &Path) -> Result<()> {
    match fs::read_dir(dest) {
        Ok(mut entries) => {
            // A lock file alone is what a claim that was cut short may leave; whether it is in use
            // is found out next.
            let other = |entry: std::io::Result<fs::DirEntry>| {
                entry.map_or(true, |entry| entry.file_name() != LOCK_FILE)
            };
            match entries.any(other) {
                false => Ok(()),
                true => Err(not_empty(dest)),
            }
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => create_lasting(&Buffered, dest),
        Err(e) if e.kind() == std::io::ErrorKind::NotADirectory => Err(not_empty(dest)),
        Err(e) => Err(Error::io("open", dest, e)),
    }
}

fn not_empty(dest: &Path) -> Error {
    Error::DestinationNotEmpty {
        path: dest.to_path_buf(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The directory has a name that is just short enough.
    #[test]
    fn a_directory_that_cannot_be_locked_is_not_left() {
        const MOST: usize = 4095;
        let dir = tempfile::tempdir().unwrap();
        let mut above = dir.path().to_path_buf();
        while MOST - above.as_os_str().len() > 300 {
            above.push("d".repeat(200));
        }
        fs::create_dir_all(&above).unwrap();
        let left = MOST - above.as_os_str().len() - 1;
        let dest = above.join("d".repeat(left.min(250)));
        let dest = match left > 250 {
            true => dest.join("d".repeat(left - 251)),
            false => dest,
        };
        fs::create_dir_all(dest.parent().unwrap()).unwrap();
        assert!(matches!(claim(&dest), Err(Error::Io { .. })));
        assert!(!dest.exists() && dest.parent().unwrap().exists());
    }
}
