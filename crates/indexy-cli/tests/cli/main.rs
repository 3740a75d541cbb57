//! Behaviour of the binary `indexy`, one a module.

mod bad_lines;
mod broken_pipe;
mod checkpoint;
mod compact;
mod completions;
mod convert;
mod damage;
mod demo;
mod encodings;
mod exit_codes;
mod help;
mod interrupted_load;
mod json_lines;
mod no_permission;
mod read_only;
mod refusals;
mod remove_range;
mod round_trip;
mod salvage;
mod scan;
mod stats;
mod trees;
mod verify_json;

use std::{
    ffi::OsStr,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};
use tempfile::TempDir;

/// A temporary directory, and `indexy` run in it.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_indexy"));
        command
            .current_dir(self.0.path())
            .args(args)
            .stdin(Stdio::null());
        command
    }

    /// A command that signals end, also when these tests run in the background of a script, which
    /// ignores some: a program keeps what its parent ignores.
    fn command_for_signals<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new("env");
        command
            .arg("--default-signal=INT,TERM,HUP")
            .arg(env!("CARGO_BIN_EXE_indexy"))
            .current_dir(self.0.path())
            .args(args)
            .stdin(Stdio::null());
        command
    }

    /// A command whose files may not grow beyond so many blocks of 512 bytes, as on a full device.
    fn command_with_little_room(&self, blocks: u32, args: &str) -> Command {
        let binary = env!("CARGO_BIN_EXE_indexy");
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec {binary} {args}");
        let mut command = Command::new("sh");
        command
            .args(["-c", &script])
            .current_dir(self.0.path())
            .stdin(Stdio::null());
        command
    }

    /// Changes a byte of the first table of tree 1 in "db".
    fn damage_a_table(&self) {
        let mut tables = std::fs::read_dir(self.path("db/trees/1/tables")).unwrap();
        let table = tables.next().unwrap().unwrap().path();
        let mut bytes = std::fs::read(&table).unwrap();
        bytes[4096 + 100] ^= 1;
        std::fs::write(table, bytes).unwrap();
    }

    fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Ran {
        Ran(self.command(args).output().unwrap())
    }

    fn run_with_input<S: AsRef<OsStr>>(&self, args: &[S], input: &[u8]) -> Ran {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::thread::scope(|scope| {
            // A command that stops early closes its input.
            scope.spawn(move || stdin.write_all(input));
            Ran(child.wait_with_output().unwrap())
        })
    }

    /// A database "db" with these records.
    fn with_records(records: &str) -> Self {
        let place = Self::new();
        place
            .run_with_input(&["load", "db", "-q"], records.as_bytes())
            .succeeds();
        place
    }
}

/// A command that has ended.
#[derive(Debug)]
struct Ran(Output);

impl Ran {
    #[track_caller]
    fn exits(self, code: i32) -> Self {
        assert_eq!(self.0.status.code(), Some(code), "{}", self.all());
        self
    }

    #[track_caller]
    fn succeeds(self) -> Self {
        self.exits(0)
    }

    #[track_caller]
    fn says(self, text: &str) -> Self {
        assert!(
            self.stderr().contains(text),
            "{text:?} is not in: {}",
            self.all()
        );
        self
    }

    #[track_caller]
    fn prints(self, text: &str) -> Self {
        assert_eq!(self.stdout(), text, "{}", self.all());
        self
    }

    fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
    }

    fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }

    fn all(&self) -> String {
        format!(
            "{:?}\nstdout: {}\nstderr: {}",
            self.0.status,
            self.stdout(),
            self.stderr()
        )
    }
}

/// Sends a signal, as `kill` takes it: "-INT".
#[track_caller]
fn send(child: &Child, signal: &str) {
    let id = child.id().to_string();
    let sent = Command::new("kill").args([signal, &id]).status().unwrap();
    assert!(sent.success());
}

fn is_empty(dir: &Path) -> bool {
    dir.read_dir().unwrap().next().is_none()
}
