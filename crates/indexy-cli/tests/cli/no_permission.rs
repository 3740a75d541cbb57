//! A directory that may be read and not written. Root may write everywhere: then the command runs
//! as somebody else.

use crate::{Place, Ran};
use std::{
    fs::{self, Permissions},
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        process::CommandExt,
    },
    path::Path,
    process::{Command, Stdio},
};

/// "nobody".
const OTHER_USER: u32 = 65534;

fn set_modes(path: &Path, dir: u32, file: u32) {
    let mode = if path.is_dir() { dir } else { file };
    // First, so that what is in it can be reached.
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            set_modes(&entry.unwrap().path(), dir, file);
        }
    }
}

fn run_as_other(place: &Place, binary: &Path, args: &[&str]) -> Ran {
    let mut command = Command::new(binary);
    command
        .current_dir(place.0.path())
        .args(args)
        .stdin(Stdio::null());
    if fs::metadata(place.0.path()).unwrap().uid() == 0 {
        command.uid(OTHER_USER).gid(OTHER_USER);
    }
    Ran(command.output().unwrap())
}

#[test]
fn reading_works_and_writing_names_the_file() {
    let place = Place::with_records("a\t1\nb\t2\n");
    let binary = place.path("indexy");
    fs::copy(env!("CARGO_BIN_EXE_indexy"), &binary).unwrap();
    set_modes(place.0.path(), 0o755, 0o755);
    set_modes(&place.path("db"), 0o555, 0o444);
    let run = |args: &[&str]| run_as_other(&place, &binary, args);
    let got = run(&["get", "db", "a"]);
    let scanned = run(&["scan", "db", "--count"]);
    let verified = run(&["verify", "db"]);
    let put = run(&["put", "db", "a", "3"]);
    let again = run(&["get", "db", "a"]);
    set_modes(&place.path("db"), 0o755, 0o644);
    got.succeeds().prints("1\n");
    scanned.succeeds().prints("2\n");
    verified.succeeds();
    put.exits(1)
        .says("LOCK")
        .says("Permission denied")
        .prints("");
    again.succeeds().prints("1\n");
}
