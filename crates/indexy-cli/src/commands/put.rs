//! `indexy put`: writes one record and makes it durable.

use crate::{
    args::{Put, Usage},
    store::{self, Access},
};
use anyhow::Context as _;
use indexy::limits::{MAX_KEY_BYTES, MAX_VALUE_BYTES};
use std::{
    fs::File,
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
    // Known before anything is made.
    args.tree.check(args.database.is_new())?;
    refuse_longer("key", key.len(), MAX_KEY_BYTES)?;
    refuse_longer("value", value.len(), MAX_VALUE_BYTES)?;
    let db = store::open(&args.database, Access::Create)?;
    store::tree(&db, &args.tree, Access::Create)?.insert(&key, &value)?;
    db.close()?;
    Ok(ExitCode::SUCCESS)
}

fn refuse_longer(what: &str, len: usize, limit: usize) -> Result<(), Usage> {
    match len > limit {
        true => Err(Usage(format!(
            "the {what} is longer than the limit of {limit} bytes"
        ))),
        false => Ok(()),
    }
}

/// One byte over the limit is enough to refuse it.
fn read_value(path: &Path) -> anyhow::Result<Vec<u8>> {
    if path == Path::new("-") {
        return read_up_to_limit(io::stdin().lock()).context("cannot read standard input");
    }
    File::open(path)
        .and_then(read_up_to_limit)
        .with_context(|| format!("cannot read {}", path.display()))
}

fn read_up_to_limit(from: impl Read) -> io::Result<Vec<u8>> {
    let mut value = Vec::new();
    from.take(MAX_VALUE_BYTES as u64 + 1)
        .read_to_end(&mut value)?;
    Ok(value)
}
