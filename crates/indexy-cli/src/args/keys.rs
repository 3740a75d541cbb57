//! Commands on one key or a few: `get`, `put` and `del`.

use super::{
    database::{Database, TreeArgs},
    encoding::EncodingArgs,
};
use clap::Args;
use std::{ffi::OsString, path::PathBuf};

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
