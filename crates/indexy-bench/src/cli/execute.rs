//! Runs a plan from beginning to end: refuses what cannot work, keeps what was measured.

use super::{arguments::Common, exit};
use crate::{
    harness::{
        CgroupError, Interrupt, Job, LaunchError, Launcher, MemoryGroup, SpaceError, check_space,
    },
    measure::{Outcome, RunResult},
    policies::PoliciesError,
    registry::{Registry, UnknownContender},
    report::{Document, DocumentError, Live},
    stderr::tell,
    suite::{Plan, Step, core::Row},
};
use std::{fs, io, path::PathBuf, process::ExitCode};

/// Why nothing could be run.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    Unknown(#[from] UnknownContender),
    #[error(transparent)]
    Space(#[from] SpaceError),
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error(transparent)]
    Document(#[from] DocumentError),
    #[error(transparent)]
    Policies(#[from] PoliciesError),
    #[cfg(feature = "dex")]
    #[error(transparent)]
    Dex(#[from] crate::dex::DexError),
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

const MIB: u64 = 1 << 20;
/// Granted above the budget, half of it within these bounds: the process itself, histograms,
/// allocator slack.
const SLACK_BOUNDS: (u64, u64) = (24 * MIB, 48 * MIB);

/// Computes the table of goals from what was measured so far.
pub(super) type RowMaker = fn(&[RunResult]) -> Vec<Row>;

/// A plan under way.
pub(super) struct Execution<'a> {
    registry: &'a Registry,
    launcher: Launcher,
    /// Whether jobs that want one get a memory cgroup.
    confines: bool,
    /// What the cgroup grants above the budget, if the user chose it.
    slack: Option<u64>,
    out: PathBuf,
    document: Document,
    made_directory: bool,
    /// Computes the table of goals.
    pub rows: Option<RowMaker>,
}

impl<'a> Execution<'a> {
    /// Checks space and cgroup before anything is run.
    pub(super) fn begin(
        kind: &str,
        registry: &'a Registry,
        common: &Common,
        plan: &Plan,
    ) -> Result<Self, Failure> {
        if plan.jobs().next().is_none() {
            return Err(Failure::Usage(
                "none of the contenders takes part in this".to_owned(),
            ));
        }
        let made_directory = !common.dir.exists();
        fs::create_dir_all(&common.dir).map_err(|source| Failure::Io {
            path: common.dir.clone(),
            source,
        })?;
        let directory = common.dir.canonicalize().map_err(|source| Failure::Io {
            path: common.dir.clone(),
            source,
        })?;
        for job in plan.jobs() {
            check_space(job, &directory)?;
        }
        if !common.no_cgroup && plan.jobs().any(|j| j.confined) {
            const PROBE_BYTES: u64 = 1 << 30;
            drop(MemoryGroup::create(PROBE_BYTES, None)?);
        }
        let document = Document::begin(kind, &directory);
        let in_memory = document.machine.file_system.starts_with("tmpfs");
        let is_modelled = |job: &Job| job.setup.cold.is_some();
        if in_memory && !plan.jobs().all(is_modelled) {
            tell!(
                "warning: {} is a tmpfs: the data are in memory, and no device is measured",
                directory.display()
            );
        }
        if !in_memory && plan.jobs().any(is_modelled) {
            tell!(
                "warning: {} is no tmpfs: a modelled device is as slow as the one that is there",
                directory.display()
            );
        }
        let launcher = Launcher {
            directory,
            slack: None,
            free_load: common.free_load,
            interrupt: Interrupt::of_process(),
            keep: common.keep,
        };
        Ok(Self {
            registry,
            launcher,
            confines: !common.no_cgroup,
            slack: common.slack,
            out: common.out.clone(),
            document,
            made_directory,
            rows: None,
        })
    }

    /// Runs all steps; an interrupt ends it early. Results are written after every job.
    pub(super) fn run(&mut self, plan: &Plan) -> Result<Document, Failure> {
        let mut live = Live::new(plan.jobs().count());
        for step in &plan.steps {
            if self.launcher.interrupt.is_raised() {
                self.document.interrupted = true;
                break;
            }
            let result = match step {
                Step::Skip(result) => (**result).clone(),
                Step::Run(job) => {
                    live.begin(job);
                    self.launcher.slack = self
                        .confines
                        .then(|| slack_of(self.slack, job.setup.budget));
                    let entry = self.registry.get(&job.contender)?;
                    let result = self.launcher.run(job, &entry.about, &mut live)?;
                    live.end(&result.outcome);
                    result
                }
            };
            self.document.interrupted |= result.outcome == Outcome::Interrupted;
            self.document.results.push(result);
            if let Some(rows) = self.rows {
                self.document.rows = rows(&self.document.results);
            }
            self.document.write(&self.out)?;
        }
        if self.made_directory && !self.launcher.keep {
            // Left alone if anything is in it.
            let _ = fs::remove_dir(&self.launcher.directory);
        }
        Ok(self.document.clone())
    }

    /// Says where the results are, and how the run ended.
    pub(super) fn finish(&self, document: &Document) -> Result<ExitCode, Failure> {
        let report = document.write(&self.out)?;
        say!(
            "results: {0}/results.json {0}/results.csv; report: {1}",
            self.out.display(),
            report.display()
        );
        let broken = |run: &&RunResult| run.outcome.is_failure();
        for run in document.results.iter().filter(broken) {
            tell!(
                "error: {} {}: {:?}",
                run.scenario,
                run.contender,
                run.outcome
            );
        }
        if document.interrupted {
            say!("interrupted: the results are partial");
            return Ok(ExitCode::from(exit::INTERRUPTED));
        }
        Ok(if document.results.iter().any(|r| broken(&r)) {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        })
    }
}

/// What the cgroup grants above `budget`; `chosen` is the user's wish.
fn slack_of(chosen: Option<u64>, budget: u64) -> u64 {
    chosen.unwrap_or_else(|| budget / 10 + (budget / 2).clamp(SLACK_BOUNDS.0, SLACK_BOUNDS.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slack_is_as_chosen_even_if_that_is_none() {
        assert_eq!(slack_of(Some(0), 128 * MIB), 0);
        assert_eq!(slack_of(Some(7), 128 * MIB), 7);
        assert_eq!(slack_of(None, 10 * MIB), MIB + 24 * MIB);
        assert_eq!(slack_of(None, 60 * MIB), 6 * MIB + 30 * MIB);
        assert_eq!(slack_of(None, 1000 * MIB), 100 * MIB + 48 * MIB);
    }
}
