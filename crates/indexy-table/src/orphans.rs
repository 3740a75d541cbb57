//! Trees that are named as those of tables are and that no table has: which of them may go.
//!
//! One may go only where it is known that nobody will lack it:
//!
//! - That of an index that its table, which is there, does not have: rows have all that is in it.
//!   A build or a drop left it.
//! - That of a table that was dropped: the catalogue says so, from the transaction that takes the
//!   name away until the trees are gone.
//! - Those of a number of which no tree has an entry. A creation left them: rows come in behind
//!   the definition.
//!
//! All others stay: the catalogue may have lost what it said of them, as that of a salvaged
//! database may. Where it can be seen that it has, the tables do not open.

use crate::{
    catalogue,
    definition::Definition,
    error::{Error, Result},
    tree_names,
};
use indexy::{Db, Tree};
use std::collections::{BTreeMap, BTreeSet};

/// What the catalogue says at one moment, and which trees may go by it.
pub(crate) struct Seen {
    pub(crate) tables: Vec<(String, Definition)>,
    /// Numbers of tables that were dropped.
    pub(crate) dropped: BTreeSet<u64>,
    /// Names of trees that may go.
    pub(crate) orphans: Vec<String>,
}

impl Seen {
    /// Errors: `Corrupt` where the catalogue lacks something.
    pub(crate) fn read(db: &Db, catalogue: &Tree) -> Result<Self> {
        let now = db.snapshot()?;
        let tables = catalogue::tables(&now, catalogue)?;
        let with_generation = catalogue::with_generation(&now, catalogue)?;
        let dropped = catalogue::dropped(&now, catalogue)?;
        let known = tables.iter().map(|(_, definition)| definition);
        let known: BTreeMap<u64, &Definition> = known.map(|table| (table.id, table)).collect();
        let mut orphans = Vec::new();
        // Trees of tables of which nothing is known, by number of the table.
        let mut unknown: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for name in db.tree_names() {
            let Some((table, index)) = tree_names::numbers(&name) else {
                continue;
            };
            match known.get(&table) {
                Some(definition) => {
                    let lacks = |id| definition.indexes.iter().all(|index| index.id != id);
                    orphans.extend(index.is_some_and(lacks).then_some(name));
                }
                None if dropped.contains(&table) => orphans.push(name),
                None => unknown.entry(table).or_default().push(name),
            }
        }
        for (table, names) in unknown {
            match first_with_entries(db, &names)? {
                None => orphans.extend(names),
                Some(tree) if with_generation.contains(&table) => {
                    let what = format!("the definition of the table whose tree is {tree} is gone");
                    return Err(Error::corrupt(catalogue::TREE, what));
                }
                Some(_) => {}
            }
        }
        Ok(Self {
            tables,
            dropped,
            orphans,
        })
    }

    /// The greatest number that something has; trees that may go are gone.
    pub(crate) fn greatest_number(&self, db: &Db) -> u64 {
        let trees = db.tree_names();
        let of_trees = trees.iter().filter_map(|name| tree_names::numbers(name));
        let of_trees = of_trees.flat_map(|(table, index)| [table, index.unwrap_or(0)]);
        let generations = self.tables.iter().map(|(_, table)| table.generation);
        let dropped = self.dropped.iter().copied();
        of_trees
            .chain(generations)
            .chain(dropped)
            .max()
            .unwrap_or(0)
    }
}

/// With a catalogue that is empty, or not there, no tree of a table may have rows.
pub(crate) fn refuse_rows(db: &Db) -> Result<()> {
    let names = db.tree_names().into_iter();
    let names: Vec<String> = names.filter(|name| tree_names::is_of_table(name)).collect();
    match first_with_entries(db, &names)? {
        None => Ok(()),
        Some(tree) => {
            let what = format!("it is empty, and the tree of a table, {tree}, is not");
            Err(Error::corrupt(catalogue::TREE, what))
        }
    }
}

/// The first of these trees that has an entry, or is damaged. Other errors say nothing about what
/// is in a tree.
fn first_with_entries<'a>(db: &Db, names: &'a [String]) -> Result<Option<&'a str>> {
    for name in names {
        match db.tree(name)?.is_empty() {
            Ok(true) => {}
            Ok(false) | Err(indexy::Error::Corrupt { .. }) => return Ok(Some(name)),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}
