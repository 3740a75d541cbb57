//! The child's side: reads a job from standard input, runs it, writes events to standard output.
//!
//! Engines may print to standard output too, so each event is a line that begins with [`MARK`].

use super::interrupt::Interrupt;
use super::job::{Emitter, Event, Job, JobError};
use super::run::guarded;
use crate::{measure::Outcome, stderr::tell};
use std::{
    fs,
    io::{self, Read, Write},
    process::ExitCode,
};

/// The hidden command that makes the program a child.
pub const CHILD_ARGUMENT: &str = "run-job-from-stdin";
/// Begins every line that is an event.
pub(super) const MARK: &str = "\u{1}bench ";

/// Runs a job with the contender that it names.
pub type Runner<'a> = dyn Fn(&Job, &mut Emitter<'_>) -> Result<(), JobError> + 'a;

/// Runs the job on standard input with `runner`.
pub fn child_main(runner: &Runner<'_>) -> ExitCode {
    let interrupt = Interrupt::of_process();
    let mut text = String::new();
    if let Err(error) = io::stdin().read_to_string(&mut text) {
        tell!("cannot read the job: {error}");
        return ExitCode::FAILURE;
    }
    let job: Job = match serde_json::from_str(&text) {
        Ok(job) => job,
        Err(error) => {
            tell!("cannot read the job: {error}");
            return ExitCode::FAILURE;
        }
    };
    drop(text);
    let mut emitter = Emitter::new(write_event);
    let outcome = match run(runner, &job, &mut emitter) {
        Ok(()) if interrupt.is_raised() => Outcome::Interrupted,
        Ok(()) => Outcome::Finished,
        Err(error @ JobError::WrongValue { .. }) => Outcome::WrongValue(error.to_string()),
        Err(error) => Outcome::Failed(error.to_string()),
    };
    emitter.emit(&Event::Ended { outcome });
    ExitCode::SUCCESS
}

fn run(runner: &Runner<'_>, job: &Job, emitter: &mut Emitter<'_>) -> Result<(), JobError> {
    if let Some(group) = &job.group {
        // Before anything is allocated: memory stays with the group that it was charged to.
        fs::write(&group.procs, std::process::id().to_string()).map_err(|e| {
            JobError::Invalid(format!(
                "cannot enter the memory cgroup by {}: {e}",
                group.procs.display()
            ))
        })?;
    }
    guarded(|| runner(job, emitter))
}

/// Writes one event; a parent that is gone is noticed by the signal or the error of the next write.
fn write_event(event: &Event) {
    let Ok(json) = serde_json::to_string(event) else {
        return;
    };
    let mut out = io::stdout().lock();
    if writeln!(out, "{MARK}{json}")
        .and_then(|()| out.flush())
        .is_err()
    {
        std::process::exit(1);
    }
}
