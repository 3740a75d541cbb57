//! The command line. One file per group of commands; what several groups share is in `database.rs`
//! and `encoding.rs`.

mod database;
mod encoding;
mod files;
mod keys;
mod program;
mod trees;
mod usage;
mod whole;

pub use database::{Database, DurabilityArg, TreeArgs};
pub use encoding::EncodingArgs;
pub use files::{Dump, Load, Scan};
pub use keys::{Del, Get, Put};
pub use program::{Completions, Demo};
pub use trees::{Compact, DropTree, RemoveRange, Rename};
pub use usage::Usage;
pub use whole::{Checkpoint, Convert, Salvage, Stats, Verify};

use clap::{Parser, Subcommand};

/// Width of the help text; less on a narrower terminal.
const HELP_COLUMNS: usize = 80;

/// An ordered key-value index that is larger than its memory budget.
#[derive(Debug, Parser)]
#[command(
    name = "indexy",
    version,
    max_term_width = HELP_COLUMNS,
    arg_required_else_help = true,
    after_help = "\
Exit codes:
  0    done; also when the reader of standard output went away (`| head`)
  1    failed, and standard error says why; or the answer is no: the key is not
       there (get, del), the database is damaged (verify), something is missing
       (salvage), you said no
  2    wrong usage; nothing was done
  129  stopped by a closed terminal (SIGHUP)
  130  stopped by Ctrl-C (SIGINT)
  143  stopped by SIGTERM; any other signal n gives 128 + n

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
    /// Remove all keys of a range
    RemoveRange(RemoveRange),
    /// Print the records of a range, in key order
    Scan(Scan),
    /// Write all records of a tree to standard output, for `load`
    Dump(Dump),
    /// Show what the database holds, in memory and on disk
    Stats(Stats),
    /// Read everything and check checksums, order and invariants
    Verify(Verify),
    /// Save what can be read of a damaged database in a new one
    Salvage(Salvage),
    /// Copy the database, as of this moment, to another directory
    Checkpoint(Checkpoint),
    /// Copy the database to another pair of indexes
    Convert(Convert),
    /// Give space on disk back
    Compact(Compact),
    /// Give a tree another name
    Rename(Rename),
    /// Drop a tree with everything in it
    Drop(DropTree),
    /// Show on this machine what the index does; about 75 seconds
    Demo(Demo),
    /// Print completions for a shell
    Completions(Completions),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;
    use std::ffi::OsString;

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
}
