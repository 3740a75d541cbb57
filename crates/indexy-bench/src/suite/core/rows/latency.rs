//! Latencies while background work runs, and the time to open.

use super::row::{Numbers, OURS, Row, Verdict, ratio, text};
use crate::format::{micros, rate};
use crate::measure::LatencySummary;

pub(super) fn latency_rows(n: &Numbers<'_>) -> Vec<Row> {
    const S: &str = "latency, mixed";
    const LONGEST_PAUSE_US: f64 = 100_000.0;
    let mut rows = Vec::new();
    for kind in ["get", "insert"] {
        let at = |who: &str, of: fn(&LatencySummary) -> f64| {
            n.value("larger", who, "mixed", |p| p.latency.get(kind).map(of))
        };
        for (name, of) in [
            ("p50", (|l| l.p50_us) as fn(&LatencySummary) -> f64),
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

pub(super) fn replay_rows(n: &Numbers<'_>) -> Vec<Row> {
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
