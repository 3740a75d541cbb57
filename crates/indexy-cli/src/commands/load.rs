//! `indexy load`: reads records and writes them, in constant memory.
//!
//! Records whose keys ascend go straight to the disk index, a few MiB at a time
//! (`Tree::load_sorted`), as long as the tree has no keys between theirs.
//!
//! A malformed line, a signal and a failure all end the same way: what came before is flushed,
//! and the user is told how far the load came.

use crate::{
    args::{DurabilityArg, Load},
    exit,
    format::{Format, Parser},
    input::{Lines, Next, Source},
    interrupt::Interrupt,
    progress::Progress,
    sorted::Sorted,
    stdout::{self, say},
    store::{self, Access},
};
use anyhow::Context as _;
use indexy::{
    Db, Error, Tree,
    limits::{MAX_KEY_BYTES, MAX_VALUE_BYTES},
};
use indexy_report::size::{self, counted};
use std::{process::ExitCode, time::Instant};

/// A value that expires is so much shorter.
const EXPIRY_BYTES: usize = 8;
/// With `--durability sync`, records share one wait for the device up to this many bytes or
/// records.
const GROUP_BYTES: usize = 256 << 10;
const GROUP_RECORDS: usize = 1000;
/// Bad lines that `--skip-bad` names; the rest is only counted.
const NAMED_BAD_LINES: u64 = 10;
/// How many records pass between two looks at the clock.
const RECORDS_PER_TICK: u64 = 256;

/// How many records are there is not known then.
const NOT_FLUSHED: &str = "the database could not be flushed: what was not durable yet may be lost";

/// Runs the command.
pub fn run(args: &Load) -> anyhow::Result<ExitCode> {
    let start = Instant::now();
    let source = Source::open(args.file.as_deref())?;
    let format = args.format.unwrap_or_else(|| match &args.file {
        Some(file) => Format::of_file(file),
        None => Format::Tsv,
    });
    let parser = Parser::new(format, args.encoding.encoding(), args.fields.fields()?);
    args.tree.check(args.database.is_new())?;
    let interrupt = Interrupt::install()?;
    let db = store::open(&args.database, Access::Create)?;
    let tree = store::tree(&db, &args.tree, Access::Create)?;
    let mut loader = Loader {
        name: source.name.clone(),
        progress: Progress::new(args.quiet, source.size, db.clone()),
        parser,
        format,
        skip_bad: args.skip_bad,
        crlf: args.crlf,
        writer: Writer {
            sorted: Sorted::new(db.stats().memory_budget_bytes),
            group: (args.database.durability == DurabilityArg::Sync)
                .then(|| Group::new(db.clone())),
            tree,
            records: 0,
        },
        line: 0,
        bad: 0,
    };
    let mut lines = source.lines().context("cannot start reading")?;
    let end = loader.load(&mut lines, &interrupt);
    // Also after a failure. The first one is told.
    let written = loader.write_waiting();
    let end = end.and_then(|end| written.map(|()| end));
    loader.progress.flushing();
    // What came before a failure is kept, and the failure is told even if keeping fails too.
    let flushed = db.close();
    loader.progress.finish();
    let end = match (end, flushed) {
        (Ok(end), Ok(())) => end,
        (Err(error), Ok(())) => {
            say(loader.how_far());
            return Err(error);
        }
        (Err(error), Err(_)) => {
            say(NOT_FLUSHED);
            return Err(error);
        }
        (Ok(_), Err(error)) => {
            say(NOT_FLUSHED);
            return Err(error.into());
        }
    };
    report(&loader, end, start, args, &interrupt)
}

/// Longest value of `tree`. Its disk index takes what the API does.
fn longest_value(tree: &Tree) -> usize {
    MAX_VALUE_BYTES - tree.ttl().map_or(0, |_| EXPIRY_BYTES)
}

