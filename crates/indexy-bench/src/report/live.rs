//! The view while it runs: one line that is rewritten on a terminal, one line per phase elsewhere.

use crate::format::{bytes, count, rate};
use crate::{
    harness::{Event, Job, View},
    measure::Outcome,
};
use std::{
    collections::VecDeque,
    io::{self, IsTerminal as _, Write as _},
};

const SPARKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Points of the sparkline.
const POINTS: usize = 16;

/// Prints to standard error, so that standard output keeps the tables. Nobody needs to read it.
#[derive(Debug)]
pub struct Live {
    terminal: bool,
    jobs: usize,
    job: usize,
    asked: u64,
    last: (f64, u64),
    rates: VecDeque<f64>,
    memory: VecDeque<f64>,
    phase: String,
}

impl Live {
    /// For a run of `jobs` jobs.
    pub fn new(jobs: usize) -> Self {
        Self {
            terminal: io::stderr().is_terminal(),
            jobs,
            job: 0,
            asked: 0,
            last: (0.0, 0),
            rates: VecDeque::new(),
            memory: VecDeque::new(),
            phase: String::new(),
        }
    }

    /// A job begins.
    pub fn begin(&mut self, job: &Job) {
        self.job += 1;
        self.line(&format!(
            "[{}/{}] {} {}",
            self.job, self.jobs, job.scenario, job.contender
        ));
    }

    /// The job is over.
    pub fn end(&mut self, outcome: &Outcome) {
        let remark = super::table::remark(outcome);
        if !remark.is_empty() {
            self.line(&format!("   {remark}"));
        }
    }

    /// A line that stays.
    pub fn line(&self, text: &str) {
        let clear = if self.terminal { "\r\u{1b}[2K" } else { "" };
        let _ = writeln!(io::stderr(), "{clear}{text}");
    }

    fn going(&mut self, at: f64, ops: u64, resident: u64, accounted: u64) {
        let speed = if at > self.last.0 {
            ops.saturating_sub(self.last.1) as f64 / (at - self.last.0)
        } else {
            0.0
        };
        self.last = (at, ops);
        push(&mut self.rates, speed);
        push(&mut self.memory, resident as f64);
        if !self.terminal {
            return;
        }
        let share = if self.asked > 0 {
            format!(" {:3.0} %", 100.0 * ops as f64 / self.asked as f64)
        } else {
            String::new()
        };
        let own = if accounted > 0 {
            format!(" (own count {})", bytes(accounted as f64))
        } else {
            String::new()
        };
        let _ = write!(
            io::stderr(),
            "\r\u{1b}[2K   {:16}{share} {:>10} {} resident {} {}{own} {:.0} s",
            self.phase,
            rate(speed),
            sparkline(self.rates.make_contiguous()),
            bytes(resident as f64),
            sparkline(self.memory.make_contiguous()),
            at
        );
        let _ = io::stderr().flush();
    }
}

impl View for Live {
    fn event(&mut self, _: &Job, event: &Event) {
        match event {
            Event::Began { phase, asked } => {
                self.phase.clone_from(phase);
                self.asked = *asked;
                self.last = (0.0, 0);
                self.rates.clear();
                self.memory.clear();
            }
            Event::Going {
                at,
                ops,
                resident,
                accounted,
            } => self.going(*at, *ops, *resident, *accounted),
            Event::Phase { result } => {
                let done = if result.done > 1 {
                    format!(
                        "{:>8} ops {:>10}",
                        count(result.done as f64),
                        rate(result.rate())
                    )
                } else {
                    " ".repeat(23)
                };
                let partial = if result.partial { "  (cut short)" } else { "" };
                let peak = bytes(result.peak_resident() as f64);
                self.line(&format!(
                    "   {:16} {done} {:8.2} s  peak {peak}{partial}",
                    result.name, result.seconds
                ));
            }
            Event::Ended { .. } => {}
        }
    }
}

/// Adds a point at the end, and lets the oldest go when there are too many.
fn push(points: &mut VecDeque<f64>, value: f64) {
    points.push_back(value);
    if points.len() > POINTS {
        points.pop_front();
    }
}

/// `values` as bars, the highest full.
fn sparkline(values: &[f64]) -> String {
    let top = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    values
        .iter()
        .map(|v| SPARKS[((v / top * 7.0).round() as usize).min(7)])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_reaches_from_bottom_to_top() {
        assert_eq!(sparkline(&[0.0, 50.0, 100.0]), "▁▅█");
        assert_eq!(sparkline(&[]), "");
    }
}
