//! Opening databases and trees: the one place that knows the library's options.

use crate::{
    args::{Database, TreeArgs},
    stdout::say,
};
use anyhow::{Context as _, bail};
use indexy::{Db, Error, Options, Tree, TreeOptions};
use std::path::Path;

/// What a command does to the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reads only; nothing is written, not even by the open.
    Read,
    /// Writes to a database that exists.
    Write,
    /// Writes, and creates what is absent.
    Create,
}

/// Opens the database.
pub fn open(args: &Database, access: Access) -> anyhow::Result<Db> {
    let path = &args.path;
    let options = match args.budget {
        Some(bytes) => Options::new(
            usize::try_from(bytes).context("the budget is larger than the address space")?,
        ),
        None => Options::default(),
    };
    let options = options
        .durability(args.durability.into())
        .create_if_missing(false);
    if path.is_file() {
        bail!(
            "{} is a file, not the directory of a database",
            path.display()
        );
    }
    let opened = match access {
        Access::Read => open_to_read(path, options),
        Access::Write => Db::open(path, options),
        Access::Create => match Db::open(path, options.clone()) {
            Err(Error::NoDatabase { .. }) => {
                refuse_foreign_directory(path)?;
                Db::open(path, options.create_if_missing(true))
            }
            other => other,
        },
    };
    opened.map_err(|error| explain_open(path, error))
}

fn open_to_read(path: &Path, options: Options) -> indexy::Result<Db> {
    match Db::open(path, options.clone().read_only(true)) {
        Err(Error::Unsupported { what }) => {
            say(format_args!(
                "note: opened for writing, because read-only is not possible: {what}"
            ));
            Db::open(path, options)
        }
        other => other,
    }
}

/// A new database goes into an absent or empty directory only.
fn refuse_foreign_directory(path: &Path) -> anyhow::Result<()> {
    let mut entries = match path.read_dir() {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e).with_context(|| format!("cannot read {}", path.display())),
    };
    if entries.next().is_some() {
        bail!("{} is not a database, and not empty", path.display());
    }
    Ok(())
}

fn explain_open(path: &Path, error: Error) -> anyhow::Error {
    match error {
        Error::NoDatabase { .. } if !path.exists() => {
            anyhow::anyhow!("no such directory: {}", path.display())
        }
        Error::NoDatabase { .. } => anyhow::anyhow!("{} is not a database", path.display()),
        Error::Locked { .. } => anyhow::anyhow!("{} is in use by another process", path.display()),
        other => other.into(),
    }
}

/// Opens the tree; only [`Access::Create`] makes a new one.
pub fn tree(db: &Db, args: &TreeArgs, access: Access) -> anyhow::Result<Tree> {
    if access != Access::Create {
        let names = db.tree_names();
        if !names.contains(&args.tree) {
            if names.is_empty() {
                bail!("the database has no tree yet");
            }
            bail!(
                "no tree named {:?}; there is {}",
                args.tree,
                quoted_list(&names)
            );
        }
    }
    if args.index_x.is_none() && args.index_y.is_none() {
        return Ok(db.tree(&args.tree)?);
    }
    let mut options = TreeOptions::new();
    if let Some(kind) = args.index_x {
        options = options.index_x(kind);
    }
    if let Some(kind) = args.index_y {
        options = options.index_y(kind);
    }
    Ok(db.tree_with(&args.tree, options)?)
}

fn quoted_list(names: &[String]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("{name:?}")).collect();
    quoted.join(", ")
}

/// Opens the demo's database.
pub fn open_for_demo(path: &Path, budget: u64) -> anyhow::Result<Db> {
    let budget = usize::try_from(budget).context("the budget is larger than the address space")?;
    Ok(Db::open(path, Options::new(budget))?)
}
