//! A whole chart as an `svg` element.

use super::{
    axis::{Axis, round_step},
    legend::{self, FONT_SIZE},
    marks,
    plot::Plot,
    text::{escape, width},
};
use crate::size::short_number;
use std::fmt::Write as _;

const LEFT: f64 = 68.0;
/// Left margin of a chart whose y axis has a label.
const LEFT_OF_LABEL: f64 = 84.0;
const RIGHT: f64 = 16.0;
const TITLE_HEIGHT: f64 = 30.0;
const BANDS_HEIGHT: f64 = 20.0;
const TOP: f64 = 10.0;
const X_TICKS_HEIGHT: f64 = 24.0;
const X_LABEL_HEIGHT: f64 = 22.0;
const TITLE_SIZE: f64 = 14.0;
/// Space between two labels of the x axis, at least.
const X_TICK_SPACE: f64 = 64.0;
/// Room above the highest point of an axis that the data end.
const HEADROOM: f64 = 1.06;

/// Where the drawing lies in the picture.
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Plot {
    /// The picture. Shows "nothing was measured" if no point has a value.
    #[must_use]
    pub fn to_svg(&self) -> String {
        let frame = self.frame();
        let (width, height) = self.size;
        let all = height + legend::height(self, frame.left, frame.right);
        let mut out = String::new();
        // Writing to a string cannot fail, here and below.
        let _ = write!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {all}\" role=\"img\" \
             font-family=\"system-ui, sans-serif\" font-size=\"{FONT_SIZE}\" fill=\"#333\">\
             <title>{}</title><rect class=\"page\" width=\"{width}\" height=\"{all}\" \
             fill=\"#fff\"/>",
            escape(&self.title)
        );
        if !self.untitled {
            let _ = write!(
                out,
                "<text class=\"text\" x=\"{}\" y=\"20\" text-anchor=\"middle\" \
                 font-size=\"{TITLE_SIZE}\">{}</text>",
                width / 2.0,
                escape(&self.title)
            );
        }
        if self.points().next().is_none() {
            let _ = write!(
                out,
                "<text class=\"text\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">\
                 nothing was measured</text></svg>",
                width / 2.0,
                height / 2.0
            );
            return out;
        }
        self.draw(&mut out, &frame);
        legend::draw(&mut out, self, frame.left, frame.right, height);
        out.push_str("</svg>");
        out
    }

    fn draw(&self, out: &mut String, frame: &Frame) {
        let y = self.y_axis(frame);
        if self.groups.is_empty() {
            let x = self.x_axis(frame);
            marks::bands(out, &self.bands, &x, &y);
            self.y_ticks(out, frame, &y);
            self.x_ticks(out, frame, &x);
            marks::lines(out, self, &x, &y);
        } else {
            self.y_ticks(out, frame, &y);
            marks::bars(out, self, frame.left, frame.right, &y);
        }
        self.axis_labels(out, frame);
    }

    /// All points that have a value.
    fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        let all = self.series.iter().flat_map(|s| s.points.iter().copied());
        all.filter(|p| p.1.is_finite())
    }

    fn frame(&self) -> Frame {
        let (width, height) = self.size;
        let unless = |empty: bool, size: f64| if empty { 0.0 } else { size };
        Frame {
            left: if self.y_label.is_empty() {
                LEFT
            } else {
                LEFT_OF_LABEL
            },
            right: width - RIGHT,
            top: TOP
                + unless(self.untitled, TITLE_HEIGHT)
                + unless(self.bands.is_empty(), BANDS_HEIGHT),
            bottom: height - X_TICKS_HEIGHT - unless(self.x_label.is_empty(), X_LABEL_HEIGHT),
        }
    }

    fn y_axis(&self, frame: &Frame) -> Axis {
        let (mut low, mut high) = (f64::INFINITY, 0.0f64);
        for (_, v) in self.points() {
            if !self.log_y || v > 0.0 {
                low = low.min(v);
            }
            high = high.max(v);
        }
        let (low, high) = if self.log_y {
            let low = self.y_min.unwrap_or(low.min(high)).max(1e-9);
            let high = self.y_max.unwrap_or(high).max(low);
            (
                10f64.powf(low.log10().floor()),
                10f64.powf(high.log10().ceil()),
            )
        } else if let Some(high) = self.y_max {
            (0.0, high)
        } else if high <= 0.0 {
            (0.0, 1.0)
        } else if self.binary_y {
            // The axis ends at a mark.
            let step = round_step(high * HEADROOM / 4.0, true);
            (0.0, (high * HEADROOM / step).ceil() * step)
        } else {
            (0.0, high * HEADROOM)
        };
        Axis {
            low,
            high,
            from: frame.bottom,
            to: frame.top,
            log: self.log_y,
            binary: self.binary_y,
        }
    }

    fn x_axis(&self, frame: &Frame) -> Axis {
        let by_data = || {
            self.points()
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), (x, _)| {
                    (l.min(x), h.max(x))
                })
        };
        let (low, high) = self.x_range.unwrap_or_else(by_data);
        Axis {
            low,
            high,
            from: frame.left,
            to: frame.right,
            log: self.log_x && low > 0.0,
            binary: false,
        }
    }

    fn y_ticks(&self, out: &mut String, frame: &Frame, y: &Axis) {
        let lowest = y.at(y.low);
        for tick in y.ticks() {
            let at = y.at(tick);
            let (class, stroke) = if at == lowest {
                ("axis", "#888")
            } else {
                ("rule", "#ddd")
            };
            let _ = write!(
                out,
                "<line class=\"{class}\" x1=\"{}\" y1=\"{at:.1}\" x2=\"{}\" y2=\"{at:.1}\" \
                 stroke=\"{stroke}\"/>\
                 <text class=\"text\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                frame.left,
                frame.right,
                frame.left - 6.0,
                at + 4.0,
                escape(&(self.y_text)(tick))
            );
        }
    }

    /// As many marks as have room for their labels.
    fn x_ticks(&self, out: &mut String, frame: &Frame, x: &Axis) {
        let mut free_from = f64::NEG_INFINITY;
        for tick in x.ticks() {
            let at = x.at(tick);
            let label = short_number(tick);
            let half = width(&label, FONT_SIZE) / 2.0;
            if at - half < free_from {
                continue;
            }
            free_from = at + half.max(X_TICK_SPACE / 2.0 - half);
            let _ = write!(
                out,
                "<text class=\"text\" x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                frame.bottom + 16.0,
                escape(&label)
            );
        }
    }

    fn axis_labels(&self, out: &mut String, frame: &Frame) {
        let middle = (frame.top + frame.bottom) / 2.0;
        if !self.y_label.is_empty() {
            let _ = write!(
                out,
                "<text class=\"text\" x=\"14\" y=\"{middle}\" text-anchor=\"middle\" \
                 transform=\"rotate(-90 14 {middle})\">{}</text>",
                escape(&self.y_label)
            );
        }
        if !self.x_label.is_empty() {
            let _ = write!(
                out,
                "<text class=\"text\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                (frame.left + frame.right) / 2.0,
                frame.bottom + X_TICKS_HEIGHT + 14.0,
                escape(&self.x_label)
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Band, Plot, Series};

    fn series(points: Vec<(f64, f64)>) -> Series {
        Series {
            name: "s".into(),
            points,
            dashed: false,
        }
    }

    #[test]
    fn names_are_escaped_and_nothing_measured_says_so() {
        let mut plot = Plot {
            title: "a<b".into(),
            ..Plot::default()
        };
        for points in [vec![], vec![(0.0, f64::NAN)]] {
            plot.series = vec![series(points)];
            let svg = plot.to_svg();
            assert!(svg.contains("a&lt;b") && svg.contains("nothing was measured"));
        }
    }

    #[test]
    fn gaps_lift_the_pen() {
        let plot = Plot {
            series: vec![series(vec![
                (0.0, 1.0),
                (1.0, 2.0),
                (2.0, f64::NAN),
                (3.0, 1.0),
            ])],
            ..Plot::default()
        };
        let svg = plot.to_svg();
        let path = svg.split(" d=\"").nth(1).unwrap();
        let path = path.split('"').next().unwrap();
        assert_eq!(path.matches('M').count(), 2);
        assert_eq!(path.matches('L').count(), 1);
    }

    #[test]
    fn odd_values_are_drawn_within_the_picture() {
        for (log_y, binary_y) in [(false, false), (true, false), (false, true)] {
            for points in [
                vec![(0.0, 0.0)],
                vec![(20.0, 1e30)],
                vec![(0.0, 0.0), (1.0, f64::NAN), (2.0, 3.0)],
            ] {
                let plot = Plot {
                    series: vec![series(points)],
                    log_y,
                    binary_y,
                    ..Plot::default()
                };
                let svg = plot.to_svg();
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            }
        }
    }

    #[test]
    fn bars_have_one_rectangle_per_value() {
        let plot = Plot {
            groups: vec!["A".into(), "B".into()],
            series: vec![series(vec![(0.0, 1.0), (1.0, 10.0)])],
            log_y: true,
            ..Plot::default()
        };
        assert_eq!(plot.to_svg().matches("<title>s: ").count(), 2);
    }

    #[test]
    fn a_band_has_the_longest_label_that_fits() {
        let band = |from, to| Band {
            labels: vec!["# a long name".into(), "#".into()],
            title: "t".into(),
            from,
            to,
        };
        let label = |band: Band| {
            let plot = Plot {
                series: vec![series(vec![(0.0, 1.0), (100.0, 1.0)])],
                bands: vec![band],
                ..Plot::default()
            };
            plot.to_svg()
        };
        assert!(label(band(0.0, 50.0)).contains("# a long name</text>"));
        let short = label(band(0.0, 5.0));
        assert!(!short.contains("long name</text>") && short.contains(">#</text>"));
        assert!(!label(band(0.0, 0.5)).contains(">#</text>"));
    }
}
