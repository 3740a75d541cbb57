//! `indexy verify`: reads everything; exit code 1 and what does not hold, if something does not.

use crate::{
    EXIT_FAILED,
    args::Verify,
    size::{self, count, counted},
    stdout::{self, say},
    store::{self, Access},
};
use std::{process::ExitCode, time::Instant};

/// Runs the command.
pub fn run(args: &Verify) -> anyhow::Result<ExitCode> {
    let start = Instant::now();
    let db = store::open(&args.database, Access::Read)?;
    let report = db.verify()?;
    for tree in &report.trees {
        for problem in &tree.problems {
            say(format_args!("tree {:?}: {problem}", tree.name));
        }
        let verdict = if tree.problems.is_empty() {
            "ok"
        } else {
            "DAMAGED"
        };
        stdout::print(format_args!(
            "{verdict}  {}: {} ({} in memory, {} on disk)",
            tree.name,
            counted(tree.entries, "record"),
            count(tree.x_entries),
            count(tree.y_entries)
        ))?;
    }
    if !report.is_ok() {
        say("error: the database is damaged");
        return Ok(ExitCode::from(EXIT_FAILED));
    }
    stdout::print(format_args!(
        "everything holds; checked in {}",
        size::duration(start.elapsed())
    ))?;
    Ok(ExitCode::SUCCESS)
}
