//! Workloads of transactions over several tables: load, run, check, for each contender.

use super::plan::{Draft, Plan};
use crate::{
    applications::Config,
    contender::{About, Durability, Focus},
    harness::{Phase, TableStep, Work},
    tpcc,
};

/// How to run one.
#[derive(Debug, Clone)]
pub struct TablesRun {
    /// Name of the scenario.
    pub scenario: String,
    /// Which, and how large.
    pub on: Config,
    /// Budget in bytes, all tables together.
    pub budget: u64,
    /// Page size in bytes; 0: each engine's own.
    pub page_bytes: usize,
    /// Durability of every contender.
    pub durability: Durability,
    /// Threads.
    pub threads: usize,
    /// Time cap of the load in seconds; 0 for none.
    pub load_seconds: f64,
    /// Seconds that the mix runs.
    pub seconds: f64,
    /// Repetitions.
    pub repeats: usize,
    /// Seed of all draws.
    pub seed: u64,
    /// The value of what a figure varies, if it is a point of one.
    pub x: Option<f64>,
}

/// Name of the phase that runs the mix.
pub const RUN: &str = "run";
/// Name of the parameter that is the exponent, where rows are drawn by Zipf.
pub const ZIPF: &str = "zipf";

/// Adds a job for each of `contenders`: load, settle, run, check.
pub fn tables_plan(run: &TablesRun, contenders: &[&About], plan: &mut Plan) {
    let step = |name: &str, step: TableStep, focus: Focus| {
        let on = run.on.clone();
        Phase::new(name, run.threads, focus, Work::Tables { step, on })
    };
    let mut mix = step(RUN, TableStep::Run, Focus::Mixed).capped(run.seconds);
    mix.x = run.x;
    let phases = vec![
        step("load", TableStep::Load, Focus::Writes).capped(run.load_seconds),
        Phase::new("settle", 1, Focus::Writes, Work::Settle),
        mix,
        step("check", TableStep::Check, Focus::Reads),
    ];
    let entries = run.on.entries();
    let mut draft = Draft::new(run.scenario.clone(), run.budget, entries, run.seed);
    draft.durability = run.durability;
    draft.page_bytes = run.page_bytes;
    draft.tables = true;
    draft.confined = true;
    let mut parameters = parameters(&run.on);
    parameters.push(("threads", run.threads as f64));
    draft.parameters = parameters
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    for repeat in 0..run.repeats {
        for about in contenders {
            plan.add(&draft, about, repeat, phases.clone());
        }
    }
}

fn parameters(on: &Config) -> Vec<(&'static str, f64)> {
    let (mut parameters, zipf) = match on {
        Config::Tpcc(tpcc::Config { scale, .. }) => (
            vec![
                ("warehouses", f64::from(scale.warehouses)),
                ("items", f64::from(scale.items)),
                ("customers_per_district", f64::from(scale.customers)),
            ],
            None,
        ),
        Config::Tatp(config) => (
            vec![("subscribers", f64::from(config.subscribers))],
            config.zipf,
        ),
        Config::Voter(config) => (
            vec![
                ("contestants", f64::from(config.contestants)),
                ("votes_a_phone", f64::from(config.votes_a_phone)),
                ("phones_an_area", f64::from(config.phones_an_area)),
            ],
            config.zipf,
        ),
        Config::Counters(config) => (
            vec![
                ("rows", config.rows as f64),
                ("value_bytes", f64::from(config.value_bytes)),
                ("rows_at_once", f64::from(config.at_once)),
                ("reads_percent", f64::from(config.reads)),
            ],
            config.zipf,
        ),
    };
    parameters.extend(zipf.map(|exponent| (ZIPF, exponent)));
    parameters
}
