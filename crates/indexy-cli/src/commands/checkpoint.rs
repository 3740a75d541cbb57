//! `indexy checkpoint`: a copy of the database as of this moment, which opens by itself.
//!
//! It is written beside DEST (`unfinished.rs`): DEST is whole whenever it is there. Then the
//! command has succeeded, also where the database could not be flushed at the end, as on a full
//! device: it is as it was.

use crate::{
    args::Checkpoint,
    interrupt::Interrupt,
    stdout::{self, say},
    store::{self, Access},
    unfinished::{Empty, Unfinished},
};
use std::process::ExitCode;

/// Runs the command.
pub fn run(args: &Checkpoint) -> anyhow::Result<ExitCode> {
    let db = store::open(&args.database, Access::Copy)?;
    let interrupt = Interrupt::install()?;
    let unfinished = Unfinished::make(&args.database.path, &args.dest, Empty::Taken)?;
    let undo = || {
        unfinished.remove();
        say("interrupted; no checkpoint was written");
    };
    interrupt.undo(undo, || db.checkpoint(&unfinished.path))?;
    unfinished.becomes()?;
    if let Err(error) = db.close() {
        say(format!("note: {}: {error}", args.database.path.display()));
    }
    stdout::print(format_args!(
        "checkpoint written to {}",
        args.dest.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}
