//! `Tables`: the tables of a database.

use crate::{
    catalogue,
    definition::Definition,
    error::{Error, Result},
    schema::Schema,
    shared::{self, Shared},
    table::Table,
    tree_names,
    view::TableSnapshot,
};
use indexy::{Db, Snapshot, Transaction, TreeOptions};
use std::{fmt, sync::Arc};

/// The tables of a database.
///
/// A handle is a reference; all handles of one open database are the same, from whichever call of
/// [`Tables::open`]. Like a [`Db`] it keeps the directory locked until it is dropped, or the
/// database closed.
///
/// Tables lie in trees whose names begin with `indexy.table`. Who writes to them by other means
/// breaks them; [`Table::verify`] finds that.
///
/// ```
/// use indexy::{Db, Options};
/// use indexy_table::{Schema, Tables, Type};
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path();
/// let db = Db::open(path, Options::new(8 << 20))?;
/// let tables = Tables::open(&db)?;
/// let people = tables.create_table(
///     Schema::new("people")
///         .column("id", Type::U64)
///         .column("name", Type::Text)
///         .primary_key(["id"]),
/// )?;
/// people.insert((1u64, "Ada"))?;
/// assert_eq!(people.get(1u64)?.unwrap().get("name"), Some(&"Ada".into()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Tables {
    shared: Arc<Shared>,
}

impl fmt::Debug for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tables")
            .field("db", &self.shared.db)
            .finish_non_exhaustive()
    }
}

