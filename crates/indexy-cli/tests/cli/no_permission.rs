//! A directory that may be read and not written. Root may write everywhere: then the command runs
//! as somebody else.

use crate::{Place, Ran};
use std::{
    fs::{self, Permissions},
    io::ErrorKind,
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        process::CommandExt,
    },
    path::Path,
    process::{Command, Stdio},
    thread::sleep,
    time::Duration,
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
    loop {
        match command.output() {
            // A process that another test is starting has the file open that we copied.
            Err(e) if e.kind() == ErrorKind::ExecutableFileBusy => {
                sleep(Duration::from_millis(10));
            }
            output => return Ran(output.unwrap()),
        }
    }
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

#[test]
fn what_may_not_be_read_is_not_lost() {
    let place = Place::with_records("a\t1\nb\t2\n");
    let binary = place.path("indexy");
    fs::copy(env!("CARGO_BIN_EXE_indexy"), &binary).unwrap();
    set_modes(place.0.path(), 0o755, 0o755);
    fs::create_dir(place.path("out")).unwrap();
    set_modes(&place.path("out"), 0o777, 0o644);
    let salvage = || run_as_other(&place, &binary, &["salvage", "db", "out/new"]);
    for denied in ["db/MANIFEST", "db/log", "db/trees", "db/trees/1/tables"] {
        let set_mode = |mode| {
            fs::set_permissions(place.path(denied), Permissions::from_mode(mode)).unwrap();
        };
        set_mode(0o000);
        let ran = salvage();
        set_mode(0o755);
        ran.exits(1).says("Permission denied");
        assert!(place.path("out").read_dir().unwrap().next().is_none());
    }
    salvage().succeeds();
}
