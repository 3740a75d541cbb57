//! One YCSB workload, or several after one load.

use super::plan::{Draft, Plan};
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
    /// Name and properties of each workload; the first one's records are loaded, and those of the
    /// others must be like them.
    pub workloads: Vec<(String, Properties)>,
    /// Budget in bytes.
    pub budget: u64,
    /// Durability of every contender.
    pub durability: Durability,
    /// Threads, where the properties do not say.
    pub threads: usize,
    /// Time cap of the load, and of each workload whose properties do not say, in seconds; 0 for
    /// none.
    pub max_seconds: f64,
    /// Repetitions.
    pub repeats: usize,
    /// Seed of all draws.
    pub seed: u64,
    /// Whether the jobs run in a memory cgroup.
    pub confined: bool,
}

/// What all workloads of a run must have in common: which records there are, and what they look
/// like.
const OF_THE_RECORDS: [&str; 9] = [
    "recordcount",
    "insertstart",
    "fieldcount",
    "fieldlength",
    "minfieldlength",
    "fieldlengthdistribution",
    "insertorder",
    "zeropadding",
    "keyformat",
];

/// Load, then each workload, for each contender. Phases have the names of their workloads, made
/// distinct by `#2`, `#3` and so on.
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
        same_records(first, name, properties)?;
        draft.scans |= workload.share(Operation::Scan) > 0.0;
        let threads = workload.threads.unwrap_or(run.threads);
        let work = Work::YcsbRun {
            properties: owned(properties),
        };
        let seconds = if workload.max_seconds > 0.0 {
            workload.max_seconds
        } else {
            run.max_seconds
        };
        let name = distinct(name, &phases);
        phases.push(Phase::new(&name, threads, focus(&workload), work).capped(seconds));
    }
    for repeat in 0..run.repeats {
        for about in contenders {
            plan.add(&draft, about, repeat, phases.clone());
        }
    }
    Ok(plan)
}

/// Refuses the workload `name` if its records are not those of the first one.
fn same_records(
    first: &Properties,
    name: &str,
    properties: &Properties,
) -> Result<(), PropertyError> {
    for property in OF_THE_RECORDS {
        let text = |p: &Properties| p.text(property).unwrap_or_default().to_owned();
        let (loaded, asked) = (text(first), text(properties));
        if loaded != asked {
            return Err(PropertyError::Differs {
                name: property.to_owned(),
                loaded,
                asked,
                workload: name.to_owned(),
            });
        }
    }
    Ok(())
}

/// `name`, or `name#2` and so on if a phase before is called that.
fn distinct(name: &str, before: &[Phase]) -> String {
    let taken = |name: &str| name == "open" || before.iter().any(|p| p.name == name);
    let mut own = name.to_owned();
    let mut number = 1;
    while taken(&own) {
        number += 1;
        own = format!("{name}#{number}");
    }
    own
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        harness::{Job, needed_bytes},
        registry::Registry,
        workload::builtin_text,
    };

    fn workload(name: &str, more: &[&str]) -> (String, Properties) {
        let mut p = Properties::default();
        p.read(builtin_text(name).unwrap()).unwrap();
        for line in more {
            p.set_line(line).unwrap();
        }
        (name.to_owned(), p)
    }

    fn job(workloads: Vec<(String, Properties)>, seconds: f64) -> Result<Job, PropertyError> {
        let run = YcsbRun {
            scenario: "ycsb".to_owned(),
            workloads,
            budget: 1 << 20,
            durability: Durability::None,
            threads: 2,
            max_seconds: seconds,
            repeats: 1,
            seed: 1,
            confined: false,
        };
        let registry = Registry::with_own();
        let plan = ycsb_plan(&run, &[&registry.get("indexy").unwrap().about])?;
        Ok(plan.jobs().next().unwrap().clone())
    }

    fn names(job: &Job) -> Vec<&str> {
        job.phases.iter().map(|p| p.name.as_str()).collect()
    }

    #[test]
    fn a_workloads_own_time_cap_is_that_of_its_phase_and_not_of_the_load() {
        let workloads = || vec![workload("a", &["maxexecutiontime=600"]), workload("c", &[])];
        let caps = |seconds| -> Vec<f64> {
            let job = job(workloads(), seconds).unwrap();
            job.phases.iter().map(|p| p.max_seconds).collect()
        };
        // load, settle, a, c
        assert_eq!(caps(10.0), [10.0, 0.0, 600.0, 10.0]);
        assert_eq!(caps(0.0), [0.0, 0.0, 600.0, 0.0]);
    }

    #[test]
    fn the_space_needed_is_bounded_by_the_caps_and_never_overflows() {
        let many = ["operationcount=1000000000000000", "recordcount=1000"];
        let uncapped = needed_bytes(&job(vec![workload("a", &many)], 0.0).unwrap());
        let capped = [&many[..], &["maxexecutiontime=1"]].concat();
        let capped = needed_bytes(&job(vec![workload("a", &capped)], 0.0).unwrap());
        assert!(
            uncapped > 1 << 60 && capped < 8 << 30,
            "{uncapped} {capped}"
        );
        let most = ["recordcount=18446744073709551615"];
        let load = || vec![workload("c", &most)];
        assert_eq!(needed_bytes(&job(load(), 0.0).unwrap()), u64::MAX);
        let load = needed_bytes(&job(load(), 1.0).unwrap());
        assert!(load < 8 << 30, "{load}");
    }

    #[test]
    fn workloads_whose_records_differ_from_the_loaded_ones_are_refused() {
        for line in [
            "recordcount=999",
            "insertstart=1",
            "fieldcount=3",
            "fieldlength=9",
            "minfieldlength=2",
            "fieldlengthdistribution=uniform",
            "insertorder=ordered",
            "zeropadding=7",
            "keyformat=u64",
        ] {
            let error = job(vec![workload("a", &[]), workload("b", &[line])], 0.0).unwrap_err();
            let (name, value) = line.split_once('=').unwrap();
            let PropertyError::Differs {
                name: named, asked, ..
            } = &error
            else {
                panic!("{error}");
            };
            assert_eq!((named.as_str(), asked.as_str()), (name, value));
            let text = error.to_string();
            assert!(text.contains(&format!("{name}={value}")) && text.contains("workload b"));
        }
        let same = ["fieldlength=100", "zipfianconstant=0.7", "operationcount=5"];
        job(vec![workload("a", &[]), workload("b", &same)], 0.0).unwrap();
    }

    #[test]
    fn phases_have_distinct_names() {
        let (_, p) = workload("c", &[]);
        let named = |name: &str| (name.to_owned(), p.clone());
        let all = ["c", "load", "c", "settle", "open", "c", "c#2"].map(named);
        assert_eq!(
            names(&job(all.to_vec(), 0.0).unwrap()),
            [
                "load", "settle", "c", "load#2", "c#2", "settle#2", "open#2", "c#3", "c#2#2"
            ]
        );
    }
}
