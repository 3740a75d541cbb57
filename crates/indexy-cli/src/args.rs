//! The command line.

use crate::{
    format::{Encoding, Format, jsonl::Fields},
    size::parse_size,
};
use clap::{Args, Parser, Subcommand, ValueEnum};
use indexy::{Durability, IndexXKind, IndexYKind};
use std::{ffi::OsString, os::unix::ffi::OsStrExt, path::PathBuf};

/// Width of the help text; less on a narrower terminal.
const HELP_COLUMNS: usize = 80;
/// Interval of `--durability buffered`.
const BUFFERED_INTERVAL_MS: u64 = 100;
/// Page size of `--index-y bplus` without a size.
const DEFAULT_PAGE_BYTES: u64 = 4096;

/// An ordered key-value index that is larger than its memory budget.
#[derive(Debug, Parser)]
#[command(
    name = "indexy",
    version,
    max_term_width = HELP_COLUMNS,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = "Exit codes: 0 done; 1 failed, or the key is not there; 2 wrong usage;\n128 + n stopped by signal n.\n\
                  Sizes: K, M, G, T are powers of 1024; KB, MB, GB, TB powers of 1000."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Load records from a file or from standard input
    Load(Load),
    /// Print the value of a key
    Get(Get),
    /// Write one record
    Put(Put),
    /// Remove keys
    Del(Del),
    /// Print the records of a range, in key order
    Scan(Scan),
    /// Show what the database holds, in memory and on disk
    Stats(Stats),
    /// Read everything and check checksums, order and invariants
    Verify(Verify),
    /// Copy the database, as of this moment, to another directory
    Checkpoint(Checkpoint),
    /// Copy the database to another pair of indexes
    Convert(Convert),
    /// Write all records of a tree to standard output, for `load`
    Dump(Dump),
    /// Show on this machine what the index does; about 75 seconds
    Demo(Demo),
    /// The process that `demo` kills.
    #[command(hide = true, name = "demo-victim")]
    DemoVictim(DemoVictim),
}

/// Which database, and how to open it.
#[derive(Debug, Args)]
pub struct Database {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub path: PathBuf,
    /// Memory budget, for instance 64M [default: a quarter of the memory]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = DATABASE)]
    pub budget: Option<u64>,
    /// When a write survives a power failure: never before a flush, within
    /// 100 ms, or at once
    #[arg(long, value_enum, value_name = "WHEN", default_value = "buffered", help_heading = DATABASE)]
    pub durability: DurabilityArg,
}

/// Which tree, and what it is made of.
#[derive(Debug, Args)]
pub struct TreeArgs {
    /// Name of the tree
    #[arg(long, value_name = "NAME", default_value = "default", help_heading = DATABASE)]
    pub tree: String,
    /// Index in memory of a new tree: art, bplus or none [default: art]
    #[arg(long, value_name = "X", value_parser = parse_index_x, help_heading = DATABASE)]
    pub index_x: Option<IndexXKind>,
    /// Index on disk of a new tree: lsm, rocksdb or bplus:PAGEBYTES
    /// [default: lsm]
    #[arg(long, value_name = "Y", value_parser = parse_index_y, help_heading = DATABASE)]
    pub index_y: Option<IndexYKind>,
}

const DATABASE: &str = "Database options";

/// `--durability`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DurabilityArg {
    None,
    Buffered,
    Sync,
}

impl From<DurabilityArg> for Durability {
    fn from(arg: DurabilityArg) -> Self {
        match arg {
            DurabilityArg::None => Self::None,
            DurabilityArg::Buffered => Self::Buffered {
                interval_ms: BUFFERED_INTERVAL_MS,
            },
            DurabilityArg::Sync => Self::Sync,
        }
    }
}

fn parse_index_x(text: &str) -> Result<IndexXKind, String> {
    match text {
        "art" => Ok(IndexXKind::Art),
        "bplus" => Ok(IndexXKind::BPlus),
        "none" => Ok(IndexXKind::None),
        _ => Err("use art, bplus or none".into()),
    }
}

