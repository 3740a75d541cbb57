//! `indexy drop`: drops a tree with everything in it, after a confirmation.

use crate::{
    args::DropTree,
    confirm::confirmed,
    exit, stdout,
    store::{self, Access},
};
use indexy_report::size::counted;
use std::process::ExitCode;

/// Runs the command.
pub fn run(args: &DropTree) -> anyhow::Result<ExitCode> {
    let db = store::open(&args.database, Access::Write)?;
    store::require_tree(&db, &args.tree)?;
    let sure = confirmed(args.yes, || {
        let about = db.tree(&args.tree)?.approximate_len();
        Ok(format!(
            "drop tree {:?} with everything in it, about {}",
            args.tree,
            counted(about, "record")
        ))
    })?;
    if sure {
        db.drop_tree(&args.tree)?;
    }
    db.close()?;
    if !sure {
        return Ok(ExitCode::from(exit::FAILED));
    }
    stdout::print(format_args!("dropped tree {:?}", args.tree))?;
    Ok(ExitCode::SUCCESS)
}
