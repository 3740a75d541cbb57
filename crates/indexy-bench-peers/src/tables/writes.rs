//! The writes of a batch, for engines whose transaction writes table by table.

use std::ops::Range;

/// Puts and removals in any order of tables and keys.
#[derive(Debug, Default)]
pub struct Writes {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    table: usize,
    key: Range<usize>,
    /// None removes the key.
    value: Option<Range<usize>>,
}

impl Writes {
    /// Adds a put, or a removal if there is no value.
    pub fn push(&mut self, table: usize, key: &[u8], value: Option<&[u8]>) {
        let mut keep = |part: &[u8]| {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(part);
            start..self.bytes.len()
        };
        let (key, value) = (keep(key), value.map(keep));
        self.entries.push(Entry { table, key, value });
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The writes of each table in key order, those of one key in the order they were pushed. A B+
    /// tree likes that, and a table is opened once.
    pub fn by_table(&mut self) -> impl Iterator<Item = (usize, impl Iterator<Item = Write<'_>>)> {
        let bytes = &self.bytes;
        let place = |entry: &Entry| (entry.table, &bytes[entry.key.clone()]);
        self.entries.sort_by(|a, b| place(a).cmp(&place(b)));
        let write = |entry: &Entry| Write {
            key: &bytes[entry.key.clone()],
            value: entry.value.clone().map(|value| &bytes[value]),
        };
        self.entries
            .chunk_by(|a, b| a.table == b.table)
            .map(move |entries| (entries[0].table, entries.iter().map(write)))
    }
}

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Write<'a> {
    pub key: &'a [u8],
    /// None removes the key.
    pub value: Option<&'a [u8]>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_come_one_by_one_and_the_last_write_of_a_key_last() {
        let mut writes = Writes::default();
        writes.push(1, b"b", Some(b"1"));
        writes.push(0, b"z", None);
        writes.push(1, b"a", Some(b""));
        writes.push(1, b"b", None);
        let write = |key, value| Write { key, value };
        let found: Vec<(usize, Vec<Write<'_>>)> = writes
            .by_table()
            .map(|(table, writes)| (table, writes.collect()))
            .collect();
        let none = write(b"z", None);
        let more = [
            write(b"a", Some(b"")),
            write(b"b", Some(b"1")),
            write(b"b", None),
        ];
        assert_eq!(found, [(0, vec![none]), (1, more.to_vec())]);
    }
}
