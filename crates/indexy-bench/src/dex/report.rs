//! The report of the figures: Markdown, and how many verdicts hold.

use super::contender::Cost;
use std::fmt::Write as _;

/// What the figures found so far.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) text: String,
    /// Of the paper's claims.
    pub(super) held: usize,
    pub(super) claims: usize,
}

impl Report {
    pub(super) fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Begins a table of costs.
    pub(super) fn head(&mut self, title: &str) {
        self.line(&format!("\n## {title}\n"));
        self.line("| | reads | writes | CAS | calls | bytes | 2 us | 3 us | 8 us |");
        self.line("|---|---|---|---|---|---|---|---|---|");
    }

    pub(super) fn cost(&mut self, name: &str, cost: &Cost) {
        let Cost {
            reads,
            writes,
            swaps,
            calls,
            bytes,
            us: [two, three, eight],
        } = cost;
        // A string takes all that it is given.
        let _ = write!(
            self.text,
            "| {name} | {reads:.3} | {writes:.3} | {swaps:.3} | {calls:.4} | {bytes:.0} "
        );
        self.line(&format!("| {two:.2} | {three:.2} | {eight:.2} |"));
    }

    pub(super) fn claim(&mut self, paper: &str, here: &str, holds: bool) {
        let verdict = if holds { "holds" } else { "does not hold" };
        self.line(&format!("\nPaper: {paper} Here: {here} **{verdict}**."));
        self.claims += 1;
        self.held += usize::from(holds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_tables_claims_and_verdicts() {
        let mut report = Report::default();
        report.head("read-only");
        let cost = Cost {
            reads: 0.25,
            bytes: 256.4,
            us: [1.0, 2.0, 3.0],
            ..Cost::default()
        };
        report.cost("DEX", &cost);
        report.claim("one.", "one:", true);
        report.claim("two.", "three:", false);
        let expected = "\n## read-only\n\n\
            | | reads | writes | CAS | calls | bytes | 2 us | 3 us | 8 us |\n\
            |---|---|---|---|---|---|---|---|---|\n\
            | DEX | 0.250 | 0.000 | 0.000 | 0.0000 | 256 | 1.00 | 2.00 | 3.00 |\n\
            \nPaper: one. Here: one: **holds**.\n\
            \nPaper: two. Here: three: **does not hold**.\n";
        assert_eq!(report.text, expected);
        assert_eq!((report.held, report.claims), (1, 2));
    }
}
