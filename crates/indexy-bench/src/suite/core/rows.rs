//! The rows of the core's table: what was measured, against whom, and whether the goal was met.
//!
//! Ratios are medians over the repetitions of one run; a number that was not measured leaves its row open.

use crate::measure::{Outcome, PhaseResult, RunResult, median};
use crate::report::format::{bytes, count, micros, rate};
use serde::{Deserialize, Serialize};

/// Our contender in its default pair.
const OURS: &str = "indexy";
const CORE_DISK_PEERS: [&str; 6] = [
    "rocksdb",
    "rocksdb-blocks",
    "bf-tree",
    "fjall",
    "redb",
    "lmdb",
];
const MIB: f64 = 1048576.0;

/// Whether a goal was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Yes.
    Met,
    /// No.
    Missed,
    /// Something that it needs was not measured.
    Open,
    /// The row has no goal.
    Info,
}

impl Verdict {
    /// As tables print it.
    pub fn mark(self) -> &'static str {
        match self {
            Verdict::Met => "met",
            Verdict::Missed => "MISSED",
            Verdict::Open => "not measured",
            Verdict::Info => "",
        }
    }

    fn of(holds: Option<bool>) -> Self {
        match holds {
            Some(true) => Verdict::Met,
            Some(false) => Verdict::Missed,
            None => Verdict::Open,
        }
    }
}

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Section of the table.
    pub section: String,
    /// What was done.
    pub work: String,
    /// What we measured for ourselves.
    pub ours: String,
    /// What it is held against.
    pub against: String,
    /// The measured ratio or value that the goal is about.
    pub measured: String,
    /// The goal.
    pub goal: String,
    /// Whether it was met.
    pub verdict: Verdict,
}

/// Looks numbers up.
struct Numbers<'a> {
    results: &'a [RunResult],
}

impl Numbers<'_> {
    /// Median over the repetitions of what `of` takes from the phase.
    fn value(
        &self,
        scenario: &str,
        who: &str,
        phase: &str,
        of: impl Fn(&PhaseResult) -> Option<f64>,
    ) -> Option<f64> {
        let matching = self
            .results
            .iter()
            .filter(|r| r.scenario == scenario && r.contender == who);
        median(matching.filter_map(|r| of(r.phase(phase)?)).collect())
    }

    fn rate(&self, scenario: &str, who: &str, phase: &str) -> Option<f64> {
        self.value(scenario, who, phase, |p| {
            Some(p.rate()).filter(|r| *r > 0.0)
        })
    }
}

/// The whole table, as far as `results` fill it.
pub fn core_rows(results: &[RunResult]) -> Vec<Row> {
    let n = Numbers { results };
    let mut rows = memory_rows(&n);
    rows.extend(durability_rows(&n));
    rows.extend(larger_rows(&n));
    rows.extend(latency_rows(&n));
    rows.extend(replay_rows(&n));
    rows.retain(|row| row.ours != "-" || row.verdict != Verdict::Open);
    rows
}

fn text(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), show)
}

fn ratio(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    Some(a? / b?).filter(|r| r.is_finite())
}

/// A rate of ours that must be at least `goal` times a peer's.
fn rate_row(
    n: &Numbers<'_>,
    section: &str,
    work: &str,
    at: (&str, &str),
    peer: &str,
    goal: f64,
) -> Row {
    let ours = n.rate(at.0, OURS, at.1);
    let theirs = n.rate(at.0, peer, at.1);
    let ratio = ratio(ours, theirs);
    Row {
        section: section.to_owned(),
        work: work.to_owned(),
        ours: text(ours, rate),
        against: format!("{peer} {}", text(theirs, rate)),
        measured: text(ratio, |r| format!("{r:.2} x")),
        goal: if goal == 1.0 {
            "faster".to_owned()
        } else {
            format!(">= {goal} x")
        },
        verdict: Verdict::of(ratio.map(|r| r >= goal)),
    }
}

