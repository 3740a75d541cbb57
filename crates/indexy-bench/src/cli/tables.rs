//! The commands `tpcc`, `tatp`, `voter` and `counters`.

use super::{
    arguments::{CountersCommand, TablesArguments, TatpCommand, TpccCommand, VoterCommand},
    contenders::{chosen, leave_out},
    execute::{Execution, Failure},
};
use crate::{
    applications::Config,
    contender::{About, Others, is_pair},
    counters,
    registry::Registry,
    report::{detail_table, outcome_table, transaction_table},
    suite::{Plan, TablesRun, tables_plan},
    tatp, tpcc, voter,
};
use std::process::ExitCode;

/// What the paper compares, and our other structure alone.
const CONTENDERS: [&str; 5] = [
    "indexy",
    "indexy-transactions",
    "indexy-art-bplus",
    "bplus-alone",
    "lsm-alone",
];

pub(super) fn run_tpcc(registry: &Registry, command: &TpccCommand) -> Result<ExitCode, Failure> {
    let on = Config::Tpcc(tpcc::Config {
        scale: tpcc::Scale {
            warehouses: command.warehouses,
            items: command.items,
            customers: command.customers,
        },
        mix: command.mix,
        others: others(command)?,
    });
    run("tpcc", registry, &command.tables, &[None], |_| on.clone())
}

pub(super) fn run_tatp(registry: &Registry, command: &TatpCommand) -> Result<ExitCode, Failure> {
    let subscribers = command.subscribers;
    let skews = skews(&command.zipf);
    run("tatp", registry, &command.tables, &skews, |zipf| {
        Config::Tatp(tatp::Config { subscribers, zipf })
    })
}

pub(super) fn run_voter(registry: &Registry, command: &VoterCommand) -> Result<ExitCode, Failure> {
    let skews = skews(&command.zipf);
    run("voter", registry, &command.tables, &skews, |zipf| {
        Config::Voter(voter::Config {
            contestants: command.contestants,
            votes_a_phone: command.votes,
            phones_an_area: command.phones,
            zipf,
        })
    })
}

pub(super) fn run_counters(
    registry: &Registry,
    command: &CountersCommand,
) -> Result<ExitCode, Failure> {
    let skews = skews(&command.zipf);
    run("counters", registry, &command.tables, &skews, |zipf| {
        Config::Counters(counters::Config {
            rows: command.rows,
            value_bytes: command.value_bytes,
            at_once: command.at_once,
            reads: command.reads,
            zipf,
        })
    })
}

/// The exponents, or none: the workload's own draw.
fn skews(exponents: &[f64]) -> Vec<Option<f64>> {
    match exponents {
        [] => vec![None],
        _ => exponents.iter().copied().map(Some).collect(),
    }
}

/// Runs the workload `name` by each of `skews`; `on` says what that is.
fn run(
    name: &str,
    registry: &Registry,
    arguments: &TablesArguments,
    skews: &[Option<f64>],
    on: impl Fn(Option<f64>) -> Config,
) -> Result<ExitCode, Failure> {
    let contenders: Vec<&About> = if arguments.common.contenders.is_empty() {
        let present = registry.present(&CONTENDERS);
        registry
            .iter()
            .filter(|a| present.contains(&a.name))
            .collect()
    } else {
        chosen(registry, &arguments.common, &[])?
    };
    let mut plan = Plan::default();
    for &skew in skews {
        let run = TablesRun {
            scenario: skew.map_or(name.to_owned(), |zipf| format!("{name}-zipf-{zipf}")),
            on: on(skew),
            budget: arguments.budget,
            page_bytes: arguments.page as usize,
            durability: arguments.durability.into(),
            threads: arguments.threads,
            load_seconds: arguments.load_seconds,
            seconds: arguments.seconds,
            repeats: arguments.repeat,
            seed: arguments.common.seed,
            x: skew,
        };
        tables_plan(&run, &contenders, &mut plan);
    }
    leave_out(registry, &mut plan);
    if plan.jobs().next().is_none() {
        let valid = registry.with_tables().join(", ");
        return Err(Failure::Usage(format!(
            "none of the contenders can run this; several tables have: {valid}"
        )));
    }
    let mut execution = Execution::begin(name, registry, &arguments.common, &plan)?;
    let document = execution.run(&plan)?;
    for scenario in document.scenarios() {
        say!("{}", detail_table(&scenario, &document.results));
        let tables = [transaction_table, outcome_table];
        let tables = tables.map(|table| table(&scenario, &document.results));
        for table in tables.into_iter().flatten() {
            say!("{table}");
        }
    }
    execution.finish(&document)
}

/// The indexes of the tables beside ORDER-LINE.
fn others(command: &TpccCommand) -> Result<Others, Failure> {
    let Some(pair) = &command.others else {
        return Ok(Others::Same);
    };
    if !is_pair(pair) {
        return Err(Failure::Usage(format!(
            "no pair {pair:?}; the valid ones are art, bplus, none, radix or radix-leaves, then \
             -lsm, -bplus, -bplus4k, -bplus8k or -bplus16k"
        )));
    }
    Ok(Others::Apart {
        pair: pair.clone(),
        resident: command.resident,
        share: command.others_share,
    })
}
