//! Charts as SVG: lines over a number, and grouped bars. No script, no network, no fonts of its
//! own.
//!
//! A chart is a pure function of its description. Colours are attributes, so that a chart stands
//! alone; a page overrides them with its style sheet by the classes `page`, `text`, `rule`, `axis`,
//! `band` and, for series number n, `s0`, `s1`, ... A colour-blind reader can tell the palette
//! apart, and a legend below the chart names every series: no text lies over a line.

mod axis;
mod legend;
mod marks;
mod plot;
mod svg;
mod text;

pub use plot::{Band, Plot, Series};
pub use text::escape;
