//! A table within a transaction: rows and their index entries change together (I14).
//!
//! Every change of a row is one [`indexy::Batch`] that is appended to the transaction whole or not
//! at all: a call that fails has changed nothing, and the transaction may go on. What decides about
//! a change (the row before, whether a unique key is free, the definition of the table) is read
//! *for update*, so that it is protected under snapshot isolation, too.

use crate::{
    error::{Error, Result},
    layout::{IndexEntry, IndexLayout, Layout},
    query::Query,
    record::{IntoValues, Record},
    scan::{Rows, Source},
    schema::PRIMARY,
    value::Value,
};
use indexy::{Batch, Db, Transaction, limits::MAX_VALUE_BYTES};
use std::{fmt, sync::Arc};

/// A table within a transaction: [`Table::within`](crate::Table::within).
///
/// It reads what the transaction reads, its own writes among it. A call that returns an error has
/// changed nothing. After an error for which [`Error::is_retryable`] is true the transaction cannot
/// commit; return the error from the closure, and it is begun anew.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
/// # use indexy_table::{Column, Error, Schema, Tables, Type};
/// # let tables = Tables::open(&db)?;
/// # let schema = Schema::new("accounts").column("id", Type::U64).column("cents", Type::I64);
/// # let accounts = tables.create_table(schema.primary_key(["id"]))?;
/// accounts.insert((1u64, 100))?;
/// accounts.insert((2u64, 0))?;
/// tables.transact(|tx| {
///     let mut accounts = accounts.within(tx)?;
///     for (id, change) in [(1u64, -30), (2, 30)] {
///         let row = accounts.get(id)?.unwrap();
///         let cents = match row.get("cents") {
///             Some(indexy_table::Value::I64(cents)) => cents + change,
///             _ => 0,
///         };
///         accounts.update(id, [("cents", cents)])?;
///     }
///     Ok(())
/// })?;
/// assert_eq!(accounts.get(2u64)?.unwrap().get("cents"), Some(&30i64.into()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TableTransaction<'tx> {
    pub(crate) db: Db,
    pub(crate) layout: Arc<Layout>,
    pub(crate) tx: &'tx mut Transaction,
}

impl fmt::Debug for TableTransaction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableTransaction")
            .field("table", &self.layout.name)
            .finish_non_exhaustive()
    }
}

