//! `indexy compact`: gives space on disk back.

use crate::{
    args::Compact,
    range::KeyRange,
    stdout,
    store::{self, Access},
};
use indexy_report::size;
use indicatif::ProgressBar;
use std::process::ExitCode;

/// Runs the command.
pub fn run(args: &Compact) -> anyhow::Result<ExitCode> {
    let range = KeyRange::of(&args.encoding, None, args.from.as_ref(), args.to.as_ref())?;
    let db = store::open(&args.database, Access::Write)?;
    let tree = store::tree(&db, &args.tree, Access::Write)?;
    let Some(bounds) = range.bounds() else {
        db.close()?;
        stdout::print("the range has no key")?;
        return Ok(ExitCode::SUCCESS);
    };
    // On a terminal alone.
    let shown = ProgressBar::new_spinner();
    let done = tree.compact_with::<Vec<u8>>(bounds, |done| {
        let on_disk = size::bytes(done.bytes_after);
        shown.set_message(format!("{} steps, {on_disk} on disk", done.steps));
        shown.tick();
    })?;
    shown.finish_and_clear();
    drop(tree);
    db.close()?;
    stdout::print(format_args!(
        "{} on disk, {} before",
        size::bytes(done.bytes_after),
        size::bytes(done.bytes_before)
    ))?;
    Ok(ExitCode::SUCCESS)
}
