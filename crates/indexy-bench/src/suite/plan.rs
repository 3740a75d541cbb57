//! Jobs in order, and the contenders that are left out, with the reason.

use crate::{
    contender::{About, Cold, Durability, Focus, KeyShape, Setup},
    harness::{Job, Phase, Work},
    measure::{Outcome, RunResult},
    workload::Order,
};
use std::{collections::BTreeMap, path::PathBuf};

/// One thing to do.
#[derive(Debug, Clone)]
pub enum Step {
    /// Run a job.
    Run(Box<Job>),
    /// Report that a contender takes no part, and why.
    Skip(Box<RunResult>),
}

/// What to do, in order.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
}

impl Plan {
    /// The jobs among the steps.
    pub fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.steps.iter().filter_map(|step| match step {
            Step::Run(job) => Some(job.as_ref()),
            Step::Skip(_) => None,
        })
    }

    /// Adds a job of `about` after `draft`, or the reason why there is none.
    pub fn add(&mut self, draft: &Draft, about: &About, repeat: usize, phases: Vec<Phase>) {
        let phases: Vec<Phase> = phases
            .into_iter()
            .filter(|p| about.reopens || !matches!(p.work, Work::Reopen))
            .collect();
        let job = draft.job(about, repeat, phases);
        match draft.refusal(about, &job) {
            None => self.steps.push(Step::Run(Box::new(job))),
            Some(why) => {
                let mut result = crate::harness::empty_result(&job, about, None);
                result.outcome = Outcome::Skipped(why);
                self.steps.push(Step::Skip(Box::new(result)));
            }
        }
    }

    /// Lets `about` go on with `phases` after its job of the scenario of `draft`; one that does not
    /// exist yet begins with `begin`.
    pub fn go_on(&mut self, draft: &Draft, about: &About, begin: &[Phase], phases: &[Phase]) {
        let same =
            |scenario: &str, contender: &str| scenario == draft.scenario && contender == about.name;
        for step in &mut self.steps {
            match step {
                Step::Run(job) if same(&job.scenario, &job.contender) => {
                    job.phases.extend_from_slice(phases);
                    return;
                }
                Step::Skip(result) if same(&result.scenario, &result.contender) => return,
                _ => {}
            }
        }
        self.add(draft, about, 0, [begin, phases].concat());
    }

    /// Replaces each job for which `refusal` has a reason by that reason.
    pub fn leave_out<'a>(&mut self, refusal: impl Fn(&Job) -> Option<(&'a About, &'static str)>) {
        for step in &mut self.steps {
            let Step::Run(job) = step else { continue };
            if let Some((about, why)) = refusal(job) {
                let mut result = crate::harness::empty_result(job, about, None);
                result.outcome = Outcome::Skipped(why.to_owned());
                *step = Step::Skip(Box::new(result));
            }
        }
    }

    /// The last job that was added, if the last step is one.
    pub fn last_job_mut(&mut self) -> Option<&mut Job> {
        match self.steps.last_mut()? {
            Step::Run(job) => Some(job),
            Step::Skip(_) => None,
        }
    }
}

/// What the jobs of a scenario have in common.
#[derive(Debug, Clone)]
pub struct Draft {
    /// Name of the scenario.
    pub scenario: String,
    /// Budget in bytes.
    pub budget: u64,
    /// Durability of every contender.
    pub durability: Durability,
    /// Records, roughly.
    pub records: u64,
    /// Longest key in bytes.
    pub key_bytes: usize,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// Page size in bytes; 0: each engine's own.
    pub page_bytes: usize,
    /// How numbers lie in the key space.
    pub order: Order,
    /// Seed of all draws.
    pub seed: u64,
    /// Whether the jobs run in a memory cgroup.
    pub confined: bool,
    /// Scans are needed.
    pub scans: bool,
    /// Keys are not of eight bytes.
    pub long_keys: bool,
    /// It runs on several tables, whose keys and values are bytes.
    pub tables: bool,
    /// What tells the runs of a figure apart.
    pub parameters: BTreeMap<String, f64>,
    /// On which modelled device, and by which policies.
    pub cold: Option<Cold>,
}

impl Draft {
    /// A scenario of random 8-byte keys and values without durability.
    pub fn new(scenario: impl Into<String>, budget: u64, records: u64, seed: u64) -> Self {
        Self {
            scenario: scenario.into(),
            budget,
            durability: Durability::None,
            records,
            key_bytes: 8,
            value_bytes: 8,
            page_bytes: 0,
            order: Order::Random,
            seed,
            confined: false,
            scans: false,
            long_keys: false,
            tables: false,
            parameters: BTreeMap::new(),
            cold: None,
        }
    }

    fn job(&self, about: &About, repeat: usize, phases: Vec<Phase>) -> Job {
        const TICK_MS: u64 = 250;
        Job {
            scenario: self.scenario.clone(),
            contender: about.name.to_owned(),
            repeat,
            seed: self.seed,
            setup: Setup {
                path: PathBuf::new(),
                budget: self.budget,
                durability: self.durability,
                threads: phases.iter().map(|p| p.threads).max().unwrap_or(1),
                records: self.records,
                key_bytes: self.key_bytes,
                value_bytes: self.value_bytes,
                page_bytes: self.page_bytes,
                focus: phases.first().map_or(Focus::Mixed, |p| p.focus),
                variant: about.variant.to_owned(),
                cold: self.cold,
            },
            order: self.order,
            phases,
            tick_ms: TICK_MS,
            preloaded: 0,
            reuse_directory_of: None,
            keep_directory: false,
            confined: self.confined,
            group: None,
            parameters: self.parameters.clone(),
        }
    }

    /// Why `about` cannot run the scenario, if it cannot.
    fn refusal(&self, about: &About, job: &Job) -> Option<String> {
        let short = about.keys == KeyShape::EightBytes && !self.tables;
        let shape = short && (self.long_keys || self.value_bytes != 8);
        if shape {
            Some("takes keys and values of 8 bytes only".to_owned())
        } else if !about.durabilities.contains(&self.durability) {
            Some(format!("has no durability {:?}", self.durability.name()))
        } else if job.setup.threads > about.max_threads {
            Some(format!("takes at most {} thread(s)", about.max_threads))
        } else if self.scans && !about.scans {
            Some("has no scans".to_owned())
        } else {
            None
        }
    }
}
