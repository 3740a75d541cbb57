//! The command as its users meet it: lines, exit codes, signals.

use indexy_dex::Address;
use indexy_dex::remote::{NODES_OFFSET, RemoteMemory, Secret, shm::Shm, tcp::Tcp};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    io::{BufRead, BufReader, Read},
    net::{SocketAddr, TcpListener},
    path::Path,
    process::{Child, ChildStdout, Command, Output, Stdio},
    time::{Duration, Instant},
};

const SECRET: &str = "sixteen letters.";
const PATIENCE: Duration = Duration::from_secs(5);

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_indexy-pool"));
    command
        .args(arguments)
        .env_remove("INDEXY_POOL_SECRET")
        .stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    command(arguments)
        .env("INDEXY_POOL_SECRET", SECRET)
        .output()
        .unwrap()
}

/// The last line of an error, and the code.
fn failure(output: &Output) -> (String, Option<i32>) {
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    (said, output.status.code())
}

struct Pool {
    child: Child,
    lines: BufReader<ChildStdout>,
    first_line: String,
}

impl Pool {
    fn start(arguments: &[&str]) -> Self {
        let mut child = command(&[&["serve"], arguments].concat())
            .env("INDEXY_POOL_SECRET", SECRET)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut first_line = String::new();
        lines.read_line(&mut first_line).unwrap();
        Self {
            child,
            lines,
            first_line,
        }
    }

    fn place(&self) -> &str {
        self.first_line.trim().rsplit(' ').next().unwrap()
    }

    /// Ends it; returns its last words and its code.
    fn end(mut self, signal: Signal) -> (String, Option<i32>) {
        let started = Instant::now();
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        let status = self.child.wait().unwrap();
        assert!(started.elapsed() < PATIENCE);
        let mut last = String::new();
        self.lines.read_to_string(&mut last).unwrap();
        (last, status.code())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn secret() -> Secret {
    Secret::new(SECRET).unwrap()
}

#[test]
fn it_serves_until_a_signal_and_says_how_it_is() {
    for signal in [Signal::TERM, Signal::INT] {
        let pool = Pool::start(&["127.0.0.1:0", "--memory", "1MiB", "--lease-ms", "1000"]);
        let address: SocketAddr = pool.place().parse().unwrap();
        assert!(
            pool.first_line
                .starts_with("serving 1048576 bytes at 127.0.0.1:")
        );
        let memory = Tcp::connect_as(7, &[address], &secret(), PATIENCE).unwrap();
        memory.write(Address::new(0, NODES_OFFSET), &[1]).unwrap();
        let status = run(&["status", pool.place()]);
        let said = String::from_utf8(status.stdout).unwrap();
        assert!(
            said.contains("4096 of 1048576 bytes used (0.4 %), 2 connections, leases of 1000 ms"),
            "{said}"
        );
        assert!(
            said.contains("  owner 7: session 1, lease ends in "),
            "{said}"
        );
        let (last, code) = pool.end(signal);
        let name = if signal == Signal::TERM {
            "SIGTERM"
        } else {
            "SIGINT"
        };
        assert_eq!(
            (last.trim(), code),
            (format!("ended by {name}").as_str(), Some(0))
        );
        assert!(memory.write(Address::new(0, NODES_OFFSET), &[1]).is_err());
        let (said, code) = failure(&run(&["status", &address.to_string()]));
        assert!(said.contains("is lost: ") && code == Some(1), "{said}");
    }
}

#[test]
fn a_socket_that_a_killed_server_left_is_taken_and_one_in_use_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let place = path.to_str().unwrap();
    let arguments = [place, "--memory", "1MiB"];
    let pool = Pool::start(&arguments);
    let connect = || Shm::connect(std::slice::from_ref(&path), &secret(), PATIENCE);
    connect().unwrap();
    let (said, code) = failure(&run(&[&["serve"], &arguments[..]].concat()));
    assert!(
        said.contains("cannot listen on ") && said.contains("in use"),
        "{said}"
    );
    assert_eq!(code, Some(1));
    pool.end(Signal::KILL);
    assert!(path.exists() && connect().is_err());
    let pool = Pool::start(&arguments);
    connect().unwrap();
    pool.end(Signal::TERM);
    assert!(!path.exists());
}

#[test]
fn what_cannot_be_done_is_said_in_one_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = taken.local_addr().unwrap().to_string();
    let (said, code) = failure(&run(&["serve", &place, "--memory", "1MiB"]));
    assert_eq!(said.lines().count(), 1);
    assert!(
        said.starts_with(&format!(
            "error: cannot listen on {place}: Address already in use"
        )),
        "{said}"
    );
    assert_eq!(code, Some(1));
    let (said, code) = failure(&run(&["serve", "127.0.0.1:0", "--memory", "100000GiB"]));
    assert!(
        said.starts_with("error: no memory: 102400000 MiB asked for, "),
        "{said}"
    );
    assert_eq!(code, Some(1));
    let nowhere = ["serve", "/no/such/folder/pool", "--memory", "1MiB"];
    let (said, code) = failure(&run(&nowhere));
    assert!(
        said.contains("cannot listen on /no/such/folder/pool: No such file"),
        "{said}"
    );
    assert_eq!(code, Some(1));
}

