//! One self-contained HTML file: no network, no script. The page is `report.html`, a template.

use super::{
    document::Document,
    outcomes::{outcome_table, skew_plot},
    table::{Table, detail_table, goal_table},
    tpcc::{transaction_plots, transaction_table},
};
use crate::{
    format,
    measure::RunResult,
    suite::figures::{FIGURES, Figure},
};
use indexy_report::chart::{Plot, Series};
use minijinja::{Environment, value::Serde};
use serde::Serialize;

const TEMPLATE: &str = include_str!("report.html");
/// Ends in what switches the escaping of values on.
const NAME: &str = "report.html";
const STYLE: &str = include_str!("report.css");
/// Phases with fewer ticks are too short to have a course of their own.
const LEAST_TICKS: usize = 12;
const MIB: f64 = 1048576.0;

/// What the template shows.
#[derive(Default, Serialize)]
pub(crate) struct Page<'a> {
    pub kind: &'a str,
    pub interrupted: bool,
    /// Rows above everything else.
    pub header: Vec<(&'static str, String)>,
    pub goals: Option<Table>,
    pub sections: Vec<Section>,
}

/// A figure of the paper, or a scenario of its own.
#[derive(Default, Serialize)]
pub(crate) struct Section {
    pub title: String,
    /// The paper's claim; empty for a scenario.
    pub claim: String,
    pub findings: Vec<String>,
    /// Charts as SVG.
    pub charts: Vec<String>,
    /// Tables of figures are folded.
    pub tables: Vec<Table>,
}

/// The report of `document`.
pub fn html_text(document: &Document) -> String {
    let machine = &document.machine;
    let header = [
        ("started (UTC)", document.started.clone()),
        ("command", document.command.join(" ")),
        ("commit", document.commit.clone()),
        (
            "processor",
            format!("{}, {} cores", machine.processor, machine.cores),
        ),
        ("memory", format::bytes(machine.memory as f64)),
        ("kernel", machine.kernel.clone()),
        ("file system", machine.file_system.clone()),
    ];
    page_text(&Page {
        kind: &document.kind,
        interrupted: document.interrupted,
        header: header.into(),
        goals: (!document.rows.is_empty()).then(|| goal_table(&document.rows)),
        sections: sections(document),
    })
}

/// The page as HTML.
pub(crate) fn page_text(page: &Page<'_>) -> String {
    #[derive(Serialize)]
    struct Styled<'a> {
        style: &'static str,
        #[serde(flatten)]
        page: &'a Page<'a>,
    }
    let page = Styled { style: STYLE, page };
    let mut environment = Environment::new();
    environment
        .add_template(NAME, TEMPLATE)
        .expect("the template is part of the program");
    let page = environment
        .get_template(NAME)
        .and_then(|template| template.render(Serde(page)));
    // The last line end of a template is not part of it.
    page.expect("every value of the template is given") + "\n"
}

/// The figures that were run, then what no figure shows.
fn sections(document: &Document) -> Vec<Section> {
    let mut sections = Vec::new();
    let mut drawn = Vec::new();
    for figure in FIGURES {
        let of = figure.of(&document.results);
        if !of.is_empty() {
            sections.push(figure_section(figure, &of));
            drawn.extend(of.into_iter().map(|r| r.scenario));
        }
    }
    let others = document.scenarios();
    let others = others.iter().filter(|scenario| !drawn.contains(scenario));
    sections.extend(skew_plot(&document.results).map(|plot| Section {
        title: "by skew".to_owned(),
        charts: vec![plot.to_svg()],
        ..Section::default()
    }));
    sections.extend(others.map(|scenario| scenario_section(scenario, &document.results)));
    sections
}

fn tables(scenario: &str, results: &[RunResult]) -> impl Iterator<Item = Table> {
    let details = detail_table(scenario, results);
    [details]
        .into_iter()
        .chain(transaction_table(scenario, results))
        .chain(outcome_table(scenario, results))
}

fn figure_section(figure: &Figure, results: &[RunResult]) -> Section {
    let mut scenarios: Vec<&str> = results.iter().map(|r| r.scenario.as_str()).collect();
    scenarios.dedup();
    Section {
        title: figure.title.to_owned(),
        claim: figure.claim.to_owned(),
        findings: figure.findings(results),
        charts: figure.plots(results).iter().map(Plot::to_svg).collect(),
        tables: scenarios
            .into_iter()
            .flat_map(|scenario| tables(scenario, results))
            .collect(),
    }
}

fn scenario_section(scenario: &str, results: &[RunResult]) -> Section {
    let of: Vec<&RunResult> = results
        .iter()
        .filter(|r| r.scenario == scenario && r.repeat == 0)
        .collect();
    let mut phases: Vec<&str> = Vec::new();
    let long = |p: &&crate::measure::PhaseResult| p.series.len() >= LEAST_TICKS && p.done > 0;
    for phase in of.iter().flat_map(|r| &r.phases).filter(long) {
        if !phases.contains(&phase.name.as_str()) {
            phases.push(&phase.name);
        }
    }
    let mut plots: Vec<Plot> = phases
        .into_iter()
        .flat_map(|phase| phase_plots(&of, phase))
        .collect();
    plots.extend(transaction_plots(&of));
    Section {
        title: scenario.to_owned(),
        claim: String::new(),
        findings: Vec::new(),
        charts: plots.iter().map(Plot::to_svg).collect(),
        tables: tables(scenario, results).collect(),
    }
}

/// Throughput, memory and latency of one phase over time.
fn phase_plots(runs: &[&RunResult], phase: &str) -> [Plot; 3] {
    let throughput = over_time(runs, phase, "operations/s", |p| p.throughput());
    let memory = over_time(runs, phase, "resident, MiB", |p| {
        p.series
            .iter()
            .map(|t| (t.at, t.resident as f64 / MIB))
            .collect()
    });
    let mut slow = over_time(runs, phase, "p99 latency, us", |p| {
        let timed = p
            .series
            .iter()
            .filter_map(|t| Some((t.at, t.latency?.p99_us)));
        timed.collect()
    });
    slow.log_y = true;
    [throughput, memory, slow]
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
