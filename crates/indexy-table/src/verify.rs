//! `Table::verify`: every index has an entry for each row, the right one, and no other.

use crate::{
    ahead::AHEAD_BYTES,
    error::Result,
    layout::{IndexLayout, Layout},
    table::Table,
};
use indexy::{Key, Snapshot, Value};

/// Rows that are compared together, if they are small.
const CHUNK: usize = 128;
/// Problems that a report lists; it counts all.
const LISTED: usize = 100;

/// What [`Table::verify`] found.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
/// # use indexy_table::{Schema, Tables, Type};
/// # let schema = Schema::new("t").column("id", Type::U64).primary_key(["id"]);
/// # let table = Tables::open(&db)?.create_table(schema)?;
/// table.insert(1u64)?;
/// let report = table.verify()?;
/// assert!(report.is_ok(), "{report:?}");
/// assert_eq!(report.rows, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableReport {
    /// Number of rows.
    pub rows: u64,
    /// Name and number of entries of each index that is ready.
    pub indexes: Vec<(String, u64)>,
    /// What does not hold, up to 100.
    pub problems: Vec<String>,
    /// How much does not hold.
    pub problem_count: u64,
}

impl TableReport {
    /// Nothing is wrong. [`TableReport`] has an example.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.problem_count == 0
    }

    fn add(&mut self, problem: impl FnOnce() -> String) {
        self.problem_count += 1;
        if self.problems.len() < LISTED {
            self.problems.push(problem());
        }
    }
}

impl Table {
    /// Reads all rows and all entries of all indexes, at one moment, and compares them. A report
    /// lists what does not hold; an `Err` means that the walk could not go on.
    ///
    /// Cost: reads everything once, and rows once more for each index. Readers and writers go on.
    /// [`TableReport`] has an example.
    pub fn verify(&self) -> Result<TableReport> {
        let now = self.now()?;
        let (layout, snapshot) = (&*now.layout, &now.snapshot);
        let mut report = TableReport::default();
        let ready: Vec<&IndexLayout> = layout.indexes.iter().filter(|i| i.ready).collect();
        // Entries that rows have, by index.
        let mut expected = vec![0u64; ready.len()];
        let mut rows = snapshot.iter(&layout.rows.tree);
        loop {
            let chunk = next_chunk(&mut rows)?;
            if chunk.is_empty() {
                break;
            }
            check_rows(layout, snapshot, &ready, &chunk, &mut expected, &mut report)?;
        }
        for (index, expected) in ready.iter().zip(expected) {
            let found = snapshot.len(&index.entries.tree)?;
            report.indexes.push((index.name.clone(), found));
            if found > expected {
                report.add(|| {
                    let more = found - expected;
                    format!("index {}: {more} entries without a row", index.name)
                });
            }
        }
        Ok(report)
    }
}

/// The next rows, which are compared together; none: there are no more.
fn next_chunk(
    rows: &mut impl Iterator<Item = indexy::Result<(Key, Value)>>,
) -> Result<Vec<(Key, Value)>> {
    let (mut chunk, mut bytes) = (Vec::new(), 0);
    while chunk.len() < CHUNK && bytes < AHEAD_BYTES {
        let Some((key, value)) = rows.next().transpose()? else {
            break;
        };
        bytes += value.len();
        chunk.push((key, value));
    }
    Ok(chunk)
}

/// Checks some rows and their entries.
fn check_rows(
    layout: &Layout,
    snapshot: &Snapshot,
    indexes: &[&IndexLayout],
    rows: &[(Key, Value)],
    expected: &mut [u64],
    report: &mut TableReport,
) -> Result<()> {
    report.rows += rows.len() as u64;
    let mut read = Vec::with_capacity(rows.len());
    for (key, value) in rows {
        match layout.read_row(key, value) {
            Ok(values) if layout.rows.encode_key(&layout.definition.columns, &values) == **key => {
                read.push((key, values));
            }
            Ok(_) => report.add(|| format!("the key {key:?} is no key of its row")),
            Err(error) => report.add(|| format!("row {key:?}: {error}")),
        }
    }
    for (index, expected) in indexes.iter().zip(expected) {
        let entries = read
            .iter()
            .map(|(_, values)| index.entry(&layout.definition, values));
        let entries: Vec<_> = entries.collect();
        let keys = entries.iter().map(|entry| &entry.key);
        let found = snapshot.multi_get(&index.entries.tree, keys)?;
        for ((entry, found), (key, _)) in entries.iter().zip(found).zip(&read) {
            *expected += u64::from(found.is_some());
            match found {
                Some(value) if *value == entry.value[..] => {}
                Some(_) => report.add(|| format!("index {}: another entry of {key:?}", index.name)),
                None => report.add(|| format!("index {}: no entry of row {key:?}", index.name)),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of large rows only few are compared together.
    #[test]
    fn large_rows_are_not_held_in_numbers() {
        let dir = tempfile::tempdir().unwrap();
        let db = indexy::Db::open(dir.path(), indexy::Options::new(64 << 20)).unwrap();
        let tree = db.tree("t").unwrap();
        for key in 0..200u8 {
            tree.insert([key], vec![7; 1 << 20]).unwrap();
        }
        let mut entries = db.snapshot().unwrap().iter(&tree);
        let (mut seen, mut most) = (0, 0);
        loop {
            let chunk = next_chunk(&mut entries).unwrap();
            if chunk.is_empty() {
                break;
            }
            seen += chunk.len();
            most = most.max(chunk.iter().map(|(_, value)| value.len()).sum());
        }
        assert_eq!(seen, 200);
        assert!(most <= 4 << 20, "{most} bytes together");
    }
}
