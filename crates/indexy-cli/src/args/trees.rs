//! Commands that take away or rename: `remove-range`, `drop`, `compact` and `rename`.

use super::{
    database::{Database, TreeArgs},
    encoding::EncodingArgs,
};
use clap::Args;
use std::ffi::OsString;

/// `remove-range`
#[derive(Debug, Args)]
#[command(
    group = clap::ArgGroup::new("bounds")
        .args(["prefix", "from", "to"])
        .multiple(true)
        .required(true),
    override_usage = "indexy remove-range [OPTIONS] <DB> --prefix|--from|--to <KEY>",
    after_help = "\
At least one of --prefix, --from and --to is needed; the keys that fit all that
are given are removed. `indexy scan DB --count` with the same options counts
them first. To remove everything use `indexy drop`.

The command asks before it removes. Without a terminal it removes nothing and
ends with exit code 2, unless --yes is given; a no ends it with exit code 1."
)]
#[command(allow_negative_numbers = true)]
pub struct RemoveRange {
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
    /// Remove without asking
    #[arg(long, short)]
    pub yes: bool,
    #[command(flatten)]
    pub encoding: EncodingArgs,
    #[command(flatten)]
    pub tree: TreeArgs,
}

/// `compact`
#[derive(Debug, Args)]
#[command(after_help = "\
Merges what was overwritten and removed until it takes no more space. Reads and
writes up to everything that the range has on disk. It can be killed at any
moment and run again. Of a paged tree, pages at the end of the file move to free
places in front, and the end is cut off.")]
#[command(allow_negative_numbers = true)]
pub struct Compact {
    #[command(flatten)]
    pub database: Database,
    /// First key (inclusive)
    #[arg(long, value_name = "KEY")]
    pub from: Option<OsString>,
    /// Last key (exclusive)
    #[arg(long, value_name = "KEY")]
    pub to: Option<OsString>,
    #[command(flatten)]
    pub encoding: EncodingArgs,
    #[command(flatten)]
    pub tree: TreeArgs,
}

/// `drop`
#[derive(Debug, Args)]
#[command(after_help = "\
The command asks before it drops. Without a terminal it drops nothing and ends
with exit code 2, unless --yes is given; a no ends it with exit code 1.")]
pub struct DropTree {
    #[command(flatten)]
    pub database: Database,
    /// Name of the tree
    #[arg(value_name = "TREE")]
    pub tree: String,
    /// Drop without asking
    #[arg(long, short)]
    pub yes: bool,
}

/// `rename`
#[derive(Debug, Args)]
#[command(after_help = "\
No other tree may have the name NEW. The records stay where they are, so this
takes no longer for a large tree.")]
pub struct Rename {
    #[command(flatten)]
    pub database: Database,
    /// Name of the tree
    #[arg(value_name = "OLD")]
    pub old: String,
    /// Its new name, of 1 to 255 bytes
    #[arg(value_name = "NEW")]
    pub new: String,
}
