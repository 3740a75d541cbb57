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
    for entry in snapshot.iter(&tree) {
        let (key, value) = entry?;
        out.append(|text| writer.write(text, &key, Some(&value)))?;
    }
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}
