//! One file per subcommand: it reads its arguments, does its work and returns the exit code.

pub mod checkpoint;
pub mod compact;
pub mod completions;
pub mod convert;
pub mod del;
pub mod drop;
pub mod dump;
pub mod get;
pub mod load;
pub mod put;
pub mod remove_range;
pub mod rename;
pub mod salvage;
pub mod scan;
pub mod stats;
pub mod verify;
