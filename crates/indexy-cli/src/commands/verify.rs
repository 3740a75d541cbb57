//! `indexy verify`: reads everything and says what does not hold, for people or as JSON.

use crate::{
    args::Verify,
    exit,
    format::escape::escaped,
    stdout::{self, say},
    store::{self, Access},
};
use indexy::VerifyReport;
use indexy_report::size::{self, count, counted};
use serde_json::json;
use std::{process::ExitCode, time::Instant};

/// Runs the command.
pub fn run(args: &Verify) -> anyhow::Result<ExitCode> {
    let start = Instant::now();
    let checked = store::open(&args.database, Access::Read).and_then(|db| Ok(db.verify()?));
    if args.json {
        return print_json(checked, start);
    }
    let report = checked?;
    print_text(&report)?;
    if !report.is_ok() {
        say(
            "error: the database is damaged; restore a checkpoint, or save what can be read with \
             `indexy salvage`",
        );
        return Ok(ExitCode::from(exit::FAILED));
    }
    stdout::print_if_read(format_args!(
        "everything holds; checked in {}",
        size::duration(start.elapsed())
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn print_text(report: &VerifyReport) -> anyhow::Result<()> {
    for tree in &report.trees {
        let name = escaped(tree.name.as_bytes());
        for problem in &tree.problems {
            say(format_args!("tree \"{name}\": {problem}"));
        }
        let is_ok = tree.problems.is_empty();
        let verdict = if is_ok { "ok" } else { "DAMAGED" };
        let records = match is_ok || tree.entries > 0 {
            true => counted(tree.entries, "record"),
            false => "records not counted".into(),
        };
        let on_disk = match tree.damaged {
            0 => count(tree.y_entries),
            places => counted(places, "damaged place"),
        };
        let in_memory = count(tree.x_entries);
        let text =
            format!("{verdict}  {name}: {records} ({in_memory} in memory, {on_disk} on disk)");
        stdout::print_if_read(text)?;
    }
    Ok(())
}

/// One object, also if the database cannot be opened or read: then it has `error` instead of
/// `trees`.
fn print_json(checked: anyhow::Result<VerifyReport>, start: Instant) -> anyhow::Result<ExitCode> {
    let seconds = start.elapsed().as_secs_f64();
    let (ok, json) = match checked {
        Ok(report) => {
            let ok = report.is_ok();
            (
                ok,
                json!({"ok": ok, "seconds": seconds, "trees": report.trees}),
            )
        }
        Err(error) => {
            let error = format!("{error:#}");
            (
                false,
                json!({"ok": false, "seconds": seconds, "error": error}),
            )
        }
    };
    stdout::print_if_read(json)?;
    Ok(if ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(exit::FAILED)
    })
}
