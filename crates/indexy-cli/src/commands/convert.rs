//! `indexy convert`: the same trees and records with another pair of indexes, in another directory.
//!
//! The new database is written beside DEST (`unfinished.rs`), made durable, read back and compared,
//! and only then renamed. So DEST is whole whenever it is there, whatever stops the conversion.

use crate::{
    args::Convert,
    format::escape::escaped,
    interrupt::Interrupt,
    progress::Progress,
    stdout::{self, say},
    store,
    unfinished::{Empty, Unfinished},
};
use anyhow::{Context as _, ensure};
use indexy::{Db, Error, IndexXKind, IndexYKind, Tree, TreeOptions};
use indexy_report::size::{self, counted};
use std::{
    process::ExitCode,
    time::{Instant, SystemTime},
};
use xxhash_rust::xxh3::Xxh3Default;

/// How many records pass between two looks at the clock and at signals.
const RECORDS_PER_TICK: u64 = 256;

/// Runs the command.
pub fn run(args: &Convert) -> anyhow::Result<ExitCode> {
    let start = Instant::now();
    let interrupt = Interrupt::install()?;
    let unfinished = Unfinished::make(&args.src, &args.dest, Empty::Refused)?;
    let converted = convert(args, &unfinished, &interrupt)?;
    let Some(trees) = converted else {
        drop(unfinished);
        say("interrupted; nothing was converted");
        return Ok(interrupt.exit_code());
    };
    unfinished.becomes()?;
    if !args.quiet {
        report(&trees, args, start)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn report(trees: &[Converted], args: &Convert, start: Instant) -> anyhow::Result<()> {
    for tree in trees {
        let pair = |(x, y): (IndexXKind, IndexYKind)| format!("{x} + {y}");
        stdout::print(format_args!(
            "{}: {} -> {}, {}",
            escaped(tree.name.as_bytes()),
            pair(tree.from),
            pair(tree.to),
            counted(tree.content.records, "record")
        ))?;
    }
    let records = trees.iter().map(|tree| tree.content.records).sum();
    let elapsed = start.elapsed();
    stdout::print(format_args!(
        "converted {} of {} to {} in {} ({})",
        counted(records, "record"),
        counted(trees.len() as u64, "tree"),
        args.dest.display(),
        size::duration(elapsed),
        size::rate(records, elapsed)
    ))
}

/// One tree of the new database.
struct Converted {
    name: String,
    from: (IndexXKind, IndexYKind),
    to: (IndexXKind, IndexYKind),
    content: Content,
}

/// What the records of a tree come to, in key order.
#[derive(Debug, PartialEq, Eq)]
struct Content {
    records: u64,
    hash: u128,
}

/// Writes the new database and reads it back; `None` when interrupted. Both databases are closed
/// afterwards.
fn convert(
    args: &Convert,
    unfinished: &Unfinished,
    interrupt: &Interrupt,
) -> anyhow::Result<Option<Vec<Converted>>> {
    let now = SystemTime::now();
    let (src, dest) = store::open_pair(&args.src, &unfinished.path, args.budget, now)?;
    for name in &args.tree {
        store::require_tree(&src, name)?;
    }
    let trees = src
        .tree_names()
        .iter()
        .map(|name| src.tree(name))
        .collect::<Result<Vec<Tree>, _>>()?;
    let about = trees.iter().map(Tree::approximate_len).sum();
    let mut progress = Progress::new(args.quiet, Some(about), dest.clone());
    let mut converted = Vec::new();
    let mut before = 0;
    for tree in &trees {
        let name = tree.name();
        let new = create_like(&dest, tree, args)
            .with_context(|| format!("cannot create tree {name:?}"))?;
        let mut tick = |records: u64| {
            let all = before + records;
            progress.tick(all, all.min(about));
        };
        let Some(content) =
            copy(tree, &new, interrupt, &mut tick).with_context(|| format!("in tree {name:?}"))?
        else {
            progress.finish();
            return Ok(None);
        };
        before += content.records;
        converted.push(Converted {
            name: name.into(),
            from: tree.pair(),
            to: new.pair(),
            content,
        });
    }
    progress.flushing();
    let closed = dest.close();
    src.close()?;
    drop((trees, src, dest));
    let same = closed
        .map_err(Into::into)
        .and_then(|()| compare(args, unfinished, &converted, now, interrupt));
    progress.finish();
    Ok(same?.then_some(converted))
}

/// The tree of the same name and options, but for the pair where that is asked for.
fn create_like(dest: &Db, tree: &Tree, args: &Convert) -> anyhow::Result<Tree> {
    let (mut x, mut y) = tree.pair();
    if args.tree.is_empty() || args.tree.iter().any(|name| name == tree.name()) {
        x = args.index_x.unwrap_or(x);
        y = args.index_y.unwrap_or(y);
    }
    let options = TreeOptions::new().index_x(x).index_y(y);
    let mut options = options.resident(tree.is_resident());
    if y == IndexYKind::Lsm {
        options = options.compression(tree.compression());
    }
    if let Some(ttl) = tree.ttl() {
        options = options.ttl(ttl);
    }
    Ok(dest.tree_with(tree.name(), options)?)
}

/// Takes a key and its value.
type Record<'a> = dyn FnMut(&[u8], &[u8]) -> indexy::Result<()> + 'a;

/// Why a copy stopped.
enum Stop {
    Interrupted,
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Copies every record to the empty tree `new`; `None` when interrupted.
fn copy(
    tree: &Tree,
    new: &Tree,
    interrupt: &Interrupt,
    tick: &mut dyn FnMut(u64),
) -> anyhow::Result<Option<Content>> {
    if tree.ttl().is_some() {
        // One by one: a load would give all of them a new life.
        let mut insert = |key: &[u8], value: &[u8]| match tree.expires_at(key)? {
            Some(expires) => new.insert_until(key, value, expires),
            None => Ok(()),
        };
        return read(tree, interrupt, &mut insert, tick);
    }
    let mut reading = Reading::default();
    let records = tree.iter().map(|record| {
        let (key, value) = record?;
        reading.add(&key, &value);
        if reading.is_due() {
            if interrupt.is_set() {
                return Err(Stop::Interrupted);
            }
            tick(reading.records);
        }
        Ok((key, value))
    });
    match new.try_load_sorted(records) {
        Ok(_) if interrupt.is_set() => Ok(None),
        Ok(_) => Ok(Some(reading.content())),
        Err(Stop::Interrupted) => Ok(None),
        // The disk index takes no sorted loads, and has told so before it took anything.
        Err(Stop::Failed(Error::Unsupported { .. })) if reading.records == 0 => read(
            tree,
            interrupt,
            &mut |key, value| new.insert(key, value),
            tick,
        ),
        Err(Stop::Failed(error)) => Err(error.into()),
    }
}

/// What was read so far.
#[derive(Default)]
struct Reading {
    hasher: Xxh3Default,
    records: u64,
}

impl Reading {
    fn add(&mut self, key: &[u8], value: &[u8]) {
        for part in [key, value] {
            self.hasher.update(&(part.len() as u64).to_le_bytes());
            self.hasher.update(part);
        }
        self.records += 1;
    }

    /// The clock and signals are to be looked at.
    fn is_due(&self) -> bool {
        self.records.is_multiple_of(RECORDS_PER_TICK)
    }

    fn content(&self) -> Content {
        Content {
            records: self.records,
            hash: self.hasher.digest128(),
        }
    }
}

/// Hands every record to `each`, in key order; `None` when interrupted.
fn read(
    tree: &Tree,
    interrupt: &Interrupt,
    each: &mut Record<'_>,
    tick: &mut dyn FnMut(u64),
) -> anyhow::Result<Option<Content>> {
    let mut reading = Reading::default();
    for record in tree.iter() {
        let (key, value) = record?;
        each(&key, &value)?;
        reading.add(&key, &value);
        if reading.is_due() {
            if interrupt.is_set() {
                return Ok(None);
            }
            tick(reading.records);
        }
    }
    Ok((!interrupt.is_set()).then(|| reading.content()))
}

/// Reads what is on disk and compares it with what was to be there; false when interrupted.
fn compare(
    args: &Convert,
    unfinished: &Unfinished,
    converted: &[Converted],
    now: SystemTime,
    interrupt: &Interrupt,
) -> anyhow::Result<bool> {
    let db = store::reopen_half(&unfinished.path, args.budget, now)?;
    for expected in converted {
        let tree = db.tree(&expected.name)?;
        let found = read(&tree, interrupt, &mut |_, _| Ok(()), &mut |_| {})?;
        let Some(found) = found else {
            return Ok(false);
        };
        ensure!(
            found == expected.content,
            "tree {:?} reads back as {}, {} were written; nothing was converted",
            expected.name,
            counted(found.records, "record"),
            counted(expected.content.records, "record")
        );
    }
    db.close()?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use indexy::{Durability, Options, Ttl};

    const RECORDS: u64 = 2000;

    /// They do not pass through the memory of the new tree, but where each has a time to live.
    #[test]
    fn records_are_loaded_sorted() {
        let dir = tempfile::tempdir().unwrap();
        let open = |name| {
            let options = Options::new(16 << 20).durability(Durability::None);
            Db::open(dir.path().join(name), options).unwrap()
        };
        let (src, dest) = (open("src"), open("dest"));
        let paged = IndexYKind::BPlus { page_bytes: 4096 };
        for (name, options, in_memory) in [
            ("lsm", TreeOptions::new(), 0),
            ("paged", TreeOptions::new().index_y(paged), 0),
            ("expiring", TreeOptions::new().ttl(Ttl::PerEntry), RECORDS),
        ] {
            let tree = src.tree_with(name, options.clone()).unwrap();
            for i in 0..RECORDS {
                tree.insert(i.to_be_bytes(), [7; 100]).unwrap();
            }
            let new = dest.tree_with(name, options).unwrap();
            let copied = copy(&tree, &new, &Interrupt::default(), &mut |_| {});
            assert_eq!(copied.unwrap().unwrap().records, RECORDS, "{name}");
            assert_eq!(new.stats().x_keys, in_memory, "{name}");
            assert_eq!(new.len().unwrap(), RECORDS, "{name}");
        }
    }
}
