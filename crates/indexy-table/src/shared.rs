//! What all handles of the tables of one open database share.
//!
//! There is one [`Shared`] for an open database, however often `Tables::open` is called: a list of
//! all of them, by process, finds it again. So trees are opened, and changed, in one place.
//! Threads: `changes` is held by who creates, alters or drops a table, for as long as that takes
//! but for the rows of a new index; it comes before the locks of a commit. Whoever reads or writes
//! rows takes only `trees` and `tables`, for moments.

use crate::{
    catalogue,
    definition::{Definition, IndexState, StoredIndex},
    error::{Error, Result},
    layout::Layout,
    orphans::{self, Seen},
    tree_names,
};
use indexy::{Db, Transaction, Tree, TreeOptions, Ttl};
use parking_lot::{Mutex, RwLock};
use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Weak},
};

/// How often a transaction is begun anew because trees were dropped under it: indexes are not
/// dropped so often.
const DROPS_MET: usize = 16;

/// Those of all open databases.
static ALL: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

pub(crate) struct Shared {
    pub(crate) db: Db,
    /// `None`: a database that is read-only and has no tables.
    pub(crate) catalogue: Option<Tree>,
    /// Trees of tables, by name. One that was dropped is not here.
    trees: RwLock<HashMap<String, Tree>>,
    /// Handles of tables, by number.
    tables: Mutex<HashMap<u64, Arc<TableCore>>>,
    pub(crate) changes: Mutex<()>,
}

/// What handles of one table share.
pub(crate) struct TableCore {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) generation_key: [u8; 9],
    /// The newest layout that anybody has seen.
    layout: RwLock<Arc<Layout>>,
    /// Numbers of indexes that are to be taken back, because their build failed.
    pub(crate) abandoned: Mutex<BTreeSet<u64>>,
}

impl TableCore {
    pub(crate) fn newest(&self) -> Arc<Layout> {
        self.layout.read().clone()
    }

    fn saw(&self, layout: &Arc<Layout>) {
        let mut newest = self.layout.write();
        if layout.definition.generation > newest.definition.generation {
            *newest = layout.clone();
        }
    }
}

impl Shared {
    /// That of `db`; brings its catalogue in order when it is the first.
    pub(crate) fn of(db: &Db) -> Result<Arc<Self>> {
        let mut all = ALL.lock();
        all.retain(|shared| shared.strong_count() > 0);
        let now = db.snapshot()?;
        for shared in all.iter().filter_map(Weak::upgrade) {
            // A tree of another open database is refused.
            let seen = shared.catalogue.as_ref().map(|tree| now.get(tree, ""));
            if !matches!(seen, None | Some(Err(indexy::Error::ForeignTree))) {
                return Ok(shared);
            }
        }
        drop(now);
        let shared = Arc::new(Self::open(db)?);
        all.push(Arc::downgrade(&shared));
        Ok(shared)
    }

    fn open(db: &Db) -> Result<Self> {
        let read_only = match db.sync() {
            Ok(()) => false,
            Err(indexy::Error::ReadOnly | indexy::Error::Poisoned { .. }) => true,
            Err(error) => return Err(error.into()),
        };
        let known = db.tree_names().iter().any(|name| name == catalogue::TREE);
        if !known {
            orphans::refuse_rows(db)?;
        }
        let catalogue = match read_only && !known {
            true => None,
            false => Some(db.tree(catalogue::TREE)?),
        };
        let shared = Self {
            db: db.clone(),
            catalogue,
            trees: RwLock::default(),
            tables: Mutex::default(),
            changes: Mutex::default(),
        };
        if let Some(tree) = &shared.catalogue {
            let empty = catalogue::check_format(tree)?;
            if empty {
                orphans::refuse_rows(db)?;
            }
            let mut seen = Seen::read(db, tree)?;
            // An index that is not ready is taken back, where that can be done.
            let needed = |index: &StoredIndex| read_only || index.state == IndexState::Ready;
            shared.check_trees(&seen.tables, needed)?;
            if !read_only {
                seen = shared.put_in_order(tree, empty, seen)?;
            }
            shared.open_trees(&seen.tables)?;
        }
        Ok(shared)
    }

    /// Ends what a crash left half done. Nothing is changed before all that is there was checked.
    fn put_in_order(&self, tree: &Tree, empty: bool, mut seen: Seen) -> Result<Seen> {
        if empty {
            catalogue::write_format(tree)?;
            // An empty catalogue beside trees that have rows is damage.
            self.settle()?;
        }
        if self.undo_builds(&seen.tables)? {
            seen = Seen::read(&self.db, tree)?;
        }
        for name in &seen.orphans {
            self.db.drop_tree(name)?;
        }
        for &id in &seen.dropped {
            catalogue::forget(tree, id)?;
        }
        // The next number may be lost where trees are not.
        let greatest = seen.greatest_number(&self.db);
        self.transact(|tx| catalogue::skip_numbers(tx, tree, greatest))?;
        Ok(seen)
    }

