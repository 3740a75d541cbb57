//! One file per subcommand: it reads its arguments, does its work and returns the exit code.

pub mod checkpoint;
pub mod convert;
pub mod del;
pub mod dump;
pub mod get;
pub mod load;
pub mod put;
pub mod scan;
pub mod stats;
pub mod verify;
