//! The legend: names of the series in lines below the chart.

use super::{
    plot::Plot,
    text::{escape, width},
};
use std::fmt::Write as _;

pub(super) const FONT_SIZE: f64 = 12.0;
const LINE_HEIGHT: f64 = 18.0;
/// Length of the piece of line before a name.
const SAMPLE: f64 = 18.0;
/// Space between sample and name, and between two entries.
const GAP: f64 = 6.0;
const BETWEEN: f64 = 18.0;
const PALETTE: [&str; 14] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#000000",
    "#332288", "#882255", "#44aa99", "#999933", "#661100", "#ddcc77",
];

/// The colour of series number `index`.
pub(super) fn colour(index: usize) -> &'static str {
    PALETTE[index % PALETTE.len()]
}

/// The place of each entry: line and distance from the left.
fn places(plot: &Plot, left: f64, right: f64) -> Vec<(usize, f64)> {
    let (mut line, mut x) = (0, left);
    let mut places = Vec::with_capacity(plot.series.len());
    for series in &plot.series {
        let needed = SAMPLE + GAP + width(&series.name, FONT_SIZE);
        if x > left && x + needed > right {
            line += 1;
            x = left;
        }
        places.push((line, x));
        x += needed + BETWEEN;
    }
    places
}

/// How much height the legend takes.
pub(super) fn height(plot: &Plot, left: f64, right: f64) -> f64 {
    let lines = places(plot, left, right)
        .last()
        .map_or(0, |(line, _)| line + 1);
    lines as f64 * LINE_HEIGHT
}

/// Draws the legend from height `top` on.
pub(super) fn draw(out: &mut String, plot: &Plot, left: f64, right: f64, top: f64) {
    for (index, ((line, x), series)) in places(plot, left, right)
        .into_iter()
        .zip(&plot.series)
        .enumerate()
    {
        let middle = top + line as f64 * LINE_HEIGHT + LINE_HEIGHT / 2.0;
        let (stroke, dash) = match (plot.groups.is_empty(), series.dashed) {
            (true, true) => (2.0, " stroke-dasharray=\"5 3\""),
            (true, false) => (3.0, ""),
            (false, _) => (LINE_HEIGHT * 0.6, ""),
        };
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "<line class=\"s{index}\" x1=\"{x:.1}\" x2=\"{:.1}\" y1=\"{middle:.1}\" \
             y2=\"{middle:.1}\" stroke=\"{}\" stroke-width=\"{stroke}\"{dash}/>\
             <text class=\"text\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x + SAMPLE,
            colour(index),
            x + SAMPLE + GAP,
            middle + FONT_SIZE / 3.0,
            escape(&series.name)
        );
    }
}
