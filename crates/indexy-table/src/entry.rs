//! Entries: which columns of a row lie in the key and in the value of a tree, and how they are
//! written and read.

use crate::{
    definition::{Definition, StoredColumn},
    key,
    row::RowFormat,
    value::Value,
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

    /// The columns `wanted` of an entry; `Err`: what does not hold.
    pub(crate) fn read(
        &self,
        columns: &[StoredColumn],
        (key, value): (&[u8], &[u8]),
        wanted: &[usize],
    ) -> Result<Vec<Value>, String> {
        let places = wanted.iter().map(|&at| (at, self.places[at]));
        let last_in_key = places.clone().filter_map(|(_, place)| match place {
            Some(Place::Key(at)) => Some(at + 1),
            _ => None,
        });
        let mut in_key = Vec::new();
        let mut reader = BorrowReader::new(key);
        for &at in &self.key[..last_in_key.max().unwrap_or(0)] {
            let column = &columns[at];
            let read = key::decode(&mut reader, column.ty, column.nullable);
            in_key.push(read.map_err(|error| format!("column {} in a key: {error}", column.name))?);
        }
        let mut row = None;
        let mut values = Vec::with_capacity(wanted.len());
        for (at, place) in places {
            let column = &columns[at];
            let found = match place {
                Some(Place::Key(at)) => in_key.get(at).cloned(),
                Some(Place::Value(at)) => {
                    if row.is_none() {
                        row = Some(self.format.read(value)?);
                    }
                    let read = row.as_ref().map_or(Ok(None), |row| row.get(at));
                    read.map_err(|what| format!("column {}: {what}", column.name))?
                }
                None => None,
            };
            let found = found.or_else(|| column.absent());
            values.push(found.ok_or_else(|| format!("no column {} in a row", column.name))?);
        }
        Ok(values)
    }
}