fn report(
    loader: &Loader,
    end: End,
    start: Instant,
    args: &Load,
    interrupt: &Interrupt,
) -> anyhow::Result<ExitCode> {
    match end {
        End::Done => {
            if !args.quiet {
                let elapsed = start.elapsed();
                let mut text = format!(
                    "loaded {} in {} ({})",
                    counted(loader.writer.records, "record"),
                    size::duration(elapsed),
                    size::rate(loader.writer.records, elapsed)
                );
                if loader.bad > 0 {
                    text += &format!("; skipped {}", counted(loader.bad, "malformed line"));
                }
                stdout::print(text)?;
            }
            Ok(ExitCode::SUCCESS)
        }
        End::BadLine(what) => {
            say(format_args!(
                "error: {}, line {}: {what}",
                loader.name, loader.line
            ));
            say(loader.how_far());
            Ok(ExitCode::from(exit::FAILED))
        }
        End::Interrupted => {
            say(format_args!("interrupted after line {}", loader.line));
            say(loader.how_far());
            Ok(interrupt.exit_code())
        }
    }
}

/// Why reading ended, other than by a failure.
enum End {
    Done,
    BadLine(String),
    Interrupted,
}

struct Loader {
    name: String,
    progress: Progress,
    parser: Parser,
    format: Format,
    skip_bad: bool,
    crlf: bool,
    writer: Writer,
    /// Number of the line read last.
    line: u64,
    bad: u64,
}

impl Loader {
    fn load(&mut self, lines: &mut Lines, interrupt: &Interrupt) -> anyhow::Result<End> {
        loop {
            if interrupt.is_set() {
                return Ok(End::Interrupted);
            }
            let read = lines
                .next(self.parser.longest_line())
                .with_context(|| format!("cannot read {}", self.name))?;
            let bad = match read {
                Next::Line(line) => {
                    self.line += 1;
                    self.take_line(line)?
                }
                Next::TooLong => {
                    self.line += 1;
                    Some("longer than any record".into())
                }
                Next::Silent => {
                    self.write_waiting()?;
                    self.progress.tick(self.writer.records, lines.consumed());
                    continue;
                }
                Next::End => return Ok(End::Done),
            };
            if let Some(what) = bad {
                if !self.skip_bad {
                    return Ok(End::BadLine(what));
                }
                self.skip(&what);
            }
            if self.line.is_multiple_of(RECORDS_PER_TICK) {
                self.progress.tick(self.writer.records, lines.consumed());
            }
        }
    }

    /// Writes the record of a line; returns what is wrong with the line, if something is.
    fn take_line(&mut self, line: &[u8]) -> anyhow::Result<Option<String>> {
        let line = self.trimmed(line);
        let (key, value) = match self.parser.parse(line) {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(None),
            Err(what) => return Ok(Some(self.hinted(what))),
        };
        if key.len() > MAX_KEY_BYTES {
            return Ok(Some(format!(
                "key of {} bytes is over the limit of {MAX_KEY_BYTES}",
                key.len()
            )));
        }
        let limit = longest_value(&self.writer.tree);
        if value.len() > limit {
            return Ok(Some(format!(
                "value of {} bytes is over the limit of {limit}",
                value.len()
            )));
        }
        // What fails here may be an earlier record, which waited: no line is passed over for it.
        let written = self.writer.write(&key, &value);
        written.with_context(|| format!("{}, line {}", self.name, self.line))?;
        Ok(None)
    }

