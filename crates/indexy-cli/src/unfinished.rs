//! A new database while it is not whole: under a name that no other command takes for it, and gone
//! when what makes it fails or is interrupted.
//!
//! Where nothing is, it is made beside its destination and renamed. Into an empty directory, which
//! may be a mount point, or somebody's whose parent is not to be written, it is made inside, and
//! moves up: its manifest last, without which it is none. The lock of that directory is held all
//! the while, so that nobody else makes a database there. A lock file that nobody holds is nothing.

use crate::stdout::say;
use anyhow::{Context as _, bail, ensure};
use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

/// Appended to the name of the destination, or the name in it, while it is not whole.
const UNFINISHED: &str = ".unfinished";
const MANIFEST: &str = "MANIFEST";
const LOCK: &str = "LOCK";
/// Attempts to remove what somebody still writes to.
const REMOVE_TRIES: u32 = 200;
const REMOVE_PAUSE: Duration = Duration::from_millis(5);

/// Whether the destination may be an empty directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Empty {
    Refused,
    Taken,
}

/// The new database while it is not whole; dropping it removes it.
pub struct Unfinished {
    pub path: PathBuf,
    /// Where it is when it is whole.
    dest: PathBuf,
    /// The directory that it is in.
    parent: PathBuf,
    /// Directories above it that were made for it, the deepest first.
    above: Vec<PathBuf>,
    /// It moves up: `dest` is `parent`.
    inside: bool,
    /// The destination's lock, where it is a directory already.
    claim: Option<Claim>,
    keep: bool,
}

impl Unfinished {
    /// Checks that a database may be made at `dest` from the one in `src`, and makes an empty
    /// directory that is this command's alone.
    pub fn make(src: &Path, dest: &Path, empty: Empty) -> anyhow::Result<Self> {
        refuse_inside(src, dest)?;
        let mut this = Self::named(dest)?;
        this.refuse_source(src, dest)?;
        let begun = this.begin(empty);
        if begun.is_err() {
            this.remove_around();
        }
        begun?;
        this.keep = false;
        Ok(this)
    }

    /// What it is called, before anything is made.
    fn named(dest: &Path) -> anyhow::Result<Self> {
        let inside = fs::symlink_metadata(dest).is_ok();
        let (parent, dest, path) = if inside {
            (
                dest.to_path_buf(),
                dest.to_path_buf(),
                dest.join(UNFINISHED),
            )
        } else {
            let Some(name) = dest.file_name() else {
                bail!("{} does not name a directory", dest.display());
            };
            let parent = parent_of(dest);
            let mut unfinished = name.to_os_string();
            unfinished.push(UNFINISHED);
            // Not `dest` itself: nothing can be renamed to `new/.`.
            let (dest, path) = (parent.join(name), parent.join(unfinished));
            (parent, dest, path)
        };
        Ok(Self {
            path,
            dest,
            parent,
            above: Vec::new(),
            inside,
            claim: None,
            keep: true,
        })
    }

    /// The source of this command is not what an earlier one left.
    fn refuse_source(&self, src: &Path, dest: &Path) -> anyhow::Result<()> {
        let (Ok(src_there), Ok(there)) = (fs::canonicalize(src), fs::canonicalize(&self.path))
        else {
            return Ok(());
        };
        ensure!(
            !src_there.starts_with(there),
            "{} is where {} would be written; give another DEST",
            src.display(),
            dest.display()
        );
        Ok(())
    }

    fn begin(&mut self, empty: Empty) -> anyhow::Result<()> {
        let parent = self.parent.display();
        match (self.inside, empty) {
            (true, Empty::Refused) => bail!("{parent} exists"),
            (true, Empty::Taken) => self.claim = Some(Claim::of_empty(&self.parent)?),
            (false, Empty::Refused) => {
                let there = fs::metadata(&self.parent);
                there.with_context(|| format!("cannot write to {parent}"))?;
            }
            (false, Empty::Taken) => {
                self.above = missing(&self.parent);
                create_lasting(&self.parent, &self.above)
                    .with_context(|| format!("cannot write to {parent}"))?;
            }
        }
        let path = self.path.display();
        match fs::create_dir(&self.path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => bail!(
                "{path} exists: another command is writing it, or one that was killed left it; \
                 remove it in that case"
            ),
            made => made.with_context(|| format!("cannot create {path}")),
        }
    }

    /// Removes it, also while a thread of this process still writes there.
    pub fn remove(&self) {
        remove_all(&self.path);
        self.remove_around();
    }

