//! One YCSB workload, or several after one load.

use super::{Draft, Plan};
use crate::{
    contender::{About, Durability, Focus},
    harness::{Phase, Work},
    workload::{Operation, Properties, PropertyError, Workload},
};

/// How to run YCSB workloads.
#[derive(Debug, Clone)]
pub struct YcsbRun {
    /// Name of the scenario.
    pub scenario: String,
    /// Name and properties of each workload; the first one's records are loaded.
    pub workloads: Vec<(String, Properties)>,
    /// Budget in bytes.
    pub budget: u64,
    /// Durability of every contender.
    pub durability: Durability,
    /// Threads, where the properties do not say.
    pub threads: usize,
    /// Time cap of a phase in seconds, where the properties do not say; 0 for none.
    pub max_seconds: f64,
    /// Repetitions.
    pub repeats: usize,
    /// Seed of all draws.
    pub seed: u64,
    /// Whether the jobs run in a memory cgroup.
    pub confined: bool,
}

/// Load, then each workload, for each contender.
pub fn ycsb_plan(run: &YcsbRun, contenders: &[&About]) -> Result<Plan, PropertyError> {
    let mut plan = Plan::default();
    let Some((_, first)) = run.workloads.first() else {
        return Ok(plan);
    };
    let load = Workload::from_properties(first)?;
    let mut draft = Draft::new(
        run.scenario.clone(),
        run.budget,
        load.insert_count,
        run.seed,
    );
    draft.durability = run.durability;
    draft.confined = run.confined;
    draft.long_keys = !load.keys.eight_bytes();
    draft.value_bytes = load.records.longest_bytes();
    draft.key_bytes = load.keys.longest_bytes();
    let threads = load.threads.unwrap_or(run.threads);
    let mut phases = vec![
        Phase::new(
            "load",
            threads,
            Focus::Writes,
            Work::YcsbLoad {
                properties: owned(first),
            },
        )
        .capped(run.max_seconds),
        Phase::new("settle", 1, Focus::Writes, Work::Settle),
    ];
    for (name, properties) in &run.workloads {
        let workload = Workload::from_properties(properties)?;
        draft.scans |= workload.share(Operation::Scan) > 0.0;
        let threads = workload.threads.unwrap_or(run.threads);
        let work = Work::YcsbRun {
            properties: owned(properties),
        };
        phases.push(Phase::new(name, threads, focus(&workload), work).capped(run.max_seconds));
    }
    for repeat in 0..run.repeats {
        for about in contenders {
            plan.add(&draft, about, repeat, phases.clone());
        }
    }
    Ok(plan)
}

fn focus(workload: &Workload) -> Focus {
    let reads = workload.share(Operation::Read) + workload.share(Operation::Scan);
    let writes_only = workload.share(Operation::Insert) + workload.share(Operation::Update) >= 1.0;
    if reads >= 1.0 {
        Focus::Reads
    } else if writes_only {
        Focus::Writes
    } else {
        Focus::Mixed
    }
}

fn owned(properties: &Properties) -> Vec<(String, String)> {
    properties
        .iter()
        .map(|(n, v)| (n.to_owned(), v.to_owned()))
        .collect()
}
