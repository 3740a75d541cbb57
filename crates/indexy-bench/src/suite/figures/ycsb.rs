//! Figure 8: YCSB on records of 16 bytes.

use super::{
    Sizes,
    draw::{contenders, ours_and_peers, ratio_text, whole_loads},
};
use crate::{
    contender::{About, Durability},
    measure::RunResult,
    suite::{Plan, Step, YcsbRun, ycsb_plan},
    workload::{Properties, builtin_text},
};
use indexy_report::chart::{Plot, Series};

/// In YCSB's recommended order: what adds records comes last. X is the thesis'.
const WORKLOADS: [&str; 7] = ["a", "b", "c", "f", "d", "e", "x"];
const PHASES: [(&str, &str); 8] = [
    ("load", "Load"),
    ("a", "A"),
    ("b", "B"),
    ("c", "C"),
    ("d", "D"),
    ("e", "E"),
    ("f", "F"),
    ("x", "X"),
];
/// Most records of a scan; half as many on average, as in the paper.
const SCAN: &str = "100";
/// Exponent of the paper's zipf draws.
const EXPONENT: &str = "0.7";

fn properties(sizes: &Sizes, name: &str) -> Option<Properties> {
    let mut p = Properties::default();
    p.read(builtin_text(name)?).ok()?;
    let settings = [
        ("recordcount", sizes.read_keys.to_string()),
        ("operationcount", sizes.operations.to_string()),
        ("fieldcount", "1".to_owned()),
        ("fieldlength", "8".to_owned()),
        ("keyformat", "u64".to_owned()),
        ("zipfianconstant", EXPONENT.to_owned()),
        ("maxscanlength", SCAN.to_owned()),
    ];
    for (name, value) in settings {
        p.set(name, &value).ok()?;
    }
    Some(p)
}

pub(super) fn workloads(sizes: &Sizes, all: &[&About], plan: &mut Plan) {
    let run = YcsbRun {
        scenario: "fig8".to_owned(),
        workloads: WORKLOADS
            .iter()
            .filter_map(|w| Some(((*w).to_owned(), properties(sizes, w)?)))
            .collect(),
        budget: sizes.read_budget,
        durability: Durability::None,
        threads: sizes.threads,
        max_seconds: sizes.ycsb_seconds,
        repeats: 1,
        seed: sizes.seed,
        confined: true,
    };
    let mut steps = ycsb_plan(&run, all).map(|p| p.steps).unwrap_or_default();
    for step in &mut steps {
        if let Step::Run(job) = step {
            for phase in &mut job.phases {
                match &*phase.name {
                    "load" => phase.max_seconds = sizes.read_load_seconds,
                    _ => phase.turnover = sizes.turnover(phase.max_seconds),
                }
            }
        }
    }
    plan.steps.append(&mut steps);
}

fn rate(results: &[RunResult], who: &str, phase: &str) -> Option<f64> {
    let phase = results.iter().find(|r| r.contender == who)?.phase(phase)?;
    Some(phase.rate()).filter(|r| *r > 0.0)
}

pub(super) fn plots(results: &[RunResult]) -> Vec<Plot> {
    let points = |who: &str| {
        let at =
            |(i, (phase, _)): (usize, &(&str, &str))| Some((i as f64, rate(results, who, phase)?));
        PHASES.iter().enumerate().filter_map(at).collect()
    };
    let series = contenders(results).into_iter().map(|name| Series {
        points: points(&name),
        name,
        dashed: false,
    });
    vec![Plot {
        title: "YCSB, zipf 0.7".to_owned(),
        y_label: "operations/s".to_owned(),
        groups: PHASES
            .iter()
            .map(|(_, label)| (*label).to_owned())
            .collect(),
        series: series.collect(),
        log_y: true,
        ..Plot::default()
    }]
}

pub(super) fn findings(results: &[RunResult]) -> Vec<String> {
    let (whole, remarks) = whole_loads(results);
    let names = contenders(&whole);
    let Some((ours, peers)) = ours_and_peers(&names) else {
        return remarks;
    };
    let text = |(phase, label): &(&str, &str)| {
        let own = rate(&whole, ours, phase)?;
        let best = peers
            .iter()
            .filter_map(|p| Some((*p, rate(&whole, p, phase)?)));
        let (peer, theirs) = best.max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some(format!("{label}: {}", ratio_text(own, peer, theirs)))
    };
    PHASES.iter().filter_map(text).chain(remarks).collect()
}