    /// Takes back indexes whose build did not come to its end: nobody got an answer.
    fn undo_builds(&self, tables: &[(String, Definition)]) -> Result<bool> {
        let mut undone = false;
        for (name, definition) in tables {
            let ready = |index: &&StoredIndex| index.state == IndexState::Ready;
            if definition.indexes.iter().filter(ready).count() < definition.indexes.len() {
                self.change(name, definition.id, |definition| {
                    definition.indexes.retain(|index| ready(&index));
                    Ok(())
                })?;
                undone = true;
            }
        }
        if undone {
            self.settle()?;
        }
        Ok(undone)
    }

    /// Each table has a tree of its rows, and one of each index that is `needed`.
    fn check_trees(
        &self,
        tables: &[(String, Definition)],
        needed: impl Fn(&StoredIndex) -> bool,
    ) -> Result<()> {
        let existing: BTreeSet<String> = self.db.tree_names().into_iter().collect();
        for (table, definition) in tables {
            let mut trees = trees_with(definition, &needed);
            if let Some(name) = trees.find(|name| !existing.contains(name)) {
                let what = format!("its tree {name} is missing");
                return Err(Error::corrupt(table, what));
            }
        }
        Ok(())
    }

    /// Opens the trees of all tables, which are there.
    fn open_trees(&self, tables: &[(String, Definition)]) -> Result<()> {
        for name in tables.iter().flat_map(|(_, table)| trees_of(table)) {
            let tree = self.db.tree(&name)?;
            self.trees.write().insert(name, tree);
        }
        Ok(())
    }

    pub(crate) fn catalogue(&self) -> Result<&Tree> {
        self.catalogue.as_ref().ok_or_else(|| {
            indexy::Error::NoSuchTree {
                name: catalogue::TREE.into(),
            }
            .into()
        })
    }

    /// Changes the definition of the table of this name and number, under a new generation.
    ///
    /// Errors: `UnknownTable`, also where another table has the name by now.
    pub(crate) fn change(
        &self,
        table: &str,
        id: u64,
        change: impl Fn(&mut Definition) -> Result<()>,
    ) -> Result<Definition> {
        let tree = self.catalogue()?;
        self.transact(|tx| {
            let definition = catalogue::read(tx, tree, table)?;
            let definition = definition.filter(|definition| definition.id == id);
            let mut definition = definition.ok_or_else(|| unknown(table))?;
            change(&mut definition)?;
            definition.check().map_err(|reason| Error::InvalidSchema {
                table: table.into(),
                reason,
            })?;
            catalogue::write(tx, tree, table, &mut definition)?;
            Ok(definition)
        })
    }

    pub(crate) fn transact<R>(
        &self,
        mut body: impl FnMut(&mut Transaction) -> Result<R>,
    ) -> Result<R> {
        let policy = indexy::RetryPolicy::default();
        for _ in 0..DROPS_MET {
            match self.db.transact_with(&policy, &mut body) {
                // A conflict that is met before the commit: the definition is another one by now.
                Err(error) if error.is_of_a_dropped_tree() => {}
                done => return done,
            }
        }
        self.db.transact_with(&policy, body)
    }

    /// Makes a tree, before the catalogue names it. Until it does, the tree stays empty.
    pub(crate) fn make_tree(&self, name: &str, options: &TreeOptions) -> Result<()> {
        if self.db.tree_names().iter().any(|known| known == name) {
            let what = format!("the tree {name} is there, and its number was never given");
            return Err(Error::corrupt(catalogue::TREE, what));
        }
        let tree = self.db.tree_with(name, options.clone())?;
        self.trees.write().insert(name.into(), tree);
        Ok(())
    }

    /// What the catalogue says is durable when this returns, without a log, too: trees that it
    /// does not name any more may be dropped.
    pub(crate) fn settle(&self) -> Result<()> {
        match self.db.newest_change() {
            Err(indexy::Error::Unsupported { .. }) => Ok(self.db.flush()?),
            durable => Ok(durable.map(drop)?),
        }
    }

    /// Whether the catalogue may name what `named` looks for in the definition of `table`, after a
    /// change that failed: one that was committed and could not be made durable is seen, and may
    /// become durable yet.
    pub(crate) fn may_name(&self, table: &str, named: impl Fn(&Definition) -> bool) -> bool {
        let read = || {
            let found = self.catalogue()?.get(catalogue::definition_key(table))?;
            let read = |bytes: indexy::Value| catalogue::definition(table, &bytes);
            found.map(read).transpose()
        };
        let definition: Result<Option<Definition>> = read();
        definition.map_or(true, |definition| definition.as_ref().is_some_and(named))
    }

