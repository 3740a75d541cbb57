//! `Table`: the handle of a table, and calls that are a transaction each.

use crate::{
    error::Result,
    layout::Layout,
    query::Query,
    record::{IntoValues, Record},
    scan::Rows,
    schema::Schema,
    shared::{Shared, TableCore},
    value::Value,
    view::TableSnapshot,
    write::TableTransaction,
};
use indexy::{Db, Snapshot, Transaction};
use std::{fmt, sync::Arc};

/// A table. A handle is a reference, and may be used from any thread.
///
/// [`Table::within`] a transaction, [`Table::at`] a snapshot; its own calls are a transaction, or a
/// read of one moment, each. Of a commit that is under way a [`Table::get`] may see the row that it
/// asks for, and the next one not yet another: what belongs together is read at a snapshot. A row
/// and its index entries change together, whatever happens.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
/// use indexy_table::{Column, Error, Index, Query, Schema, Tables, Type};
/// let people = Tables::open(&db)?.create_table(
///     Schema::new("people")
///         .column("id", Type::U64)
///         .column("name", Type::Text)
///         .column("city", Column::new(Type::Text).nullable())
///         .primary_key(["id"])
///         .index("by_name", Index::on(["name"]).unique())
///         .index("by_city", Index::on(["city"])),
/// )?;
/// people.insert((1u64, "Ada", "London"))?;
/// people.insert((2u64, "Alan", None::<String>))?;
/// assert!(matches!(people.insert((3u64, "Ada", "Paris")), Err(Error::DuplicateKey { .. })));
/// people.update(2u64, [("city", "London")])?;
/// assert_eq!(people.scan(&Query::index("by_city").prefix("London"))?.count(), 2);
/// people.delete(1u64)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Table {
    pub(crate) shared: Arc<Shared>,
    pub(crate) core: Arc<TableCore>,
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("name", &self.core.name)
            .finish_non_exhaustive()
    }
}

impl Table {
    pub(crate) fn new(shared: Arc<Shared>, core: Arc<TableCore>) -> Self {
        Self { shared, core }
    }