fn parse_index_y(text: &str) -> Result<IndexYKind, String> {
    match text.split_once(':').unwrap_or((text, "")) {
        ("lsm", "") => Ok(IndexYKind::Lsm),
        ("rocksdb", "") => Ok(IndexYKind::RocksDb),
        ("bplus", page) => {
            let bytes = if page.is_empty() {
                DEFAULT_PAGE_BYTES
            } else {
                parse_size(page)?
            };
            let page_bytes = bytes
                .try_into()
                .map_err(|_| format!("a page of {page} is too large"))?;
            Ok(IndexYKind::BPlus { page_bytes })
        }
        _ => Err("use lsm, rocksdb or bplus:PAGEBYTES, for instance bplus:4096".into()),
    }
}

/// How keys and values stand on the command line and in files.
#[derive(Debug, Args)]
pub struct EncodingArgs {
    /// Keys and values are in hexadecimal, in and out
    #[arg(long, conflicts_with = "escaped")]
    pub hex: bool,
    /// Read \\ \t \n \r \xHH in what is given as the bytes they stand for
    #[arg(long, short = 'e')]
    pub escaped: bool,
}

impl EncodingArgs {
    /// How what the user gives is to be read.
    pub fn encoding(&self) -> Encoding {
        match (self.hex, self.escaped) {
            (true, _) => Encoding::Hex,
            (_, true) => Encoding::Escaped,
            _ => Encoding::Plain,
        }
    }

    /// The bytes of an argument; a mistake in it is one of usage.
    pub fn bytes(&self, name: &str, arg: &OsString) -> Result<Vec<u8>, Usage> {
        match self.encoding().decode(arg.as_bytes()) {
            Ok(bytes) => Ok(bytes.into_owned()),
            Err(what) => Err(Usage(format!("{name} {:?}: {what}", arg.display()))),
        }
    }

    /// The same for an argument that may be absent.
    pub fn optional(&self, name: &str, arg: Option<&OsString>) -> Result<Option<Vec<u8>>, Usage> {
        arg.map(|arg| self.bytes(name, arg)).transpose()
    }
}

