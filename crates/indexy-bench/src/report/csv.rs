//! One line per phase, for spreadsheets.

use super::table::remark;
use crate::measure::{PhaseResult, RunResult, Tick};
use std::fmt::Write as _;

const HEAD: &str = "scenario,contender,repeat,durability,budget_bytes,memory_limit_bytes,page_cache,outcome,phase,x,threads,asked,done,found,seconds,ops_per_second,ops_1s_p5,ops_1s_p50,ops_1s_p95,partial,\
operation,latency_count,mean_us,p50_us,p95_us,p99_us,p999_us,max_us,resident_bytes,peak_resident_bytes,accounted_bytes,accounted_peak_bytes,\
device_read_bytes,device_written_bytes,read_calls,write_calls,payload_written_bytes,write_amplification,disk_bytes,user_cpu_seconds,system_cpu_seconds";

/// All runs as CSV; a phase with several kinds of operations has a line for each.
pub fn csv_text(results: &[RunResult]) -> String {
    let mut text = format!("{HEAD}\n");
    for run in results {
        for phase in &run.phases {
            if phase.latency.is_empty() {
                line(&mut text, run, phase, "", &Default::default());
            }
            for (kind, latency) in &phase.latency {
                line(&mut text, run, phase, kind, latency);
            }
        }
        if run.phases.is_empty() {
            line(
                &mut text,
                run,
                &PhaseResult::default(),
                "",
                &Default::default(),
            );
        }
    }
    text
}

fn line(
    text: &mut String,
    run: &RunResult,
    p: &PhaseResult,
    kind: &str,
    l: &crate::measure::LatencySummary,
) {
    let optional = |n: Option<u64>| n.map_or_else(String::new, |n| n.to_string());
    let steadiness = p.steadiness(|t| t.ops).map_or_else(
        || ",,".to_owned(),
        |s| format!("{:.1},{:.1},{:.1}", s.p5, s.p50, s.p95),
    );
    let outcome = remark(&run.outcome);
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{:.6},{:.1},{},{},",
        quoted(&run.scenario),
        quoted(&run.contender),
        run.repeat,
        run.durability,
        run.budget,
        optional(run.memory_limit),
        quoted(&run.page_cache),
        quoted(if outcome.is_empty() {
            "finished"
        } else {
            &outcome
        }),
        quoted(&p.name),
        p.x.map_or_else(String::new, |x| x.to_string()),
        p.threads,
        p.asked,
        p.done,
        p.found,
        p.seconds,
        p.rate(),
        steadiness,
        p.partial,
    );
    let _ = write!(
        text,
        "{kind},{},{:.3},{:.3},{:.3},{:.3},{:.3},{:.3},",
        l.count, l.mean_us, l.p50_us, l.p95_us, l.p99_us, l.p999_us, l.max_us
    );
    let _ = writeln!(
        text,
        "{},{},{},{},{},{},{},{},{},{},{},{:.2},{:.2}",
        p.resident(),
        p.peak_resident(),
        optional(p.accounted),
        optional(p.accounted_peak),
        p.io.device_read,
        p.io.device_written,
        p.io.read_calls,
        p.io.write_calls,
        p.payload_written,
        p.write_amplification()
            .map_or_else(String::new, |w| format!("{w:.3}")),
        p.disk,
        p.cpu.user,
        p.cpu.system
    );
}

const SERIES_HEAD: &str = "scenario,contender,repeat,phase,seconds,ops,ops_per_second,p50_us,p99_us,p999_us,max_us,resident_bytes,accounted_bytes,\
device_read_bytes,device_written_bytes,cpu_seconds,new_order,payment,order_status,delivery,stock_level";

/// Every phase over time, a line per tick. Counts, bytes and CPU are since the beginning of the phase; rate and latencies since the last tick.
pub fn series_text(results: &[RunResult]) -> String {
    let mut text = format!("{SERIES_HEAD}\n");
    for run in results {
        for phase in &run.phases {
            for pair in phase.series.windows(2) {
                moment(&mut text, run, phase, &pair[0], &pair[1]);
            }
        }
    }
    text
}

fn moment(text: &mut String, run: &RunResult, phase: &PhaseResult, last: &Tick, now: &Tick) {
    let seconds = now.at - last.at;
    let rate = if seconds > 0.0 {
        now.ops.saturating_sub(last.ops) as f64 / seconds
    } else {
        0.0
    };
    let latency = now.latency.map_or_else(
        || ",,,".to_owned(),
        |l| {
            format!(
                "{:.3},{:.3},{:.3},{:.3}",
                l.p50_us, l.p99_us, l.p999_us, l.max_us
            )
        },
    );
    let transactions = now
        .transactions
        .map_or_else(|| ",,,,".to_owned(), |n| n.map(|n| n.to_string()).join(","));
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{},{},{},{},{:.3},{},{rate:.1},{latency},{},{},{},{},{:.2},{transactions}",
        quoted(&run.scenario),
        quoted(&run.contender),
        run.repeat,
        quoted(&phase.name),
        now.at,
        now.ops,
        now.resident,
        now.accounted,
        now.read,
        now.written,
        now.cpu,
    );
}

/// A field, in quotes if it needs them.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
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
            contender: "b".into(),
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
        assert_eq!(counts(&text)[0], counts(&text)[1]);
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
            fields.len() == 3 && fields.iter().all(|f| *f == fields[0]),
            "{series}"
        );
        assert!(series.contains(",5,5.0,"));
    }

    #[test]
    fn fields_with_commas_are_quoted() {
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
