//! The report of the demo: one HTML file that needs nothing else, and the same figures as a table for the terminal.

use super::{
    live::{PhaseResult, Sample, Seen},
    plot::{Band, Chart, Line, svg, text},
};
use crate::size::{self, percent};
use std::{fmt::Write as _, fs, io, path::Path, time::Duration};

/// Charts are drawn twice, for wide and for narrow windows, so that their text keeps its size.
const WIDE: (f64, f64) = (900.0, 240.0);
const NARROW: (f64, f64) = (400.0, 240.0);
const STYLE: &str = include_str!("report.css");

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

impl Report {
    /// Writes the HTML file: all of it or nothing.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        fs::write(path, self.html())
    }

    /// The phases as a table of text, for 80 columns.
    pub fn table(&self) -> String {
        let without_operations = |mut row: Vec<String>| {
            row.remove(OPERATIONS);
            row
        };
        let mut rows = vec![without_operations(HEADS.map(String::from).to_vec())];
        rows.extend(
            self.seen
                .phases
                .iter()
                .enumerate()
                .map(|(n, phase)| without_operations(cells(n, phase).to_vec())),
        );
        let widths: Vec<usize> = (0..rows[0].len())
            .map(|column| {
                rows.iter()
                    .map(|row| row[column].chars().count())
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        let mut out = String::new();
        for (n, row) in rows.iter().enumerate() {
            let mut line = format!("{:<width$}", row[0], width = widths[0]);
            for (cell, width) in row.iter().zip(&widths).skip(1) {
                let _ = write!(line, "  {cell:>width$}");
            }
            let _ = writeln!(out, "{line}");
            if n == 0 {
                let _ = writeln!(out, "{}", "-".repeat(line.chars().count()));
            }
        }
        out
    }

    fn html(&self) -> String {
        let mut out = String::new();
        let _ = write!(
            out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>IndeXY demo</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
             <h1>IndeXY: {} in a budget of {}</h1>\n<p class=\"lead\">{}</p>\n",
            size::bytes(self.data),
            size::bytes(self.budget),
            text(&self.lead())
        );
        self.tiles(&mut out);
        self.charts(&mut out);
        self.html_table(&mut out);
        self.how_measured(&mut out);
        out.push_str("</main>\n</body>\n</html>\n");
        out
    }

    fn lead(&self) -> String {
        format!(
            "An ordered key-value index took {:.1} times its memory budget in {}, was read, scanned, killed in the \
             middle of writing, reopened and checked: every record is there, every value read was the right one.",
            self.times_budget(),
            size::duration(Duration::from_secs_f64(self.seconds))
        )
    }

    fn times_budget(&self) -> f64 {
        self.data as f64 / self.budget.max(1) as f64
    }

    /// True while a phase that reads single keys was under way.
    fn reading_at(&self, seconds: f64) -> bool {
        let phases = &self.seen.phases;
        phases
            .iter()
            .any(|phase| phase.latency.is_some() && (phase.began..=phase.ended).contains(&seconds))
    }

    fn peak_memory(&self) -> u64 {
        self.seen
            .phases
            .iter()
            .map(|phase| phase.peak_memory)
            .max()
            .unwrap_or(0)
    }

    fn tiles(&self, out: &mut String) {
        let hits = self.seen.phases.iter().map(|p| p.hits).sum::<u64>() as f64;
        let misses = self.seen.phases.iter().map(|p| p.misses).sum::<u64>() as f64;
        let tiles = [
            (
                "data",
                size::bytes(self.data),
                format!("{:.1} x the budget", self.times_budget()),
            ),
            (
                "memory, at most",
                size::bytes(self.peak_memory()),
                format!(
                    "{} of the budget",
                    percent(self.peak_memory() as f64, self.budget as f64)
                ),
            ),
            (
                "hit ratio, all reads",
                percent(hits, hits + misses),
                "answered without Index Y".into(),
            ),
            ("after the kill", "0 lost".into(), self.recovery.clone()),
        ];
        out.push_str("<div class=\"tiles\">\n");
        for (name, value, note) in tiles {
            let _ = writeln!(
                out,
                "<div class=\"tile\"><span>{}</span><b>{}</b><small>{}</small></div>",
                text(name),
                text(&value),
                text(&note)
            );
        }
        out.push_str("</div>\n");
    }

    fn bands(&self) -> Vec<Band> {
        let band = |(n, phase): (usize, &PhaseResult)| Band {
            label: (n + 1).to_string(),
            title: format!("{}: {}", phase.name, phase.outcome),
            from: phase.began,
            to: phase.ended,
        };
        self.seen.phases.iter().enumerate().map(band).collect()
    }

    fn line(
        &self,
        name: &'static str,
        class: &'static str,
        value: impl Fn(&Sample) -> Option<f64>,
    ) -> Line {
        let points = self
            .seen
            .samples
            .iter()
            .map(|sample| (sample.at, value(sample)))
            .collect();
        Line {
            name,
            class,
            points,
        }
    }

    fn charts(&self, out: &mut String) {
        let bands = self.bands();
        for chart in [
            self.throughput(&bands),
            self.memory(&bands),
            self.hit_ratio(&bands),
            self.data(&bands),
        ] {
            let _ = write!(out, "<figure>\n<figcaption><b>{}</b>", text(chart.title));
            for line in &chart.lines {
                let _ = write!(
                    out,
                    " <span class=\"key {}\">{}</span>",
                    line.class,
                    text(line.name)
                );
            }
            let _ = write!(
                out,
                "</figcaption>\n<div class=\"wide\">{}</div>\n<div class=\"narrow\">{}</div>\n</figure>\n",
                svg(&chart, WIDE.0, WIDE.1),
                svg(&chart, NARROW.0, NARROW.1)
            );
        }
        out.push_str("<p class=\"note\">The numbers on top of the bands are those of the phases in the table.</p>\n");
    }

    fn throughput<'a>(&self, bands: &'a [Band]) -> Chart<'a> {
        Chart {
            title: "Throughput",
            description: "Operations per second over time.".into(),
            lines: vec![self.line("operations per second", "a", |s| {
                Some(s.operations_per_second)
            })],
            limit: None,
            y_max: None,
            y_label: size::short_number,
            binary: false,
            bands,
            seconds: self.seconds,
        }
    }

    fn memory<'a>(&self, bands: &'a [Band]) -> Chart<'a> {
        Chart {
            title: "Memory against the budget",
            description: format!(
                "At most {} of {}.",
                size::bytes(self.peak_memory()),
                size::bytes(self.budget)
            ),
            lines: vec![
                self.line("counted by the database", "a", |s| {
                    s.memory.map(|v| v as f64)
                }),
                self.line("resident in the process", "b", |s| {
                    s.resident.map(|v| v as f64)
                }),
            ],
            limit: Some(self.limit()),
            y_max: None,
            y_label: as_bytes,
            binary: true,
            bands,
            seconds: self.seconds,
        }
    }

    fn hit_ratio<'a>(&self, bands: &'a [Band]) -> Chart<'a> {
        let ratio = |s: &Sample| {
            s.hit_ratio
                .filter(|_| self.reading_at(s.at))
                .map(|ratio| ratio * 100.0)
        };
        Chart {
            title: "Hit ratio",
            description: "Part of the reads that Index X answered.".into(),
            lines: vec![self.line("answered in memory", "a", ratio)],
            limit: None,
            y_max: Some(100.0),
            y_label: |value| format!("{value:.0} %"),
            binary: false,
            bands,
            seconds: self.seconds,
        }
    }

    fn data<'a>(&self, bands: &'a [Band]) -> Chart<'a> {
        Chart {
            title: "Data against the budget",
            description: format!("{} in the end.", size::bytes(self.data)),
            lines: vec![
                self.line("keys and values", "a", |s| Some(s.data as f64)),
                self.line("on disk, log included", "c", |s| s.disk.map(|v| v as f64)),
            ],
            limit: Some(self.limit()),
            y_max: None,
            y_label: as_bytes,
            binary: true,
            bands,
            seconds: self.seconds,
        }
    }

    fn limit(&self) -> (f64, String) {
        (
            self.budget as f64,
            format!("budget {}", size::bytes(self.budget)),
        )
    }

    fn html_table(&self, out: &mut String) {
        out.push_str("<h2>Phases</h2>\n<div class=\"scroll\"><table>\n<thead><tr>");
        for head in HEADS {
            let _ = write!(out, "<th scope=\"col\">{}</th>", text(head));
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for (n, phase) in self.seen.phases.iter().enumerate() {
            out.push_str("<tr>");
            for (column, cell) in cells(n, phase).iter().enumerate() {
                let _ = if column == 0 {
                    write!(
                        out,
                        "<th scope=\"row\">{}<small>{}</small></th>",
                        text(cell),
                        text(&phase.outcome)
                    )
                } else {
                    write!(out, "<td>{}</td>", text(cell))
                };
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody>\n</table></div>\n");
    }

    fn how_measured(&self, out: &mut String) {
        out.push_str("<h2>How this was measured</h2>\n<dl>\n");
        for (name, value) in &self.circumstances {
            let _ = writeln!(out, "<dt>{}</dt><dd>{}</dd>", text(name), text(value));
        }
        let _ = write!(
            out,
            "</dl>\n<p class=\"note\">Keys are real paths and generated records of about {} bytes with scattered keys. \
             Files go through the page cache of the operating system, so on a machine with much free memory a \
             read of Index Y may not reach the disk; the memory shown is that of the process alone (resident: \
             what it has above its size before the database was opened, at most {}). \
             A killed process loses its memory, not that of the operating system: the test is of the process, not of the power \
             supply.</p>\n",
            super::generate::RECORD_BYTES,
            size::bytes(self.seen.peak_resident)
        );
    }
}

fn as_bytes(value: f64) -> String {
    size::bytes(value as u64)
}

const HEADS: [&str; 8] = [
    "phase",
    "time",
    "operations",
    "rate",
    "hits",
    "median",
    "99 %",
    "memory",
];

/// The column that a terminal has no room for.
const OPERATIONS: usize = 2;

fn cells(n: usize, phase: &PhaseResult) -> [String; HEADS.len()] {
    let elapsed = phase.elapsed();
    let latency = |at: usize| {
        phase
            .latency
            .map_or_else(String::new, |l| size::duration(Duration::from_nanos(l[at])))
    };
    let reads = phase.hits + phase.misses;
    let hits = match phase.latency {
        Some(_) => percent(phase.hits as f64, reads as f64),
        None => String::new(),
    };
    [
        format!("{} {}", n + 1, phase.name),
        size::duration(elapsed),
        size::count(phase.operations),
        size::rate(phase.operations, elapsed),
        hits,
        latency(0),
        latency(1),
        size::bytes(phase.peak_memory),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let phase = PhaseResult {
            name: "reads",
            began: 0.0,
            ended: 2.0,
            operations: 1000,
            hits: 3,
            misses: 1,
            peak_memory: 1 << 20,
            latency: Some([900, 20_000, 3_000_000]),
            outcome: "a < b".into(),
        };
        Report {
            seen: Seen {
                samples: vec![],
                phases: vec![phase],
                peak_resident: 5,
            },
            budget: 2 << 20,
            data: 20 << 20,
            seconds: 2.0,
            circumstances: vec![("machine", "2 cores".into())],
            recovery: "5 of 5".into(),
        }
    }

    #[test]
    fn html_needs_nothing_else() {
        let html = report().html();
        for outside in ["<script", "http:", "https:", "<link", "@import", "url("] {
            assert!(!html.contains(outside), "{outside}");
        }
        assert!(html.contains("a &lt; b"));
        assert_eq!(html.matches("<svg").count(), html.matches("</svg>").count());
    }

    #[test]
    fn the_table_lines_up() {
        let table = report().table();
        let widths: Vec<_> = table.lines().map(|line| line.chars().count()).collect();
        assert!(widths.windows(2).all(|w| w[0] == w[1]), "{table}");
        assert!(table.contains("75 %"));
    }
}