    /// Removes what was made for it. Others may have put something into a directory above: such a
    /// one stays.
    fn remove_around(&self) {
        if let Some(claim) = &self.claim {
            claim.give_up();
        }
        for dir in &self.above {
            let _ = fs::remove_dir(dir);
        }
    }

    /// It is whole: it gets its name, durably.
    pub fn becomes(mut self) -> anyhow::Result<()> {
        // Whole as it is, it is not thrown away because it cannot have its name.
        self.keep = true;
        let (place, dest) = (self.path.display(), self.dest.display());
        if self.inside {
            self.move_up().with_context(|| {
                format!(
                    "cannot move all of {place}, which is whole, to {dest}; move there what is \
                     left of it, {MANIFEST} last"
                )
            })?;
            if let Err(e) = self.remove_rest() {
                say(format_args!("note: cannot remove {place}: {e}"));
            }
        } else {
            sync(&self.path)
                .and_then(|()| fs::rename(&self.path, &self.dest))
                .with_context(|| format!("cannot rename {place}, which is whole"))?;
        }
        sync(&self.parent).with_context(|| format!("cannot sync {}", self.parent.display()))
    }

    fn move_up(&self) -> io::Result<()> {
        sync(&self.path)?;
        let up = |name: &Path| fs::rename(self.path.join(name), self.dest.join(name));
        let entries: Vec<_> = fs::read_dir(&self.path)?.collect::<io::Result<_>>()?;
        for entry in entries {
            let name = PathBuf::from(entry.file_name());
            // The destination's own lock stays, which others are kept out by.
            if name != Path::new(MANIFEST) && name != Path::new(LOCK) {
                up(&name)?;
            }
        }
        sync(&self.dest)?;
        up(Path::new(MANIFEST))
    }

    /// Removes what is left after moving up: the lock of a database that is elsewhere now.
    fn remove_rest(&self) -> io::Result<()> {
        match fs::remove_file(self.path.join(LOCK)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => fs::remove_dir(&self.path),
        }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.keep {
            self.remove();
        }
    }
}

fn remove_all(path: &Path) {
    for _ in 0..REMOVE_TRIES {
        match fs::remove_dir_all(path) {
            // Looks again: the thread may have made it anew.
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => return,
            Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty => thread::sleep(REMOVE_PAUSE),
            Err(e) => {
                say(format_args!("cannot remove {}: {e}", path.display()));
                return;
            }
        }
    }
    say(format_args!("cannot remove {}", path.display()));
}

/// No copy of a database is made in itself.
fn refuse_inside(src: &Path, dest: &Path) -> anyhow::Result<()> {
    let Ok(src_there) = fs::canonicalize(src) else {
        return Ok(());
    };
    if let Ok(dest) = fs::canonicalize(dest) {
        ensure!(src_there != dest, "SRC and DEST are the same database");
    }
    // The part of it that exists, and where that really is.
    let dest_there = std::path::absolute(dest)?;
    let mut parts = dest_there.ancestors();
    let real = parts.find_map(|part| fs::canonicalize(part).ok());
    if real.is_some_and(|real| real.starts_with(&src_there)) {
        bail!("{} is inside of {}", dest.display(), src.display());
    }
    Ok(())
}

/// The lock of an empty directory, held: whoever opens a database there is refused.
struct Claim {
    file: File,
    path: PathBuf,
    /// The file was not there before.
    made: bool,
}

impl Claim {
    /// Refuses a directory that holds anything but a lock file that nobody holds.
    fn of_empty(dir: &Path) -> anyhow::Result<Self> {
        refuse_full(dir)?;
        let claim = Self::take(dir)?;
        // Somebody may have made a database there before it was locked.
        let empty = refuse_full(dir);
        if empty.is_err() {
            claim.give_up();
        }
        empty.map(|()| claim)
    }

