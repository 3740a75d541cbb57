//! Opening databases and trees: the one place that knows the library's options.

use crate::{
    args::{Database, TreeArgs},
    stdout::say,
};
use anyhow::{Context as _, anyhow, bail};
use indexy::{Clock, Db, Doubtful, Durability, Error, Options, SalvageReport, Tree, TreeOptions};
use indexy_report::size;
use std::{io::ErrorKind, path::Path, sync::Arc, time::SystemTime};

/// The file of a database that is locked.
const LOCK: &str = "LOCK";

/// A clock that stands still, so that nothing expires while a database is copied.
#[derive(Debug)]
struct Still(SystemTime);

impl Clock for Still {
    fn now(&self) -> SystemTime {
        self.0
    }
}

/// What a command does to the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reads only; nothing is written, not even by the open.
    Read,
    /// Writes to a database that exists.
    Write,
    /// Writes, and creates what is absent.
    Create,
    /// Copies it as a whole; writes only what an open does.
    Copy,
}

/// Opens the database.
pub fn open(args: &Database, access: Access) -> anyhow::Result<Db> {
    let path = &args.path;
    let options = budget(args.budget)?
        .durability(args.durability.into())
        .create_if_missing(false);
    refuse_file(path)?;
    let opened = match access {
        Access::Read => open_to_read(path, options),
        Access::Write => Db::open(path, options),
        Access::Create => Db::open(path, options.create_if_missing(true)),
        Access::Copy => open_to_copy(path, options),
    };
    opened.map_err(|error| explain_open(path, error))
}

fn budget(bytes: Option<u64>) -> anyhow::Result<Options> {
    Ok(match bytes {
        Some(bytes) => Options::new(
            usize::try_from(bytes).context("the budget is larger than the address space")?,
        ),
        None => Options::default(),
    })
}

fn refuse_file(path: &Path) -> anyhow::Result<()> {
    if path.is_file() {
        bail!(
            "{} is a file; give the directory of a database",
            path.display()
        );
    }
    Ok(())
}

/// The two databases of a conversion: `src` opened without writing a byte, and a new one in the
/// absent directory `dest`, which has no log and is durable when it is closed. Each gets half of
/// the budget in bytes. In both it is `at`, however long they are open.
pub fn open_pair(
    src: &Path,
    dest: &Path,
    bytes: Option<u64>,
    at: SystemTime,
) -> anyhow::Result<(Db, Db)> {
    refuse_file(src)?;
    let half = Options::new(budget(bytes)?.memory_budget_bytes() / 2);
    let half = half.clock(Arc::new(Still(at)));
    let from = Db::open(src, half.clone().read_only(true))
        .map_err(|error| explain_open_half(src, error, bytes))?;
    let to = Db::open(dest, half.durability(Durability::None))
        .with_context(|| format!("cannot create {}", dest.display()))?;
    Ok((from, to))
}

/// Writes what can be read of the database in `src` to a new one in `dest`.
pub fn salvage(
    src: &Path,
    dest: &Path,
    bytes: Option<u64>,
    doubtful: Doubtful,
) -> anyhow::Result<SalvageReport> {
    refuse_file(src)?;
    Db::salvage(src, dest, budget(bytes)?, doubtful)
        .with_context(|| format!("cannot salvage {}", src.display()))
}

/// Opens the database in `path` to read it as it is `at`, with half of the budget in bytes.
pub fn reopen_half(path: &Path, bytes: Option<u64>, at: SystemTime) -> anyhow::Result<Db> {
    let half = Options::new(budget(bytes)?.memory_budget_bytes() / 2);
    let half = half.clock(Arc::new(Still(at)));
    Db::open(path, half.read_only(true)).map_err(|error| explain_open(path, error))
}

/// Like [`explain_open`]; a budget that is too small is half of the one given.
fn explain_open_half(path: &Path, error: Error, bytes: Option<u64>) -> anyhow::Error {
    let Error::BudgetTooSmall { minimum_bytes, .. } = error else {
        return explain_open(path, error);
    };
    let needed = size::bytes(2 * minimum_bytes as u64);
    let given = bytes.map_or(String::new(), |b| format!(" of {}", size::bytes(b)));
    anyhow!(
        "the budget{given} is too small: two databases are open, which need {needed}; \
         give a larger --budget"
    )
}

