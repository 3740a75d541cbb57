//! CSV for spreadsheets: a line per phase and kind of operation, and a line per moment.

use super::table::remark;
use crate::measure::{LatencySummary, PhaseResult, RunResult, Tick};
use serde::Serialize;

/// One kind of operation of one phase. The names of the fields are the head of the file.
#[derive(Serialize)]
struct PhaseLine<'a> {
    scenario: &'a str,
    contender: &'a str,
    repeat: usize,
    durability: &'a str,
    budget_bytes: u64,
    memory_limit_bytes: Option<u64>,
    page_cache: &'a str,
    outcome: String,
    phase: &'a str,
    x: Option<f64>,
    threads: usize,
    asked: u64,
    done: u64,
    found: u64,
    seconds: f64,
    ops_per_second: f64,
    ops_1s_p5: Option<f64>,
    ops_1s_p50: Option<f64>,
    ops_1s_p95: Option<f64>,
    partial: bool,
    operation: &'a str,
    latency_count: u64,
    mean_us: f64,
    p50_us: f64,
    p95_us: f64,
    p99_us: f64,
    p999_us: f64,
    max_us: f64,
    resident_bytes: u64,
    peak_resident_bytes: u64,
    accounted_bytes: Option<u64>,
    accounted_peak_bytes: Option<u64>,
    device_read_bytes: u64,
    device_written_bytes: u64,
    read_calls: u64,
    write_calls: u64,
    payload_written_bytes: u64,
    write_amplification: Option<f64>,
    disk_bytes: u64,
    user_cpu_seconds: f64,
    system_cpu_seconds: f64,
}

impl<'a> PhaseLine<'a> {
    fn of(run: &'a RunResult, p: &'a PhaseResult, kind: &'a str, l: &LatencySummary) -> Self {
        let remark = remark(&run.outcome);
        let steadiness = p.steadiness(|t| t.ops);
        Self {
            scenario: &run.scenario,
            contender: &run.contender,
            repeat: run.repeat,
            durability: &run.durability,
            budget_bytes: run.budget,
            memory_limit_bytes: run.memory_limit,
            page_cache: &run.page_cache,
            outcome: if remark.is_empty() {
                "finished".to_owned()
            } else {
                remark
            },
            phase: &p.name,
            x: p.x,
            threads: p.threads,
            asked: p.asked,
            done: p.done,
            found: p.found,
            seconds: rounded(p.seconds, 6),
            ops_per_second: rounded(p.rate(), 1),
            ops_1s_p5: steadiness.as_ref().map(|s| rounded(s.p5, 1)),
            ops_1s_p50: steadiness.as_ref().map(|s| rounded(s.p50, 1)),
            ops_1s_p95: steadiness.as_ref().map(|s| rounded(s.p95, 1)),
            partial: p.partial,
            operation: kind,
            latency_count: l.count,
            mean_us: rounded(l.mean_us, 3),
            p50_us: rounded(l.p50_us, 3),
            p95_us: rounded(l.p95_us, 3),
            p99_us: rounded(l.p99_us, 3),
            p999_us: rounded(l.p999_us, 3),
            max_us: rounded(l.max_us, 3),
            resident_bytes: p.resident(),
            peak_resident_bytes: p.peak_resident(),
            accounted_bytes: p.accounted,
            accounted_peak_bytes: p.accounted_peak,
            device_read_bytes: p.io.device_read,
            device_written_bytes: p.io.device_written,
            read_calls: p.io.read_calls,
            write_calls: p.io.write_calls,
            payload_written_bytes: p.payload_written,
            write_amplification: p.write_amplification().map(|w| rounded(w, 3)),
            disk_bytes: p.disk,
            user_cpu_seconds: rounded(p.cpu.user, 2),
            system_cpu_seconds: rounded(p.cpu.system, 2),
        }
    }
}

/// All runs as CSV; a phase with several kinds of operations has a line for each.
pub fn csv_text(results: &[RunResult]) -> String {
    let (no_phase, no_latency) = (PhaseResult::default(), LatencySummary::default());
    let mut lines = Vec::new();
    for run in results {
        for phase in &run.phases {
            if phase.latency.is_empty() {
                lines.push(PhaseLine::of(run, phase, "", &no_latency));
            }
            for (kind, latency) in &phase.latency {
                lines.push(PhaseLine::of(run, phase, kind, latency));
            }
        }
        if run.phases.is_empty() {
            lines.push(PhaseLine::of(run, &no_phase, "", &no_latency));
        }
    }
    text_of(lines)
}

