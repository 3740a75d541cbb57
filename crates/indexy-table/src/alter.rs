//! Changes of a table that lives: columns that are added, indexes that come and go.
//!
//! An index is built in steps. (1) Its tree is made. (2) The catalogue names it, not ready: every
//! transaction that commits from then on keeps it, because one that began before conflicts
//! (`catalogue.rs`). (3) The rows from before are brought in, in batches: each takes keys from a
//! snapshot, and reads their rows anew in a transaction of its own, so that a row that changes
//! meanwhile conflicts, or is read as it is. A row that is inserted meanwhile is its writer's
//! matter. (4) The catalogue says that it is ready.
//!
//! Until then a row from before may lack its entry, and at the key of a unique index may lie that
//! of a row that came later. So who changes or removes a row takes away the entry that lies there
//! only if it is the row's own. A duplicate among old and new rows is found by whoever comes second
//! to the key: the writer or the build. If one of both rows is gone before, there is none.
//!
//! A failure takes the index back; so does the next open after a crash. Where that fails, too (the
//! device is full), its number is kept in `TableCore::abandoned`, and the next build tries again,
//! or the next `create_table`.

use crate::{
    catalogue,
    definition::{Definition, IndexState, StoredColumn},
    error::{Error, Result},
    schema::{Column, Index},
    shared::{Shared, options_like},
    table::Table,
    tree_names,
};
use indexy::{Key, Transaction};
use std::ops::Bound;

/// Rows that one transaction of a build brings in.
const BUILD_ROWS: usize = 128;

