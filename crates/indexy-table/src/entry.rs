//! Entries: which columns of a row lie in the key and in the value of a tree, and how they are
//! written and read.

use crate::{
    definition::{Definition, StoredColumn},
    key,
    row::RowFormat,
    value::{Borrowed, Value},
};
use indexy::Tree;
use storekey::BorrowReader;

/// Where a column lies.
#[derive(Debug, Clone, Copy)]
enum Place {
    Key(usize),
    Value(usize),
}

/// The entries of a tree.
#[derive(Debug)]
pub(crate) struct Entries {
    pub(crate) tree: Tree,
    /// Numbers of the columns in the key.
    pub(crate) key: Vec<usize>,
    /// Numbers of the columns in the value.
    pub(crate) value: Vec<usize>,
    format: RowFormat,
    /// By column.
    places: Vec<Option<Place>>,
}

impl Entries {
    /// The rows themselves.
    pub(crate) fn of_rows(tree: Tree, definition: &Definition) -> Self {
        let key = definition.primary_key.clone();
        let all = 0..definition.columns.len();
        let value: Vec<usize> = all.filter(|at| !key.contains(at)).collect();
        let columns = value.iter().map(|&at| &definition.columns[at]);
        let columns = columns.map(|column| (column.ty, column.nullable, column.since));
        let format = RowFormat::new(columns, definition.version);
        Self::new(tree, definition, key, value, format)
    }

    /// Those of an index: no column twice, and never another version.
    pub(crate) fn of_index(
        tree: Tree,
        definition: &Definition,
        key: Vec<usize>,
        value: Vec<usize>,
    ) -> Self {
        let columns = value.iter().map(|&at| &definition.columns[at]);
        let format = RowFormat::new(columns.map(|column| (column.ty, column.nullable, 1)), 1);
        Self::new(tree, definition, key, value, format)
    }

    fn new(
        tree: Tree,
        definition: &Definition,
        key: Vec<usize>,
        value: Vec<usize>,
        format: RowFormat,
    ) -> Self {
        let mut places = vec![None; definition.columns.len()];
        let in_value = value.iter().enumerate();
        in_value.for_each(|(at, &column)| places[column] = Some(Place::Value(at)));
        let in_key = key.iter().enumerate();
        in_key.for_each(|(at, &column)| places[column] = Some(Place::Key(at)));
        Self {
            tree,
            key,
            value,
            format,
            places,
        }
    }

    /// Whether all of these columns are here.
    pub(crate) fn has_all(&self, columns: &[usize]) -> bool {
        columns.iter().all(|&at| self.places[at].is_some())
    }

    /// The key of a row; `values` has all columns.
    pub(crate) fn encode_key(&self, columns: &[StoredColumn], values: &[Value]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(16 * self.key.len());
        for &at in &self.key {
            key::encode(&mut bytes, &values[at], columns[at].nullable);
        }
        bytes
    }

    /// The value of a row; `values` has all columns.
    pub(crate) fn encode_value(&self, values: &[Value]) -> Vec<u8> {
        self.format.encode(self.value.iter().map(|&at| &values[at]))
    }

    /// Where these columns lie.
    pub(crate) fn project(&self, wanted: &[usize]) -> Projection {
        let mut projection = Projection {
            wanted: wanted.len(),
            ..Projection::default()
        };
        for (to, column) in wanted.iter().enumerate() {
            if let Some(from) = wanted[..to].iter().position(|other| other == column) {
                projection.copies.push((from, to));
                continue;
            }
            match self.places[*column] {
                Some(Place::Key(at)) => {
                    let known = projection.key.len().max(at + 1);
                    projection.key.resize(known, None);
                    projection.key[at] = Some(to);
                }
                Some(Place::Value(at)) => projection.value.push((at, to)),
                None => projection.missing = Some(*column),
            }
        }
        projection
    }

    /// The columns of an entry that `wanted` has the places of; `Err`: what does not hold.
    pub(crate) fn read(
        &self,
        columns: &[StoredColumn],
        entry: (&[u8], &[u8]),
        wanted: &Projection,
    ) -> Result<Vec<Value>, String> {
        let mut values = vec![Value::Null; wanted.wanted];
        self.visit(columns, entry, wanted, |to, value| {
            values[to] = value.into_value();
        })?;
        for &(from, to) in &wanted.copies {
            values[to] = values[from].clone();
        }
        Ok(values)
    }

