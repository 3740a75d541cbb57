//! `indexy dump`: writes all records of a tree so that `load` reads them back to the same bytes.
//! They are those of one moment, also where the database had to be opened for writing.

use crate::{
    args::Dump,
    format::{Purpose, Writer},
    stdout::Out,
    store::{self, Access},
};
use std::process::ExitCode;

/// Runs the command.
pub fn run(args: &Dump) -> anyhow::Result<ExitCode> {
    let fields = args.fields.fields()?;
    let db = store::open(&args.database, Access::Read)?;
    let tree = store::tree(&db, &args.tree, Access::Read)?;
    let mut writer = Writer::new(args.format, Purpose::Reload, args.hex, fields);
    let mut out = Out::new();
    let snapshot = db.snapshot()?;
    let mut entries = snapshot.iter(&tree);
    let written = entries.try_for_each(|entry| {
        let (key, value) = entry?;
        out.append(|text| writer.write(text, &key, Some(&value)))
    });
    let ended = out.append(|text| writer.end(text));
    out.finish_after(written.and(ended))?;
    Ok(ExitCode::SUCCESS)
}
