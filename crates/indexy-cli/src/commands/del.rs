//! `indexy del`: removes keys; exit code 1 if one of them was not there.

use crate::{
    args::Del,
    exit,
    stdout::say,
    store::{self, Access},
};
use std::process::ExitCode;

/// Runs the command.
pub fn run(args: &Del) -> anyhow::Result<ExitCode> {
    let keys = args
        .keys
        .iter()
        .map(|key| args.encoding.bytes("KEY", key))
        .collect::<Result<Vec<_>, _>>()?;
    let db = store::open(&args.database, Access::Write)?;
    let tree = store::tree(&db, &args.tree, Access::Write)?;
    let mut absent = 0_usize;
    for key in &keys {
        if args.force {
            tree.remove(key)?;
        } else if tree.take(key)?.is_none() {
            absent += 1;
            let shown = args.encoding.encoding().shown(key);
            say(format_args!("key not found: {shown}"));
        }
    }
    db.close()?;
    Ok(if absent == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(exit::FAILED)
    })
}