/// A rate of ours that must be at least `goal` times another rate of ours.
fn own_row(
    n: &Numbers<'_>,
    section: &str,
    work: &str,
    at: (&str, &str),
    base: (&str, &str),
    goal: f64,
) -> Row {
    let ours = n.rate(at.0, OURS, at.1);
    let other = n.rate(base.0, OURS, base.1);
    let ratio = ratio(ours, other);
    Row {
        section: section.to_owned(),
        work: work.to_owned(),
        ours: text(ours, rate),
        against: format!("itself {}", text(other, rate)),
        measured: text(ratio, |r| format!("{r:.2} x")),
        goal: format!(">= {goal} x"),
        verdict: Verdict::of(ratio.map(|r| r >= goal)),
    }
}

fn memory_rows(n: &Numbers<'_>) -> Vec<Row> {
    const S: &str = "in memory";
    let one = "memory-1t";
    let mut rows = vec![
        rate_row(n, S, "get, 1 thread", (one, "get"), "congee", 0.8),
        rate_row(n, S, "get, 1 thread", (one, "get"), "btreemap", 1.5),
        rate_row(n, S, "get, 1 thread", (one, "get"), "skiplist", 1.0),
        rate_row(n, S, "insert, 1 thread", (one, "insert"), "congee", 0.7),
        rate_row(n, S, "insert, 1 thread", (one, "insert"), "btreemap", 0.7),
        rate_row(n, S, "insert, 1 thread", (one, "insert"), "skiplist", 1.0),
    ];
    let per_key = |who: &str| {
        n.value(one, who, "insert", |p| {
            (p.done > 0 && p.resident() > 0).then(|| p.resident() as f64 / p.done as f64)
        })
    };
    let accounted = n.value(one, OURS, "insert", |p| {
        Some(p.accounted? as f64 / p.done.max(1) as f64)
    });
    for (what, ours) in [
        ("memory per key, resident", per_key(OURS)),
        ("memory per key, by own count", accounted),
    ] {
        let peers = ["congee", "btreemap", "skiplist"]
            .map(|who| format!("{who} {}", text(per_key(who), |b| format!("{b:.1} B"))));
        rows.push(Row {
            section: S.to_owned(),
            work: what.to_owned(),
            ours: text(ours, |b| format!("{b:.1} B")),
            against: peers.join(", "),
            measured: text(ours, |b| format!("{b:.1} B")),
            goal: "<= 48 B (aim 30)".to_owned(),
            verdict: Verdict::of(ours.map(|b| b <= 48.0)),
        });
    }
    rows.push(own_row(
        n,
        S,
        "get, 2 threads against 1",
        ("memory-2t", "get"),
        (one, "get"),
        1.8,
    ));
    rows.push(own_row(
        n,
        S,
        "insert, 2 threads against 1",
        ("memory-2t", "insert"),
        (one, "insert"),
        1.6,
    ));
    rows.push(rate_row(
        n,
        S,
        "get, 2 threads",
        ("memory-2t", "get"),
        "congee",
        0.8,
    ));
    rows.push(rate_row(
        n,
        S,
        "insert, 2 threads",
        ("memory-2t", "insert"),
        "congee",
        0.7,
    ));
    rows
}

fn durability_rows(n: &Numbers<'_>) -> Vec<Row> {
    const S: &str = "durability";
    let mut rows = Vec::new();
    for threads in [1, 2] {
        let at = format!("durability-buffered-{threads}t");
        let base = format!("durability-none-{threads}t");
        let work = format!("insert, Buffered against None, {threads} thread(s)");
        rows.push(own_row(
            n,
            S,
            &work,
            (&at, "insert"),
            (&base, "insert"),
            0.8,
        ));
    }
    for threads in [1, 16] {
        let at = format!("durability-sync-{threads}t");
        for peer in ["fjall", "rocksdb", "redb", "lmdb"] {
            let work = format!("insert, Sync, {threads} thread(s)");
            rows.push(rate_row(n, S, &work, (&at, "insert"), peer, 1.0));
        }
    }
    rows
}

