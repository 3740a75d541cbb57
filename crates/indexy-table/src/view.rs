//! A table at the moment of a snapshot.

use crate::{
    error::Result,
    layout::Layout,
    query::Query,
    record::{IntoValues, Record},
    scan::{Rows, Source},
    schema::Schema,
};
use indexy::Snapshot;
use std::{fmt, sync::Arc};

/// A table as it was at the moment of a snapshot: [`Table::at`](crate::Table::at). It keeps the
/// snapshot open.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
/// # use indexy_table::{Query, Schema, Tables, Type};
/// # let schema = Schema::new("t").column("id", Type::U64).primary_key(["id"]);
/// # let table = Tables::open(&db)?.create_table(schema)?;
/// let empty = table.at(&db.snapshot()?)?;
/// table.insert(1u64)?;
/// assert!(empty.get(1u64)?.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct TableSnapshot {
    pub(crate) layout: Arc<Layout>,
    pub(crate) snapshot: Snapshot,
}

impl fmt::Debug for TableSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableSnapshot")
            .field("table", &self.layout.name)
            .finish_non_exhaustive()
    }
}

impl TableSnapshot {
    /// The columns of that moment, and those of its indexes that can be read: not one that is being
    /// built, nor one that was dropped since.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Column, Schema, Tables, Type};
    /// # let schema = Schema::new("t").column("id", Type::U64).primary_key(["id"]);
    /// # let table = Tables::open(&db)?.create_table(schema.clone())?;
    /// let before = table.at(&db.snapshot()?)?;
    /// table.add_column("note", Column::new(Type::Text).nullable())?;
    /// assert_eq!(before.schema().columns().count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn schema(&self) -> Schema {
        let mut schema = self.layout.definition.schema(&self.layout.name);
        schema.indexes.retain(|(name, _)| {
            let index = self.layout.index(name);
            index.is_ok_and(|index| index.ready)
        });
        schema
    }

    /// About how many rows there are, those of later changes included: an estimate without I/O, of
    /// the quality of [`Tree::approximate_len`](indexy::Tree::approximate_len).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Schema, Tables, Type};
    /// # let schema = Schema::new("t").column("id", Type::U64).primary_key(["id"]);
    /// # let table = Tables::open(&db)?.create_table(schema)?;
    /// table.insert(1u64)?;
    /// assert_eq!(table.at(&db.snapshot()?)?.approximate_len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn approximate_len(&self) -> u64 {
        self.layout.rows.tree.approximate_len()
    }

    /// The row of a primary key. [`TableSnapshot`] has an example.
    ///
    /// Errors: `WrongCount`, `WrongType`, `NotNull`, `Corrupt`, `Db`, with `KeyTooLong` for a key
    /// that no row can have.
    pub fn get(&self, key: impl IntoValues) -> Result<Option<Record>> {
        let key = self.layout.row_key(key.into_values())?;
        let row = self.snapshot.get(&self.layout.rows.tree, &key)?;
        let row = row
            .map(|row| self.layout.read_row(&key, &row))
            .transpose()?;
        Ok(row.map(|values| Record::new(&self.layout.columns, values)))
    }

    /// The rows that `query` asks for, in its order.
    ///
    /// Errors: `UnknownIndex`, `UnknownColumn`, `WrongCount`, `WrongType`, `NotNull`,
    /// `IndexNotReady`; of the iterator `Corrupt` and `Db`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Query, Schema, Tables, Type};
    /// # let schema = Schema::new("t").column("id", Type::U64).primary_key(["id"]);
    /// # let table = Tables::open(&db)?.create_table(schema)?;
    /// let now = table.at(&db.snapshot()?)?;
    /// assert_eq!(now.scan(&Query::all())?.count(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn scan(&self, query: &Query) -> Result<Rows<'static>> {
        Rows::new(Source::Snapshot(self.snapshot.clone()), &self.layout, query)
    }
}