    /// The line without what an editor may have put around it.
    fn trimmed<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
        let mut line = line;
        if self.line == 1 {
            if let Some(rest) = line.strip_prefix(BYTE_ORDER_MARK) {
                line = rest;
                self.progress
                    .note("note: the byte order mark before the first line is not loaded");
            }
            if line.ends_with(b"\r") && !self.crlf && self.format != Format::Jsonl {
                self.progress.note(
                    "note: lines seem to end in CR LF; the CR is loaded as data (--crlf drops it)",
                );
            }
        }
        if self.crlf {
            line = line.strip_suffix(b"\r").unwrap_or(line);
        }
        line
    }

    fn hinted(&self, what: String) -> String {
        if self.line == 1 && self.format == Format::Tsv {
            format!("{what} (for one key per line: --format lines; for JSON: --format jsonl)")
        } else {
            what
        }
    }

    fn skip(&mut self, what: &str) {
        self.bad += 1;
        if self.bad <= NAMED_BAD_LINES {
            self.progress
                .note(&format!("skipped line {}: {what}", self.line));
        } else if self.bad == NAMED_BAD_LINES + 1 {
            self.progress
                .note("further malformed lines are only counted");
        }
    }

    fn write_waiting(&mut self) -> anyhow::Result<()> {
        let written = self.writer.write_waiting();
        written.with_context(|| format!("{}, before line {}", self.name, self.line))
    }

    fn how_far(&self) -> String {
        let mut text = format!(
            "{} loaded before that; the database is consistent",
            counted(self.writer.records, "record")
        );
        if self.bad > 0 {
            text += &format!("; skipped {}", counted(self.bad, "malformed line"));
        }
        text
    }
}

/// Writes records: those that ascend straight to the disk index, many together, others one by one.
struct Writer {
    tree: Tree,
    sorted: Sorted,
    group: Option<Group>,
    records: u64,
}

impl Writer {
    fn write(&mut self, key: &[u8], value: &[u8]) -> indexy::Result<()> {
        if !self.sorted.fits(key, value) {
            // A few that ascend, and then one that does not: the input is not sorted.
            self.sorted.gives_up |= !self.sorted.are_many() && !self.sorted.ascends(key);
            self.write_sorted()?;
        }
        if self.sorted.fits(key, value) {
            self.sorted.add(key, value);
            return Ok(());
        }
        self.write_one(key, value)
    }

    /// Writes what waits for more of its kind.
    fn write_waiting(&mut self) -> indexy::Result<()> {
        self.write_sorted()?;
        self.write_group()
    }

    fn write_group(&mut self) -> indexy::Result<()> {
        if let Some(group) = &mut self.group {
            self.records += group.write(&self.tree)?;
        }
        Ok(())
    }

    fn write_sorted(&mut self) -> indexy::Result<()> {
        let many = self.sorted.are_many();
        let chunk = self.sorted.take();
        if many {
            // What came before, maybe with the same keys, is written before.
            self.write_group()?;
            match self.tree.load_sorted(chunk.iter()) {
                Ok(count) => {
                    self.records += count;
                    return Ok(());
                }
                // The tree has some of it, or its disk index takes no loads.
                Err(Error::RangeNotEmpty { .. } | Error::Unsupported { .. }) => {
                    self.sorted.gives_up = true;
                }
                Err(error) => return Err(error),
            }
        }
        for (key, value) in chunk.iter() {
            self.write_one(key, value)?;
        }
        Ok(())
    }

    fn write_one(&mut self, key: &[u8], value: &[u8]) -> indexy::Result<()> {
        let Some(group) = &mut self.group else {
            self.tree.insert(key, value)?;
            self.records += 1;
            return Ok(());
        };
        // A large record goes alone: a batch has a limit.
        if !group.has_room(key.len() + value.len()) {
            self.records += group.write(&self.tree)?;
        }
        group.add(key, value);
        Ok(())
    }
}

/// Records that become durable together.
struct Group {
    db: Db,
    records: Vec<(Vec<u8>, Vec<u8>)>,
    bytes: usize,
}

impl Group {
    fn new(db: Db) -> Self {
        Self {
            db,
            records: Vec::new(),
            bytes: 0,
        }
    }

    fn add(&mut self, key: &[u8], value: &[u8]) {
        self.bytes += key.len() + value.len();
        self.records.push((key.to_vec(), value.to_vec()));
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.bytes + bytes <= GROUP_BYTES && self.records.len() < GROUP_RECORDS
    }

