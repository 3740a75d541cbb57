//! Line charts as inline SVG: no scripts, no fonts, no network. Colours come from the page's style sheet.
//!
//! A chart is a pure function of its description. Time runs along x; phases are bands with their numbers on top.

use std::fmt::Write as _;

/// Space around the plot, in units of the view box.
const LEFT: f64 = 64.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 26.0;
/// Points of one line; more are averaged.
const MAX_POINTS: usize = 240;
/// Horizontal grid lines, about.
const Y_TICKS: f64 = 4.0;
/// Units of the view box per label along x, at least.
const X_TICK_SPACE: f64 = 70.0;

/// One line.
#[derive(Debug, Clone)]
pub struct Line {
    /// For the legend.
    pub name: &'static str,
    /// Class in the style sheet: `a`, `b` or `c`.
    pub class: &'static str,
    /// Seconds and value; `None` is a gap.
    pub points: Vec<(f64, Option<f64>)>,
}

/// A band of time.
#[derive(Debug, Clone)]
pub struct Band {
    pub label: String,
    pub title: String,
    pub from: f64,
    pub to: f64,
}

/// One chart.
#[derive(Debug)]
pub struct Chart<'a> {
    pub title: &'static str,
    /// What it shows, for those who cannot see it.
    pub description: String,
    pub lines: Vec<Line>,
    /// A dashed line across, with its name.
    pub limit: Option<(f64, String)>,
    /// Upper end of the y axis; by the data if absent.
    pub y_max: Option<f64>,
    /// How a value on the y axis is written.
    pub y_label: fn(f64) -> String,
    /// The y axis counts in powers of two.
    pub binary: bool,
    pub bands: &'a [Band],
    pub seconds: f64,
}

/// Draws `chart`; width and height in units of the view box, which a browser scales to the space there is.
pub fn svg(chart: &Chart<'_>, width: f64, height: f64) -> String {
    let scale = Scale::of(chart, width, height);
    let mut out = String::new();
    let _ = write!(
        out,
        r#"<svg viewBox="0 0 {width} {height}" role="img" aria-label="{}">"#,
        text(&format!("{}. {}", chart.title, chart.description))
    );
    bands(&mut out, chart, &scale);
    grid(&mut out, chart, &scale);
    for line in &chart.lines {
        let _ = write!(
            out,
            r#"<path class="line {}" d="{}"/>"#,
            line.class,
            path(&line.points, &scale)
        );
    }
    if let Some((value, name)) = &chart.limit {
        let y = scale.y(*value);
        let _ = write!(
            out,
            r#"<line class="limit" x1="{LEFT}" x2="{:.1}" y1="{y:.1}" y2="{y:.1}"/><text class="limit" x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"#,
            width - RIGHT,
            width - RIGHT - 4.0,
            y - 5.0,
            text(name)
        );
    }
    out.push_str("</svg>");
    out
}

struct Scale {
    width: f64,
    height: f64,
    seconds: f64,
    step: f64,
    top: f64,
}

impl Scale {
    fn of(chart: &Chart<'_>, width: f64, height: f64) -> Self {
        let values = chart
            .lines
            .iter()
            .flat_map(|line| line.points.iter().filter_map(|p| p.1));
        let most = values
            .chain(chart.limit.iter().map(|l| l.0))
            .fold(0.0, f64::max);
        let wanted = chart.y_max.unwrap_or(most * 1.1).max(1e-9);
        let step = nice_step(wanted / Y_TICKS, chart.binary);
        Self {
            width,
            height,
            seconds: chart.seconds.max(1e-3),
            step,
            top: chart.y_max.unwrap_or((wanted / step).ceil() * step),
        }
    }

