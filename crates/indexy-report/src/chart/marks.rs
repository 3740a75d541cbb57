//! Bands, lines and bars.

use super::{
    axis::Axis,
    legend::{FONT_SIZE, colour},
    plot::{Band, Plot, Series},
    text::{escape, width},
};
use std::fmt::Write as _;

/// Points of one line; more are averaged.
const MAX_POINTS: usize = 480;
/// Lines with at most so many points have a dot at each.
const MAX_MARKED: usize = 24;
/// Part of a group's width that its bars take.
const BARS_SHARE: f64 = 0.8;

// Writing to a string cannot fail, here and below.

/// Draws the bands, each second one shaded, with a label where one fits.
pub(super) fn bands(out: &mut String, bands: &[Band], x: &Axis, y: &Axis) {
    for (n, band) in bands.iter().enumerate() {
        let (from, to) = (x.at(band.from), x.at(band.to));
        let (class, fill) = if n % 2 == 0 {
            ("band", "none")
        } else {
            ("band odd", "#f3f4f5")
        };
        let top = y.to - FONT_SIZE - 8.0;
        let _ = write!(
            out,
            "<g><title>{}</title><rect class=\"{class}\" x=\"{from:.1}\" y=\"{top:.1}\" \
             width=\"{:.1}\" height=\"{:.1}\" fill=\"{fill}\" pointer-events=\"all\"/>",
            escape(&band.title),
            (to - from).max(0.5),
            y.from - top
        );
        let fits = |label: &&String| width(label, FONT_SIZE) + 4.0 <= to - from;
        if let Some(label) = band.labels.iter().find(fits) {
            let _ = write!(
                out,
                "<text class=\"text\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                (from + to) / 2.0,
                y.to - 7.0,
                escape(label)
            );
        }
        out.push_str("</g>");
    }
}

/// Draws the series as lines.
pub(super) fn lines(out: &mut String, plot: &Plot, x: &Axis, y: &Axis) {
    for (index, series) in plot.series.iter().enumerate() {
        let dash = if series.dashed {
            " stroke-dasharray=\"6 4\""
        } else {
            ""
        };
        let _ = write!(
            out,
            "<path class=\"s{index}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\" \
             stroke-linejoin=\"round\" stroke-linecap=\"round\"{dash} d=\"{}\"/>",
            colour(index),
            path(&series.points, x, y)
        );
        if !series.dashed && series.points.len() <= MAX_MARKED {
            dots(out, index, series, x, y);
        }
    }
}

fn dots(out: &mut String, index: usize, series: &Series, x: &Axis, y: &Axis) {
    for point in series.points.iter().filter(|p| p.1.is_finite()) {
        let _ = write!(
            out,
            "<circle class=\"s{index}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{}\"/>",
            x.at(point.0),
            y.at(point.1),
            colour(index)
        );
    }
}

fn path(points: &[(f64, f64)], x: &Axis, y: &Axis) -> String {
    let mut out = String::new();
    let mut pen_down = false;
    for (at, value) in thinned(points) {
        if !value.is_finite() {
            pen_down = false;
            continue;
        }
        let command = if pen_down { 'L' } else { 'M' };
        let _ = write!(out, "{command}{:.1} {:.1}", x.at(at), y.at(value));
        if !pen_down {
            // A lone point shows as a dot.
            out.push_str("h0");
        }
        pen_down = true;
    }
    out
}

/// At most [`MAX_POINTS`] points, each the mean of its neighbours; gaps stay.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    points
        .chunks(points.len().div_ceil(MAX_POINTS).max(1))
        .map(|chunk| {
            let values = || chunk.iter().map(|p| p.1).filter(|v| v.is_finite());
            let middle = chunk.iter().map(|p| p.0).sum::<f64>() / chunk.len() as f64;
            // Without a value this is 0/0: a gap.
            (middle, values().sum::<f64>() / values().count() as f64)
        })
        .collect()
}

/// Draws the series as bars, a group of them for each of `plot.groups`.
pub(super) fn bars(out: &mut String, plot: &Plot, left: f64, right: f64, y: &Axis) {
    let slot = (right - left) / plot.groups.len() as f64;
    let width = slot * BARS_SHARE / plot.series.len().max(1) as f64;
    let floor = y.from;
    for (index, name) in plot.groups.iter().enumerate() {
        let middle = left + slot * (index as f64 + 0.5);
        let _ = write!(
            out,
            "<text class=\"text\" x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            floor + 16.0,
            escape(name)
        );
    }
    for (index, series) in plot.series.iter().enumerate() {
        for (group, value) in series.points.iter().filter(|p| p.1.is_finite()) {
            let left = left + slot * (group + (1.0 - BARS_SHARE) / 2.0) + width * index as f64;
            let top = y.at(*value);
            let _ = write!(
                out,
                "<rect class=\"s{index}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" \
                 height=\"{:.1}\" fill=\"{}\"><title>{}: {}</title></rect>",
                (floor - top).max(0.0),
                colour(index),
                escape(&series.name),
                escape(&(plot.y_text)(*value))
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_points_are_thinned_and_gaps_stay() {
        let mut points: Vec<_> = (0..10_000).map(|i| (f64::from(i), 7.0)).collect();
        for point in &mut points[5000..6000] {
            point.1 = f64::NAN;
        }
        let thin = thinned(&points);
        assert!(thin.len() <= MAX_POINTS);
        assert!(thin.iter().all(|p| p.1.is_nan() || p.1 == 7.0));
        assert!(thin.iter().any(|p| p.1.is_nan()));
    }
}
