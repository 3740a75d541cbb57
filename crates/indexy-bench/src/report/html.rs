//! One self-contained HTML file: no network, no script.

use super::{
    Document, detail_table, format, goal_table,
    svg::{Plot, Series, escape},
    table::Table,
    transaction_plots, transaction_table,
};
use crate::{
    measure::RunResult,
    suite::figures::{FIGURES, Figure},
};
use std::fmt::Write as _;

const STYLE: &str = "body{font:15px/1.5 sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;color:#222}\
table{border-collapse:collapse;font-size:13px;display:block;overflow-x:auto}\
th,td{border:1px solid #ddd;padding:3px 8px;text-align:left;white-space:nowrap}th{background:#f4f4f4}\
.missed{background:#fde2d8}.met{background:#e2f4e8}.warn{background:#fff3cd;padding:.6em 1em;border:1px solid #e6c860}\
svg{max-width:760px;display:block;margin:1em 0}blockquote{border-left:4px solid #ccc;margin:0;padding:0 1em;color:#555}";

/// The report of `document`.
pub fn html_text(document: &Document) -> String {
    let mut out = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>indexy-bench {0}</title><style>{STYLE}</style></head><body><h1>indexy-bench {0}</h1>",
        escape(&document.kind)
    );
    header(&mut out, document);
    if !document.rows.is_empty() {
        table(&mut out, &goal_table(&document.rows));
    }
    let mut drawn = Vec::new();
    for figure in FIGURES {
        let of = figure.of(&document.results);
        if !of.is_empty() {
            figure_section(&mut out, figure, &of);
            drawn.extend(of.into_iter().map(|r| r.scenario));
        }
    }
    for scenario in document.scenarios() {
        if !drawn.contains(&scenario) {
            scenario_section(&mut out, &scenario, &document.results);
        }
    }
    out.push_str("</body></html>\n");
    out
}

// Writing to a string cannot fail, here and below.

fn header(out: &mut String, d: &Document) {
    let m = &d.machine;
    let lines = [
        ("started (UTC)", d.started.clone()),
        ("command", d.command.join(" ")),
        ("commit", d.commit.clone()),
        ("processor", format!("{}, {} cores", m.processor, m.cores)),
        ("memory", format::bytes(m.memory as f64)),
        ("kernel", m.kernel.clone()),
        ("file system", m.file_system.clone()),
    ];
    out.push_str("<table>");
    for (name, value) in lines {
        let _ = write!(out, "<tr><th>{name}</th><td>{}</td></tr>", escape(&value));
    }
    out.push_str("</table>");
    if d.interrupted {
        out.push_str("<p class=\"warn\">This run was interrupted: the results are partial.</p>");
    }
}

fn table(out: &mut String, table: &Table) {
    let _ = write!(out, "<h2>{}</h2>", escape(&table.title));
    bare_table(out, table);
}

fn bare_table(out: &mut String, table: &Table) {
    out.push_str("<table><tr>");
    for head in &table.heads {
        let _ = write!(out, "<th>{}</th>", escape(head));
    }
    out.push_str("</tr>");
    for row in &table.rows {
        let class = match row.last().map(String::as_str) {
            Some("MISSED") => " class=\"missed\"",
            Some("met") => " class=\"met\"",
            _ => "",
        };
        let _ = write!(out, "<tr{class}>");
        for cell in row {
            let _ = write!(out, "<td>{}</td>", escape(cell));
        }
        out.push_str("</tr>");
    }
    out.push_str("</table>");
    for note in &table.notes {
        let _ = write!(out, "<p class=\"warn\">{}</p>", escape(note));
    }
}

fn figure_section(out: &mut String, figure: &Figure, results: &[RunResult]) {
    let _ = write!(
        out,
        "<h2>{}</h2><p>The paper:</p><blockquote>{}</blockquote>",
        escape(figure.title),
        escape(figure.claim)
    );
    let findings = figure.findings(results);
    if !findings.is_empty() {
        out.push_str("<p>Measured here:</p><ul>");
        for finding in findings {
            let _ = write!(out, "<li>{}</li>", escape(&finding));
        }
        out.push_str("</ul>");
    }
    for plot in figure.plots(results) {
        out.push_str(&plot.to_svg());
    }
    let mut scenarios: Vec<&str> = results.iter().map(|r| r.scenario.as_str()).collect();
    scenarios.dedup();
    for scenario in scenarios {
        let _ = write!(
            out,
            "<details><summary>all phases of {}</summary>",
            escape(scenario)
        );
        bare_table(out, &detail_table(scenario, results));
        if let Some(transactions) = transaction_table(scenario, results) {
            bare_table(out, &transactions);
        }
        out.push_str("</details>");
    }
}

fn scenario_section(out: &mut String, scenario: &str, results: &[RunResult]) {
    let details = detail_table(scenario, results);
    table(out, &details);
    if let Some(transactions) = transaction_table(scenario, results) {
        table(out, &transactions);
    }
    let of: Vec<&RunResult> = results
        .iter()
        .filter(|r| r.scenario == scenario && r.repeat == 0)
        .collect();
    // Phases that took long enough to have a course of their own.
    const LEAST_TICKS: usize = 12;
    let mut phases: Vec<&str> = Vec::new();
    for phase in of
        .iter()
        .flat_map(|r| &r.phases)
        .filter(|p| p.series.len() >= LEAST_TICKS && p.done > 0)
    {
        if !phases.contains(&phase.name.as_str()) {
            phases.push(&phase.name);
        }
    }
    for phase in phases {
        out.push_str(&over_time(&of, phase, "operations/s", |p| p.throughput()).to_svg());
        const MIB: f64 = 1048576.0;
        let memory = over_time(&of, phase, "resident, MiB", |p| {
            p.series
                .iter()
                .map(|t| (t.at, t.resident as f64 / MIB))
                .collect()
        });
        out.push_str(&memory.to_svg());
        let mut slow = over_time(&of, phase, "p99 latency, us", |p| {
            let timed = p
                .series
                .iter()
                .filter_map(|t| Some((t.at, t.latency?.p99_us)));
            timed.collect()
        });
        slow.log_y = true;
        out.push_str(&slow.to_svg());
    }
    for plot in transaction_plots(&of) {
        out.push_str(&plot.to_svg());
    }
}

fn over_time(
    runs: &[&RunResult],
    phase: &str,
    what: &str,
    points: impl Fn(&crate::measure::PhaseResult) -> Vec<(f64, f64)>,
) -> Plot {
    let series = runs.iter().filter_map(|r| {
        Some(Series {
            name: r.contender.clone(),
            points: points(r.phase(phase)?),
            dashed: false,
        })
    });
    Plot {
        title: format!("{phase}: {what} over time"),
        x_label: "seconds".to_owned(),
        y_label: what.to_owned(),
        series: series.collect(),
        ..Plot::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_run_says_so_and_nothing_points_outside() {
        let mut document = Document::begin("core", std::path::Path::new("/"));
        document.interrupted = true;
        let html = html_text(&document);
        assert!(html.contains("partial"));
        assert!(!html.contains("<script") && !html.contains("src=") && !html.contains("href="));
    }
}