/// A mistake of usage found after parsing: exit code 2.
#[derive(Debug)]
pub struct Usage(pub String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Names of fields in JSON lines.
#[derive(Debug, Args)]
pub struct FieldArgs {
    /// JSON lines: the field that holds the key
    #[arg(long, value_name = "NAME", default_value = "key")]
    pub key_field: String,
    /// JSON lines: the field that holds the value
    #[arg(long, value_name = "NAME", default_value = "value")]
    pub value_field: String,
}

impl FieldArgs {
    /// The names, checked.
    pub fn fields(&self) -> Result<Fields, Usage> {
        if self.key_field == self.value_field {
            return Err(Usage("--key-field and --value-field must differ".into()));
        }
        Ok(Fields::new(&self.key_field, &self.value_field))
    }
}

/// `load`
#[derive(Debug, Args)]
#[command(after_help = LOAD_HELP)]
pub struct Load {
    #[command(flatten)]
    pub database: Database,
    /// File to read; standard input if absent or -
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Format of the input [default: by the file's extension, else tsv]
    #[arg(long, short, value_enum)]
    pub format: Option<Format>,
    /// Skip and count malformed lines instead of stopping at the first
    #[arg(long)]
    pub skip_bad: bool,
    /// Lines end in CR LF: drop the CR
    #[arg(long)]
    pub crlf: bool,
    /// No progress, no summary
    #[arg(long, short)]
    pub quiet: bool,
    #[command(flatten)]
    pub fields: FieldArgs,
    #[command(flatten)]
    pub encoding: EncodingArgs,
    #[command(flatten)]
    pub tree: TreeArgs,
}

const LOAD_HELP: &str = "\
Formats:
  tsv    key TAB value, byte for byte; further tabs belong to the value. From a
         line \"#indexy:escaped\" on (dump writes it when needed), the escapes
         \\\\ \\t \\n \\r \\xHH are read.
  jsonl  {\"key\": \"...\", \"value\": ...}; a value that is no string is stored as
         its compact JSON text.
  lines  one key per line, empty values.
By extension: .jsonl .ndjson .json; .keys .lines .list; all others are tsv.

The database and the tree are created if absent. A malformed line ends the load
with exit code 1; all lines before it are in the database. Ctrl-C stops in good
order and says how far the load came.";

/// `get`
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub struct Get {
    #[command(flatten)]
    pub database: Database,
    /// The key
    #[arg(value_name = "KEY")]
    pub key: OsString,
    /// Write the value's bytes as they are, without a line end
    #[arg(long, conflicts_with = "hex")]
    pub raw: bool,
    #[command(flatten)]
    pub encoding: EncodingArgs,
    #[command(flatten)]
    pub tree: TreeArgs,
}

/// `put`
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub struct Put {
    #[command(flatten)]
    pub database: Database,
    /// The key
    #[arg(value_name = "KEY")]
    pub key: OsString,
    /// The value
    #[arg(value_name = "VALUE", required_unless_present = "value_file")]
    pub value: Option<OsString>,
    /// Read the value from a file, byte for byte (- is standard input)
    #[arg(long, value_name = "FILE", conflicts_with = "value")]
    pub value_file: Option<PathBuf>,
    #[command(flatten)]
    pub encoding: EncodingArgs,
    #[command(flatten)]
    pub tree: TreeArgs,
}

/// `del`
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub struct Del {
    #[command(flatten)]
    pub database: Database,
    /// The keys
    #[arg(value_name = "KEY", required = true)]
    pub keys: Vec<OsString>,
    /// Absent keys are no failure
    #[arg(long, short)]
    pub force: bool,
    #[command(flatten)]
    pub encoding: EncodingArgs,
    #[command(flatten)]
    pub tree: TreeArgs,
}

/// `scan`
#[derive(Debug, Args)]
#[command(after_help = "\
Keys and values are shown with the escapes \\\\ \\t \\n \\r \\xHH for bytes that are
not printable text; `load --escaped` reads that. With --hex they are in hex.")]
pub struct Scan {
    #[command(flatten)]
    pub database: Database,
    /// Only keys that begin with this
    #[arg(long, value_name = "KEY")]
    pub prefix: Option<OsString>,
    /// First key (inclusive)
    #[arg(long, value_name = "KEY")]
    pub from: Option<OsString>,
    /// Last key (exclusive)
    #[arg(long, value_name = "KEY")]
    pub to: Option<OsString>,
    /// Descending order
    #[arg(long, short)]
    pub reverse: bool,
    /// At most this many records
    #[arg(long, short = 'n', value_name = "N")]
    pub limit: Option<u64>,
    /// Print only how many records there are
    #[arg(long, conflicts_with_all = ["format", "keys"])]
    pub count: bool,
    /// Print only keys
    #[arg(long)]
    pub keys: bool,
    /// Format of the output
    #[arg(
        long,
        short,
        value_enum,
        default_value = "tsv",
        hide_possible_values = true
    )]
    pub format: Format,
    #[command(flatten)]
    pub encoding: EncodingArgs,
    #[command(flatten)]
    pub tree: TreeArgs,
}

/// `stats`
#[derive(Debug, Args)]
pub struct Stats {
    #[command(flatten)]
    pub database: Database,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

/// `verify`
#[derive(Debug, Args)]
pub struct Verify {
    #[command(flatten)]
    pub database: Database,
}

/// `checkpoint`
#[derive(Debug, Args)]
pub struct Checkpoint {
    #[command(flatten)]
    pub database: Database,
    /// Where the copy goes: absent, or an empty directory
    #[arg(value_name = "DEST")]
    pub dest: PathBuf,
}

/// `convert`
#[derive(Debug, Args)]
#[command(
    group = clap::ArgGroup::new("pair").args(["index_x", "index_y"]).multiple(true).required(true),
    after_help = "\
SRC is read and not changed. DEST appears when all of it is written, durable and
read back; a conversion that is interrupted or fails leaves nothing. What is not
given (an index, the other trees with --tree) stays as it is in SRC."
)]
pub struct Convert {
    /// Directory of the database
    #[arg(value_name = "SRC")]
    pub src: PathBuf,
    /// Where the new database goes; nothing may be there
    #[arg(value_name = "DEST")]
    pub dest: PathBuf,
    /// Index in memory: art, bplus or none
    #[arg(long, value_name = "X", value_parser = parse_index_x)]
    pub index_x: Option<IndexXKind>,
    /// Index on disk: lsm, rocksdb or bplus:PAGEBYTES
    #[arg(long, value_name = "Y", value_parser = parse_index_y)]
    pub index_y: Option<IndexYKind>,
    /// Convert this tree only (may be repeated), and copy the others
    #[arg(long, value_name = "NAME")]
    pub tree: Vec<String>,
    /// Memory budget, one half for SRC and one for DEST, for instance 256M
    /// [default: a quarter of the memory]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub budget: Option<u64>,
    /// No progress, no summary
    #[arg(long, short)]
    pub quiet: bool,
}

