//! Larger than memory: speed, memory and I/O against every engine on disk.

use super::row::{Numbers, OURS, Row, Verdict, own_row, rate_row, ratio, text, whole_phases};
use crate::format::{bytes, count, rate};
use crate::measure::{Outcome, PhaseResult, RunResult, median};

const DISK_PEERS: [&str; 7] = [
    "rocksdb",
    "rocksdb-blocks",
    "rocksdb-cached",
    "bf-tree",
    "fjall",
    "redb",
    "lmdb",
];
const MIB: f64 = 1048576.0;

const SECTION: &str = "larger than memory";
const SCENARIO: &str = "larger";

pub(super) fn larger_rows(n: &Numbers<'_>) -> Vec<Row> {
    let mut rows = load_rows(n);
    rows.extend(read_rows(n));
    rows.push(io_row(
        n,
        SECTION,
        "load and settle: bytes written per byte given",
        RunResult::settled_write_amplification,
    ));
    rows.push(io_row(
        n,
        SECTION,
        "load and settle: bytes on disk per byte given",
        RunResult::settled_space_amplification,
    ));
    rows
}

fn load_rows(n: &Numbers<'_>) -> Vec<Row> {
    let mut rows = vec![rate_row(
        n,
        SECTION,
        "load, log off",
        (SCENARIO, "load"),
        "rocksdb",
        1.2,
    )];
    rows.push(settled_load_row(n, SECTION));
    rows.extend(
        ["bf-tree", "fjall", "redb", "lmdb"]
            .map(|p| rate_row(n, SECTION, "load, log off", (SCENARIO, "load"), p, 1.0)),
    );
    rows.push(level0_row(n, SECTION));
    rows.push(resident_row(n, SECTION));
    rows
}

fn read_rows(n: &Numbers<'_>) -> [Row; 7] {
    [
        absolute_rate(
            n,
            SECTION,
            "get, working set",
            "get-set",
            2e6,
            ">= 2 M/s (aim 5)",
        ),
        best_peer_row(n, SECTION, "get, working set", "get-set", 10.0),
        best_peer_row(n, SECTION, "get, zipf 0.99", "get-zipf", 1.6),
        own_row(
            n,
            SECTION,
            "multi_get of 64 cold keys against get",
            (SCENARIO, "multi-get-cold"),
            (SCENARIO, "get-cold"),
            2.0,
        ),
        own_row(
            n,
            SECTION,
            "multi_get of 64 by zipf against get",
            (SCENARIO, "multi-get-zipf"),
            (SCENARIO, "get-zipf"),
            2.0,
        ),
        absent_row(
            n,
            "in memory",
            "absent, no mount",
            "memory-1t",
            0.001,
            "no I/O",
        ),
        absent_row(
            n,
            SECTION,
            "absent, under a mount",
            SCENARIO,
            0.05,
            "no data block but false positives",
        ),
    ]
}

/// A load is not over while its compaction is owed.
fn settled_load_row(n: &Numbers<'_>, section: &str) -> Row {
    let both = |who: &str| {
        let of = |phase: &str, of: fn(&PhaseResult) -> f64| {
            n.value("larger", who, phase, |p| Some(of(p)))
        };
        Some(
            of("load", |p| p.done as f64)?
                / (of("load", |p| p.seconds)? + of("settle", |p| p.seconds)?),
        )
    };
    let (ours, theirs) = (both(OURS), both("rocksdb"));
    let ratio = ratio(ours, theirs);
    Row {
        section: section.to_owned(),
        work: "load until background work is done, log off".to_owned(),
        ours: text(ours, rate),
        against: format!("rocksdb {}", text(theirs, rate)),
        measured: text(ratio, |r| format!("{r:.2} x")),
        goal: String::new(),
        verdict: Verdict::Info,
    }
}

fn level0_row(n: &Numbers<'_>, section: &str) -> Row {
    let runs = |who: &str| {
        n.value("larger", who, "load", |p| {
            p.counters.get("level0_runs").copied()
        })
    };
    let ours = runs(OURS);
    Row {
        section: section.to_owned(),
        work: "level-0 runs left after the load".to_owned(),
        ours: text(ours, count),
        against: format!("rocksdb {}", text(runs("rocksdb"), count)),
        measured: text(ours, count),
        goal: "<= 8".to_owned(),
        verdict: Verdict::of(ours.map(|r| r <= 8.0)),
    }
}

