//! The course of the demo: its phases one after the other, and its report.

use super::{
    crash, fill,
    generate::{Fingerprint, TREE, Versions},
    live::Live,
    paths::Walk,
    plan::{
        FILL_SHARE, KILL_SHARE, PATHS_SHARE, PHASES, Plan, SCAN_SHARE, WORKING_SET_SHARE,
        ZIPF_SHARE,
    },
    reads,
    report::Report,
    scans, space,
    stage::Stage,
    stop::Stop,
};
use crate::{
    args::Demo,
    interrupt::Interrupt,
    stdout::{self, say},
    store,
};
use anyhow::{Context as _, ensure};
use indexy_report::{
    machine::{self, Machine},
    size,
};
use std::{
    fs::File,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};
use tempfile::TempDir;

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
                "\n{}\n{}\n{}\nevery value read was checked; the temporary database is removed\n\
                 report: {}",
                report.table(),
                report.resident(),
                report.recovery,
                shown.display()
            ))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Finds out before a minute of work that the report cannot be written; leaves no file behind.
fn refuse_unwritable(path: &Path) -> anyhow::Result<()> {
    // A link, too, whatever it names.
    let existed = path.symlink_metadata().is_ok();
    let opened = File::options().append(true).create(true).open(path);
    opened.with_context(|| format!("cannot write the report to {}", path.display()))?;
    if !existed {
        let _ = std::fs::remove_file(path);
    }
    Ok(())
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
    scans::compare_all(&stage)?;
    let verified = stage.db.verify()?;
    ensure!(verified.is_ok(), "verify found damage: {verified:?}");
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
    // The other half is for records.
    let room = plan.most_bytes / 2;
    let outcome = fill::index_paths(stage, walk, plan.share(PATHS_SHARE), room)?;
    live.end(None, outcome);

    live.begin("generated records");
    let outcome = fill::fill(
        stage,
        plan.share(FILL_SHARE),
        plan.least_bytes.min(plan.most_bytes),
        plan.most_bytes,
    )?;
    live.end(None, outcome);

    live.begin("scattered working set");
    let (latency, outcome) = reads::read_working_set(stage, plan.share(WORKING_SET_SHARE))?;
    live.end(Some(latency), outcome);

    live.begin("zipf reads and updates");
    let (latency, outcome) = reads::read_zipf(stage, plan.share(ZIPF_SHARE))?;
    live.end(Some(latency), outcome);

    live.begin("range scans");
    let outcome = scans::scan(stage, plan.share(SCAN_SHARE))?;
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
    drop(db);
    let acknowledged = crash::kill_a_writer(path, budget, plan.share(KILL_SHARE), live, interrupt)?;
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
    let machine = Machine::here(dir);
    let known = |text: String| {
        if text.is_empty() {
            "unknown".into()
        } else {
            text
        }
    };
    vec![
        ("date", format!("{} UTC", machine::now_utc())),
        (
            "version",
            format!(
                "indexy {}, commit {}",
                env!("CARGO_PKG_VERSION"),
                machine::commit()
            ),
        ),
        (
            "processor",
            format!(
                "{}, {} ({})",
                known(machine.processor),
                size::counted(machine.cores as u64, "core"),
                std::env::consts::ARCH
            ),
        ),
        ("memory", size::bytes(machine.memory)),
        ("kernel", known(machine.kernel)),
        ("database in", space::describe(dir)),
        ("file system", known(machine.file_system)),
        (
            "threads",
            format!(
                "{} that write and read, beside those of the database",
                plan.threads
            ),
        ),
        (
            "indexes",
            "ART in memory, LSM on disk; log made durable every 100 ms".into(),
        ),
    ]
}