#[test]
fn wrong_flags_end_with_code_2() {
    for wrong in [
        &["serve"][..],
        &["serve", "127.0.0.1:0"],
        &["serve", "nowhere", "--memory", "1MiB"],
        &["serve", "127.0.0.1:0", "--memory", "much"],
        &["serve", "127.0.0.1:0", "--memory", "1MiB", "--threads", "0"],
        &[
            "serve",
            "127.0.0.1:0",
            "--memory",
            "1MiB",
            "--lease-ms",
            "9000",
        ],
        &["status"],
        &["fly"],
    ] {
        let (said, code) = failure(&run(wrong));
        assert_eq!(code, Some(2), "{wrong:?}: {said}");
        assert!(said.contains("error: "), "{said}");
    }
    assert_eq!(run(&["--help"]).status.code(), Some(0));
}

fn without_secret(arguments: &[&str]) -> (String, Option<i32>) {
    failure(&command(arguments).output().unwrap())
}

#[test]
fn the_secret_comes_from_a_file_or_the_environment() {
    let place = ["serve", "127.0.0.1:0", "--memory", "1MiB"];
    let (said, code) = without_secret(&place);
    assert!(
        said.contains("no secret: pass --secret-file FILE, or set INDEXY_POOL_SECRET"),
        "{said}"
    );
    assert_eq!(code, Some(1));
    let folder = tempfile::tempdir().unwrap();
    let with_file = |path: &Path| {
        let path = path.to_str().unwrap().to_string();
        without_secret(&[&place[..], &["--secret-file", &path]].concat())
    };
    let (said, _) = with_file(&folder.path().join("none"));
    assert!(said.contains("No such file"), "{said}");
    let short = folder.path().join("short");
    std::fs::write(&short, "short\n").unwrap();
    assert!(
        with_file(&short)
            .0
            .contains("a secret has 16 bytes or more")
    );
    let right = folder.path().join("right");
    std::fs::write(&right, format!("{SECRET}\n")).unwrap();
    let file = ["--secret-file", right.to_str().unwrap()];
    let pool = Pool::start(&[&place[1..], &file].concat());
    let asked = command(&["status", pool.place(), file[0], file[1]])
        .output()
        .unwrap();
    assert!(asked.status.success());
    let wrong = command(&["status", pool.place()])
        .env("INDEXY_POOL_SECRET", "another sixteen.")
        .output()
        .unwrap();
    let (said, code) = failure(&wrong);
    assert!(
        said.contains("does not know the secret") && code == Some(1),
        "{said}"
    );
}