    /// Calls `see` for each of these columns, with its place among the wanted ones; not for copies.
    pub(crate) fn visit<'a>(
        &'a self,
        columns: &'a [StoredColumn],
        (key, value): (&'a [u8], &'a [u8]),
        wanted: &Projection,
        mut see: impl FnMut(usize, Borrowed<'a>),
    ) -> Result<(), String> {
        if let Some(column) = wanted.missing {
            return Err(format!("no column {} here", columns[column].name));
        }
        let mut reader = BorrowReader::new(key);
        for (&at, to) in self.key.iter().zip(&wanted.key) {
            let (column, to) = (&columns[at], *to);
            let read = match to {
                Some(to) => {
                    key::decode(&mut reader, column.ty, column.nullable).map(|value| see(to, value))
                }
                None => key::skip(&mut reader, column.ty, column.nullable).map(drop),
            };
            read.map_err(|error| in_key(column, &error))?;
        }
        if !wanted.value.is_empty() {
            let row = self.format.read(value)?;
            for &(at, to) in &wanted.value {
                let column = &columns[self.value[at]];
                let read = row
                    .get(at)
                    .map_err(|what| format!("column {}: {what}", column.name))?;
                let read = read.or_else(|| column.absent_borrowed());
                see(
                    to,
                    read.ok_or_else(|| format!("no column {}", column.name))?,
                );
            }
        }
        Ok(())
    }

    /// The key of the row of an entry, whose primary key is `primary_key`; what of it lies in the
    /// entry's key is copied.
    pub(crate) fn row_key(
        &self,
        columns: &[StoredColumn],
        (key, value): (&[u8], &[u8]),
        primary_key: &[usize],
    ) -> Result<Vec<u8>, String> {
        // Where each column of the key ends, as far as one is needed.
        let needed = primary_key.iter().filter_map(|&at| match self.places[at] {
            Some(Place::Key(at)) => Some(at + 1),
            _ => None,
        });
        let mut ends = Vec::with_capacity(self.key.len());
        let (mut reader, mut end) = (BorrowReader::new(key), 0);
        for &at in &self.key[..needed.max().unwrap_or(0)] {
            let column = &columns[at];
            let skipped = key::skip(&mut reader, column.ty, column.nullable);
            end += skipped.map_err(|error| in_key(column, &error))?;
            ends.push(end);
        }
        let mut row_key = Vec::with_capacity(key.len());
        let mut row = None;
        for &at in primary_key {
            let column = &columns[at];
            let bytes = match self.places[at] {
                Some(Place::Key(at)) => {
                    let from = at
                        .checked_sub(1)
                        .map_or(Some(0), |at| ends.get(at).copied());
                    from.zip(ends.get(at).copied())
                        .and_then(|(from, to)| key.get(from..to))
                }
                Some(Place::Value(at)) => {
                    if row.is_none() {
                        row = Some(self.format.read(value)?);
                    }
                    let read = row.as_ref().map_or(Ok(None), |row| row.get(at))?;
                    let read = read.ok_or("no primary key in an entry")?;
                    key::encode(&mut row_key, &read.into_value(), column.nullable);
                    continue;
                }
                None => None,
            };
            row_key.extend_from_slice(bytes.ok_or("no primary key in an entry")?);
        }
        Ok(row_key)
    }
}

fn in_key(column: &StoredColumn, error: &storekey::DecodeError) -> String {
    format!("column {} in a key: {error}", column.name)
}

/// Where columns that are wanted lie in entries; found once for many of them.
#[derive(Debug, Default)]
pub(crate) struct Projection {
    /// Number of columns.
    wanted: usize,
    /// Of each column of the key, up to the last that is wanted: its place among the wanted ones.
    key: Vec<Option<usize>>,
    /// Column of the value, and its place among the wanted ones.
    value: Vec<(usize, usize)>,
    /// Columns that are wanted again: the first place, and another.
    pub(crate) copies: Vec<(usize, usize)>,
    /// One that the entries do not have.
    missing: Option<usize>,
}
