//! The kill: a child process writes and is killed in the middle. What it was told to be durable
//! must be there.
//!
//! The child is this program with a first argument that no user gives. It writes records in
//! ascending order and makes them durable now and then. Only then does it say so on its standard
//! output, as `records memory`. It ends when nobody listens any more.

use super::{
    generate::{Fingerprint, LOG_PREFIX, TREE, log_key, log_number, log_value},
    live::Live,
    stop::Stop,
};
use crate::{interrupt::Interrupt, store};
use anyhow::{Context as _, bail, ensure};
use indexy::Tree;
use std::{
    env,
    ffi::OsString,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    path::Path,
    process::{Child, ChildStdout, Command, ExitCode, Stdio},
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    thread,
    time::{Duration, Instant},
};

/// First argument of the child.
const VICTIM: &str = "demo-victim";
/// How often the child makes its writes durable and says so.
const ACKNOWLEDGE_EVERY: Duration = Duration::from_millis(25);
/// How many records pass between two looks at the clock.
const RECORDS_PER_LOOK: u64 = 64;
/// A child that was not killed by then ends by itself.
const VICTIM_LIFETIME: Duration = Duration::from_secs(600);
/// How long the child may take to acknowledge its first record.
const FIRST_WORD: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(10);

/// What the killed process left behind.
#[derive(Debug)]
pub struct Recovered {
    /// Records that it had been told to be durable.
    pub acknowledged: u64,
    /// Records that are there.
    pub found: u64,
    /// Their fingerprint.
    pub fingerprint: Fingerprint,
    /// Bytes of their keys and values.
    pub bytes: u64,
}

/// The arguments of a process that is to be killed; `None` in every other one. They are not part of
/// the command line that users see.
pub fn victim_arguments() -> Option<Vec<OsString>> {
    let mut arguments = env::args_os().skip(1);
    (arguments.next()? == VICTIM).then(|| arguments.collect())
}

/// Writes into the database at the path given, with the budget given, until it is killed.
pub fn victim(arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let [path, budget] = arguments else {
        bail!("{VICTIM} is for `indexy demo` alone");
    };
    let budget = budget.to_str().and_then(|text| text.parse().ok());
    let budget = budget.context("the budget is no number")?;
    let db = store::open_for_demo(Path::new(path), budget)?;
    let tree = db.tree(TREE)?;
    let start = Instant::now();
    let mut out = io::stdout().lock();
    let mut value = Vec::new();
    let mut acknowledged_at = start;
    for i in 0.. {
        log_value(i, &mut value);
        tree.insert(log_key(i), &value)?;
        if i % RECORDS_PER_LOOK == 0 && acknowledged_at.elapsed() >= ACKNOWLEDGE_EVERY {
            db.sync()?;
            let used = db.stats().memory_used_bytes;
            if writeln!(out, "{} {used}", i + 1)
                .and_then(|()| out.flush())
                .is_err()
            {
                break;
            }
            acknowledged_at = Instant::now();
            if start.elapsed() > VICTIM_LIFETIME {
                break;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Lets a child write into the closed database at `path` for `duration`, kills it, and returns how
/// many records were acknowledged to it as durable.
pub fn kill_a_writer(
    path: &Path,
    budget: u64,
    duration: Duration,
    live: &Live,
    interrupt: &Interrupt,
) -> anyhow::Result<u64> {
    let mut victim = Victim::start(path, budget)?;
    let output = victim
        .0
        .stdout
        .take()
        .context("the child has no standard output")?;
    let acknowledged = AtomicU64::new(0);
    let killed = thread::scope(|scope| {
        let listener = scope.spawn(|| listen(output, &acknowledged, live));
        let killed = victim.kill_after(duration, &acknowledged, interrupt);
        // The child is gone, so its output ends.
        drop(victim);
        let _ = listener.join();
        killed
    });
    live.set_victim_memory(None);
    killed?;
    Ok(acknowledged.into_inner())
}

fn listen(output: ChildStdout, acknowledged: &AtomicU64, live: &Live) {
    let mut heard = 0;
    for line in BufReader::new(output).lines() {
        // A line cut off by the kill has no second number.
        let Some((records, memory)) = line.ok().as_deref().and_then(parse_word) else {
            continue;
        };
        acknowledged.store(records, SeqCst);
        live.add_operations(records - heard);
        live.set_victim_memory(Some(memory));
        heard = records;
    }
}

fn parse_word(line: &str) -> Option<(u64, u64)> {
    let (records, memory) = line.split_once(' ')?;
    Some((records.parse().ok()?, memory.parse().ok()?))
}

/// The child; killed and waited for at the latest when dropped.
struct Victim(Child);

impl Victim {
    fn start(path: &Path, budget: u64) -> anyhow::Result<Self> {
        let program = env::current_exe().context("cannot find the program itself")?;
        let child = Command::new(program)
            .arg(VICTIM)
            .arg(path)
            .arg(budget.to_string())
            // Ctrl-C is for us: we decide how the child ends.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start a second process")?;
        Ok(Self(child))
    }

    fn kill_after(
        &mut self,
        duration: Duration,
        acknowledged: &AtomicU64,
        interrupt: &Interrupt,
    ) -> anyhow::Result<()> {
        const SIGKILL: i32 = 9;
        let start = Instant::now();
        let mut first_word = None;
        loop {
            if interrupt.is_set() {
                bail!(Stop);
            }
            if let Some(status) = self.0.try_wait()? {
                let mut said = String::new();
                if let Some(stderr) = &mut self.0.stderr {
                    let _ = stderr.read_to_string(&mut said);
                }
                bail!(
                    "the writing process ended by itself: {status}: {}",
                    said.trim()
                );
            }
            if acknowledged.load(SeqCst) > 0 {
                let since = *first_word.get_or_insert_with(Instant::now);
                if since.elapsed() >= duration {
                    break;
                }
            } else if start.elapsed() > FIRST_WORD {
                bail!(
                    "the writing process did not write anything in {} s",
                    FIRST_WORD.as_secs()
                );
            }
            thread::sleep(POLL);
        }
        self.0.kill().context("cannot kill the writing process")?;
        let status = self.0.wait()?;
        ensure!(
            status.signal() == Some(SIGKILL),
            "the writing process ended by itself: {status}"
        );
        Ok(())
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // Both fail only if it is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads what the killed process left: it must be its first records without a gap, all that were
/// acknowledged among them, each with its value.
pub fn check_recovered(tree: &Tree, acknowledged: u64) -> anyhow::Result<Recovered> {
    let mut fingerprint = Fingerprint::default();
    let mut expected = Vec::new();
    let mut bytes = 0;
    for (i, entry) in (0..).zip(tree.prefix(LOG_PREFIX)) {
        let (key, value) = entry?;
        log_value(i, &mut expected);
        ensure!(
            log_number(&key) == Some(i),
            "record {i} of the killed process is missing; {acknowledged} were acknowledged as \
             durable"
        );
        ensure!(
            value == expected,
            "record {i} of the killed process has a wrong value"
        );
        fingerprint.add(&key, &value);
        bytes += (key.len() + value.len()) as u64;
    }
    let found = fingerprint.records;
    ensure!(
        found >= acknowledged,
        "only {found} records of the killed process are there; {acknowledged} were acknowledged \
         as durable"
    );
    Ok(Recovered {
        acknowledged,
        found,
        fingerprint,
        bytes,
    })
}
