//! `indexy completions`: prints a script that completes this command line in a shell.

use crate::{
    args::{Cli, Completions},
    stdout::Out,
};
use clap::CommandFactory as _;
use std::process::ExitCode;

/// Runs the command.
pub fn run(args: &Completions) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "indexy", &mut script);
    let mut out = Out::new();
    out.append(|buffer| buffer.extend_from_slice(&script))?;
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}