fn open_to_read(path: &Path, options: Options) -> indexy::Result<Db> {
    match Db::open(path, options.clone().read_only(true)) {
        // An index may have to write when it opens. What it cannot do at all, it cannot do this way
        // either.
        Err(Error::Unsupported { what }) => Db::open(path, options).inspect(|_| {
            say(format_args!(
                "note: opened for writing, because read-only is not possible: {what}"
            ));
        }),
        other => other,
    }
}

/// Who only reads it does not stand in the way of a copy, and neither does a directory that cannot
/// be written.
fn open_to_copy(path: &Path, options: Options) -> indexy::Result<Db> {
    let error = match Db::open(path, options.clone()) {
        Err(error) => error,
        opened => return opened,
    };
    let may_be_read = match &error {
        Error::Locked { this_process, .. } => !this_process,
        Error::Io { source, .. } => matches!(
            source.kind(),
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
        ),
        _ => false,
    };
    match may_be_read {
        true => Db::open(path, options.read_only(true)).map_err(|_| error),
        false => Err(error),
    }
}

/// Says what is wrong, and what to do about it.
fn explain_open(path: &Path, error: Error) -> anyhow::Error {
    let place = path.display();
    match error {
        Error::NoDatabase { .. } if !path.exists() => {
            anyhow!("no such directory: {place}; `indexy load` and `indexy put` create a database")
        }
        Error::NoDatabase { .. } => anyhow!(
            "{place} is not a database; give a directory that `indexy load` or `indexy put` made"
        ),
        Error::DestinationNotEmpty { .. } => anyhow!(
            "{place} is not a database, and not empty; a new one needs an absent or empty directory"
        ),
        Error::InvalidOption {
            option: "memory_budget_bytes",
            reason,
        } => anyhow!("--budget: {reason}"),
        Error::Io {
            path: file, source, ..
        } if file.ends_with(LOCK) && source.kind() == ErrorKind::NotFound => anyhow!(
            "{} is missing; it is an empty file: `touch` makes it again",
            file.display()
        ),
        Error::Locked {
            this_process: true, ..
        } => anyhow!("{place} is open in this process already"),
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

/// Opens the tree; only [`Access::Create`] makes a new one.
pub fn tree(db: &Db, args: &TreeArgs, access: Access) -> anyhow::Result<Tree> {
    if access != Access::Create {
        require_tree(db, &args.tree)?;
    }
    let as_it_is = args.index_x.is_none() && args.index_y.is_none();
    // Who only reads stores nothing.
    let compression = args.compression.filter(|_| access != Access::Read);
    if as_it_is && compression.is_none() {
        return Ok(db.tree(&args.tree)?);
    }
    let mut options = TreeOptions::new();
    if let Some(kind) = args.index_x {
        options = options.index_x(kind);
    }
    if let Some(kind) = args.index_y {
        options = options.index_y(kind);
    }
    if let Some(compression) = compression {
        options = options.compression(compression);
    }
    Ok(db.tree_with(&args.tree, options)?)
}

/// Fails with the names that there are.
pub fn require_tree(db: &Db, name: &str) -> anyhow::Result<()> {
    let names = db.tree_names();
    if names.is_empty() {
        bail!("the database has no tree yet; `indexy load` and `indexy put` make one");
    }
    if !names.iter().any(|n| n == name) {
        bail!("no tree named {name:?}; there is {}", quoted_list(&names));
    }
    Ok(())
}

fn quoted_list(names: &[String]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("{name:?}")).collect();
    quoted.join(", ")
}

/// Opens the demo's database.
pub fn open_for_demo(path: &Path, budget: u64) -> anyhow::Result<Db> {
    let budget = usize::try_from(budget).context("the budget is larger than the address space")?;
    Db::open(path, Options::new(budget)).map_err(|error| explain_open(path, error))
}
