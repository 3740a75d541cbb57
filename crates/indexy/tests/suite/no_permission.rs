//! A directory that the process may read and not write. Root may write everywhere: then the child
//! is somebody else.

use crate::support::{MIB, assert_sound, child_argument, open, wait};
use indexy::{Db, Error, Options};
use std::{
    fs::{self, Permissions},
    io::ErrorKind,
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        process::CommandExt,
    },
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

/// "nobody".
const OTHER_USER: u32 = 65534;

fn options() -> Options {
    Options::new(2 * MIB)
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Lets everybody read what is in `path`, and nobody write.
fn protect(path: &Path) {
    if path.is_dir() {
        fs::read_dir(path)
            .unwrap()
            .for_each(|entry| protect(&entry.unwrap().path()));
    }
    set_mode(path, if path.is_dir() { 0o555 } else { 0o444 });
}

fn unprotect(path: &Path) {
    set_mode(path, 0o755);
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            unprotect(&path);
        }
    }
}

#[track_caller]
fn assert_denied(opened: indexy::Result<Db>, inside: &Path) {
    let error = opened.unwrap_err();
    let Error::Io { path, source, .. } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(source.kind(), ErrorKind::PermissionDenied, "{error}");
    assert!(path.starts_with(inside), "{error}");
    assert!(
        error.to_string().contains(inside.to_str().unwrap()),
        "{error}"
    );
}

#[test]
fn denied_child() {
    let Some(dir) = child_argument() else {
        return;
    };
    let path = Path::new(&dir).join("db");
    assert_denied(Db::open(&path, options()), &path);
    assert_denied(Db::open(path.join("new"), options()), &path);
    let db = Db::open(&path, options().read_only(true)).unwrap();
    let tree = db.tree("t").unwrap();
    assert_eq!(tree.get("k").unwrap().unwrap(), b"v");
    assert_eq!(tree.get("logged").unwrap().unwrap(), b"v");
    assert!(matches!(tree.insert("k", "w"), Err(Error::ReadOnly)));
    assert_sound(&db);
}

#[test]
fn of_a_directory_is_an_error_that_names_a_file_and_reading_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = open(&path, &options());
    let tree = db.tree("t").unwrap();
    tree.insert("k", "v").unwrap();
    db.flush().unwrap();
    tree.insert("logged", "v").unwrap();
    db.sync().unwrap();
    drop((tree, db));
    // Where somebody else may start it.
    let binary = dir.path().join("suite");
    fs::copy(std::env::current_exe().unwrap(), &binary).unwrap();
    set_mode(&binary, 0o755);
    set_mode(dir.path(), 0o755);
    protect(&path);
    let mut command = Command::new(&binary);
    command
        .args(["--exact", "no_permission::denied_child", "--nocapture"])
        .current_dir("/")
        .env(crate::support::CHILD, dir.path())
        .stdin(Stdio::null());
    if fs::metadata(dir.path()).unwrap().uid() == 0 {
        command.uid(OTHER_USER).gid(OTHER_USER);
    }
    let well = wait(command.spawn().unwrap(), Duration::from_secs(60));
    unprotect(&path);
    assert!(well, "see above");
}