fn resident_row(n: &Numbers<'_>, section: &str) -> Row {
    let peak = |who: &str| {
        let of_run = |r: &RunResult| {
            whole_phases(r)
                .map(PhaseResult::peak_resident)
                .max()
                .map(|b| b as f64)
        };
        median(
            n.results
                .iter()
                .filter(|r| r.scenario == "larger" && r.contender == who)
                .filter_map(of_run)
                .collect(),
        )
    };
    let budget = n
        .results
        .iter()
        .find(|r| r.scenario == "larger")
        .map(|r| r.budget as f64);
    let limit = budget.map(|b| b * 1.10 + 32.0 * MIB);
    let ours = peak(OURS);
    let ran = |r: &RunResult| r.scenario == "larger" && r.contender == OURS;
    let died = n.results.iter().filter(|r| ran(r)).find_map(death);
    let peers = DISK_PEERS
        .iter()
        .filter_map(|who| Some(format!("{who} {}", bytes(peak(who)?))));
    Row {
        section: section.to_owned(),
        work: "peak resident memory, load through reads".to_owned(),
        ours: text(ours, bytes),
        against: format!(
            "budget {}; {}",
            text(budget, bytes),
            peers.collect::<Vec<_>>().join(", ")
        ),
        measured: died.map_or_else(
            || text(ratio(ours, budget), |r| format!("{r:.2} x budget")),
            str::to_owned,
        ),
        goal: format!("<= {}", text(limit, bytes)),
        verdict: Verdict::of(ours.zip(limit).map(|(o, l)| died.is_none() && o <= l)),
    }
}

/// What the row says of a run whose process did not live to its end.
fn death(run: &RunResult) -> Option<&'static str> {
    match run.outcome {
        Outcome::OutOfMemory(_) => Some("died of it"),
        Outcome::Died(_) => Some("died"),
        _ => None,
    }
}

fn absolute_rate(
    n: &Numbers<'_>,
    section: &str,
    work: &str,
    phase: &str,
    goal: f64,
    says: &str,
) -> Row {
    let ours = n.rate("larger", OURS, phase);
    Row {
        section: section.to_owned(),
        work: work.to_owned(),
        ours: text(ours, rate),
        against: "-".to_owned(),
        measured: text(ours, rate),
        goal: says.to_owned(),
        verdict: Verdict::of(ours.map(|r| r >= goal)),
    }
}

fn best_peer_row(n: &Numbers<'_>, section: &str, work: &str, phase: &str, goal: f64) -> Row {
    let rates = DISK_PEERS
        .iter()
        .filter_map(|who| Some((*who, n.rate("larger", who, phase)?)));
    let rates: Vec<(&str, f64)> = rates.collect();
    let best = rates.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
    let ours = n.rate("larger", OURS, phase);
    let ratio = ratio(ours, best.map(|b| b.1));
    let list: Vec<String> = rates
        .iter()
        .map(|(who, r)| format!("{who} {}", rate(*r)))
        .collect();
    Row {
        section: section.to_owned(),
        work: format!("{work}, against the best peer"),
        ours: text(ours, rate),
        against: if list.is_empty() {
            "-".to_owned()
        } else {
            list.join(", ")
        },
        measured: text(ratio, |r| format!("{r:.2} x")),
        goal: format!(">= {goal} x"),
        verdict: Verdict::of(ratio.map(|r| r >= goal)),
    }
}

fn absent_row(
    n: &Numbers<'_>,
    section: &str,
    work: &str,
    scenario: &str,
    most: f64,
    goal: &str,
) -> Row {
    let calls = |who: &str| n.value(scenario, who, "absent", |p| Some(p.per_op(p.io.read_calls)));
    let ours = calls(OURS);
    let speed = n.rate(scenario, OURS, "absent");
    Row {
        section: section.to_owned(),
        work: work.to_owned(),
        ours: text(speed, rate),
        against: format!(
            "rocksdb {}",
            text(n.rate(scenario, "rocksdb", "absent"), rate)
        ),
        measured: text(ours, |c| format!("{c:.4} read calls each")),
        goal: goal.to_owned(),
        verdict: Verdict::of(ours.map(|c| c <= most)),
    }
}

fn io_row(
    n: &Numbers<'_>,
    section: &str,
    work: &str,
    of: impl Fn(&RunResult) -> Option<f64>,
) -> Row {
    let value = |who: &str| n.of_run("larger", who, &of);
    let peers = DISK_PEERS
        .iter()
        .filter_map(|who| Some(format!("{who} {:.1}", value(who)?)));
    let ours = text(value(OURS), |v| format!("{v:.1}"));
    Row {
        section: section.to_owned(),
        work: work.to_owned(),
        measured: ours.clone(),
        ours,
        against: peers.collect::<Vec<_>>().join(", "),
        goal: String::new(),
        verdict: Verdict::Info,
    }
}