impl TableTransaction<'_> {
    /// The row of a primary key.
    ///
    /// Errors: `WrongCount`, `WrongType`, `NotNull`, `Corrupt`, `Db`, with `KeyTooLong` for a key
    /// that no row can have.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Schema, Tables, Type};
    /// # let tables = Tables::open(&db)?;
    /// # let schema = Schema::new("t").column("id", Type::U64).primary_key(["id"]);
    /// # let table = tables.create_table(schema)?;
    /// tables.transact(|tx| {
    ///     let mut table = table.within(tx)?;
    ///     table.insert(1u64)?;
    ///     assert!(table.get(1u64)?.is_some());
    ///     Ok(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get(&self, key: impl IntoValues) -> Result<Option<Record>> {
        let key = self.layout.row_key(key.into_values())?;
        let row = self.tx.get(&self.layout.rows.tree, &key)?;
        let row = row
            .map(|row| self.layout.read_row(&key, &row))
            .transpose()?;
        Ok(row.map(|values| Record::new(&self.layout.columns, values)))
    }

    /// As [`TableTransaction::get`]; under snapshot isolation, too, the commit conflicts if others
    /// write the row meanwhile.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Schema, Tables, Type};
    /// # let tables = Tables::open(&db)?;
    /// # let schema = Schema::new("t").column("id", Type::U64).primary_key(["id"]);
    /// # let table = tables.create_table(schema)?;
    /// tables.transact(|tx| {
    ///     tx.isolation(indexy::Isolation::Snapshot);
    ///     assert!(table.within(tx)?.get_for_update(1u64)?.is_none());
    ///     Ok(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get_for_update(&self, key: impl IntoValues) -> Result<Option<Record>> {
        let key = self.layout.row_key(key.into_values())?;
        let row = self.row_for_update(&key)?;
        Ok(row.map(|values| Record::new(&self.layout.columns, values)))
    }

    /// Adds a row: a value for each column, in order.
    ///
    /// Errors: `DuplicateKey`, `WrongCount`, `WrongType`, `NotNull`, `RowTooLarge`, `KeyTooLong`,
    /// `Db`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Error, Schema, Tables, Type};
    /// # let tables = Tables::open(&db)?;
    /// # let schema = Schema::new("t").column("id", Type::U64).primary_key(["id"]);
    /// # let table = tables.create_table(schema)?;
    /// tables.transact(|tx| {
    ///     let mut table = table.within(tx)?;
    ///     table.insert(1u64)?;
    ///     assert!(matches!(table.insert(1u64), Err(Error::DuplicateKey { .. })));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert(&mut self, row: impl IntoValues) -> Result<()> {
        let values = self.layout.fit_row(row.into_values())?;
        self.insert_fitted(values)
    }

    /// Adds a row of named values; the other columns take their defaults, or NULL.
    ///
    /// Errors: `UnknownColumn`, `NotNull` for a column without a default, and those of
    /// [`TableTransaction::insert`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Column, Schema, Tables, Type};
    /// # let tables = Tables::open(&db)?;
    /// # let schema = Schema::new("t").column("id", Type::U64);
    /// # let schema = schema.column("n", Column::new(Type::I64).default(7)).primary_key(["id"]);
    /// # let table = tables.create_table(schema)?;
    /// tables.transact(|tx| table.within(tx)?.insert_named([("id", 1)]))?;
    /// assert_eq!(table.get(1u64)?.unwrap().get("n"), Some(&7i64.into()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_named<C: Into<String>, V: Into<Value>>(
        &mut self,
        values: impl IntoIterator<Item = (C, V)>,
    ) -> Result<()> {
        let values = self.layout.fit_named(named(values))?;
        self.insert_fitted(values)
    }

    fn insert_fitted(&mut self, values: Vec<Value>) -> Result<()> {
        let key = self
            .layout
            .rows
            .encode_key(&self.layout.definition.columns, &values);
        self.layout.check_key(&key)?;
        if self
            .tx
            .get_for_update(&self.layout.rows.tree, &key)?
            .is_some()
        {
            return Err(self.duplicate(PRIMARY));
        }
        self.replace(None, Some((key, values)))
    }

    /// Adds a row, or replaces the one that has its primary key; whether there was one.
    ///
    /// Errors: those of [`TableTransaction::insert`]; `DuplicateKey` only for other indexes.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Schema, Tables, Type};
    /// # let tables = Tables::open(&db)?;
    /// # let schema = Schema::new("t").column("id", Type::U64).primary_key(["id"]);
    /// # let table = tables.create_table(schema)?;
    /// tables.transact(|tx| {
    ///     assert!(!table.within(tx)?.upsert(1u64)?);
    ///     assert!(table.within(tx)?.upsert(1u64)?);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn upsert(&mut self, row: impl IntoValues) -> Result<bool> {
        let values = self.layout.fit_row(row.into_values())?;
        let key = self
            .layout
            .rows
            .encode_key(&self.layout.definition.columns, &values);
        self.layout.check_key(&key)?;
        let old = self.row_for_update(&key)?;
        let existed = old.is_some();
        self.replace(old.map(|old| (key.clone(), old)), Some((key, values)))?;
        Ok(existed)
    }

    /// Changes columns of the row of a primary key; whether there is one. The primary key may be
    /// changed, too.
    ///
    /// Errors: `UnknownColumn`, and those of [`TableTransaction::insert`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Schema, Tables, Type};
    /// # let tables = Tables::open(&db)?;
    /// # let schema = Schema::new("t").column("id", Type::U64).primary_key(["id"]);
    /// # let table = tables.create_table(schema)?;
    /// table.insert(1u64)?;
    /// assert!(tables.transact(|tx| table.within(tx)?.update(1u64, [("id", 2)]))?);
    /// assert!(table.get(2u64)?.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn update<C: Into<String>, V: Into<Value>>(
        &mut self,
        key: impl IntoValues,
        changes: impl IntoIterator<Item = (C, V)>,
    ) -> Result<bool> {
        let key = self.layout.row_key(key.into_values())?;
        let mut fitted = Vec::new();
        for (column, value) in named(changes) {
            let at = self.layout.column(&column)?;
            fitted.push((at, self.layout.fit(at, value)?));
        }
        let Some(old) = self.row_for_update(&key)? else {
            return Ok(false);
        };
        let mut new = old.clone();
        for (at, value) in fitted {
            new[at] = value;
        }
        let new_key = self
            .layout
            .rows
            .encode_key(&self.layout.definition.columns, &new);
        if new_key != key {
            self.layout.check_key(&new_key)?;
            if self
                .tx
                .get_for_update(&self.layout.rows.tree, &new_key)?
                .is_some()
            {
                return Err(self.duplicate(PRIMARY));
            }
        }
        self.replace(Some((key, old)), Some((new_key, new)))?;
        Ok(true)
    }

    /// Removes the row of a primary key; whether there was one.
    ///
    /// Errors: `WrongCount`, `WrongType`, `NotNull`, `Corrupt`, `Db`, with `KeyTooLong` for a key
    /// that no row can have.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Schema, Tables, Type};
    /// # let tables = Tables::open(&db)?;
    /// # let schema = Schema::new("t").column("id", Type::U64).primary_key(["id"]);
    /// # let table = tables.create_table(schema)?;
    /// assert!(!tables.transact(|tx| table.within(tx)?.delete(1u64))?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn delete(&mut self, key: impl IntoValues) -> Result<bool> {
        let key = self.layout.row_key(key.into_values())?;
        let Some(old) = self.row_for_update(&key)? else {
            return Ok(false);
        };
        self.replace(Some((key, old)), None)?;
        Ok(true)
    }

    /// The rows that `query` asks for, in its order. See [`Query`].
    ///
    /// The transaction counts as having read what the iterator passed, and a few entries more.
    /// Errors: `UnknownIndex`, `UnknownColumn`, `WrongCount`, `WrongType`, `NotNull`,
    /// `IndexNotReady`; of the iterator `Corrupt` and `Db`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Query, Schema, Tables, Type};
    /// # let tables = Tables::open(&db)?;
    /// # let schema = Schema::new("t").column("id", Type::U64).primary_key(["id"]);
    /// # let table = tables.create_table(schema)?;
    /// tables.transact(|tx| {
    ///     let mut table = table.within(tx)?;
    ///     table.insert(1u64)?;
    ///     assert_eq!(table.scan(&Query::all())?.count(), 1);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn scan(&self, query: &Query) -> Result<Rows<'_>> {
        Rows::new(Source::Transaction(self.tx), &self.layout, query)
    }

    fn row_for_update(&self, key: &[u8]) -> Result<Option<Vec<Value>>> {
        let row = self.tx.get_for_update(&self.layout.rows.tree, key)?;
        row.map(|row| self.layout.read_row(key, &row)).transpose()
    }

    fn duplicate(&self, index: &str) -> Error {
        Error::DuplicateKey {
            table: self.layout.name.clone(),
            index: index.into(),
        }
    }

    /// Puts the row `new` in the place of `old`, each with its key, and changes every index so.
    fn replace(
        &mut self,
        old: Option<(Vec<u8>, Vec<Value>)>,
        new: Option<(Vec<u8>, Vec<Value>)>,
    ) -> Result<()> {
        let layout = &self.layout;
        let mut batch = self.db.batch();
        let (old_key, new_key) = (key_of(old.as_ref()), key_of(new.as_ref()));
        if let Some(key) = old_key.filter(|_| old_key != new_key) {
            batch.remove(&layout.rows.tree, key);
        }
        if let Some((key, values)) = &new {
            let value = layout.rows.encode_value(values);
            self.check_row(value.len(), MAX_VALUE_BYTES)?;
            batch.insert(&layout.rows.tree, key, value);
        }
        for index in &layout.indexes {
            let entry = |row: &(Vec<u8>, Vec<Value>)| index.entry(&layout.definition, &row.1);
            let (old, new) = (old.as_ref().map(entry), new.as_ref().map(entry));
            if old == new {
                continue;
            }
            let moved = old.as_ref().map(|old| &old.key) != new.as_ref().map(|new| &new.key);
            let tree = &index.entries.tree;
            let own = self.own_entry(index, old.as_ref())?;
            if let Some(IndexEntry { key, value, alone }) = new {
                self.layout.check_key(&key)?;
                self.check_row(value.len(), MAX_VALUE_BYTES)?;
                let own = own && !moved;
                if alone && !own && self.tx.get_for_update(tree, &key)?.is_some() {
                    return Err(self.duplicate(&index.name));
                }
                batch.insert(tree, key, value);
            }
            if let Some(old) = old.filter(|_| moved && own) {
                batch.remove(tree, old.key);
            }
        }
        self.append(batch)
    }

    /// Whether the entry that lies at the key of `entry`, which a row has, is that row's. In an
    /// index that is being built it may be absent, or that of a row that came later.
    fn own_entry(&self, index: &IndexLayout, entry: Option<&IndexEntry>) -> Result<bool> {
        let Some(entry) = entry else {
            return Ok(false);
        };
        if index.ready || !entry.alone {
            return Ok(true);
        }
        let there = self.tx.get_for_update(&index.entries.tree, &entry.key)?;
        Ok(there.is_some_and(|there| there[..] == entry.value[..]))
    }

    fn check_row(&self, len: usize, limit: usize) -> Result<()> {
        match len > limit {
            true => Err(Error::RowTooLarge {
                table: self.layout.name.clone(),
                len,
                limit,
            }),
            false => Ok(()),
        }
    }

    fn append(&mut self, batch: Batch) -> Result<()> {
        self.check_row(batch.bytes(), self.tx.limit())?;
        Ok(self.tx.append(batch)?)
    }
}

fn key_of(row: Option<&(Vec<u8>, Vec<Value>)>) -> Option<&[u8]> {
    row.map(|(key, _)| &key[..])
}

fn named<C: Into<String>, V: Into<Value>>(
    values: impl IntoIterator<Item = (C, V)>,
) -> Vec<(String, Value)> {
    let values = values.into_iter();
    values
        .map(|(column, value)| (column.into(), value.into()))
        .collect()
}
