//! What several files of this suite need: random numbers from a seed, settings from the
//! environment, child processes.

use indexy::{Db, Options};
use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::{Duration, Instant},
};

pub const MIB: usize = 1 << 20;

/// A number from the environment.
pub fn setting(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// Raises a flag at the end of a scope, also when a check in it fails: threads that wait for it
/// come to an end.
pub struct StopAtDrop<'a>(pub &'a AtomicBool);

impl Drop for StopAtDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

pub fn open(path: &Path, options: &Options) -> Db {
    Db::open(path, options.clone()).unwrap()
}

/// Walks everything and finds nothing wrong.
pub fn assert_sound(db: &Db) {
    let report = db.verify().unwrap();
    assert!(report.is_ok(), "{report:?}");
}

/// Name of the environment variable that tells a test that it is the child, with its argument.
pub const CHILD: &str = "INDEXY_TEST_CHILD";

/// The argument of the parent, in a test that is the child's part; `None` in an ordinary run.
pub fn child_argument() -> Option<String> {
    std::env::var(CHILD).ok()
}

/// A process that runs the test `name` of this binary with `argument`.
pub fn child(name: &str, argument: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(CHILD, argument)
        .stdin(Stdio::null());
    command
}

/// Waits for `child` and says whether it ended well; kills it and fails after `limit`.
pub fn wait(mut child: Child, limit: Duration) -> bool {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.success();
        }
        if start.elapsed() > limit {
            let _ = child.kill();
            let _ = child.wait();
            panic!("the child still runs after {limit:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Paths (relative), lengths, modification times and contents of everything below `dir`.
pub fn fingerprint(dir: &Path) -> Vec<(String, std::time::SystemTime, Vec<u8>)> {
    let mut all = Vec::new();
    let mut todo = vec![dir.to_path_buf()];
    while let Some(at) = todo.pop() {
        for entry in std::fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            let meta = std::fs::metadata(&path).unwrap();
            let name = path.strip_prefix(dir).unwrap().display().to_string();
            let content = if meta.is_dir() {
                todo.push(path);
                Vec::new()
            } else {
                std::fs::read(&path).unwrap()
            };
            all.push((name, meta.modified().unwrap(), content));
        }
    }
    all.sort();
    all
}

/// The shim of `tests/fault_shim`, compiled into `dir`.
pub fn shim(dir: &Path) -> PathBuf {
    let source = Path::new("tests/fault_shim/shim.rs");
    let library = dir.join("libfault_shim.so");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let built = Command::new(rustc)
        .args(["--edition", "2024", "--crate-type", "cdylib", "-o"])
        .arg(&library)
        .arg(source)
        .status();
    assert!(
        built.is_ok_and(|status| status.success()),
        "the shim does not compile"
    );
    library
}

/// Gives the shim a command; returns true if it answers "yes".
pub fn tell(command: &str) -> bool {
    let error = std::fs::File::open(format!("/indexy-fault/{command}")).unwrap_err();
    error.kind() == std::io::ErrorKind::AlreadyExists
}

/// Runs `run` for each of `items`, some side by side: for children that wait most of the time, for
/// disks, for locks, or for their end.
pub fn side_by_side<T: Send>(items: impl IntoIterator<Item = T>, run: impl Fn(T) + Sync) {
    const AT_ONCE: usize = 4;
    let mut items = items.into_iter().peekable();
    while items.peek().is_some() {
        std::thread::scope(|s| {
            for item in items.by_ref().take(AT_ONCE) {
                let run = &run;
                s.spawn(move || run(item));
            }
        });
    }
}
