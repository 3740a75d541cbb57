//! The command `policies`.

use super::{arguments::PoliciesCommand, execute::Failure};
use crate::{
    policies::{
        Plan, PoliciesError, Policy, Replay, Size, TRACES, default_policies, described, read_file,
        run as replay, sweep,
    },
    stderr::tell,
};
use std::process::ExitCode;

/// At scale 1: a tenth of 30 M keys in 128 MiB.
const KEYS: f64 = 3e6;
const ACCESSES: f64 = 1e7;
/// A replay numbers keys in 30 bits and accesses in 32.
const MOST_SCALE: f64 = 100.0;

pub(super) fn run(command: &PoliciesCommand) -> Result<ExitCode, Failure> {
    if command.scale > MOST_SCALE {
        return Err(Failure::Usage(format!(
            "scale {}: traces are replayed up to {MOST_SCALE}",
            command.scale
        )));
    }
    let own = command.trace.as_deref().map(read_file).transpose();
    let own = own.map_err(PoliciesError::from)?;
    let mut traces = command.only.clone();
    for name in &traces {
        if !TRACES.iter().any(|(known, _)| known == name) {
            return Err(PoliciesError::UnknownTrace { name: name.clone() }.into());
        }
    }
    if traces.is_empty() && own.is_none() {
        traces = TRACES.map(|(name, _)| name.to_owned()).into();
    }
    let named = command.policies.iter().map(|name| Policy::parse(name));
    let mut policies: Vec<Policy> = named.collect::<Result<_, _>>()?;
    if policies.is_empty() {
        policies = default_policies();
    }
    // A trace of one's own has the size that it has.
    let scale = if own.is_some() && traces.is_empty() {
        1.0
    } else {
        command.scale
    };
    let plan = Plan {
        traces,
        policies,
        size: Size {
            keys: ((KEYS * scale) as u32).max(1),
            accesses: (ACCESSES * scale) as u32,
            seed: command.seed,
        },
        own,
        bytes: (command.bytes as f64 * scale) as u64,
        entry_bytes: command.entry,
    };
    let outcomes = replay(&plan, |trace| tell!("{trace} is replayed"))?;
    let swept = match command.sweep {
        true => sweep(&plan, |trace| tell!("{trace} is swept"))?,
        false => Vec::new(),
    };
    let result = Replay::new(&plan, outcomes, swept);
    for table in result.tables() {
        say!("{table}");
    }
    let report = result.write(&command.out)?;
    say!("report: {}", report.display());
    Ok(ExitCode::SUCCESS)
}

/// What `list` says about it.
pub(super) fn list() {
    say!("\ntraces of policies");
    for (name, about) in TRACES {
        say!("  {name:16} {about}");
    }
    say!("\npolicies (release+part+part, or another one)");
    for (name, about) in described() {
        say!("  {name:16} {about}");
    }
}