fn larger_rows(n: &Numbers<'_>) -> Vec<Row> {
    const S: &str = "larger than memory";
    const AT: &str = "larger";
    let mut rows = vec![rate_row(
        n,
        S,
        "load, log off",
        (AT, "load"),
        "rocksdb",
        1.2,
    )];
    rows.push(settled_load_row(n, S));
    rows.extend(
        ["bf-tree", "fjall", "redb", "lmdb"]
            .map(|p| rate_row(n, S, "load, log off", (AT, "load"), p, 1.0)),
    );
    rows.push(level0_row(n, S));
    rows.push(resident_row(n, S));
    rows.push(absolute_rate(
        n,
        S,
        "get, working set",
        "get-set",
        2e6,
        ">= 2 M/s (aim 5)",
    ));
    rows.push(best_peer_row(n, S, "get, working set", "get-set", 10.0));
    rows.push(best_peer_row(n, S, "get, zipf 0.99", "get-zipf", 1.6));
    rows.push(own_row(
        n,
        S,
        "multi_get of 64 cold keys against get",
        (AT, "multi-get-cold"),
        (AT, "get-cold"),
        2.0,
    ));
    rows.push(own_row(
        n,
        S,
        "multi_get of 64 by zipf against get",
        (AT, "multi-get-zipf"),
        (AT, "get-zipf"),
        2.0,
    ));
    rows.push(absent_row(
        n,
        "in memory",
        "absent, no mount",
        "memory-1t",
        0.001,
        "no I/O",
    ));
    rows.push(absent_row(
        n,
        S,
        "absent, under a mount",
        AT,
        0.05,
        "no data block but false positives",
    ));
    rows.push(io_row(n, S, "load: bytes written per byte given", |p| {
        p.write_amplification()
    }));
    rows
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
            r.phases
                .iter()
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
    let died = n
        .results
        .iter()
        .any(|r| ran(r) && matches!(r.outcome, Outcome::Died(_)));
    let peers = CORE_DISK_PEERS
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
        measured: if died {
            "died of it".to_owned()
        } else {
            text(ratio(ours, budget), |r| format!("{r:.2} x budget"))
        },
        goal: format!("<= {}", text(limit, bytes)),
        verdict: Verdict::of(ours.zip(limit).map(|(o, l)| !died && o <= l)),
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
    let rates = CORE_DISK_PEERS
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
    of: impl Fn(&PhaseResult) -> Option<f64>,
) -> Row {
    let value = |who: &str| n.value("larger", who, "load", &of);
    let peers = CORE_DISK_PEERS
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

fn latency_rows(n: &Numbers<'_>) -> Vec<Row> {
    const S: &str = "latency, mixed";
    const LONGEST_PAUSE_US: f64 = 100_000.0;
    let mut rows = Vec::new();
    for kind in ["get", "insert"] {
        let at = |who: &str, of: fn(&crate::measure::LatencySummary) -> f64| {
            n.value("larger", who, "mixed", |p| p.latency.get(kind).map(of))
        };
        for (name, of) in [
            (
                "p50",
                (|l| l.p50_us) as fn(&crate::measure::LatencySummary) -> f64,
            ),
            ("p99", |l| l.p99_us),
            ("p99.9", |l| l.p999_us),
            ("max", |l| l.max_us),
        ] {
            let (ours, theirs) = (at(OURS, of), at("rocksdb", of));
            let has_goal = name == "p99.9" || name == "max";
            let holds = match name {
                "max" => ours.map(|us| us <= LONGEST_PAUSE_US || theirs.is_some_and(|t| us <= t)),
                _ => ours.zip(theirs).map(|(o, t)| o <= t),
            };
            rows.push(Row {
                section: S.to_owned(),
                work: format!("{kind} {name}"),
                ours: text(ours, micros),
                against: format!("rocksdb {}", text(theirs, micros)),
                measured: text(ratio(ours, theirs), |r| format!("{r:.2} x")),
                goal: match name {
                    "max" => "not worse, or <= 100 ms".to_owned(),
                    "p99.9" => "not worse".to_owned(),
                    _ => String::new(),
                },
                verdict: if has_goal {
                    Verdict::of(holds)
                } else {
                    Verdict::Info
                },
            });
        }
    }
    rows
}

fn replay_rows(n: &Numbers<'_>) -> Vec<Row> {
    const S: &str = "opening";
    let replayed = |who: &str| {
        let records = n.value("replay-crash", who, "insert", |p| Some(p.done as f64))?;
        let seconds = n.value("replay-open", who, "open", |p| Some(p.seconds))?;
        Some(records / seconds.max(1e-6))
    };
    let reopened = |who: &str| n.value("larger", who, "reopen", |p| Some(p.seconds));
    let (ours, open) = (replayed(OURS), reopened(OURS));
    vec![
        Row {
            section: S.to_owned(),
            work: "replay of the log".to_owned(),
            ours: text(ours, rate),
            against: format!(
                "rocksdb {}, fjall {}",
                text(replayed("rocksdb"), rate),
                text(replayed("fjall"), rate)
            ),
            measured: text(ours, rate),
            goal: ">= 500 k records/s".to_owned(),
            verdict: Verdict::of(ours.map(|r| r >= 500e3)),
        },
        Row {
            section: S.to_owned(),
            work: "open after a clean close".to_owned(),
            ours: text(open, |s| micros(s * 1e6)),
            against: format!("rocksdb {}", text(reopened("rocksdb"), |s| micros(s * 1e6))),
            measured: text(open, |s| micros(s * 1e6)),
            goal: "< 1 s".to_owned(),
            verdict: Verdict::of(open.map(|s| s < 1.0)),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(scenario: &str, contender: &str, phase: &str, done: u64, seconds: f64) -> RunResult {
        RunResult {
            scenario: scenario.to_owned(),
            contender: contender.to_owned(),
            repeat: 0,
            budget: 0,
            memory_limit: None,
            durability: String::new(),
            page_cache: String::new(),
            seed: 0,
            outcome: Outcome::Finished,
            phases: vec![PhaseResult {
                name: phase.to_owned(),
                done,
                seconds,
                ..PhaseResult::default()
            }],
            parameters: Default::default(),
        }
    }

    fn verdict(rows: &[Row], work: &str, peer: &str) -> Verdict {
        rows.iter()
            .find(|r| r.work == work && r.against.starts_with(peer))
            .unwrap()
            .verdict
    }

    #[test]
    fn a_ratio_below_its_goal_is_missed_and_one_without_a_peer_is_open() {
        let results = vec![
            run("memory-1t", "indexy", "get", 100, 1.0),
            run("memory-1t", "congee", "get", 120, 1.0),
            run("memory-1t", "btreemap", "get", 99, 1.0),
        ];
        let rows = core_rows(&results);
        assert_eq!(verdict(&rows, "get, 1 thread", "congee"), Verdict::Met);
        assert_eq!(verdict(&rows, "get, 1 thread", "btreemap"), Verdict::Missed);
        assert_eq!(verdict(&rows, "get, 1 thread", "skiplist"), Verdict::Open);
    }

    #[test]
    fn repetitions_count_by_their_median() {
        let mut results: Vec<_> = [1.0, 10.0, 2.0]
            .map(|s| run("memory-1t", "indexy", "get", 100, s))
            .into();
        results.push(run("memory-1t", "congee", "get", 100, 2.0));
        let rows = core_rows(&results);
        let row = rows.iter().find(|r| r.work == "get, 1 thread").unwrap();
        assert_eq!(row.measured, "1.00 x");
    }
}
