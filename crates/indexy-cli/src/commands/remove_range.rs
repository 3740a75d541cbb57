//! `indexy remove-range`: removes all keys of a range, after a confirmation that says how many.

use crate::{
    args::RemoveRange,
    confirm::confirmed,
    exit,
    range::KeyRange,
    stdout,
    store::{self, Access},
};
use indexy::Tree;
use indexy_report::size::{count, counted};
use std::process::ExitCode;

/// The question counts so many records exactly: a prompt should come at once.
const COUNTED_AT_MOST: u64 = 100_000;

/// Runs the command.
pub fn run(args: &RemoveRange) -> anyhow::Result<ExitCode> {
    let range = KeyRange::of(
        &args.encoding,
        args.prefix.as_ref(),
        args.from.as_ref(),
        args.to.as_ref(),
    )?;
    let db = store::open(&args.database, Access::Write)?;
    let tree = store::tree(&db, &args.tree, Access::Write)?;
    let Some(bounds) = range.bounds() else {
        db.close()?;
        stdout::print("the range has no key")?;
        return Ok(ExitCode::SUCCESS);
    };
    let sure = confirmed(args.yes, || {
        let records = records_in(&tree, &range)?;
        Ok(format!(
            "remove {records} from tree {:?}: {}",
            tree.name(),
            range.described(&args.encoding)
        ))
    })?;
    if sure {
        tree.remove_range::<Vec<u8>>(bounds)?;
    }
    db.close()?;
    if !sure {
        return Ok(ExitCode::from(exit::FAILED));
    }
    stdout::print(format_args!("removed {}", range.described(&args.encoding)))?;
    Ok(ExitCode::SUCCESS)
}

/// How many records the range has, as text.
fn records_in(tree: &Tree, range: &KeyRange) -> anyhow::Result<String> {
    let mut records = 0;
    for entry in range.of_tree(tree).into_iter().flatten() {
        entry?;
        records += 1;
        if records > COUNTED_AT_MOST {
            return Ok(format!("more than {} records", count(COUNTED_AT_MOST)));
        }
    }
    Ok(counted(records, "record"))
}
