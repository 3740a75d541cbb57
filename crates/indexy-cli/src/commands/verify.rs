//! `indexy verify`: reads everything; exit code 1 and the damage by file and offset if something is wrong.

use crate::{
    args::Verify,
    size,
    stdout::{self, say},
    store::{self, Access},
};
use std::{process::ExitCode, time::Instant};

/// Runs the command.
pub fn run(args: &Verify) -> anyhow::Result<ExitCode> {
    let start = Instant::now();
    let db = store::open(&args.database, Access::Read)?;
    let report = db.verify()?;
    stdout::print(format_args!("ok: {report:?}"))?;
    say(size::duration(start.elapsed()));
    Ok(ExitCode::SUCCESS)
}
