//! TPC-C: load, run, check, for each contender.

use super::plan::{Draft, Plan};
use crate::{
    contender::{About, Durability, Focus},
    harness::{Phase, TpccStep, Work},
    tpcc::Config,
};

/// How to run TPC-C.
#[derive(Debug, Clone)]
pub struct TpccRun {
    /// Name of the scenario.
    pub scenario: String,
    /// How large, which mix, which indexes beside ORDER-LINE's.
    pub config: Config,
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

/// Adds a job for each of `contenders`: load, settle, run, check.
pub fn tpcc_plan(run: &TpccRun, contenders: &[&About], plan: &mut Plan) {
    let step = |name: &str, step: TpccStep, focus: Focus| {
        let config = run.config.clone();
        Phase::new(name, run.threads, focus, Work::Tpcc { step, config })
    };
    let mut mix = step(RUN, TpccStep::Run, Focus::Mixed).capped(run.seconds);
    mix.x = run.x;
    let phases = vec![
        step("load", TpccStep::Load, Focus::Writes).capped(run.load_seconds),
        Phase::new("settle", 1, Focus::Writes, Work::Settle),
        mix,
        step("check", TpccStep::Check, Focus::Reads),
    ];
    let scale = run.config.scale;
    let mut draft = Draft::new(run.scenario.clone(), run.budget, scale.entries(), run.seed);
    draft.durability = run.durability;
    draft.page_bytes = run.page_bytes;
    draft.tables = true;
    draft.confined = true;
    let parameters = [
        ("warehouses", f64::from(scale.warehouses)),
        ("items", f64::from(scale.items)),
        ("customers_per_district", f64::from(scale.customers)),
        ("threads", run.threads as f64),
    ];
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
