//! `indexy demo`: shows on this machine what the index is for, and checks everything that it reads.
//!
//! It indexes the paths of the file system and generated records until they are many times the memory budget, reads a
//! scattered working set and by a zipf distribution, scans, kills a writing process and recovers, and verifies. It scales
//! by time: a slower machine gets fewer records, not more patience. The database lives in a temporary
//! directory that is removed however the demo ends (except by a second signal or SIGKILL).

pub mod crash;
mod generate;
mod live;
mod paths;
mod phases;
mod plot;
mod report;
mod screen;
mod space;

use crate::{
    args::Demo,
    interrupt::Interrupt,
    size,
    stdout::{self, say},
    store,
};
use anyhow::{Context as _, ensure};
use generate::{Fingerprint, Versions};
use live::Live;
use paths::Walk;
use phases::Stage;
use report::Report;
use std::{
    fmt,
    fs::File,
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// The one tree of the demo.
pub const TREE: &str = "demo";
/// Parts of the planned time. What is left is for opening, closing, recovery and the check of everything.
const PATHS_PART: f64 = 0.08;
const FILL_PART: f64 = 0.27;
const WORKING_SET_PART: f64 = 0.13;
const ZIPF_PART: f64 = 0.17;
const SCAN_PART: f64 = 0.06;
const KILL_PART: f64 = 0.06;
const PHASES: usize = 7;
/// The data shall be at least, and at most, this many times the budget.
const TIMES_BUDGET_AT_LEAST: u64 = 8;
const TIMES_BUDGET_AT_MOST: u64 = 32;
/// No machine writes more than this per second through an ordered index; bounds the space asked for.
const MOST_BYTES_PER_SECOND: f64 = 100e6;
/// Threads that write and read.
const MOST_THREADS: usize = 4;

/// The user asked to stop.
#[derive(Debug)]
pub struct Stop;

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Stop {}

/// Runs the command.
pub fn run(args: &Demo) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::install()?;
    refuse_unwritable(&args.report)?;
    let plan = Plan::new(args);
    space::require(&std::env::temp_dir(), plan.most_bytes)?;
    let dir = tempfile::Builder::new()
        .prefix("indexy-demo-")
        .tempdir()
        .context("cannot create a temporary directory")?;
    let result = show(args, &plan, &dir, &interrupt);
    let place = dir.path().to_path_buf();
    let removed = dir
        .close()
        .with_context(|| format!("cannot remove {}", place.display()));
    match result {
        Err(error) if error.is::<Stop>() => {
            removed?;
            say("interrupted; the temporary database is removed");
            Ok(interrupt.exit_code())
        }
        Err(error) => Err(error),
        Ok(report) => {
            removed?;
            report
                .write(&args.report)
                .with_context(|| format!("cannot write {}", args.report.display()))?;
            let shown = args
                .report
                .canonicalize()
                .unwrap_or_else(|_| args.report.clone());
            stdout::print(format_args!(
                "\n{}\n{}\nevery value read was checked; the temporary database is removed\nreport: {}",
                report.table(),
                report.recovery,
                shown.display()
            ))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Finds out before a minute of work that the report cannot be written; leaves no file behind.
fn refuse_unwritable(path: &Path) -> anyhow::Result<()> {
    let existed = path.exists();
    let opened = File::options().append(true).create(true).open(path);
    opened.with_context(|| format!("cannot write the report to {}", path.display()))?;
    if !existed {
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// How long each phase takes and how much it may write.
struct Plan {
    total: Duration,
    least_bytes: u64,
    most_bytes: u64,
    threads: u64,
}

impl Plan {
    fn new(args: &Demo) -> Self {
        let total = Duration::from_secs(args.seconds);
        let most_in_time = (total.as_secs_f64() * FILL_PART * MOST_BYTES_PER_SECOND) as u64;
        let threads = thread::available_parallelism().map_or(1, |n| n.get().min(MOST_THREADS));
        Self {
            total,
            least_bytes: args.budget.saturating_mul(TIMES_BUDGET_AT_LEAST),
            most_bytes: args
                .budget
                .saturating_mul(TIMES_BUDGET_AT_MOST)
                .min(most_in_time.max(args.budget)),
            threads: threads as u64,
        }
    }

    fn part(&self, part: f64) -> Duration {
        self.total.mul_f64(part)
    }
}

fn show(args: &Demo, plan: &Plan, dir: &TempDir, interrupt: &Interrupt) -> anyhow::Result<Report> {
    let start = Instant::now();
    let path = dir.path().join("db");
    let live = Live::start(args.budget, plan.total, PHASES)?;
    live.say(&format!(
        "budget {}, {} threads, database in {}",
        size::bytes(args.budget),
        plan.threads,
        path.display()
    ));
    let db = store::open_for_demo(&path, args.budget)?;
    live.watch(Some(db.clone()));
    let mut stage = Stage {
        tree: db.tree(TREE)?,
        db,
        live: &live,
        interrupt,
        budget: args.budget,
        threads: plan.threads,
        records: 0,
        versions: Versions::new(0),
        expected: Fingerprint::default(),
    };
    load_and_read(&mut stage, plan, dir.path())?;
    let (stage, recovery) = kill_and_recover(stage, plan, &path)?;
    live.begin("check of everything");
    stage.compare_all()?;
    let report = stage.db.verify()?;
    ensure!(report.is_ok(), "verify found damage: {report:?}");
    let checked = size::counted(stage.expected.records, "record");
    live.end(
        None,
        format!("{checked} are those that were written; checksums and invariants hold"),
    );
    let Stage { db, tree, .. } = stage;
    drop(tree);
    live.watch(None);
    db.close()?;
    let data = live.data();
    Ok(Report {
        seen: live.finish(),
        budget: args.budget,
        data,
        seconds: start.elapsed().as_secs_f64(),
        circumstances: circumstances(plan, dir.path()),
        recovery,
    })
}

fn load_and_read(stage: &mut Stage<'_>, plan: &Plan, own: &Path) -> anyhow::Result<()> {
    let live = stage.live;
    live.begin("paths of this machine");
    let walk =
        Walk::start(PathBuf::from("/"), own.to_path_buf()).context("cannot start a thread")?;
    let outcome = stage.index_paths(walk, plan.part(PATHS_PART))?;
    live.end(None, outcome);

    live.begin("generated records");
    let outcome = stage.fill(
        plan.part(FILL_PART),
        plan.least_bytes.min(plan.most_bytes),
        plan.most_bytes,
    )?;
    live.end(None, outcome);

    live.begin("scattered working set");
    let (latency, outcome) = stage.read_working_set(plan.part(WORKING_SET_PART))?;
    live.end(Some(latency), outcome);

    live.begin("zipf reads and updates");
    let (latency, outcome) = stage.read_zipf(plan.part(ZIPF_PART))?;
    live.end(Some(latency), outcome);

    live.begin("range scans");
    let outcome = stage.scan(plan.part(SCAN_PART))?;
    live.end(None, outcome);
    Ok(())
}

/// Closes the database, lets a process write into it and be killed, opens it again.
fn kill_and_recover<'a>(
    stage: Stage<'a>,
    plan: &Plan,
    path: &Path,
) -> anyhow::Result<(Stage<'a>, String)> {
    let Stage {
        db,
        tree,
        live,
        interrupt,
        budget,
        mut expected,
        threads,
        records,
        versions,
    } = stage;
    live.begin("kill and recovery");
    live.watch(None);
    drop(tree);
    db.close()?;
    let acknowledged = crash::kill_a_writer(path, budget, plan.part(KILL_PART), live, interrupt)?;
    let reopening = Instant::now();
    let db = store::open_for_demo(path, budget).context("after the kill")?;
    let reopened = reopening.elapsed();
    live.watch(Some(db.clone()));
    let tree = db.tree(TREE)?;
    let recovered = crash::check_recovered(&tree, acknowledged)?;
    live.add_data(recovered.bytes);
    expected.join(recovered.fingerprint);
    let recovery = format!(
        "recovered {} records ({} acknowledged as durable), in {}",
        size::count(recovered.found),
        size::count(recovered.acknowledged),
        size::duration(reopened)
    );
    live.end(None, recovery.clone());
    let stage = Stage {
        db,
        tree,
        live,
        interrupt,
        budget,
        threads,
        records,
        versions,
        expected,
    };
    Ok((stage, recovery))
}

fn circumstances(plan: &Plan, dir: &Path) -> Vec<(&'static str, String)> {
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    vec![
        (
            "date",
            jiff::Timestamp::now()
                .strftime("%Y-%m-%d %H:%M UTC")
                .to_string(),
        ),
        ("version", format!("indexy {}", env!("CARGO_PKG_VERSION"))),
        (
            "machine",
            format!(
                "{} {}, {}",
                std::env::consts::OS,
                std::env::consts::ARCH,
                size::counted(cores as u64, "core")
            ),
        ),
        (
            "threads",
            format!(
                "{} that write and read, besides those of the database",
                plan.threads
            ),
        ),
        ("database in", space::describe(dir)),
        (
            "indexes",
            "ART in memory, LSM on disk; log made durable every 100 ms".into(),
        ),
    ]
}