    /// Its name.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Schema, Tables, Type};
    /// # let schema = Schema::new("t").column("id", Type::U64).primary_key(["id"]);
    /// # let table = Tables::open(&db)?.create_table(schema)?;
    /// assert_eq!(table.name(), "t");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// The database.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Schema, Tables, Type};
    /// # let schema = Schema::new("t").column("id", Type::U64).primary_key(["id"]);
    /// # let table = Tables::open(&db)?.create_table(schema)?;
    /// let snapshot = table.db().snapshot()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn db(&self) -> &Db {
        &self.shared.db
    }

    /// Its schema, with what was added to it.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Schema, Tables, Type};
    /// let schema = Schema::new("t").column("id", Type::U64).primary_key(["id"]);
    /// let table = Tables::open(&db)?.create_table(schema.clone())?;
    /// assert_eq!(table.schema()?, schema);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn schema(&self) -> Result<Schema> {
        Ok(self.layout()?.definition.schema(&self.core.name))
    }

    /// The table as `tx` sees it. From here on the commit conflicts if the table is changed
    /// meanwhile: a column or an index that comes or goes.
    ///
    /// Errors: `UnknownTable`, `Corrupt`, `Db`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Schema, Tables, Type};
    /// # let schema = Schema::new("t").column("id", Type::U64).primary_key(["id"]);
    /// # let table = Tables::open(&db)?.create_table(schema)?;
    /// let mut tx = db.begin()?;
    /// table.within(&mut tx)?.insert(1u64)?;
    /// tx.commit()?;
    /// assert!(table.get(1u64)?.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn within<'tx>(&self, tx: &'tx mut Transaction) -> Result<TableTransaction<'tx>> {
        let get = |tree: &_, key: &[u8]| tx.get_for_update(tree, key);
        let layout = self.shared.layout_seen(&self.core, get)?;
        layout.check_whole()?;
        Ok(TableTransaction {
            db: self.shared.db.clone(),
            layout,
            tx,
        })
    }

    /// The table as it was at the moment of `snapshot`.
    ///
    /// Errors: `UnknownTable`, `Corrupt`, `Db`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Query, Schema, Tables, Type};
    /// # let schema = Schema::new("t").column("id", Type::U64).primary_key(["id"]);
    /// # let table = Tables::open(&db)?.create_table(schema)?;
    /// table.insert(1u64)?;
    /// let before = db.snapshot()?;
    /// table.delete(1u64)?;
    /// assert_eq!(table.at(&before)?.scan(&Query::all())?.count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn at(&self, snapshot: &Snapshot) -> Result<TableSnapshot> {
        let get = |tree: &_, key: &[u8]| snapshot.get(tree, key);
        let layout = self.shared.layout_seen(&self.core, get)?;
        Ok(TableSnapshot {
            layout,
            snapshot: snapshot.clone(),
        })
    }

    pub(crate) fn now(&self) -> Result<TableSnapshot> {
        self.at(&self.shared.db.snapshot()?)
    }

    /// The newest layout.
    pub(crate) fn layout(&self) -> Result<Arc<Layout>> {
        Ok(self.now()?.layout)
    }

    // --- reads ----------------------------------------------------------------------

    /// The row of a primary key. Cost: that of [`indexy::Tree::get`].
    ///
    /// Errors: `WrongCount`, `WrongType`, `NotNull`, `UnknownTable`, `Corrupt`, `Db`, with
    /// `KeyTooLong` for a key that no row can have.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Schema, Tables, Type};
    /// # let schema = Schema::new("t").column("id", Type::U64).primary_key(["id"]);
    /// # let table = Tables::open(&db)?.create_table(schema)?;
    /// assert!(table.get(1u64)?.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get(&self, key: impl IntoValues) -> Result<Option<Record>> {
        // One key is read at one moment without a snapshot; a row says which version it has.
        let mut layout = self.core.newest();
        let key = layout.row_key(key.into_values())?;
        let row = match layout.rows.tree.get(&key) {
            Err(indexy::Error::TreeDropped { .. }) => {
                return Err(crate::shared::unknown(&self.core.name));
            }
            row => row?,
        };
        let Some(row) = row else {
            return Ok(None);
        };
        if crate::row::RowFormat::version_of(&row) > Some(layout.definition.version) {
            layout = self.layout()?;
        }
        let values = layout.read_row(&key, &row)?;
        Ok(Some(Record::new(&layout.columns, values)))
    }

    /// The rows that `query` asks for, in its order, as they are at one moment. See [`Query`].
    ///
    /// Errors: `UnknownIndex`, `UnknownColumn`, `WrongCount`, `WrongType`, `NotNull`,
    /// `IndexNotReady`, `UnknownTable`; of the iterator `Corrupt` and `Db`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Query, Schema, Tables, Type};
    /// # let schema = Schema::new("t").column("id", Type::U64).primary_key(["id"]);
    /// # let table = Tables::open(&db)?.create_table(schema)?;
    /// table.insert(1u64)?;
    /// for row in table.scan(&Query::all().rev())? {
    ///     println!("{:?}", row?.values());
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn scan(&self, query: &Query) -> Result<Rows<'static>> {
        self.now()?.scan(query)
    }

    // --- writes: a transaction each --------------------------------------------------

    /// [`TableTransaction::insert`] in a transaction of its own.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Schema, Tables, Type};
    /// # let schema = Schema::new("t").column("id", Type::U64).primary_key(["id"]);
    /// # let table = Tables::open(&db)?.create_table(schema)?;
    /// table.insert(1u64)?;
    /// assert!(table.insert(1u64).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert(&self, row: impl IntoValues) -> Result<()> {
        let row = row.into_values();
        self.write(|table| table.insert(&row[..]))
    }

    /// [`TableTransaction::insert_named`] in a transaction of its own.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Column, Schema, Tables, Type};
    /// # let schema = Schema::new("t").column("id", Type::U64);
    /// # let schema = schema.column("n", Column::new(Type::I64).nullable()).primary_key(["id"]);
    /// # let table = Tables::open(&db)?.create_table(schema)?;
    /// table.insert_named([("id", 1)])?;
    /// assert!(table.get(1u64)?.unwrap().get("n").unwrap().is_null());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_named<C: Into<String>, V: Into<Value>>(
        &self,
        values: impl IntoIterator<Item = (C, V)>,
    ) -> Result<()> {
        let named = named(values);
        self.write(|table| table.insert_named(named.iter().cloned()))
    }

    /// [`TableTransaction::upsert`] in a transaction of its own.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Schema, Tables, Type};
    /// # let schema = Schema::new("t").column("id", Type::U64).primary_key(["id"]);
    /// # let table = Tables::open(&db)?.create_table(schema)?;
    /// assert!(!table.upsert(1u64)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn upsert(&self, row: impl IntoValues) -> Result<bool> {
        let row = row.into_values();
        self.write(|table| table.upsert(&row[..]))
    }

    /// [`TableTransaction::update`] in a transaction of its own.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Schema, Tables, Type};
    /// # let schema = Schema::new("t").column("id", Type::U64).column("n", Type::I64);
    /// # let table = Tables::open(&db)?.create_table(schema.primary_key(["id"]))?;
    /// table.insert((1u64, 5))?;
    /// assert!(table.update(1u64, [("n", 6)])?);
    /// assert!(!table.update(2u64, [("n", 6)])?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn update<C: Into<String>, V: Into<Value>>(
        &self,
        key: impl IntoValues,
        changes: impl IntoIterator<Item = (C, V)>,
    ) -> Result<bool> {
        let (key, changes) = (key.into_values(), named(changes));
        self.write(|table| table.update(&key[..], changes.iter().cloned()))
    }

    /// [`TableTransaction::delete`] in a transaction of its own.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Schema, Tables, Type};
    /// # let schema = Schema::new("t").column("id", Type::U64).primary_key(["id"]);
    /// # let table = Tables::open(&db)?.create_table(schema)?;
    /// table.insert(1u64)?;
    /// assert!(table.delete(1u64)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn delete(&self, key: impl IntoValues) -> Result<bool> {
        let key = key.into_values();
        self.write(|table| table.delete(&key[..]))
    }

    fn write<R>(&self, body: impl Fn(&mut TableTransaction<'_>) -> Result<R>) -> Result<R> {
        self.shared.transact(|tx| body(&mut self.within(tx)?))
    }
}

fn named<C: Into<String>, V: Into<Value>>(
    values: impl IntoIterator<Item = (C, V)>,
) -> Vec<(String, Value)> {
    let values = values.into_iter();
    values
        .map(|(column, value)| (column.into(), value.into()))
        .collect()
}
