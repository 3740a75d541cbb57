//! Text in charts: escaped, and about how wide it is.

/// Average width of a character, as a part of the font size.
const CHARACTER: f64 = 0.56;

/// `text`, escaped for HTML, SVG and their attributes.
#[must_use]
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// About how wide `text` is, in units of the picture. Fonts differ: this is for keeping a distance.
pub(super) fn width(text: &str, font_size: f64) -> f64 {
    text.chars().count() as f64 * font_size * CHARACTER
}
