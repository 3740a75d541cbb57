//! The layout of a table at one generation of its definition: its trees, and what lies in them.
//!
//! Rows: primary key -> the other columns. An index that is not unique: its columns and what they
//! lack of the primary key -> included columns. A unique one: its columns -> what they lack of the
//! primary key, and included columns; with NULL among its columns its key ends with the rest of the
//! primary key, too, so that any number of rows may have it.

#[cfg(feature = "arrow")]
use crate::value::Borrowed;
use crate::{
    definition::{Definition, IndexState, StoredIndex},
    entry::{Entries, Projection},
    error::{Error, Result},
    key, tree_names,
    value::Value,
};
use indexy::{Tree, limits::MAX_KEY_BYTES};
use std::sync::Arc;

/// See the module header.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) name: String,
    pub(crate) definition: Definition,
    /// Names of all columns.
    pub(crate) columns: Arc<[String]>,
    pub(crate) rows: Entries,
    /// Where all columns lie in rows.
    all: Projection,
    pub(crate) indexes: Vec<IndexLayout>,
    /// Names of indexes that were dropped since, and of their trees.
    dropped: Vec<(String, String)>,
}

#[derive(Debug)]
pub(crate) struct IndexLayout {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) unique: bool,
    pub(crate) ready: bool,
    pub(crate) entries: Entries,
    /// Columns by which it is ordered before the primary key.
    pub(crate) columns: Vec<usize>,
    /// Columns of the primary key that are not among these.
    rest: Vec<usize>,
}

/// An entry of an index.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
    /// No other row may have this key.
    pub(crate) alone: bool,
}

impl Layout {
    /// Of a definition that was checked; `tree` finds trees that are there by name.
    pub(crate) fn new(
        name: &str,
        definition: Definition,
        tree: impl Fn(&str) -> Option<Tree>,
    ) -> Result<Self> {
        let of_rows = tree_names::rows(definition.id);
        let rows = tree(&of_rows).ok_or_else(|| gone(&of_rows))?;
        let rows = Entries::of_rows(rows, &definition);
        let mut indexes = Vec::with_capacity(definition.indexes.len());
        let mut dropped = Vec::new();
        for index in &definition.indexes {
            let entries = tree_names::index(definition.id, index.id);
            match tree(&entries) {
                Some(tree) => indexes.push(IndexLayout::new(tree, &definition, index)),
                None => dropped.push((index.name.clone(), entries)),
            }
        }
        let columns = definition.columns.iter().map(|column| column.name.clone());
        Ok(Self {
            name: name.into(),
            columns: columns.collect(),
            all: rows.project(&(0..definition.columns.len()).collect::<Vec<_>>()),
            rows,
            indexes,
            dropped,
            definition,
        })
    }

    /// Whoever writes needs all indexes. Errors: `Db` with `TreeDropped`.
    pub(crate) fn check_whole(&self) -> Result<()> {
        let lacks = self.dropped.first();
        lacks.map_or(Ok(()), |(_, tree)| Err(gone(tree)))
    }

    pub(crate) fn column(&self, name: &str) -> Result<usize> {
        let found = self.columns.iter().position(|column| column == name);
        found.ok_or_else(|| Error::UnknownColumn {
            table: self.name.clone(),
            column: name.into(),
        })
    }

    pub(crate) fn index(&self, name: &str) -> Result<&IndexLayout> {
        let found = self.indexes.iter().find(|index| index.name == name);
        found.ok_or_else(|| {
            let dropped = self.dropped.iter().find(|(index, _)| index == name);
            let unknown = || Error::UnknownIndex {
                table: self.name.clone(),
                index: name.into(),
            };
            dropped.map_or_else(unknown, |(_, tree)| gone(tree))
        })
    }

    /// `value` as one of column `at`. Errors: `WrongType`, `NotNull`.
    pub(crate) fn fit(&self, at: usize, value: Value) -> Result<Value> {
        let column = &self.definition.columns[at];
        if value.is_null() && !column.nullable {
            return Err(Error::NotNull {
                table: self.name.clone(),
                column: column.name.clone(),
            });
        }
        value.fit(column.ty).map_err(|value| Error::WrongType {
            table: self.name.clone(),
            column: column.name.clone(),
            expected: column.ty,
            found: value.to_string(),
        })
    }

    /// `values` as those of these columns, and not more.
    fn fit_all(&self, columns: &[usize], values: Vec<Value>) -> Result<Vec<Value>> {
        if values.len() != columns.len() {
            return Err(Error::WrongCount {
                table: self.name.clone(),
                expected: columns.len(),
                found: values.len(),
            });
        }
        let values = columns.iter().zip(values);
        values.map(|(&at, value)| self.fit(at, value)).collect()
    }

