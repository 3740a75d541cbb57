//! The command `dex`.

use super::{arguments::DexCommand, execute::Failure};
use crate::dex::FIGURES;
use std::process::ExitCode;

pub(super) fn run(command: &DexCommand) -> Result<ExitCode, Failure> {
    let is_known = |name: &&String| FIGURES.iter().any(|(known, _)| known == name);
    if let Some(name) = command.only.iter().find(|name| !is_known(name)) {
        let valid = FIGURES.map(|(name, _)| name).join(", ");
        let what = format!("unknown figure {name:?}; the valid ones are: {valid}");
        return Err(Failure::Usage(what));
    }
    measure(command)
}

#[cfg(feature = "dex")]
fn measure(command: &DexCommand) -> Result<ExitCode, Failure> {
    let DexCommand { preset, only, out } = command;
    let report = crate::dex::run(*preset, only, out, |part| say!("{}", part.trim_end()))?;
    say!("report: {}", report.display());
    Ok(ExitCode::SUCCESS)
}

#[cfg(not(feature = "dex"))]
fn measure(command: &DexCommand) -> Result<ExitCode, Failure> {
    let DexCommand { preset, out, .. } = command;
    Err(Failure::Usage(format!(
        "this program was built without the tree ({preset:?}, {}): \
         cargo run --release -p indexy-bench --features dex -- dex",
        out.display()
    )))
}

/// What `list` says about it.
pub(super) fn list() {
    say!("\nfigures of dex");
    for (name, title) in FIGURES {
        say!("  {name:16} {title}");
    }
}
