//! The binary `indexy`: loads, reads, checks and demonstrates IndeXY databases.
//!
//! Exit codes: 0 done; 1 failed, or a key is not there; 2 wrong usage; 128 + n stopped by signal n.

#![forbid(unsafe_code)]

mod args;
mod commands;
mod demo;
mod format;
mod input;
mod interrupt;
mod progress;
mod size;
mod stdout;
mod store;

use args::{Cli, Command, Usage};
use clap::Parser as _;
use std::process::ExitCode;
use stdout::{ReaderGone, say};

/// A failure, or a key that is not there.
const EXIT_FAILED: u8 = 1;
/// The command line makes no sense.
const EXIT_USAGE: u8 = 2;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match &cli.command {
        Command::Load(args) => commands::load::run(args),
        Command::Get(args) => commands::get::run(args),
        Command::Put(args) => commands::put::run(args),
        Command::Del(args) => commands::del::run(args),
        Command::Scan(args) => commands::scan::run(args),
        Command::Stats(args) => commands::stats::run(args),
        Command::Verify(args) => commands::verify::run(args),
        Command::Checkpoint(args) => commands::checkpoint::run(args),
        Command::Convert(args) => commands::convert::run(args),
        Command::Dump(args) => commands::dump::run(args),
        Command::Demo(args) => demo::run(args),
        Command::DemoVictim(args) => demo::crash::victim(args),
    };
    result.unwrap_or_else(|error| {
        if error.is::<ReaderGone>() {
            return ExitCode::SUCCESS;
        }
        say(format_args!("error: {error:#}"));
        ExitCode::from(if error.is::<Usage>() {
            EXIT_USAGE
        } else {
            EXIT_FAILED
        })
    })
}
