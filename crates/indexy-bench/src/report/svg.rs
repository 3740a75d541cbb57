//! Plots as inline SVG: lines over a number, and grouped bars. No script, no network, no fonts of its own.
//!
//! Colours come from a palette that colour-blind readers can tell apart; every series is named in a legend.

use super::format::count;
use std::fmt::Write as _;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 46.0;
const LEGEND_LINE: f64 = 18.0;
const LEGEND_WIDTH: f64 = 640.0;
/// Names of so many characters stand four in a line.
const SHORT_NAME: usize = 20;
const PALETTE: [&str; 14] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#000000",
    "#332288", "#882255", "#44aa99", "#999933", "#661100", "#ddcc77",
];

/// One named line or set of bars.
#[derive(Debug, Clone, Default)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Points, by increasing x; for bars, x is the index of the group.
    pub points: Vec<(f64, f64)>,
    /// Draw dashed: a limit or a reference.
    pub dashed: bool,
}

/// A plot.
#[derive(Debug, Clone, Default)]
pub struct Plot {
    /// Above the plot.
    pub title: String,
    /// Below it.
    pub x_label: String,
    /// At its side.
    pub y_label: String,
    /// What is drawn.
    pub series: Vec<Series>,
    /// Names of groups; makes it a bar chart.
    pub groups: Vec<String>,
    /// Logarithmic x.
    pub log_x: bool,
    /// Logarithmic y.
    pub log_y: bool,
}

/// Maps a range of values to a range of the picture.
#[derive(Debug, Clone, Copy)]
struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    log: bool,
}

impl Axis {
    fn at(&self, value: f64) -> f64 {
        let scale = |v: f64| {
            if self.log {
                v.max(f64::MIN_POSITIVE).log10()
            } else {
                v
            }
        };
        let (low, high) = (scale(self.low), scale(self.high));
        let share = if high > low {
            (scale(value) - low) / (high - low)
        } else {
            0.5
        };
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Round values within the range.
    fn ticks(&self) -> Vec<f64> {
        if self.log {
            let first = self.low.max(f64::MIN_POSITIVE).log10().ceil() as i32;
            let last = self.high.max(f64::MIN_POSITIVE).log10().floor() as i32;
            if last > first {
                return (first..=last).map(|e| 10f64.powi(e)).collect();
            }
        }
        const WANTED: f64 = 6.0;
        let rough = (self.high - self.low) / WANTED;
        if rough.is_nan() || rough <= 0.0 {
            return vec![self.low];
        }
        let magnitude = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|s| s * magnitude)
            .find(|s| *s >= rough)
            .unwrap_or(rough);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step).floor() as i64;
        (first..=last).map(|i| i as f64 * step).collect()
    }
}

