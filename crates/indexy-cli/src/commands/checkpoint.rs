//! `indexy checkpoint`: a copy of the database as of this moment, which opens by itself.

use crate::{
    args::Checkpoint,
    stdout,
    store::{self, Access},
};
use std::process::ExitCode;

/// Runs the command.
pub fn run(args: &Checkpoint) -> anyhow::Result<ExitCode> {
    let db = store::open(&args.database, Access::Write)?;
    db.checkpoint(&args.dest)?;
    db.close()?;
    stdout::print(format_args!(
        "checkpoint written to {}",
        args.dest.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}
