//! The binary `indexy-pool`.

#![forbid(unsafe_code)]

use clap::Parser as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    // clap ends with code 2 on wrong flags.
    indexy_pool::run(&indexy_pool::Cli::parse())
}
