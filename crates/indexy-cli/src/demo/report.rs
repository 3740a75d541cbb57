//! The report of the demo: one HTML file that needs nothing else, and the same figures as a table
//! for the terminal. The page is `report.html`, a template.

use super::{
    charts::{Measured, hits},
    generate::RECORD_BYTES,
    sample::{PhaseResult, Seen},
};
use anyhow::Context as _;
use indexy_report::{
    size::{self, percent},
    text_table,
};
use minijinja::{Environment, value::Serde};
use serde::Serialize;
use std::{fs, path::Path, time::Duration};

/// Charts are drawn twice, for wide and for narrow windows, so that their text keeps its size.
const WIDE: (f64, f64) = (900.0, 270.0);
const NARROW: (f64, f64) = (400.0, 270.0);
const STYLE: &str = include_str!("report.css");
const TEMPLATE: &str = include_str!("report.html");
/// Ends in what switches the escaping of values on.
const NAME: &str = "report.html";
/// What a process may have resident, less what was before the open: a factor of the budget, and a
/// rest.
const RESIDENT_FACTOR: f64 = 1.10;
const RESIDENT_SLACK: u64 = 32 << 20;

const HEADS: [&str; 9] = [
    "phase",
    "time",
    "operations",
    "rate",
    "hits",
    "median",
    "99 %",
    "counted",
    "resident",
];
/// The columns that a terminal has no room for.
const NOT_ON_TERMINAL: [usize; 2] = [2, 7];

/// What the report says.
#[derive(Debug)]
pub struct Report {
    pub seen: Seen,
    pub budget: u64,
    pub data: u64,
    pub seconds: f64,
    /// Machine, file system and date, as name and value.
    pub circumstances: Vec<(&'static str, String)>,
    /// In a sentence.
    pub recovery: String,
}

/// What the template shows.
#[derive(Serialize)]
struct Page<'a> {
    style: &'static str,
    data: String,
    budget: String,
    times_budget: String,
    elapsed: String,
    tiles: Vec<Tile>,
    figures: Vec<Figure>,
    heads: [&'static str; HEADS.len()],
    rows: Vec<Row<'a>>,
    circumstances: &'a [(&'static str, String)],
    record_bytes: u64,
}

#[derive(Serialize)]
struct Tile {
    name: &'static str,
    value: String,
    note: String,
}

#[derive(Serialize)]
struct Figure {
    title: String,
    note: &'static str,
    /// The chart as SVG, for both widths.
    wide: String,
    narrow: String,
}

#[derive(Serialize)]
struct Row<'a> {
    cells: [String; HEADS.len()],
    outcome: &'a str,
}

