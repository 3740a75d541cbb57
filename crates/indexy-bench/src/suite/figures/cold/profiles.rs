//! `ma6`, Table 1 and Figure 6: the policies of each device's preset against a generic one.
//!
//! The paper's generic policy is blocks of 1 MiB, abort and restart, and all that is read merged.
//! The nearest here: pages of 16 KiB, the largest; reads put aside, which execute nothing twice;
//! `Admission::Always`, of the one value that was asked for. Transactions over tables hold the
//! driver's locks and cannot be put aside: they wait in both.

use super::{
    ASIDE, Case, Device, LARGEST_PAGE, Sizes, add_ycsb, contender, rate_ratio, rates_text, run_of,
    scenario, skews, tuned,
    verdict::{Verdict, alike, at_least, within},
};
use crate::{
    applications::Config,
    contender::{About, Cold, Durability, Others},
    harness::{TableStep, Work},
    measure::RunResult,
    suite::{Plan, TablesRun, tables_plan},
    tatp, tpcc, voter,
};
use indexy::Admission;
use indexy_report::chart::{Plot, Series};
use std::ops::RangeInclusive;

const FIGURE: &str = "ma6";
const TUNED: &str = "tuned";
const GENERIC: &str = "generic";
const TATP: &str = "tatp";
const VOTER: &str = "voter";
const TPCC: &str = "tpcc";
/// As reports spell them, and as scenarios do.
const APPLICATIONS: [(&str, &str); 3] = [("TPC-C", TPCC), ("TATP", TATP), ("Voter", VOTER)];
/// 92 to 340 % more.
const HEADLINE: RangeInclusive<f64> = 1.92..=4.4;
/// The point of a workload that has no exponent.
const ONLY: f64 = 0.0;

fn cold(device: Device, policy: &str, aside: usize) -> (Cold, usize) {
    match policy {
        TUNED => (tuned(device, None), 0),
        _ => {
            let cold = Cold {
                aside,
                admission: Some(Admission::Always),
                ..Cold::on(device)
            };
            (cold, LARGEST_PAGE)
        }
    }
}

pub(in crate::suite::figures) fn jobs(sizes: &Sizes, all: &[&About], plan: &mut Plan) {
    let Some(about) = contender(all) else { return };
    for &device in &sizes.cold.devices {
        for policy in [TUNED, GENERIC] {
            let (cold, page_bytes) = cold(device, policy, ASIDE);
            let case = Case {
                figure: FIGURE,
                policy,
                cold,
                page_bytes,
                budget: sizes.cold.budget,
            };
            add_ycsb(sizes, &case, about, sizes.cold.skews_on(device), plan);
            for (_, workload) in APPLICATIONS {
                add_tables(sizes, (device, policy, workload), about, plan);
            }
        }
    }
}

fn on(sizes: &Sizes, workload: &str) -> Config {
    const CONTESTANTS: u8 = 6;
    const VOTES: u8 = 2;
    const PHONES: u32 = 10_000_000;
    match workload {
        TPCC => Config::Tpcc(tpcc::Config {
            scale: sizes.cold.tpcc,
            mix: tpcc::Mix::Standard,
            others: Others::Same,
        }),
        TATP => Config::Tatp(tatp::Config {
            subscribers: sizes.cold.subscribers,
            zipf: None,
        }),
        _ => Config::Voter(voter::Config {
            contestants: CONTESTANTS,
            votes_a_phone: VOTES,
            phones_an_area: PHONES,
            zipf: None,
        }),
    }
}

