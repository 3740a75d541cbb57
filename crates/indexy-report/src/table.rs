//! Tables as aligned text.

use comfy_table::{CellAlignment, LineStyle, Table, presets};

/// Spaces between two columns, beside the one that comfy-table draws for a border.
const GAP: u16 = 1;

/// `heads` and `rows` in columns with a rule below the heads. Columns from `right_from` on are
/// aligned to the right. A row may have fewer cells than there are heads.
#[must_use]
pub fn text_table(heads: &[String], rows: &[Vec<String>], right_from: usize) -> String {
    let rule = LineStyle::none().fill('-').junction('-');
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING.header_separator(rule))
        .set_header(heads)
        .add_rows(rows);
    for (n, column) in table.column_iter_mut().enumerate() {
        column.set_padding(if n == 0 { (0, 0) } else { (GAP, 0) });
        if n >= right_from {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|cell| (*cell).to_owned()).collect()
    }

    #[test]
    fn columns_line_up() {
        let rows = [row(&["eins", "5"]), row(&["Füße", "12.0 µs"]), row(&["x"])];
        let text = text_table(&row(&["a", "bb"]), &rows, 1);
        assert_eq!(
            text,
            "a          bb\n-------------\neins        5\nFüße  12.0 µs\nx"
        );
        let text = text_table(&row(&["a", "bb"]), &rows, usize::MAX);
        assert_eq!(text, "a     bb\n-------------\neins  5\nFüße  12.0 µs\nx");
    }
}
