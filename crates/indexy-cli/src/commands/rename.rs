//! `indexy rename`: gives a tree another name.

use crate::{
    args::Rename,
    stdout,
    store::{self, Access},
};
use std::process::ExitCode;

/// Runs the command.
pub fn run(args: &Rename) -> anyhow::Result<ExitCode> {
    let db = store::open(&args.database, Access::Write)?;
    store::require_tree(&db, &args.old)?;
    db.rename_tree(&args.old, &args.new)?;
    db.close()?;
    stdout::print(format_args!(
        "renamed tree {:?} to {:?}",
        args.old, args.new
    ))?;
    Ok(ExitCode::SUCCESS)
}