fn add_tables(
    sizes: &Sizes,
    (device, policy, workload): (Device, &str, &str),
    about: &About,
    plan: &mut Plan,
) {
    let (cold, page_bytes) = cold(device, policy, 0);
    let run = TablesRun {
        scenario: scenario(FIGURE, device, &format!("{policy}-{workload}")),
        on: on(sizes, workload),
        budget: match workload {
            TPCC => sizes.cold.tpcc_budget,
            _ => sizes.cold.tables_budget,
        },
        page_bytes,
        durability: Durability::None,
        threads: 1,
        load_seconds: sizes.cold.load_seconds,
        seconds: sizes.cold.seconds_on(device),
        repeats: 1,
        seed: sizes.seed,
        x: Some(ONLY),
    };
    tables_plan(&run, &[about], plan);
    let Some(job) = plan.last_job_mut() else {
        return;
    };
    job.setup.cold = Some(cold);
    job.confined = false;
    job.phases.retain(|phase| phase.work != Work::Settle);
    for phase in &mut job.phases {
        let measured = matches!(
            phase.work,
            Work::Tables {
                step: TableStep::Run,
                ..
            }
        );
        phase.hurried = !measured;
    }
}

/// The two runs of a workload on a device.
fn pair<'a>(
    results: &'a [RunResult],
    device: Device,
    workload: &str,
) -> [Option<&'a RunResult>; 2] {
    [TUNED, GENERIC].map(|policy| run_of(results, FIGURE, device, &format!("{policy}{workload}")))
}

pub(in crate::suite::figures) fn plots(results: &[RunResult]) -> Vec<Plot> {
    let exponents = skews(results).into_iter().filter(|x| *x != ONLY);
    let mut bars: Vec<(String, String, f64)> = exponents
        .map(|x| (format!("YCSB, exponent {x}"), String::new(), x))
        .collect();
    let applications = APPLICATIONS.into_iter();
    bars.extend(applications.map(|(name, of)| (name.to_owned(), format!("-{of}"), ONLY)));
    let devices: Vec<Device> = Device::ALL
        .into_iter()
        .filter(|device| pair(results, *device, "")[0].is_some())
        .collect();
    let series = bars.into_iter().map(|(name, workload, x)| Series {
        name,
        points: (0..)
            .zip(&devices)
            .filter_map(|(group, &device)| {
                let [tuned, generic] = pair(results, device, &workload);
                Some((f64::from(group), rate_ratio(tuned, generic, x)?))
            })
            .collect(),
        dashed: false,
    });
    vec![Plot {
        title: "The preset of a device over the generic policy".to_owned(),
        y_label: "throughput, as a multiple".to_owned(),
        groups: devices.iter().map(|d| d.title().to_owned()).collect(),
        series: series.filter(|s| !s.points.is_empty()).collect(),
        ..Plot::default()
    }]
}

/// What the paper has of a workload on a device.
pub(super) fn verdict_of(
    device: Device,
    workload: &str,
    ratio: Option<f64>,
) -> (&'static str, Verdict) {
    match workload {
        TATP => ("more", at_least(ratio, 1.0)),
        VOTER => ("about the same", alike(ratio)),
        TPCC => match device {
            Device::Xpoint => ("1.36 x", at_least(ratio, 1.36)),
            Device::Nvram => ("1.26 x", at_least(ratio, 1.26)),
            _ => ("little", alike(ratio)),
        },
        _ if device.turns() => ("the same", alike(ratio)),
        _ => ("1.92 to 4.4 x", within(ratio, HEADLINE)),
    }
}

pub(in crate::suite::figures) fn findings(results: &[RunResult]) -> Vec<String> {
    let mut found = Vec::new();
    for device in Device::ALL {
        let mut say = |name: &str, [tuned, generic]: [Option<&RunResult>; 2], x: f64, of: &str| {
            if let Some(text) = rates_text(tuned, generic, x) {
                let (paper, verdict) = verdict_of(device, of, rate_ratio(tuned, generic, x));
                let title = device.title();
                found.push(format!(
                    "{title}, {name}: the preset does {text} of the generic policy; paper: \
                     {paper}: {verdict}"
                ));
            }
        };
        for x in skews(results).into_iter().filter(|x| *x != ONLY) {
            say(&format!("YCSB at {x}"), pair(results, device, ""), x, "");
        }
        for (name, workload) in APPLICATIONS {
            let runs = pair(results, device, &format!("-{workload}"));
            say(name, runs, ONLY, workload);
        }
    }
    found
}
