//! Commands that read or write many records: `load`, `scan` and `dump`.

use super::{
    database::{Database, TreeArgs},
    encoding::{EncodingArgs, FieldArgs},
};
use crate::format::Format;
use clap::Args;
use std::{ffi::OsString, path::PathBuf};

/// Ends the help of commands that read or write records in a format.
const FORMATS: &str = "\
Formats:
  tsv    key TAB value, byte for byte; further tabs belong to the value. After a
         line \"#indexy:escaped\", keys and values have the escapes
         \\\\ \\t \\n \\r \\xHH, up to a line \"#indexy:plain\". `dump` writes these lines
         when they are needed.
  jsonl  {\"key\": \"...\", \"value\": ...}, one object per line. `load` stores a value
         that is no string as its compact JSON text. Bytes that are not UTF-8 are in
         hexadecimal, in fields named key_hex and value_hex.
  lines  one key per line. Values are empty: `scan` and `dump` leave them out.";

/// `load`
#[derive(Debug, Args)]
#[command(after_help = format!("{FORMATS}\n\n{LOAD_HELP}"))]
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
Without --format the file's extension tells the format: .jsonl .ndjson .json are
jsonl; .keys .lines .list are lines; all others, and standard input, are tsv.

The database and the tree are created if absent. A malformed line ends the load
with exit code 1; all records before it are in the database. Ctrl-C ends the
load in good order: it says how far it came, and the exit code is 130.";

/// `scan`
#[derive(Debug, Args)]
#[command(after_help = format!("{FORMATS}\n\n{SCAN_HELP}"))]
#[command(allow_negative_numbers = true)]
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
    #[arg(long, short, value_enum, default_value = "tsv")]
    pub format: Format,
    #[command(flatten)]
    pub encoding: EncodingArgs,
    #[command(flatten)]
    pub tree: TreeArgs,
}

const SCAN_HELP: &str = "\
`scan` is for people: in tsv and lines every record has the escapes, and `load
--escaped` reads them. `dump` is for programs. --from, --to and --prefix may be
combined; what fits all of them is shown.";

/// `dump`
#[derive(Debug, Args)]
#[command(after_help = format!("{FORMATS}\n\n{DUMP_HELP}"))]
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

const DUMP_HELP: &str = "\
`load` reads a dump back to the same bytes, whatever they are: tsv and jsonl as
they are, lines with --escaped, any format with --hex if the dump had --hex.";
