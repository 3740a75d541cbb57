//! Commands on a database as a whole: `stats`, `verify`, `checkpoint`, `convert` and `salvage`.

use super::database::{Database, parse_index_x, parse_index_y};
use clap::Args;
use indexy::{IndexXKind, IndexYKind};
use indexy_report::size::parse_size;
use std::path::PathBuf;

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
#[command(after_help = "\
Exit code 0: everything holds; 1: something does not, or could not be read. With
--json, standard output has one object either way: {\"ok\": true, \"seconds\": 0.2,
\"trees\": [{\"name\": ..., \"entries\": ..., \"damaged\": 0, \"problems\": [...]}]};
\"error\" instead of \"trees\" says why the check could not go on.")]
pub struct Verify {
    #[command(flatten)]
    pub database: Database,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

/// `checkpoint`
#[derive(Debug, Args)]
#[command(after_help = "\
DEST opens as a database of its own. It appears when all of it is written: a
failure and Ctrl-C leave nothing.")]
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
    /// Index in memory: art, bplus, none, radix or radix-leaves
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

/// `salvage`
#[derive(Debug, Args)]
#[command(after_help = "\
SRC is read past what is damaged, and not changed. Every record of DEST is one
that was written to SRC, and the newest of its key as far as that can be known.
Keys of which a newer version, or a removal, may be lost are counted as doubtful;
they are left out unless --doubtful is given. What is missing is listed by file,
offset and, where it is known, range of keys.

DEST appears when all of it is written: a failure and Ctrl-C leave nothing.
Exit code 0: nothing is missing; 1: something is, or DEST could not be written.")]
pub struct Salvage {
    /// Directory of the damaged database
    #[arg(value_name = "SRC")]
    pub src: PathBuf,
    /// Where the new database goes: absent, or an empty directory
    #[arg(value_name = "DEST")]
    pub dest: PathBuf,
    /// Take doubtful keys, too, in the newest version that is there
    #[arg(long)]
    pub doubtful: bool,
    /// Memory budget, for instance 64M [default: a quarter of the memory]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub budget: Option<u64>,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}