    /// Writes what is there; returns how many records that is.
    fn write(&mut self, tree: &Tree) -> indexy::Result<u64> {
        self.bytes = 0;
        let records = std::mem::take(&mut self.records);
        if let [(key, value)] = &records[..] {
            tree.insert(key, value)?;
        } else if !records.is_empty() {
            let mut batch = self.db.batch();
            for (key, value) in &records {
                batch.insert(tree, key, value);
            }
            batch.commit()?;
        }
        Ok(records.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indexy::{Durability, Options, TreeOptions, Ttl};

    struct Place {
        _dir: tempfile::TempDir,
        db: Db,
        writer: Writer,
    }

    fn place(durability: Durability, sorted_budget: u64) -> Place {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path(), Options::new(64 << 20).durability(durability)).unwrap();
        let group = (durability == Durability::Sync).then(|| Group::new(db.clone()));
        let writer = Writer {
            tree: db.tree("t").unwrap(),
            sorted: Sorted::new(sorted_budget),
            group,
            records: 0,
        };
        Place {
            _dir: dir,
            db,
            writer,
        }
    }

    fn key(i: u32) -> [u8; 4] {
        i.to_be_bytes()
    }

    #[test]
    fn the_longest_value_is_the_one_that_the_tree_takes() {
        let Place {
            _dir,
            db,
            writer: Writer { tree, .. },
        } = place(Durability::Sync, 0);
        let expiring = TreeOptions::new().ttl(Ttl::PerEntry);
        let expiring = db.tree_with("expiring", expiring).unwrap();
        for tree in [tree, expiring] {
            let limit = longest_value(&tree);
            match tree.insert(key(0), vec![0; limit + 1]) {
                Err(Error::ValueTooLong { limit: told, .. }) => {
                    assert!(limit == told || limit + 8 == told)
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn few_large_records_are_loaded_sorted() {
        let Place {
            _dir,
            db,
            mut writer,
        } = place(Durability::None, 64 << 20);
        for i in 0..1200 {
            writer.write(&key(i), &[7; 16 << 10]).unwrap();
        }
        writer.write_waiting().unwrap();
        assert_eq!(writer.records, 1200);
        assert_eq!(db.stats().x_keys, 0);
    }

    #[test]
    fn a_pause_does_not_end_the_sorted_load() {
        let Place {
            _dir,
            db,
            mut writer,
        } = place(Durability::None, 64 << 20);
        for i in 0..3 {
            writer.write(&key(i), b"v").unwrap();
            writer.write_waiting().unwrap();
        }
        for i in 3..2000 {
            writer.write(&key(i), b"v").unwrap();
        }
        writer.write_waiting().unwrap();
        assert_eq!(writer.records, 2000);
        assert_eq!(db.stats().x_keys, 3);
        writer.write(&key(5), b"v").unwrap();
        writer.write(&key(4), b"v").unwrap();
        assert!(writer.sorted.gives_up);
    }

    #[test]
    fn what_comes_slowly_does_not_wait_for_long() {
        let Place {
            _dir,
            db: _db,
            mut writer,
        } = place(Durability::None, 64 << 20);
        writer.write(&key(0), b"v").unwrap();
        assert_eq!(writer.records, 0);
        std::thread::sleep(std::time::Duration::from_millis(1100));
        for i in 1..3 {
            writer.write(&key(i), b"v").unwrap();
            assert_eq!(writer.records, 1);
        }
        assert!(!writer.sorted.gives_up);
    }

    #[test]
    fn the_last_record_of_a_key_counts_although_one_waited_for_its_group() {
        let Place {
            _dir,
            db: _db,
            mut writer,
        } = place(Durability::Sync, 8 * (64 << 10));
        writer.write(&key(0), &[1; 70 << 10]).unwrap();
        for i in 0..1000 {
            writer.write(&key(i), b"new").unwrap();
        }
        writer.write_waiting().unwrap();
        assert_eq!(writer.records, 1001);
        assert_eq!(writer.tree.get(key(0)).unwrap().unwrap(), b"new");
    }
}
