//! How a load or a conversion goes: a bar on a terminal, a line every few seconds elsewhere.

use crate::stdout::say;
use indexy::Db;
use indexy_report::size;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::{
    io::{IsTerminal as _, stderr},
    time::{Duration, Instant},
};

const BAR_INTERVAL: Duration = Duration::from_millis(100);
const LINE_INTERVAL: Duration = Duration::from_secs(3);
const BAR_TEMPLATE: &str = "{percent:>3} % [{wide_bar}] {msg}  {eta}";
const SPINNER_TEMPLATE: &str = "{spinner} {msg}";
/// The rate is an average over about this time.
const RATE_WINDOW: Duration = Duration::from_secs(1);

enum Shown {
    Bar(ProgressBar),
    Lines,
    Nothing,
}

/// The progress of one load or conversion.
pub struct Progress {
    shown: Shown,
    db: Db,
    size: Option<u64>,
    last: Instant,
    /// Start and record count of the window that `rate` is taken over.
    window: (Instant, u64),
    rate: f64,
}

impl Progress {
    /// `size`: what `tick` counts up to (bytes of input, say), if known. Memory is that of `db`.
    pub fn new(quiet: bool, size: Option<u64>, db: Db) -> Self {
        let shown = if quiet {
            Shown::Nothing
        } else if stderr().is_terminal() {
            Shown::Bar(bar(size))
        } else {
            Shown::Lines
        };
        let now = Instant::now();
        Self {
            shown,
            db,
            size,
            last: now,
            window: (now, 0),
            rate: 0.0,
        }
    }

    /// Shows the progress if that is due; else it costs little.
    pub fn tick(&mut self, records: u64, position: u64) {
        let interval = match self.shown {
            Shown::Bar(_) => BAR_INTERVAL,
            Shown::Lines => LINE_INTERVAL,
            Shown::Nothing => return,
        };
        let now = Instant::now();
        if now - self.last < interval {
            return;
        }
        self.last = now;
        let since = now - self.window.0;
        if since >= RATE_WINDOW || self.rate == 0.0 {
            self.rate = (records - self.window.1) as f64 / since.as_secs_f64();
            if since >= RATE_WINDOW {
                self.window = (now, records);
            }
        }
        let stats = self.db.stats();
        let text = format!(
            "{} records  {}/s  memory {} of {}",
            size::count(records),
            size::short_number(self.rate),
            size::bytes(stats.memory_used_bytes),
            size::bytes(stats.memory_budget_bytes)
        );
        match &self.shown {
            Shown::Bar(bar) => {
                bar.set_position(position);
                bar.set_message(text);
                bar.tick();
            }
            Shown::Lines => match self.size {
                Some(size) if size > 0 => say(format_args!(
                    "{}  {text}",
                    size::percent(position as f64, size as f64)
                )),
                _ => say(text),
            },
            Shown::Nothing => {}
        }
    }

    /// Says something without disturbing the bar.
    pub fn note(&self, text: &str) {
        match &self.shown {
            Shown::Bar(bar) => bar.suspend(|| say(text)),
            Shown::Lines | Shown::Nothing => say(text),
        }
    }

    /// The input is read; the rest goes to disk.
    pub fn flushing(&self) {
        if let Shown::Bar(bar) = &self.shown {
            bar.set_style(style("{spinner} writing to disk  {msg}"));
            bar.enable_steady_tick(BAR_INTERVAL);
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let Shown::Bar(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }
}

fn bar(size: Option<u64>) -> ProgressBar {
    let target = ProgressDrawTarget::stderr();
    match size {
        Some(size) => ProgressBar::with_draw_target(Some(size), target)
            .with_style(style(BAR_TEMPLATE).progress_chars("=> ")),
        None => ProgressBar::with_draw_target(None, target).with_style(style(SPINNER_TEMPLATE)),
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