impl Tables {
    /// Opens the tables of `db`. The first call after the database was opened reads the catalogue,
    /// takes back indexes whose build a crash ended, and removes trees that a crash left.
    ///
    /// A tree that is named as one of a table, and of which the catalogue says nothing, stays if it
    /// has entries: the catalogue of a [salvaged](Db::salvage) database may be incomplete. It is
    /// `Corrupt` where that can be seen, or where a table lacks a tree; nothing is changed then.
    ///
    /// Not to be called inside a transaction. Errors: `Corrupt`, `CatalogueVersion`, `Db`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// let tables = indexy_table::Tables::open(&db)?;
    /// assert!(tables.names()?.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(db: &Db) -> Result<Self> {
        Ok(Self {
            shared: Shared::of(db)?,
        })
    }

    /// The database.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # let tables = indexy_table::Tables::open(&db)?;
    /// tables.db().sync()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn db(&self) -> &Db {
        &self.shared.db
    }

    /// Creates a table, or opens it where it exists with this schema. The order of its indexes does
    /// not matter; that of its columns does.
    ///
    /// It is durable when the call returns. An index of it that a failed build left goes first; see
    /// [`Table::create_index`]. Cost: that of [`Db::sync`], without a log that of [`Db::flush`]; of
    /// a creation also some fsyncs for each tree. Not to be called inside a transaction. Errors:
    /// `InvalidSchema`, `SchemaMismatch`, `IndexNotReady` while another thread builds an index of
    /// the schema, `Db`; after `Db` the table may be there, whole.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// use indexy_table::{Error, Schema, Tables, Type};
    /// let tables = Tables::open(&db)?;
    /// let schema = Schema::new("t").column("id", Type::U64).primary_key(["id"]);
    /// tables.create_table(schema.clone())?;
    /// tables.create_table(schema.clone())?;
    /// let other = tables.create_table(schema.column("more", Type::Bool));
    /// assert!(matches!(other, Err(Error::SchemaMismatch { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn create_table(&self, schema: Schema) -> Result<Table> {
        self.create_table_with(schema, TreeOptions::new())
    }

    /// As [`Tables::create_table`]; `options` are those of its trees if it is created. Indexes that
    /// come [later](Table::create_index) take them over.
    ///
    /// `Db` with `InvalidOption` for a [time to live](TreeOptions::ttl): what changes of a row is
    /// written, not all of it, so that entries of an index would expire before their row.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// use indexy::{IndexXKind, TreeOptions};
    /// use indexy_table::{Schema, Tables, Type};
    /// let schema = Schema::new("t").column("id", Type::U64).primary_key(["id"]);
    /// let options = TreeOptions::new().index_x(IndexXKind::BPlus);
    /// Tables::open(&db)?.create_table_with(schema, options)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn create_table_with(&self, schema: Schema, options: TreeOptions) -> Result<Table> {
        let mut definition = Definition::of(&schema)?;
        let name = schema.name();
        let shared = &self.shared;
        let catalogue = shared.catalogue()?;
        let _alone = shared.changes.lock();
        if let Some(existing) = self.definition(name)? {
            return self.existing(name, existing, &definition);
        }
        shared::check_ttl(options.time_to_live())?;
        let numbers = 1 + definition.indexes.len() as u64;
        let first = shared.transact(|tx| catalogue::take_numbers(tx, catalogue, numbers))?;
        definition.id = first;
        for (index, id) in definition.indexes.iter_mut().zip(first + 1..) {
            index.id = id;
        }
        let trees = shared::trees_of(&definition);
        let mut there = Vec::new();
        let mut made = trees.into_iter().try_for_each(|tree| {
            shared.make_tree(&tree, &options)?;
            there.push(tree);
            Ok(())
        });
        if made.is_ok() {
            made = shared.transact(|tx| {
                // Nobody else creates one meanwhile, but a raw write may have.
                match catalogue::read(tx, catalogue, name)? {
                    Some(_) => Err(Error::corrupt(catalogue::TREE, "a table out of nowhere")),
                    None => catalogue::write(tx, catalogue, name, &mut definition),
                }
            });
        }
        if let Err(error) = made {
            if !shared.may_name(name, |definition| definition.id == first) {
                // What cannot be dropped is empty, and goes with the next open.
                let _ = shared.drop_trees(there);
            }
            return Err(error);
        }
        // Without a log, too, before rows are: trees that have some are kept.
        shared.settle()?;
        self.handle(name, definition)
    }

    /// Opens a table. Errors: `UnknownTable`, `Corrupt`, `Db`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// use indexy_table::{Error, Tables};
    /// let absent = Tables::open(&db)?.table("people");
    /// assert!(matches!(absent, Err(Error::UnknownTable { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn table(&self, name: &str) -> Result<Table> {
        let definition = self.definition(name)?;
        self.handle(name, definition.ok_or_else(|| shared::unknown(name))?)
    }

    /// A table as it was at the moment of `snapshot`; as [`Table::at`], without a handle.
    ///
    /// Errors: `UnknownTable` if it was not there, `Corrupt`, `Db`; `Db` with `TreeDropped` if it
    /// was dropped since.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Query, Schema, Tables, Type};
    /// # let tables = Tables::open(&db)?;
    /// # let schema = Schema::new("t").column("id", Type::U64).primary_key(["id"]);
    /// let table = tables.create_table(schema)?;
    /// let before = db.snapshot()?;
    /// table.insert(1u64)?;
    /// assert_eq!(tables.table_at("t", &before)?.scan(&Query::all())?.count(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn table_at(&self, name: &str, snapshot: &Snapshot) -> Result<TableSnapshot> {
        let unknown = || shared::unknown(name);
        let tree = self.shared.catalogue.as_ref().ok_or_else(unknown)?;
        let found = snapshot.get(tree, catalogue::definition_key(name))?;
        let definition = catalogue::definition(name, &found.ok_or_else(unknown)?)?;
        Ok(TableSnapshot {
            layout: self.shared.layout(name, definition)?,
            snapshot: snapshot.clone(),
        })
    }

    /// Names of the tables that were there at the moment of `snapshot`, in order. Cost: a scan of
    /// the catalogue. Errors: `Corrupt`, `Db`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Schema, Tables, Type};
    /// # let tables = Tables::open(&db)?;
    /// let before = db.snapshot()?;
    /// tables.create_table(Schema::new("t").column("id", Type::U64).primary_key(["id"]))?;
    /// assert!(tables.names_at(&before)?.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn names_at(&self, snapshot: &Snapshot) -> Result<Vec<String>> {
        match &self.shared.catalogue {
            Some(tree) => catalogue::names(snapshot, tree),
            None => Ok(Vec::new()),
        }
    }

    /// Names of all tables, in order.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Schema, Tables, Type};
    /// # let tables = Tables::open(&db)?;
    /// tables.create_table(Schema::new("t").column("id", Type::U64).primary_key(["id"]))?;
    /// assert_eq!(tables.names()?, ["t"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn names(&self) -> Result<Vec<String>> {
        let Some(tree) = &self.shared.catalogue else {
            return Ok(Vec::new());
        };
        let tables = catalogue::tables(&self.shared.db.snapshot()?, tree)?;
        Ok(tables.into_iter().map(|(name, _)| name).collect())
    }

    /// Drops a table with all rows and indexes. Its handles return `UnknownTable` from now on.
    ///
    /// Transactions that wrote to it and have not committed conflict. Not to be called inside a
    /// transaction. Errors: `UnknownTable`, `Db`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Schema, Tables, Type};
    /// # let tables = Tables::open(&db)?;
    /// # let schema = Schema::new("t").column("id", Type::U64).primary_key(["id"]);
    /// let table = tables.create_table(schema)?;
    /// tables.drop_table("t")?;
    /// assert!(table.insert(1u64).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn drop_table(&self, name: &str) -> Result<()> {
        let shared = &self.shared;
        let catalogue = shared.catalogue()?;
        let _alone = shared.changes.lock();
        let definition = shared.transact(|tx| {
            let definition = catalogue::read(tx, catalogue, name)?;
            let definition = definition.ok_or_else(|| shared::unknown(name))?;
            catalogue::remove(tx, catalogue, name, &definition)?;
            Ok(definition)
        })?;
        shared.settle()?;
        shared.forget_table(definition.id);
        // With what a drop or a build of an index left behind that failed: of a table that is not
        // there nobody knows any more whose it is.
        let names = shared.db.tree_names().into_iter();
        let is_its = |name: &String| {
            tree_names::numbers(name).is_some_and(|(table, _)| table == definition.id)
        };
        shared.drop_trees(names.filter(is_its))?;
        // What stays of it is true, and goes with the next open.
        let _ = catalogue::forget(catalogue, definition.id);
        Ok(())
    }

    /// Runs `body` in a transaction, again after conflicts: [`Db::transact`] with the errors of
    /// this crate. It is run again, too, when an index was dropped that it knew.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Schema, Tables, Type};
    /// # let tables = Tables::open(&db)?;
    /// # let schema = |name: &str| {
    /// #     Schema::new(name).column("id", Type::U64).primary_key(["id"])
    /// # };
    /// let todo = tables.create_table(schema("todo"))?;
    /// let done = tables.create_table(schema("done"))?;
    /// todo.insert(7u64)?;
    /// tables.transact(|tx| {
    ///     todo.within(tx)?.delete(7u64)?;
    ///     done.within(tx)?.insert(7u64)
    /// })?;
    /// assert!(done.get(7u64)?.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn transact<R>(&self, body: impl FnMut(&mut Transaction) -> Result<R>) -> Result<R> {
        self.shared.transact(body)
    }

    /// The table of this name, which exists, if it is as `asked`; for who holds `changes`.
    fn existing(&self, name: &str, mut found: Definition, asked: &Definition) -> Result<Table> {
        let shared = &self.shared;
        if let Some(core) = shared.known_table(found.id) {
            let table = Table::new(shared.clone(), core);
            if table.take_back_abandoned()? {
                found = self
                    .definition(name)?
                    .ok_or_else(|| shared::unknown(name))?;
            }
        }
        if let Some(reason) = found.differs(asked) {
            return Err(Error::SchemaMismatch {
                table: name.into(),
                reason,
            });
        }
        if let Some(index) = found.unready_index() {
            return Err(Error::IndexNotReady {
                table: name.into(),
                index: index.into(),
            });
        }
        // A creation that failed at the end may have left it so that it is seen.
        match shared.db.sync() {
            Ok(()) => shared.settle()?,
            Err(indexy::Error::ReadOnly) => {}
            Err(error) => return Err(error.into()),
        }
        self.handle(name, found)
    }

    fn definition(&self, name: &str) -> Result<Option<Definition>> {
        let Some(tree) = &self.shared.catalogue else {
            return Ok(None);
        };
        let found = tree.get(catalogue::definition_key(name))?;
        let read = |bytes: indexy::Value| catalogue::definition(name, &bytes);
        found.map(read).transpose()
    }

    fn handle(&self, name: &str, definition: Definition) -> Result<Table> {
        let core = self.shared.table(name, definition)?;
        Ok(Table::new(self.shared.clone(), core))
    }
}