    /// Drops trees that the catalogue does not name. What fails to be dropped goes with the next
    /// open.
    pub(crate) fn drop_trees(&self, names: impl IntoIterator<Item = String>) -> Result<()> {
        let mut failed = Ok(());
        for name in names {
            let dropped = self.db.drop_tree(&name);
            // A failure may come before the drop, or behind it.
            if dropped.is_ok() || !self.db.tree_names().contains(&name) {
                self.trees.write().remove(&name);
            }
            failed = failed.and(dropped.map_err(Error::from));
        }
        failed
    }

    pub(crate) fn layout(&self, table: &str, definition: Definition) -> Result<Arc<Layout>> {
        let tree = |name: &str| self.trees.read().get(name).cloned();
        Layout::new(table, definition, tree).map(Arc::new)
    }

    /// The handle of a table.
    pub(crate) fn table(&self, name: &str, definition: Definition) -> Result<Arc<TableCore>> {
        let id = definition.id;
        let layout = self.layout(name, definition)?;
        let mut tables = self.tables.lock();
        let core = tables.entry(id).or_insert_with(|| {
            Arc::new(TableCore {
                id,
                name: name.into(),
                generation_key: catalogue::generation_key(id),
                layout: RwLock::new(layout.clone()),
                abandoned: Mutex::default(),
            })
        });
        core.saw(&layout);
        Ok(core.clone())
    }

    /// What handles of the table of number `id` share, if there were any.
    pub(crate) fn known_table(&self, id: u64) -> Option<Arc<TableCore>> {
        self.tables.lock().get(&id).cloned()
    }

    pub(crate) fn forget_table(&self, id: u64) {
        self.tables.lock().remove(&id);
    }

    /// The layout of `table` as a reader sees it, whose way to read the catalogue is `get`.
    pub(crate) fn layout_seen(
        &self,
        table: &TableCore,
        get: impl Fn(&Tree, &[u8]) -> indexy::Result<Option<indexy::Value>>,
    ) -> Result<Arc<Layout>> {
        let tree = self.catalogue()?;
        let seen = get(tree, &table.generation_key)?.ok_or_else(|| unknown(&table.name))?;
        let generation = catalogue::generation(&seen)?;
        let newest = table.newest();
        if newest.definition.generation == generation {
            return Ok(newest);
        }
        let definition = get(tree, &catalogue::definition_key(&table.name))?;
        let definition = definition.ok_or_else(|| unknown(&table.name))?;
        let definition = catalogue::definition(&table.name, &definition)?;
        if (definition.id, definition.generation) != (table.id, generation) {
            let what = format!("table {} has two generations", table.name);
            return Err(Error::corrupt(catalogue::TREE, what));
        }
        let layout = self.layout(&table.name, definition)?;
        table.saw(&layout);
        Ok(layout)
    }
}

/// Entries of a table's trees do not expire: an entry of an index that a change of its row leaves
/// as it is would be gone before the row is.
pub(crate) fn check_ttl(ttl: Option<Ttl>) -> Result<()> {
    match ttl {
        None => Ok(()),
        Some(_) => Err(indexy::Error::InvalidOption {
            option: "ttl",
            reason: "entries of a table's indexes would expire before their rows".into(),
        }
        .into()),
    }
}

/// Options with which a tree is made that goes with `tree`.
pub(crate) fn options_like(tree: &Tree) -> Result<TreeOptions> {
    check_ttl(tree.ttl())?;
    let (index_x, index_y) = tree.pair();
    let options = TreeOptions::new()
        .index_x(index_x)
        .index_y(index_y)
        .resident(tree.is_resident())
        .compression(tree.compression());
    // A resident tree has all that these speak of.
    Ok(match tree.is_resident() {
        true => options,
        false => options.admission(tree.admission()).evicted(tree.evicted()),
    })
}

pub(crate) fn unknown(table: &str) -> Error {
    Error::UnknownTable {
        table: table.into(),
    }
}

/// The trees of a table.
pub(crate) fn trees_of(definition: &Definition) -> Vec<String> {
    trees_with(definition, |_| true).collect()
}

/// The tree of a table's rows, and those of its indexes that `wanted` takes.
fn trees_with(
    definition: &Definition,
    wanted: impl Fn(&StoredIndex) -> bool,
) -> impl Iterator<Item = String> {
    let indexes = definition.indexes.iter().filter(move |index| wanted(index));
    let indexes = indexes.map(|index| tree_names::index(definition.id, index.id));
    [tree_names::rows(definition.id)].into_iter().chain(indexes)
}
