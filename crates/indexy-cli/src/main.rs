//! The binary `indexy`: loads, reads, changes, checks and demonstrates IndeXY databases.
//!
//! The exit codes are in `exit.rs`, and for users at the end of `indexy --help`.

#![forbid(unsafe_code)]

mod args;
mod commands;
mod confirm;
mod demo;
mod exit;
mod format;
mod input;
mod interrupt;
mod progress;
mod range;
mod sorted;
mod stdout;
mod store;
mod unfinished;

use args::{Cli, Command, Usage};
use clap::Parser as _;
use std::process::ExitCode;
use stdout::{ReaderGone, say};

fn main() -> ExitCode {
    let result = match demo::victim_arguments() {
        Some(arguments) => demo::victim(&arguments),
        None => run(&Cli::parse().command),
    };
    result.unwrap_or_else(|error| {
        if error.is::<ReaderGone>() {
            return ExitCode::SUCCESS;
        }
        say(format_args!("error: {error:#}"));
        ExitCode::from(if error.is::<Usage>() {
            exit::USAGE
        } else {
            exit::FAILED
        })
    })
}

fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Load(args) => commands::load::run(args),
        Command::Get(args) => commands::get::run(args),
        Command::Put(args) => commands::put::run(args),
        Command::Del(args) => commands::del::run(args),
        Command::Compact(args) => commands::compact::run(args),
        Command::RemoveRange(args) => commands::remove_range::run(args),
        Command::Scan(args) => commands::scan::run(args),
        Command::Dump(args) => commands::dump::run(args),
        Command::Stats(args) => commands::stats::run(args),
        Command::Verify(args) => commands::verify::run(args),
        Command::Salvage(args) => commands::salvage::run(args),
        Command::Checkpoint(args) => commands::checkpoint::run(args),
        Command::Convert(args) => commands::convert::run(args),
        Command::Rename(args) => commands::rename::run(args),
        Command::Drop(args) => commands::drop::run(args),
        Command::Demo(args) => demo::run(args),
        Command::Completions(args) => commands::completions::run(args),
    }
}