impl Report {
    /// Writes the HTML file.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        fs::write(path, self.html()?).with_context(|| format!("cannot write {}", path.display()))
    }

    /// The phases as a table of text, for 80 columns.
    pub fn table(&self) -> String {
        let shown = |cells: &[String; HEADS.len()]| -> Vec<String> {
            let cells = cells.iter().enumerate();
            let cells = cells.filter(|(n, _)| !NOT_ON_TERMINAL.contains(n));
            cells.map(|(_, cell)| cell.clone()).collect()
        };
        let rows = self.rows();
        let rows: Vec<_> = rows.iter().map(|row| shown(&row.cells)).collect();
        text_table(&shown(&HEADS.map(String::from)), &rows, 1)
    }

    /// How much memory was resident, in a sentence.
    pub fn resident(&self) -> String {
        format!(
            "resident memory: at most {} above the {} before the open; {} are allowed",
            size::bytes(self.seen.peak_resident),
            size::bytes(self.seen.resident_before),
            size::bytes(self.resident_limit())
        )
    }

    fn html(&self) -> anyhow::Result<String> {
        let page = Page {
            style: STYLE,
            data: size::bytes(self.data),
            budget: size::bytes(self.budget),
            times_budget: format!("{:.1}", self.data as f64 / self.budget.max(1) as f64),
            elapsed: size::duration(Duration::from_secs_f64(self.seconds)),
            tiles: self.tiles(),
            figures: self.figures(),
            heads: HEADS,
            rows: self.rows(),
            circumstances: &self.circumstances,
            record_bytes: RECORD_BYTES,
        };
        let mut environment = Environment::new();
        environment.add_template(NAME, TEMPLATE)?;
        let html = environment.get_template(NAME)?.render(Serde(page))?;
        // The last line end of a template is not part of it.
        Ok(html + "\n")
    }

    fn resident_limit(&self) -> u64 {
        (self.budget as f64 * RESIDENT_FACTOR) as u64 + RESIDENT_SLACK
    }

    fn peak_counted(&self) -> u64 {
        let phases = self.seen.phases.iter();
        phases.map(|phase| phase.peak_memory).max().unwrap_or(0)
    }

    fn rows(&self) -> Vec<Row<'_>> {
        let row = |(n, phase): (usize, &'_ PhaseResult)| cells(n, phase);
        let phases = self.seen.phases.iter();
        let rows = phases.clone().enumerate().map(row).zip(phases);
        rows.map(|(cells, phase)| Row {
            cells,
            outcome: &phase.outcome,
        })
        .collect()
    }

    fn tiles(&self) -> Vec<Tile> {
        let share = |part: u64| percent(part as f64, self.budget as f64);
        let mut tiles = vec![
            Tile {
                name: "data",
                value: size::bytes(self.data),
                note: format!("in a budget of {}", size::bytes(self.budget)),
            },
            Tile {
                name: "memory counted, at most",
                value: size::bytes(self.peak_counted()),
                note: format!("{} of the budget", share(self.peak_counted())),
            },
            Tile {
                name: "memory resident, at most",
                value: size::bytes(self.seen.peak_resident),
                note: format!(
                    "above {} before the open; allowed: {}",
                    size::bytes(self.seen.resident_before),
                    size::bytes(self.resident_limit())
                ),
            },
        ];
        for phase in &self.seen.phases {
            if let Some(value) = hits(phase) {
                tiles.push(Tile {
                    name: "reads from memory",
                    value,
                    note: phase.name.into(),
                });
            }
        }
        tiles.push(Tile {
            name: "lost by the kill",
            value: "0".into(),
            note: self.recovery.clone(),
        });
        tiles
    }

    fn figures(&self) -> Vec<Figure> {
        let measured = Measured {
            seen: &self.seen,
            budget: self.budget,
            resident_limit: self.resident_limit(),
            seconds: self.seconds,
        };
        let figure = |chart: super::charts::Chart| {
            let mut plot = chart.plot;
            let mut draw = |size| {
                plot.size = size;
                plot.to_svg()
            };
            let (wide, narrow) = (draw(WIDE), draw(NARROW));
            Figure {
                title: plot.title,
                note: chart.note,
                wide,
                narrow,
            }
        };
        measured.charts().into_iter().map(figure).collect()
    }
}

fn cells(n: usize, phase: &PhaseResult) -> [String; HEADS.len()] {
    let elapsed = phase.elapsed();
    let latency = |at: usize| {
        phase
            .latency
            .map_or_else(String::new, |l| size::duration(Duration::from_nanos(l[at])))
    };
    [
        format!("{} {}", n + 1, phase.name),
        size::duration(elapsed),
        size::count(phase.operations),
        size::rate(phase.operations, elapsed),
        hits(phase).unwrap_or_default(),
        latency(0),
        latency(1),
        size::bytes(phase.peak_memory),
        phase.peak_resident.map_or_else(String::new, size::bytes),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let phase = |name, latency: Option<[u64; 3]>| PhaseResult {
            name,
            began: 0.0,
            ended: 2.0,
            operations: 1000,
            hits: 3,
            misses: 1,
            peak_memory: 1 << 20,
            peak_resident: latency.map(|_| 3 << 20),
            latency,
            outcome: "a < b".into(),
        };
        Report {
            seen: Seen {
                samples: vec![],
                phases: vec![
                    phase("reads", Some([900, 20_000, 3_000_000])),
                    phase("scans", None),
                ],
                peak_resident: 3 << 20,
                resident_before: 5 << 20,
            },
            budget: 20 << 20,
            data: 200 << 20,
            seconds: 2.0,
            circumstances: vec![("processor", "2 <cores>".into())],
            recovery: "5 of 5".into(),
        }
    }

    #[test]
    fn html_needs_nothing_else() {
        let html = report().html().unwrap();
        let html = html.replace("http://www.w3.org/2000/svg", "");
        for outside in ["<script", "http:", "https:", "<link", "@import", "url("] {
            assert!(!html.contains(outside), "{outside}");
        }
        assert!(html.contains("a &lt; b") && html.contains("2 &lt;cores&gt;"));
        assert_eq!(html.matches("<svg").count(), html.matches("</svg>").count());
        assert!(!html.contains("{{") && html.contains("54.0 MiB"));
    }

    #[test]
    fn the_table_fits_and_lines_up() {
        let table = report().table();
        let widths: Vec<_> = table.lines().map(|line| line.chars().count()).collect();
        assert!(widths[..3].windows(2).all(|w| w[0] == w[1]), "{table}");
        assert!(widths.iter().all(|w| *w <= 80), "{table}");
        assert_eq!(table.matches("75 %").count(), 1, "{table}");
        assert!(report().resident().contains("5.00 MiB before"));
    }
}
