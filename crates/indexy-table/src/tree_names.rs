//! Names of the trees of tables: `indexy.table.N` for rows, `indexy.table.N.M` for an index.

/// What all of them begin with.
pub(crate) const PREFIX: &str = "indexy.table.";

pub(crate) fn rows(table: u64) -> String {
    format!("{PREFIX}{table}")
}

pub(crate) fn index(table: u64, index: u64) -> String {
    format!("{PREFIX}{table}.{index}")
}

/// The numbers of table and index in the name of a tree, if it is named as one of a table is.
pub(crate) fn numbers(name: &str) -> Option<(u64, Option<u64>)> {
    let number = |part: &str| {
        let number: Option<u64> = part.parse().ok();
        number.filter(|number| number.to_string() == part)
    };
    let numbers = name.strip_prefix(PREFIX)?;
    match numbers.split_once('.') {
        Some((table, index)) => Some((number(table)?, Some(number(index)?))),
        None => Some((number(numbers)?, None)),
    }
}

/// It is named as a tree of a table is.
pub(crate) fn is_of_table(name: &str) -> bool {
    numbers(name).is_some()
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
            "indexy.table.01",
            "indexy.table.+1",
            "indexy.table.99999999999999999999",
            "table.1",
        ] {
            assert!(!is_of_table(name), "{name}");
        }
    }
}
