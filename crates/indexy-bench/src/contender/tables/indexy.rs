//! Tables as named trees of IndeXY: one database, or two when the tables beside the one under test are to have another pair.
//!
//! In one database all trees share the budget and a batch is atomic over all of them, a crash included. With two the
//! budget is divided by a fixed share, the same for every contender, and a batch is one batch per database, the table under test last: atomic
//! for who holds the driver's locks, not over a crash. Two are needed because beside trees that have an Index X the
//! caches of Index Y stay small, so that a tree without one would get no memory.

use super::{Others, TableBatch, TableSetup, Tables};
use crate::contender::{
    Outcome,
    indexy::{counters, open_database, pair, wait_for_quiet},
};
use indexy::{Batch, Db, IndexXKind, Tree, TreeOptions};
use std::{collections::BTreeMap, fs};

const OTHERS_DIRECTORY: &str = "others";
const SUBJECT_DIRECTORY: &str = "subject";
/// Of the others' share; a database has a least budget.
const SHARE_BOUNDS: (f64, f64) = (0.05, 0.95);

/// One or two open databases and their trees.
#[derive(Debug)]
pub struct IndexyTables {
    trees: Vec<Tree>,
    db: Db,
    /// The database of the table under test, and which table that is, where it has one of its own.
    apart: Option<(usize, Db)>,
}

impl IndexyTables {
    fn together(open: &TableSetup<'_>) -> Outcome<Self> {
        let setup = open.setup;
        let kinds = pair(&setup.variant, setup.page_bytes)?;
        let db = open_database(&setup.path, setup.budget, kinds, setup.durability)?;
        let trees = open
            .names
            .iter()
            .map(|name| db.tree(name))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            trees,
            db,
            apart: None,
        })
    }

    fn apart(open: &TableSetup<'_>, others: (&str, bool), share: f64) -> Outcome<Self> {
        let setup = open.setup;
        let (pair_of_others, resident) = others;
        let share = share.clamp(SHARE_BOUNDS.0, SHARE_BOUNDS.1);
        let budget = (setup.budget as f64 * share) as u64;
        let kinds = pair(pair_of_others, setup.page_bytes)?;
        if resident && kinds.0 == IndexXKind::None {
            return Err("tables without an Index X have nowhere to be resident".into());
        }
        let (here, there) = (
            setup.path.join(OTHERS_DIRECTORY),
            setup.path.join(SUBJECT_DIRECTORY),
        );
        fs::create_dir_all(&here)?;
        fs::create_dir_all(&there)?;
        let db = open_database(&here, budget, kinds, setup.durability)?;
        let kinds = pair(&setup.variant, setup.page_bytes)?;
        let subject = open_database(&there, setup.budget - budget, kinds, setup.durability)?;
        let tree = |(index, name): (usize, &&str)| {
            if index == open.subject {
                subject.tree(name)
            } else {
                db.tree_with(name, TreeOptions::new().resident(resident))
            }
        };
        let trees = open
            .names
            .iter()
            .enumerate()
            .map(tree)
            .collect::<Result<_, _>>()?;
        Ok(Self {
            trees,
            db,
            apart: Some((open.subject, subject)),
        })
    }

    fn databases(&self) -> impl Iterator<Item = &Db> {
        std::iter::once(&self.db).chain(self.apart.as_ref().map(|(_, db)| db))
    }
}

/// A batch of each database.
pub struct TreeBatch<'a> {
    tables: &'a IndexyTables,
    batch: Batch,
    apart: Option<Batch>,
}

impl TreeBatch<'_> {
    /// The batch that `table` belongs to.
    fn of(&mut self, table: usize) -> &mut Batch {
        match (&self.tables.apart, &mut self.apart) {
            (Some((subject, _)), Some(batch)) if *subject == table => batch,
            _ => &mut self.batch,
        }
    }
}

impl Tables for IndexyTables {
    type Batch<'a> = TreeBatch<'a>;

    fn open(open: &TableSetup<'_>) -> Outcome<Self> {
        match open.others {
            Others::Same => Self::together(open),
            Others::Apart {
                pair,
                resident,
                share,
            } => Self::apart(open, (pair, *resident), *share),
        }
    }

    #[inline]
    fn get<R>(&self, table: usize, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        Ok(self.trees[table].get_with(key, see)?)
    }

    fn scan(
        &self,
        table: usize,
        from: &[u8],
        to: &[u8],
        mut see: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Outcome<()> {
        for entry in self.trees[table].range(from..to) {
            let (key, value) = entry?;
            if !see(&key, &value) {
                break;
            }
        }
        Ok(())
    }

    fn last<R>(
        &self,
        table: usize,
        from: &[u8],
        to: &[u8],
        see: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Outcome<Option<R>> {
        let last = self.trees[table].range(from..to).next_back().transpose()?;
        Ok(last.map(|(key, value)| see(&key, &value)))
    }

    fn batch(&self) -> TreeBatch<'_> {
        TreeBatch {
            tables: self,
            batch: self.db.batch(),
            apart: self.apart.as_ref().map(|(_, db)| db.batch()),
        }
    }

    fn settle(&self) -> Outcome<()> {
        let databases: Vec<&Db> = self.databases().collect();
        for db in &databases {
            db.flush()?;
        }
        wait_for_quiet(&databases);
        Ok(())
    }

    fn memory_used(&self) -> Option<u64> {
        Some(
            self.databases()
                .map(|db| db.stats().memory_used_bytes)
                .sum(),
        )
    }

    /// Those of the database of the table under test, and of the other one with a prefix.
    fn counters(&self) -> BTreeMap<String, f64> {
        match &self.apart {
            None => counters(&self.db),
            Some((_, subject)) => {
                let others = counters(&self.db).into_iter();
                let mut all = counters(subject);
                all.extend(others.map(|(name, value)| (format!("others_{name}"), value)));
                all
            }
        }
    }

    fn close(self) -> Outcome<()> {
        for db in self.databases() {
            db.close()?;
        }
        Ok(())
    }
}

impl TableBatch for TreeBatch<'_> {
    fn put(&mut self, table: usize, key: &[u8], value: &[u8]) {
        let tree = &self.tables.trees[table];
        self.of(table).insert(tree, key, value);
    }

    fn remove(&mut self, table: usize, key: &[u8]) {
        let tree = &self.tables.trees[table];
        self.of(table).remove(tree, key);
    }

    fn commit(self) -> Outcome<()> {
        self.batch.commit()?;
        if let Some(batch) = self.apart {
            batch.commit()?;
        }
        Ok(())
    }
}
