//! Opening the database to read it.

use anyhow::{Context as _, anyhow};
use indexy::{Db, Error, Options};
use indexy_report::size;
use std::path::Path;

/// Opens the database; nothing is written, not even by the open, unless an index of it cannot do
/// without.
pub fn open(path: &Path, budget: Option<u64>) -> anyhow::Result<Db> {
    if path.is_file() {
        let path = path.display();
        return Err(anyhow!(
            "{path} is a file; give the directory of a database"
        ));
    }
    let options = match budget {
        Some(bytes) => Options::new(
            usize::try_from(bytes).context("the budget is larger than the address space")?,
        ),
        None => Options::default(),
    };
    let options = options.create_if_missing(false);
    let opened = match Db::open(path, options.clone().read_only(true)) {
        Err(Error::Unsupported { .. }) => Db::open(path, options),
        other => other,
    };
    opened.map_err(|error| explain(path, error))
}

/// Says what is wrong, and what to do about it.
fn explain(path: &Path, error: Error) -> anyhow::Error {
    let place = path.display();
    match error {
        Error::NoDatabase { .. } if !path.exists() => anyhow!("no such directory: {place}"),
        Error::NoDatabase { .. } => anyhow!("{place} is not a database"),
        Error::Locked { .. } => {
            anyhow!("{place} is in use by another process; wait until it ends, or stop it")
        }
        Error::BudgetTooSmall {
            budget_bytes,
            minimum_bytes,
        } => anyhow!(
            "the budget of {} is below the minimum of {}; give --budget {minimum_bytes} or more",
            size::bytes(budget_bytes as u64),
            size::bytes(minimum_bytes as u64)
        ),
        other => other.into(),
    }
}