    fn take(dir: &Path) -> anyhow::Result<Self> {
        let path = dir.join(LOCK);
        let cannot = || format!("cannot lock {}", path.display());
        let in_use = || format!("{} is in use by another process", dir.display());
        let made = OpenOptions::new().write(true).create_new(true).open(&path);
        let (file, made) = match made {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                let there = OpenOptions::new().write(true).open(&path);
                (there.with_context(cannot)?, false)
            }
            made => (made.with_context(cannot)?, true),
        };
        let locked = file.try_lock();
        let claim = Self { file, path, made };
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!(in_use()),
            Err(TryLockError::Error(e)) => {
                claim.give_up();
                return Err(e).with_context(|| format!("cannot lock {}", claim.path.display()));
            }
        }
        ensure!(claim.is_in_place(), in_use());
        Ok(claim)
    }

    /// Whether the locked file is still the one that its path names.
    fn is_in_place(&self) -> bool {
        let identity = |meta: fs::Metadata| (meta.dev(), meta.ino());
        let there = fs::metadata(&self.path).map(identity).ok();
        there.is_some() && there == self.file.metadata().map(identity).ok()
    }

    /// The directory is as it was; the lock is held until the claim is dropped.
    fn give_up(&self) {
        if self.made && self.is_in_place() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Refuses a directory that holds anything but a lock file.
fn refuse_full(dest: &Path) -> anyhow::Result<()> {
    let cannot_read = || format!("cannot read {}", dest.display());
    for entry in dest.read_dir().with_context(cannot_read)? {
        let entry = entry.with_context(cannot_read)?;
        if entry.file_name() == UNFINISHED {
            bail!(
                "{} exists: another command is writing it, or one that was killed left it; \
                 remove it in that case",
                entry.path().display()
            );
        }
        ensure!(
            entry.file_name() == LOCK,
            "{} exists and is not empty",
            dest.display()
        );
    }
    Ok(())
}

/// Of `dir` and the directories above it, those that are not there, the deepest first.
fn missing(dir: &Path) -> Vec<PathBuf> {
    let named = |dir: &&Path| !dir.as_os_str().is_empty() && !dir.exists();
    let missing = dir.ancestors().take_while(named);
    missing.map(Path::to_path_buf).collect()
}

/// Makes `dir`, of which `missing` is not there, durably.
fn create_lasting(dir: &Path, missing: &[PathBuf]) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    missing
        .iter()
        .rev()
        .try_for_each(|made| sync(&parent_of(made)))
}

/// The directory that `path` is in.
fn parent_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_move_up_as_a_whole_is_said_to_be_in_two_places() {
        let dir = tempfile::tempdir().unwrap();
        let (src, dest) = (dir.path().join("src"), dir.path().join("dest"));
        fs::create_dir(&dest).unwrap();
        let unfinished = Unfinished::make(&src, &dest, Empty::Taken).unwrap();
        let path = unfinished.path.clone();
        fs::write(path.join(MANIFEST), "").unwrap();
        for trees in [path.join("trees"), dest.join("trees")] {
            fs::create_dir_all(trees.join("1")).unwrap();
        }
        let error = format!("{:#}", unfinished.becomes().unwrap_err());
        assert!(error.contains("move there what is left of it"), "{error}");
        assert!(path.join(MANIFEST).exists() && !dest.join(MANIFEST).exists());
        fs::remove_dir_all(dest.join("trees")).unwrap();
        fs::rename(path.join("trees"), dest.join("trees")).unwrap();
    }

    #[test]
    fn a_destination_is_locked_until_it_is_whole() {
        for lock_was_there in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let (src, dest) = (dir.path().join("src"), dir.path().join("dest"));
            fs::create_dir(&dest).unwrap();
            if lock_was_there {
                fs::write(dest.join(LOCK), "").unwrap();
            }
            let unfinished = Unfinished::make(&src, &dest, Empty::Taken).unwrap();
            for name in [MANIFEST, LOCK, "trees"] {
                fs::write(unfinished.path.join(name), "").unwrap();
            }
            let locked = || {
                let lock = File::open(dest.join(LOCK)).unwrap();
                lock.try_lock().is_err()
            };
            assert!(locked());
            unfinished.move_up().unwrap();
            assert!(locked() && dest.join(MANIFEST).exists());
            unfinished.remove_rest().unwrap();
            drop(unfinished);
            assert!(dest.join("trees").exists());
        }
    }

    #[test]
    fn a_destination_that_is_given_up_is_as_it_was() {
        for names in [&[][..], &[LOCK][..]] {
            let dir = tempfile::tempdir().unwrap();
            let (src, dest) = (dir.path().join("src"), dir.path().join("dest"));
            fs::create_dir(&dest).unwrap();
            for name in names {
                fs::write(dest.join(name), "").unwrap();
            }
            drop(Unfinished::make(&src, &dest, Empty::Taken).unwrap());
            let left: Vec<_> = dest.read_dir().unwrap().collect();
            assert_eq!(left.len(), names.len());
        }
    }
}