impl Plot {
    /// The picture, as an `svg` element.
    pub fn to_svg(&self) -> String {
        let rows = self.series.len().div_ceil(self.legend_columns());
        let height = HEIGHT + rows as f64 * LEGEND_LINE;
        let mut out = String::new();
        // Writing to a string cannot fail, here and below.
        let _ = write!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" font-family=\"sans-serif\" font-size=\"12\">\
             <title>{}</title><rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\
             <text x=\"{}\" y=\"20\" text-anchor=\"middle\" font-size=\"14\">{}</text>",
            escape(&self.title),
            WIDTH / 2.0,
            escape(&self.title)
        );
        let points = || {
            self.series
                .iter()
                .flat_map(|s| s.points.iter().copied())
                .filter(|p| p.1.is_finite())
        };
        if points().next().is_none() {
            let _ = write!(
                out,
                "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">nothing was measured</text></svg>",
                WIDTH / 2.0,
                HEIGHT / 2.0
            );
            return out;
        }
        let y = self.y_axis(points().map(|p| p.1));
        self.frame(&mut out, &y);
        if self.groups.is_empty() {
            let x = self.x_axis(points().map(|p| p.0));
            self.lines(&mut out, &x, &y);
        } else {
            self.bars(&mut out, &y);
        }
        self.legend(&mut out);
        out.push_str("</svg>");
        out
    }

    fn y_axis(&self, values: impl Iterator<Item = f64>) -> Axis {
        let (mut low, mut high) = (f64::INFINITY, 0.0f64);
        for v in values {
            if !self.log_y || v > 0.0 {
                low = low.min(v);
            }
            high = high.max(v);
        }
        let (low, high) = if self.log_y {
            (
                10f64.powf(low.min(high).max(1e-9).log10().floor()),
                10f64.powf(high.max(1e-9).log10().ceil()),
            )
        } else {
            (0.0, if high > 0.0 { high * 1.06 } else { 1.0 })
        };
        Axis {
            low,
            high,
            from: HEIGHT - BOTTOM,
            to: TOP,
            log: self.log_y,
        }
    }

    fn x_axis(&self, values: impl Iterator<Item = f64>) -> Axis {
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| {
            (l.min(v), h.max(v))
        });
        Axis {
            low,
            high,
            from: LEFT,
            to: WIDTH - RIGHT,
            log: self.log_x && low > 0.0,
        }
    }

    fn frame(&self, out: &mut String, y: &Axis) {
        let right = WIDTH - RIGHT;
        for tick in y.ticks() {
            let at = y.at(tick);
            let _ = write!(
                out,
                "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{right}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 6.0,
                at + 4.0,
                count(tick)
            );
        }
        let middle = (TOP + HEIGHT - BOTTOM) / 2.0;
        let _ = write!(
            out,
            "<text x=\"14\" y=\"{middle}\" text-anchor=\"middle\" transform=\"rotate(-90 14 {middle})\">{}</text>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            escape(&self.y_label),
            (LEFT + right) / 2.0,
            HEIGHT - 8.0,
            escape(&self.x_label)
        );
    }

    fn lines(&self, out: &mut String, x: &Axis, y: &Axis) {
        for tick in x.ticks() {
            let at = x.at(tick);
            let _ = write!(
                out,
                "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                HEIGHT - BOTTOM + 16.0,
                count(tick)
            );
        }
        for (index, series) in self.series.iter().enumerate() {
            let path: Vec<String> = series
                .points
                .iter()
                .filter(|p| p.1.is_finite())
                .map(|p| format!("{:.1},{:.1}", x.at(p.0), y.at(p.1)))
                .collect();
            let dash = if series.dashed {
                " stroke-dasharray=\"6 4\""
            } else {
                ""
            };
            let _ = write!(
                out,
                "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"{dash} points=\"{}\"/>",
                colour(index),
                path.join(" ")
            );
            const MARKED: usize = 24;
            if path.len() <= MARKED && !series.dashed {
                for point in &path {
                    let (cx, cy) = point.split_once(',').unwrap_or(("0", "0"));
                    let _ = write!(
                        out,
                        "<circle cx=\"{cx}\" cy=\"{cy}\" r=\"3\" fill=\"{}\"/>",
                        colour(index)
                    );
                }
            }
        }
    }

    fn bars(&self, out: &mut String, y: &Axis) {
        let slot = (WIDTH - RIGHT - LEFT) / self.groups.len() as f64;
        let width = slot * 0.8 / self.series.len().max(1) as f64;
        let floor = HEIGHT - BOTTOM;
        for (index, name) in self.groups.iter().enumerate() {
            let middle = LEFT + slot * (index as f64 + 0.5);
            let _ = write!(
                out,
                "<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                floor + 16.0,
                escape(name)
            );
        }
        for (index, series) in self.series.iter().enumerate() {
            for (group, value) in series.points.iter().filter(|p| p.1.is_finite()) {
                let left = LEFT + slot * (group + 0.1) + width * index as f64;
                let top = y.at(*value);
                let _ = write!(
                    out,
                    "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{}\"><title>{}: {}</title></rect>",
                    (floor - top).max(0.0),
                    colour(index),
                    escape(&series.name),
                    count(*value)
                );
            }
        }
    }

    /// Columns of the legend: fewer where names are long.
    fn legend_columns(&self) -> usize {
        let longest = self.series.iter().map(|s| s.name.chars().count()).max();
        if longest.unwrap_or(0) > SHORT_NAME {
            2
        } else {
            4
        }
    }

    fn legend(&self, out: &mut String) {
        let columns = self.legend_columns();
        for (index, series) in self.series.iter().enumerate() {
            let left = LEFT + (index % columns) as f64 * LEGEND_WIDTH / columns as f64;
            let base = HEIGHT + (index / columns) as f64 * LEGEND_LINE;
            let _ = write!(
                out,
                "<rect x=\"{left}\" y=\"{}\" width=\"12\" height=\"12\" fill=\"{}\"/><text x=\"{}\" y=\"{}\">{}</text>",
                base,
                colour(index),
                left + 18.0,
                base + 10.0,
                escape(&series.name)
            );
        }
    }
}

fn colour(index: usize) -> &'static str {
    PALETTE[index % PALETTE.len()]
}

/// `text` as it may stand in HTML and SVG.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within_the_range() {
        let axis = Axis {
            low: 0.0,
            high: 1060.0,
            from: 0.0,
            to: 1.0,
            log: false,
        };
        assert_eq!(axis.ticks(), vec![0.0, 200.0, 400.0, 600.0, 800.0, 1000.0]);
        let log = Axis {
            low: 1.0,
            high: 1000.0,
            log: true,
            ..axis
        };
        assert_eq!(log.ticks(), vec![1.0, 10.0, 100.0, 1000.0]);
        let flat = Axis {
            low: 5.0,
            high: 5.0,
            ..axis
        };
        assert_eq!(flat.ticks(), vec![5.0]);
    }

    #[test]
    fn names_are_escaped_and_nothing_measured_says_so() {
        let mut plot = Plot {
            title: "a<b".into(),
            ..Plot::default()
        };
        let svg = plot.to_svg();
        assert!(svg.contains("a&lt;b") && svg.contains("nothing was measured"));
        plot.series.push(Series {
            name: "x".into(),
            points: vec![(1.0, 2.0), (2.0, f64::NAN), (3.0, 4.0)],
            dashed: false,
        });
        let svg = plot.to_svg();
        assert!(svg.contains("polyline") && !svg.contains("NaN"));
    }

    #[test]
    fn bars_have_one_rectangle_per_value() {
        let plot = Plot {
            groups: vec!["A".into(), "B".into()],
            series: vec![Series {
                name: "s".into(),
                points: vec![(0.0, 1.0), (1.0, 10.0)],
                dashed: false,
            }],
            log_y: true,
            ..Plot::default()
        };
        assert_eq!(plot.to_svg().matches("<title>s: ").count(), 2);
    }
}