impl Table {
    /// Adds a column at the end. Rows are not rewritten: those from before have its default, or
    /// NULL, which one of both it must have.
    ///
    /// Transactions that wrote to the table and have not committed conflict. Not to be called
    /// inside a transaction. Without a log it flushes the database. Errors: `InvalidSchema`,
    /// `UnknownTable`, `Db`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Column, Schema, Tables, Type};
    /// # let schema = Schema::new("t").column("id", Type::U64).primary_key(["id"]);
    /// # let table = Tables::open(&db)?.create_table(schema)?;
    /// table.insert(1u64)?;
    /// table.add_column("visits", Column::new(Type::I64).default(0))?;
    /// assert_eq!(table.get(1u64)?.unwrap().get("visits"), Some(&0i64.into()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn add_column(&self, name: &str, column: impl Into<Column>) -> Result<()> {
        let column = column.into();
        let _alone = self.shared.changes.lock();
        let changed = self.change(|definition| {
            definition.version += 1;
            let stored = StoredColumn::of(name, &column, definition.version);
            definition
                .columns
                .push(stored.map_err(|reason| self.invalid(reason))?);
            Ok(())
        })?;
        self.changed(changed)
    }

    /// Builds an index while others read and write. It can be read when the call returns. From the
    /// beginning on it refuses what it could not hold: a write may be a `DuplicateKey`,
    /// `KeyTooLong` or `RowTooLarge` of an index that is then taken back. Its tree has the options
    /// that the tree of the rows has: the pair, whether it is resident, compression, admission and
    /// filter.
    ///
    /// Cost: reads all rows, in small transactions, and writes an entry for each. Transactions that
    /// wrote to the table before and have not committed conflict. Without a log it flushes the
    /// database three times. Not to be called inside a
    /// transaction. Errors: `InvalidSchema`, `DuplicateKey`, `UnknownTable`, `Db`; then there is no
    /// such index, but after `Db` one of two things may be. The index may be there, whole, if it
    /// was ready before the error. Or a part of it is still to go: with the next call of this, of
    /// [`Table::drop_index`] or of [`Tables::create_table`](crate::Tables::create_table), or with
    /// the next open.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Index, Query, Schema, Tables, Type};
    /// # let schema = Schema::new("t").column("id", Type::U64).column("n", Type::I64);
    /// # let table = Tables::open(&db)?.create_table(schema.primary_key(["id"]))?;
    /// table.insert((1u64, 20))?;
    /// table.insert((2u64, 10))?;
    /// table.create_index("by_n", Index::on(["n"]))?;
    /// let first = table.scan(&Query::index("by_n"))?.next().unwrap()?;
    /// assert_eq!(first.get("id"), Some(&2u64.into()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn create_index(&self, name: &str, index: Index) -> Result<()> {
        let id = self.begin_build(name, &index)?;
        let built = self
            .build(id, name)
            // Without a log, too, what the catalogue calls ready is on disk.
            .and_then(|()| self.shared.settle())
            .and_then(|()| self.end_build(id, name, true));
        if built.is_err() {
            let _alone = self.shared.changes.lock();
            let _ = self.take_back(id, name);
        }
        built
    }

    /// Drops an index. Snapshots from before read the table without it; a query of it returns
    /// `TreeDropped`.
    ///
    /// Not to be called inside a transaction: each could wait for the other. Errors:
    /// `UnknownIndex`, `IndexNotReady`, `UnknownTable`, `Db`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Index, Query, Schema, Tables, Type};
    /// # let schema = Schema::new("t").column("id", Type::U64).primary_key(["id"]);
    /// # let table = Tables::open(&db)?.create_table(schema.index("i", Index::on(["id"])))?;
    /// table.drop_index("i")?;
    /// assert!(table.scan(&Query::index("i")).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn drop_index(&self, name: &str) -> Result<()> {
        let layout = self.layout()?;
        let index = layout.index(name)?;
        if self.core.abandoned.lock().contains(&index.id) {
            let _alone = self.shared.changes.lock();
            return self.take_back(index.id, name);
        }
        if !index.ready {
            return Err(Error::IndexNotReady {
                table: self.name().into(),
                index: name.into(),
            });
        }
        self.end_build(index.id, name, false)
    }

    /// Steps 1 and 2; returns the number of the index.
    fn begin_build(&self, name: &str, index: &Index) -> Result<u64> {
        let shared = &self.shared;
        let catalogue = shared.catalogue()?;
        let _alone = shared.changes.lock();
        self.take_back_abandoned()?;
        // What is wrong with it is known before a tree is made.
        let mut definition = self.layout()?.definition.clone();
        let stored = definition.stored_index(name, index, IndexState::Building);
        definition
            .indexes
            .push(stored.map_err(|reason| self.invalid(reason))?);
        definition.check().map_err(|reason| self.invalid(reason))?;

        let options = options_like(&self.layout()?.rows.tree)?;
        let id = shared.transact(|tx| catalogue::take_numbers(tx, catalogue, 1))?;
        let tree = tree_names::index(self.core.id, id);
        shared.make_tree(&tree, &options)?;
        let changed = self.change(|definition| {
            let stored = definition.stored_index(name, index, IndexState::Building);
            let mut stored = stored.map_err(|reason| self.invalid(reason))?;
            stored.id = id;
            definition.indexes.push(stored);
            Ok(())
        });
        let failed = match changed {
            Ok(definition) => match self.changed(definition) {
                Ok(()) => return Ok(id),
                Err(error) => error,
            },
            Err(error) => error,
        };
        let _ = self.take_back(id, name);
        Err(failed)
    }

    /// Takes back indexes whose build failed, and for which that failed, too; for who holds
    /// `changes`. Returns whether there were any.
    pub(crate) fn take_back_abandoned(&self) -> Result<bool> {
        let abandoned = self.core.abandoned.lock().clone();
        for &id in &abandoned {
            // Found by its number: no error names it.
            self.take_back(id, "")?;
        }
        Ok(!abandoned.is_empty())
    }

    /// Takes back an index whose build failed, whether the catalogue names it or not; for who holds
    /// `changes`. If this fails too, the next build or creation tries again, or the next open.
    fn take_back(&self, id: u64, name: &str) -> Result<()> {
        self.core.abandoned.lock().insert(id);
        match self.end_build_alone(id, name, false) {
            Err(Error::UnknownIndex { .. } | Error::UnknownTable { .. }) => {
                self.shared.settle()?;
                let tree = tree_names::index(self.core.id, id);
                if self.shared.db.tree_names().contains(&tree) {
                    self.shared.drop_trees([tree])?;
                }
            }
            done => done?,
        }
        self.core.abandoned.lock().remove(&id);
        Ok(())
    }

    /// Step 4, or the index is taken back.
    fn end_build(&self, id: u64, name: &str, ready: bool) -> Result<()> {
        let _alone = self.shared.changes.lock();
        self.end_build_alone(id, name, ready)
    }

    /// For who holds `changes`.
    fn end_build_alone(&self, id: u64, name: &str, ready: bool) -> Result<()> {
        let shared = &self.shared;
        let definition = self.change(|definition| {
            let found = definition.indexes.iter().position(|index| index.id == id);
            let at = found.ok_or_else(|| self.unknown(name))?;
            match ready {
                true => definition.indexes[at].state = IndexState::Ready,
                false => drop(definition.indexes.remove(at)),
            }
            Ok(())
        })?;
        self.changed(definition)?;
        match ready {
            true => Ok(()),
            false => shared.drop_trees([tree_names::index(self.core.id, id)]),
        }
    }

    /// Step 3.
    fn build(&self, id: u64, name: &str) -> Result<()> {
        let mut after: Option<Key> = None;
        loop {
            let now = self.now()?;
            let from = after.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
            let rows = &now.layout.rows.tree;
            let entries = now.snapshot.range::<&Key>(rows, (from, Bound::Unbounded));
            let keys = entries
                .take(BUILD_ROWS)
                .map(|entry| entry.map(|(key, _)| key));
            let keys: Vec<Key> = keys.collect::<indexy::Result<_>>()?;
            drop(now);
            let Some(last) = keys.last().cloned() else {
                return Ok(());
            };
            self.bring_in(id, name, &keys)?;
            after = Some(last);
        }
    }

    /// Brings in the rows that have these keys, in fewer at a time where they are large.
    fn bring_in(&self, id: u64, name: &str, keys: &[Key]) -> Result<()> {
        let done = self
            .shared
            .transact(|tx| self.bring_in_within(tx, id, name, keys));
        match (done, keys.len()) {
            (Err(Error::Db(indexy::Error::BatchTooLarge { .. })), 2..) => {
                let (first, second) = keys.split_at(keys.len() / 2);
                self.bring_in(id, name, first)?;
                self.bring_in(id, name, second)
            }
            (done, _) => done,
        }
    }

    /// Writes the entries of the rows that have these keys.
    fn bring_in_within(
        &self,
        tx: &mut Transaction,
        id: u64,
        name: &str,
        keys: &[Key],
    ) -> Result<()> {
        let table = self.within(tx)?;
        let (layout, tx) = (table.layout, table.tx);
        let index = layout.indexes.iter().find(|index| index.id == id);
        let index = index.ok_or_else(|| self.unknown(name))?;
        let tree = &index.entries.tree;
        for key in keys {
            let Some(row) = tx.get_for_update(&layout.rows.tree, key)? else {
                continue;
            };
            let values = layout.read_row(key, &row)?;
            let entry = index.entry(&layout.definition, &values);
            layout.check_key(&entry.key)?;
            if entry.alone {
                // The row's own entry is equal: its writer wrote it from the same values.
                let there = tx.get_for_update(tree, &entry.key)?;
                if there.is_some_and(|there| *there != entry.value[..]) {
                    return Err(Error::DuplicateKey {
                        table: layout.name.clone(),
                        index: index.name.clone(),
                    });
                }
            }
            tx.insert(tree, &entry.key, &entry.value)?;
        }
        Ok(())
    }

    fn change(&self, change: impl Fn(&mut Definition) -> Result<()>) -> Result<Definition> {
        self.shared.change(self.name(), self.core.id, change)
    }

    /// Others see the change at once; it is durable, without a log, too: rows and entries that are
    /// written by it from when this returns on are not on disk without it.
    fn changed(&self, definition: Definition) -> Result<()> {
        let shared: &Shared = &self.shared;
        shared.table(self.name(), definition)?;
        shared.settle()
    }

    fn unknown(&self, index: &str) -> Error {
        Error::UnknownIndex {
            table: self.name().into(),
            index: index.into(),
        }
    }

    fn invalid(&self, reason: String) -> Error {
        Error::InvalidSchema {
            table: self.name().into(),
            reason,
        }
    }
}
