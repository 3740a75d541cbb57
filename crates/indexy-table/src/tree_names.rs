//! Names of the trees of tables: `indexy.table.N` for rows, `indexy.table.N.M` for an index.

/// What all of them begin with.
pub(crate) const PREFIX: &str = "indexy.table.";

pub(crate) fn rows(table: u64) -> String {
    format!("{PREFIX}{table}")
}

pub(crate) fn index(table: u64, index: u64) -> String {
    format!("{PREFIX}{table}.{index}")
}

/// It is named as a tree of a table is.
pub(crate) fn is_of_table(name: &str) -> bool {
    let numbers = name.strip_prefix(PREFIX);
    numbers.is_some_and(|numbers| {
        let mut parts = numbers.split('.');
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        numbers.split('.').count() <= 2 && parts.all(digits)
    })
}

#[cfg(test)]
mod tests {
    use super::is_of_table;

    #[test]
    fn only_names_of_trees_of_tables_are_taken_for_them() {
        for name in ["indexy.table.1", "indexy.table.12.3"] {
            assert!(is_of_table(name), "{name}");
        }
        for name in [
            "indexy.tables",
            "indexy.table.",
            "indexy.table.1.",
            "indexy.table.1.2.3",
            "indexy.table.one",
            "table.1",
        ] {
            assert!(!is_of_table(name), "{name}");
        }
    }
}
