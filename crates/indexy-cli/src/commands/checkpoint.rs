//! `indexy checkpoint`: a copy of the database as of this moment, which opens by itself.

use crate::{
    args::Checkpoint,
    interrupt::Interrupt,
    stdout::{self, say},
    store::{self, Access},
    unfinished::{refuse_inside, remove_all},
};
use std::{path::Path, process::ExitCode};

/// Runs the command.
pub fn run(args: &Checkpoint) -> anyhow::Result<ExitCode> {
    refuse_inside(&args.database.path, &args.dest)?;
    let db = store::open(&args.database, Access::Copy)?;
    let interrupt = Interrupt::install()?;
    let there = args.dest.exists();
    if !there || is_empty(&args.dest) {
        let undo = || {
            remove_copy(&args.dest, there);
            say("interrupted; no checkpoint was written");
        };
        interrupt.undo(undo, || db.checkpoint(&args.dest))?;
    } else {
        // Refused, or what an earlier one left.
        db.checkpoint(&args.dest)?;
    }
    db.close()?;
    stdout::print(format_args!(
        "checkpoint written to {}",
        args.dest.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn is_empty(dir: &Path) -> bool {
    dir.read_dir()
        .is_ok_and(|mut entries| entries.next().is_none())
}

/// Removes what there is of a copy in `dest`, but not a directory that was `there` before.
fn remove_copy(dest: &Path, there: bool) {
    if !there {
        return remove_all(dest);
    }
    for entry in dest.read_dir().into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            remove_all(&path);
        } else {
            let _ = std::fs::remove_file(path);
        }
    }
}