    fn x(&self, seconds: f64) -> f64 {
        LEFT + (seconds / self.seconds).clamp(0.0, 1.0) * (self.width - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        self.height - BOTTOM - (value / self.top).clamp(0.0, 1.0) * (self.height - TOP - BOTTOM)
    }
}

/// The next of 1, 2, 5 times a power of ten (or a power of two) from `wanted` up.
fn nice_step(wanted: f64, binary: bool) -> f64 {
    if binary {
        return wanted.log2().ceil().exp2();
    }
    let power = 10_f64.powf(wanted.log10().floor());
    [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|m| m * power)
        .find(|step| *step >= wanted * 0.999)
        .unwrap_or(power * 10.0)
}

fn bands(out: &mut String, chart: &Chart<'_>, scale: &Scale) {
    for (n, band) in chart.bands.iter().enumerate() {
        let (x, end) = (scale.x(band.from), scale.x(band.to));
        let class = if n % 2 == 0 { "band" } else { "band odd" };
        let _ = write!(
            out,
            r#"<g><title>{}</title><rect class="{class}" x="{x:.1}" y="4" width="{:.1}" height="{:.1}"/>"#,
            text(&band.title),
            (end - x).max(0.5),
            scale.height - BOTTOM - 4.0
        );
        if end - x > 9.0 {
            let _ = write!(
                out,
                r#"<text class="tick" x="{:.1}" y="16" text-anchor="middle">{}</text>"#,
                (x + end) / 2.0,
                text(&band.label)
            );
        }
        out.push_str("</g>");
    }
}

fn grid(out: &mut String, chart: &Chart<'_>, scale: &Scale) {
    let mut value = 0.0;
    while value <= scale.top * 1.001 {
        let y = scale.y(value);
        let class = if value == 0.0 { "axis" } else { "grid" };
        let _ = write!(
            out,
            r#"<line class="{class}" x1="{LEFT}" x2="{:.1}" y1="{y:.1}" y2="{y:.1}"/><text class="tick" x="{}" y="{:.1}" text-anchor="end">{}</text>"#,
            scale.width - RIGHT,
            LEFT - 6.0,
            y + 4.0,
            text(&(chart.y_label)(value))
        );
        value += scale.step;
    }
    let ticks = ((scale.width - LEFT - RIGHT) / X_TICK_SPACE).max(1.0);
    let step = nice_step(scale.seconds / ticks, false).max(1.0);
    let mut seconds = 0.0;
    while seconds <= scale.seconds {
        let _ = write!(
            out,
            r#"<text class="tick" x="{:.1}" y="{:.1}" text-anchor="middle">{seconds:.0} s</text>"#,
            scale.x(seconds),
            scale.height - 8.0
        );
        seconds += step;
    }
}

fn path(points: &[(f64, Option<f64>)], scale: &Scale) -> String {
    let mut out = String::new();
    let mut pen_down = false;
    for (seconds, value) in thinned(points) {
        let Some(value) = value else {
            pen_down = false;
            continue;
        };
        let _ = write!(
            out,
            "{}{:.1} {:.1}",
            if pen_down { 'L' } else { 'M' },
            scale.x(seconds),
            scale.y(value)
        );
        if !pen_down {
            // A lone point shows as a dot.
            out.push_str("h0");
        }
        pen_down = true;
    }
    out
}

/// At most [`MAX_POINTS`] points, each the mean of its neighbours; gaps stay.
fn thinned(points: &[(f64, Option<f64>)]) -> Vec<(f64, Option<f64>)> {
    points
        .chunks(points.len().div_ceil(MAX_POINTS).max(1))
        .map(|chunk| {
            let values: Vec<f64> = chunk.iter().filter_map(|p| p.1).collect();
            let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
            let middle = chunk.iter().map(|p| p.0).sum::<f64>() / chunk.len() as f64;
            (middle, (!values.is_empty()).then_some(mean))
        })
        .collect()
}

/// `raw` as text in HTML and in attributes.
pub fn text(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    for c in raw.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: Vec<(f64, Option<f64>)>) -> String {
        let bands = [Band {
            label: "1".into(),
            title: "a <b>".into(),
            from: 0.0,
            to: 5.0,
        }];
        let chart = Chart {
            title: "T",
            description: "says \"so\"".into(),
            lines: vec![Line {
                name: "n",
                class: "a",
                points,
            }],
            limit: Some((50.0, "budget".into())),
            y_max: None,
            y_label: |v| format!("{v}"),
            binary: false,
            bands: &bands,
            seconds: 10.0,
        };
        svg(&chart, 720.0, 240.0)
    }

    #[test]
    fn nothing_to_draw_is_no_trouble() {
        for points in [
            vec![],
            vec![(0.0, None)],
            vec![(0.0, Some(0.0))],
            vec![(20.0, Some(1e30))],
        ] {
            let out = chart(points);
            assert!(!out.contains("NaN") && !out.contains("inf"), "{out}");
        }
    }

    #[test]
    fn gaps_lift_the_pen_and_text_is_quoted() {
        let out = chart(vec![
            (0.0, Some(1.0)),
            (1.0, Some(2.0)),
            (2.0, None),
            (3.0, Some(1.0)),
        ]);
        let d = out
            .split(" d=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap();
        assert_eq!(d.matches('M').count(), 2);
        assert_eq!(d.matches('L').count(), 1);
        assert!(out.contains("a &lt;b&gt;") && out.contains("&quot;so&quot;"));
    }

    #[test]
    fn many_points_are_thinned() {
        let points: Vec<_> = (0..10_000)
            .map(|i| (f64::from(i) / 1000.0, Some(7.0)))
            .collect();
        let thin = thinned(&points);
        assert!(thin.len() <= MAX_POINTS);
        assert!(thin.iter().all(|p| p.1 == Some(7.0)));
    }

    #[test]
    fn steps_are_round() {
        assert_eq!(nice_step(0.9, false), 1.0);
        assert_eq!(nice_step(23.0, false), 25.0);
        assert_eq!(nice_step(300.0, false), 500.0);
        assert_eq!(nice_step(300.0, true), 512.0);
    }
}