    /// A row of all columns.
    pub(crate) fn fit_row(&self, values: Vec<Value>) -> Result<Vec<Value>> {
        let all: Vec<usize> = (0..self.columns.len()).collect();
        self.fit_all(&all, values)
    }

    /// A row of named values, and defaults.
    pub(crate) fn fit_named(&self, named: Vec<(String, Value)>) -> Result<Vec<Value>> {
        let columns = self.definition.columns.iter();
        let mut values: Vec<Option<Value>> = columns.map(|column| column.absent()).collect();
        for (name, value) in named {
            values[self.column(&name)?] = Some(value);
        }
        let values = values.into_iter().map(Option::unwrap_or_default);
        self.fit_row(values.collect())
    }

    /// The key of the row whose primary key has these values.
    pub(crate) fn row_key(&self, values: Vec<Value>) -> Result<Vec<u8>> {
        let columns = &self.definition.primary_key;
        let values = self.fit_all(columns, values)?;
        Ok(self.encode(columns, &values))
    }

    /// Values of these columns as the beginning of a key.
    pub(crate) fn encode(&self, columns: &[usize], values: &[Value]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(16 * values.len());
        for (&at, value) in columns.iter().zip(values) {
            let nullable = self.definition.columns[at].nullable;
            key::encode(&mut bytes, value, nullable);
        }
        bytes
    }

    /// Errors: `KeyTooLong`.
    pub(crate) fn check_key(&self, key: &[u8]) -> Result<()> {
        match key.len() > MAX_KEY_BYTES {
            true => Err(Error::KeyTooLong {
                table: self.name.clone(),
                len: key.len(),
                limit: MAX_KEY_BYTES,
            }),
            false => Ok(()),
        }
    }

    /// All columns of a row.
    pub(crate) fn read_row(&self, key: &[u8], value: &[u8]) -> Result<Vec<Value>> {
        self.read(&self.rows, (key, value), &self.all)
    }

    /// The columns `wanted` of an entry.
    pub(crate) fn read(
        &self,
        entries: &Entries,
        entry: (&[u8], &[u8]),
        wanted: &Projection,
    ) -> Result<Vec<Value>> {
        let read = entries.read(&self.definition.columns, entry, wanted);
        read.map_err(|what| Error::corrupt(&self.name, what))
    }

    /// As `read`, without copies: see [`Entries::visit`].
    #[cfg(feature = "arrow")]
    pub(crate) fn visit<'a>(
        &'a self,
        entries: &'a Entries,
        entry: (&'a [u8], &'a [u8]),
        wanted: &Projection,
        see: impl FnMut(usize, Borrowed<'a>),
    ) -> Result<()> {
        let read = entries.visit(&self.definition.columns, entry, wanted, see);
        read.map_err(|what| Error::corrupt(&self.name, what))
    }
}

fn gone(tree: &str) -> Error {
    let name = tree.into();
    indexy::Error::TreeDropped { name }.into()
}

impl IndexLayout {
    fn new(tree: Tree, definition: &Definition, index: &StoredIndex) -> Self {
        let primary_key = definition.primary_key.iter().copied();
        let rest = primary_key.filter(|at| !index.columns.contains(at));
        let rest: Vec<usize> = rest.collect();
        let mut key = index.columns.clone();
        let mut value = Vec::new();
        let to = if index.unique { &mut value } else { &mut key };
        to.extend(&rest);
        let included = index.include.iter();
        let more: Vec<usize> = included
            .filter(|at| !key.contains(at) && !value.contains(at))
            .copied()
            .collect();
        value.extend(more);
        Self {
            id: index.id,
            name: index.name.clone(),
            unique: index.unique,
            ready: index.state == IndexState::Ready,
            entries: Entries::of_index(tree, definition, key, value),
            columns: index.columns.clone(),
            rest,
        }
    }

    /// The entry of a row of all columns.
    pub(crate) fn entry(&self, definition: &Definition, values: &[Value]) -> IndexEntry {
        let columns = &definition.columns;
        let mut key = self.entries.encode_key(columns, values);
        let null = self.columns.iter().any(|&at| values[at].is_null());
        if self.unique && null {
            for &at in &self.rest {
                key::encode(&mut key, &values[at], columns[at].nullable);
            }
        }
        let value = match self.entries.value.is_empty() {
            true => Vec::new(),
            false => self.entries.encode_value(values),
        };
        IndexEntry {
            key,
            value,
            alone: self.unique && !null,
        }
    }
}