/// One moment of a phase. Counts, bytes and CPU are since the beginning of the phase; rate and
/// latencies since the moment before.
#[derive(Serialize)]
struct Moment<'a> {
    scenario: &'a str,
    contender: &'a str,
    repeat: usize,
    phase: &'a str,
    seconds: f64,
    ops: u64,
    ops_per_second: f64,
    p50_us: Option<f64>,
    p99_us: Option<f64>,
    p999_us: Option<f64>,
    max_us: Option<f64>,
    resident_bytes: u64,
    accounted_bytes: u64,
    device_read_bytes: u64,
    device_written_bytes: u64,
    cpu_seconds: f64,
    new_order: Option<u64>,
    payment: Option<u64>,
    order_status: Option<u64>,
    delivery: Option<u64>,
    stock_level: Option<u64>,
}

impl<'a> Moment<'a> {
    fn of(run: &'a RunResult, phase: &'a PhaseResult, last: &Tick, now: &Tick) -> Self {
        let seconds = now.at - last.at;
        let rate = if seconds > 0.0 {
            now.ops.saturating_sub(last.ops) as f64 / seconds
        } else {
            0.0
        };
        let of_kind = |kind: usize| now.transactions.map(|n| n[kind]);
        Self {
            scenario: &run.scenario,
            contender: &run.contender,
            repeat: run.repeat,
            phase: &phase.name,
            seconds: rounded(now.at, 3),
            ops: now.ops,
            ops_per_second: rounded(rate, 1),
            p50_us: now.latency.map(|l| rounded(l.p50_us, 3)),
            p99_us: now.latency.map(|l| rounded(l.p99_us, 3)),
            p999_us: now.latency.map(|l| rounded(l.p999_us, 3)),
            max_us: now.latency.map(|l| rounded(l.max_us, 3)),
            resident_bytes: now.resident,
            accounted_bytes: now.accounted,
            device_read_bytes: now.read,
            device_written_bytes: now.written,
            cpu_seconds: rounded(now.cpu, 2),
            new_order: of_kind(0),
            payment: of_kind(1),
            order_status: of_kind(2),
            delivery: of_kind(3),
            stock_level: of_kind(4),
        }
    }
}

/// Every phase over time, a line per tick.
pub fn series_text(results: &[RunResult]) -> String {
    let phases = results
        .iter()
        .flat_map(|run| run.phases.iter().map(move |phase| (run, phase)));
    let moments = phases.flat_map(|(run, phase)| {
        let pairs = phase.series.windows(2);
        pairs.map(move |pair| Moment::of(run, phase, &pair[0], &pair[1]))
    });
    text_of(moments)
}

/// Head and lines; nothing if there is no line.
fn text_of(lines: impl IntoIterator<Item = impl Serialize>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for line in lines {
        writer.serialize(line).expect("a vector takes all");
    }
    let bytes = writer.into_inner().expect("a vector takes all");
    String::from_utf8(bytes).expect("made of strings")
}

/// `value` to so many decimals: more would be noise.
fn rounded(value: f64, decimals: i32) -> f64 {
    let unit = 10f64.powi(decimals);
    (value * unit).round() / unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_as_many_fields_as_the_head() {
        let phase = PhaseResult {
            latency: [("get".to_owned(), Default::default())].into(),
            ..Default::default()
        };
        let mut run = RunResult {
            scenario: "a".into(),
            contender: "b, \"quoted\"".into(),
            repeat: 0,
            budget: 1,
            memory_limit: None,
            durability: "none".into(),
            page_cache: "x".into(),
            seed: 0,
            outcome: crate::measure::Outcome::Finished,
            phases: vec![phase],
            parameters: Default::default(),
        };
        let text = csv_text(std::slice::from_ref(&run));
        let counts =
            |text: &str| -> Vec<usize> { text.lines().map(|l| l.split(',').count()).collect() };
        // The comma in the contender's name.
        assert_eq!(counts(&text)[0] + 1, counts(&text)[1]);
        assert!(text.contains(",\"b, \"\"quoted\"\"\","), "{text}");
        let ticks = vec![
            Tick::default(),
            Tick {
                at: 1.0,
                ops: 5,
                latency: Some(Default::default()),
                transactions: Some([5, 0, 0, 0, 0]),
                ..Tick::default()
            },
            Tick::default(),
        ];
        run.phases[0].series = ticks;
        let series = series_text(&[run]);
        let fields = counts(&series);
        assert!(
            fields.len() == 3 && fields[1..].iter().all(|f| *f == fields[0] + 1),
            "{series}"
        );
        assert!(series.contains(",5,5.0,"));
    }

    #[test]
    fn decimals_that_are_noise_are_left_out() {
        assert_eq!(rounded(1.0 / 3.0, 3), 0.333);
        assert_eq!(rounded(12.0, 3).to_string(), "12");
    }
}
