//! How the demo looks: a few lines that are redrawn on a terminal, a line now and then elsewhere.

use super::sample::Sample;
use crate::stdout;
use indexy_report::size::{self, percent};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::{
    io::{IsTerminal as _, stderr},
    time::Duration,
};

const GAUGE_CELLS: usize = 32;
/// Rates that the throughput line shows.
pub const SPARK_CELLS: usize = 40;
const SPARKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// One moment, as text.
pub struct View {
    pub sample: Sample,
    /// Its number and name.
    pub phase: Option<(usize, &'static str)>,
    /// How many phases there are.
    pub phases: usize,
    /// Operations per second, newest first.
    pub rates: Vec<f64>,
    /// Memory budget in bytes.
    pub budget: u64,
    /// How long it all is to take.
    pub planned: Duration,
}

impl View {
    fn phase(&self) -> String {
        match self.phase {
            Some((n, name)) => format!("{n}/{} {name}", self.phases),
            None => String::new(),
        }
    }

    fn memory(&self) -> String {
        match self.sample.memory {
            Some(bytes) => format!("{} of {}", size::bytes(bytes), size::bytes(self.budget)),
            None => "-".into(),
        }
    }

    fn data(&self) -> String {
        let data = self.sample.data;
        let times = data as f64 / self.budget.max(1) as f64;
        let mut text = format!("{}, {times:.1} x the budget", size::bytes(data));
        if let Some(disk) = self.sample.disk {
            text += &format!("; {} on disk", size::bytes(disk));
        }
        text
    }

    fn hit_ratio(&self) -> String {
        self.sample
            .hit_ratio
            .map_or("-".into(), |ratio| percent(ratio, 1.0))
    }

    /// All of it in one line.
    pub fn line(&self) -> String {
        format!(
            "{:>4.0} s  {}: {}/s, memory {}, data {}, hits {}",
            self.sample.at,
            self.phase(),
            size::short_number(self.sample.operations_per_second),
            self.memory(),
            self.data(),
            self.hit_ratio()
        )
    }

    fn spark_line(&self) -> String {
        let most = self.rates.iter().copied().fold(1.0, f64::max);
        let spark = |rate: &f64| {
            SPARKS[((rate / most * SPARKS.len() as f64) as usize).min(SPARKS.len() - 1)]
        };
        self.rates.iter().rev().map(spark).collect()
    }
}

fn gauge(part: f64) -> String {
    let filled = ((part.clamp(0.0, 1.0) * GAUGE_CELLS as f64).round()) as usize;
    format!("{}{}", "█".repeat(filled), "░".repeat(GAUGE_CELLS - filled))
}

/// Where it is shown.
pub enum Screen {
    /// Lines that are redrawn.
    Terminal(Terminal),
    /// One line after the other.
    Plain,
}

/// The lines that are redrawn.
pub struct Terminal {
    all: MultiProgress,
    phase: ProgressBar,
    throughput: ProgressBar,
    memory: ProgressBar,
    data: ProgressBar,
    hits: ProgressBar,
}

impl Screen {
    /// What standard error is.
    pub fn new() -> Self {
        if !stderr().is_terminal() {
            return Self::Plain;
        }
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let row = |name: &'static str| {
            let style = ProgressStyle::with_template("{prefix:<11.dim} {msg}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner());
            let bar = ProgressBar::new_spinner()
                .with_style(style)
                .with_prefix(name);
            all.add(bar)
        };
        Self::Terminal(Terminal {
            phase: row("phase"),
            throughput: row("throughput"),
            memory: row("memory"),
            data: row("data"),
            hits: row("hit ratio"),
            all,
        })
    }

    /// Says something that stays.
    pub fn say(&self, text: &str) {
        match self {
            Self::Terminal(terminal) => terminal.all.suspend(|| stdout::say(text)),
            Self::Plain => stdout::say(text),
        }
    }

    /// Takes the redrawn lines away.
    pub fn clear(&self) {
        if let Self::Terminal(terminal) = self {
            for row in terminal.rows() {
                row.finish_and_clear();
            }
        }
    }
}

impl Terminal {
    fn rows(&self) -> [&ProgressBar; 5] {
        [
            &self.phase,
            &self.throughput,
            &self.memory,
            &self.data,
            &self.hits,
        ]
    }

    /// Redraws.
    pub fn draw(&self, view: &View) {
        let planned = view.planned.as_secs_f64();
        let of_about = if view.sample.at <= planned {
            format!(" of about {planned:.0} s")
        } else {
            String::new()
        };
        self.phase.set_message(format!(
            "{:<40} {:.0} s{of_about}",
            view.phase(),
            view.sample.at
        ));
        self.throughput.set_message(format!(
            "{:<SPARK_CELLS$} {}/s",
            view.spark_line(),
            size::short_number(view.sample.operations_per_second)
        ));
        let used = view.sample.memory.unwrap_or(0) as f64 / view.budget.max(1) as f64;
        self.memory
            .set_message(format!("{} {}", gauge(used), view.memory()));
        self.data.set_message(view.data());
        let ratio = view.sample.hit_ratio;
        self.hits.set_message(match ratio {
            Some(part) => format!("{} {}", gauge(part), view.hit_ratio()),
            None => "-".into(),
        });
        for row in self.rows() {
            row.tick();
        }
    }
}
