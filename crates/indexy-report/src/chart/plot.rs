//! The description of a chart.

/// One named line or set of bars.
#[derive(Debug, Clone, Default)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Points, by increasing x; for bars, x is the index of the group. A y that is no number is a
    /// gap.
    pub points: Vec<(f64, f64)>,
    /// Draw dashed: a limit or a reference.
    pub dashed: bool,
}

/// A part of the x axis with a name, shown as a band behind the lines.
#[derive(Debug, Clone, Default)]
pub struct Band {
    /// What is written above the band, the best first: the first that fits the width is taken.
    pub labels: Vec<String>,
    /// What a browser shows under the pointer.
    pub title: String,
    /// Where it begins on the x axis.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
}

/// A chart: lines over a number, or grouped bars if there are `groups`.
#[derive(Debug, Clone)]
pub struct Plot {
    /// What the chart shows. It is written above the chart, unless `untitled`.
    pub title: String,
    /// The page has the title; the chart has it only for readers who cannot see it.
    pub untitled: bool,
    /// Below the chart.
    pub x_label: String,
    /// At its side.
    pub y_label: String,
    /// What is drawn.
    pub series: Vec<Series>,
    /// Names of groups; makes it a bar chart.
    pub groups: Vec<String>,
    /// Named parts of the x axis.
    pub bands: Vec<Band>,
    /// Both ends of the x axis; by the data if absent.
    pub x_range: Option<(f64, f64)>,
    /// Logarithmic x.
    pub log_x: bool,
    /// Logarithmic y. What is not above 0 is drawn at the lower end.
    pub log_y: bool,
    /// Lower end of a logarithmic y axis; by the data if absent.
    pub y_min: Option<f64>,
    /// Upper end of the y axis; by the data if absent.
    pub y_max: Option<f64>,
    /// Marks of the y axis are at powers of two.
    pub binary_y: bool,
    /// How a value of the y axis is written.
    pub y_text: fn(f64) -> String,
    /// Width and height of the drawing without its legend, in units that a browser scales.
    pub size: (f64, f64),
}

impl Default for Plot {
    fn default() -> Self {
        Self {
            title: String::new(),
            untitled: false,
            x_label: String::new(),
            y_label: String::new(),
            series: Vec::new(),
            groups: Vec::new(),
            bands: Vec::new(),
            x_range: None,
            log_x: false,
            log_y: false,
            y_min: None,
            y_max: None,
            binary_y: false,
            y_text: crate::size::short_number,
            size: (720.0, 340.0),
        }
    }
}