/// `dump`
#[derive(Debug, Args)]
#[command(after_help = "\
`load` reads a dump of any bytes back. TSV that needs escapes says so in a line of
its own (\"#indexy:escaped\"); JSON lines hold bytes that are not UTF-8 as hex in
key_hex and value_hex; --format lines is for keys only (load it with --escaped).")]
pub struct Dump {
    #[command(flatten)]
    pub database: Database,
    /// Format of the output
    #[arg(long, short, value_enum, default_value = "tsv")]
    pub format: Format,
    /// Keys and values in hexadecimal (load with --hex)
    #[arg(long)]
    pub hex: bool,
    #[command(flatten)]
    pub fields: FieldArgs,
    #[command(flatten)]
    pub tree: TreeArgs,
}

/// `demo`
#[derive(Debug, Args)]
pub struct Demo {
    /// How long it may take, about
    #[arg(long, value_name = "N", default_value_t = 75, value_parser = clap::value_parser!(u64).range(3..=3600))]
    pub seconds: u64,
    /// Memory budget
    #[arg(long, value_name = "SIZE", default_value = "32M", value_parser = parse_size)]
    pub budget: u64,
    /// Where the report goes
    #[arg(long, value_name = "PATH", default_value = "indexy-demo.html")]
    pub report: PathBuf,
}

/// `demo-victim`
#[derive(Debug, Args)]
pub struct DemoVictim {
    /// Directory of the database
    pub path: PathBuf,
    /// Memory budget in bytes
    pub budget: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn keys_may_be_negative_numbers() {
        let parsed = |args: &[&str]| Cli::try_parse_from(args).unwrap().command;
        let Command::Get(get) = parsed(&["indexy", "get", "db", "-5", "--raw"]) else {
            panic!("not get");
        };
        assert_eq!((get.key, get.raw), (OsString::from("-5"), true));
        let Command::Del(del) = parsed(&["indexy", "del", "db", "-5", "-f", "-1.5"]) else {
            panic!("not del");
        };
        let keys = vec![OsString::from("-5"), OsString::from("-1.5")];
        assert_eq!((del.keys, del.force), (keys, true));
        let Command::Put(put) = parsed(&["indexy", "put", "db", "-5", "-6"]) else {
            panic!("not put");
        };
        let (key, value) = (OsString::from("-5"), OsString::from("-6"));
        assert_eq!((put.key, put.value), (key, Some(value)));
        // What looks like an option still is one.
        assert!(Cli::try_parse_from(["indexy", "get", "db", "-x"]).is_err());
    }

    #[test]
    fn index_pairs() {
        assert_eq!(parse_index_x("bplus"), Ok(IndexXKind::BPlus));
        assert_eq!(parse_index_x("none"), Ok(IndexXKind::None));
        assert!(parse_index_x("rbtree").is_err());
        assert_eq!(parse_index_y("lsm"), Ok(IndexYKind::Lsm));
        assert_eq!(
            parse_index_y("bplus"),
            Ok(IndexYKind::BPlus { page_bytes: 4096 })
        );
        assert_eq!(
            parse_index_y("bplus:16K"),
            Ok(IndexYKind::BPlus { page_bytes: 16384 })
        );
        for wrong in ["", "lsm:1", "bplus:x", "bplus:99999999999999"] {
            assert!(parse_index_y(wrong).is_err(), "{wrong}");
        }
    }
}
