//! A memory server: `serve` holds a region of memory that compute servers of `indexy-dex` reach by
//! verbs, `status` asks one how it is.
//!
//! Exit codes: 0 done, or ended by SIGTERM or SIGINT; 1 failed; 2 wrong flags.

#![forbid(unsafe_code)]

mod args;
mod secret;
mod serve;
mod status;

pub use args::{Cli, Command, Place, RegionFlags, SECRET_VARIABLE, Secrets, Serve, Status};
pub use serve::until_a_signal;

use std::process::ExitCode;

/// Runs a command; a failure is one line on standard error.
pub fn run(cli: &Cli) -> ExitCode {
    exit(match &cli.command {
        Command::Serve(serve) => serve::run(serve),
        Command::Status(status) => status::run(status),
    })
}

/// The exit code of a command; a failure is one line on standard error.
pub fn exit(done: anyhow::Result<()>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
