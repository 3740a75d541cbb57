//! `indexy put`: writes one record and makes it durable.

use crate::{
    args::Put,
    store::{self, Access},
};
use anyhow::Context as _;
use std::{
    fs,
    io::{self, Read},
    path::Path,
    process::ExitCode,
};

/// Runs the command.
pub fn run(args: &Put) -> anyhow::Result<ExitCode> {
    let key = args.encoding.bytes("KEY", &args.key)?;
    let value = match (&args.value, &args.value_file) {
        (Some(value), _) => args.encoding.bytes("VALUE", value)?,
        (None, Some(path)) => read_value(path)?,
        (None, None) => Vec::new(),
    };
    let db = store::open(&args.database, Access::Create)?;
    store::tree(&db, &args.tree, Access::Create)?.insert(&key, &value)?;
    db.close()?;
    Ok(ExitCode::SUCCESS)
}

fn read_value(path: &Path) -> anyhow::Result<Vec<u8>> {
    if path == Path::new("-") {
        let mut value = Vec::new();
        // One byte over the limit is enough for the library to refuse it.
        let limit = indexy::limits::MAX_VALUE_BYTES as u64 + 1;
        io::stdin()
            .lock()
            .take(limit)
            .read_to_end(&mut value)
            .context("cannot read standard input")?;
        return Ok(value);
    }
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}
