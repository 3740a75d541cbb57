//! Tables as named trees of IndeXY in one database: all share the budget, and a batch is atomic
//! over all of them, a crash included.

use super::contract::{TableBatch, TableSetup, Tables};
use crate::contender::{
    contract::Outcome,
    indexy::pair,
    opened::{Opened, open_database, tree_options},
};
use indexy::{Batch, Db, IndexXKind, Tree};
use std::collections::BTreeMap;

/// An open database and its trees.
#[derive(Debug)]
pub struct IndexyTables {
    trees: Vec<Tree>,
    opened: Opened,
}

/// Where keys may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Residence {
    /// In Index X or Index Y, as the budget has it.
    Anywhere,
    /// In Index X only.
    Memory,
}

impl IndexyTables {
    /// Opens what is in the path of `open`, or creates it, with trees of that residence.
    pub(super) fn open_in(open: &TableSetup<'_>, residence: Residence) -> Outcome<Self> {
        let setup = open.setup;
        let kinds = pair(&setup.variant, setup.page_bytes)?;
        let resident = residence == Residence::Memory;
        if resident && kinds.0 == IndexXKind::None {
            return Err("tables without an Index X have nowhere to be resident".into());
        }
        let opened = open_database(setup, kinds)?;
        let options = tree_options(setup).resident(resident);
        let trees = open
            .names
            .iter()
            .map(|name| opened.db.tree_with(name, options.clone()))
            .collect::<Result<_, _>>()?;
        Ok(Self { trees, opened })
    }
}

impl IndexyTables {
    pub(super) fn tree(&self, table: usize) -> &Tree {
        &self.trees[table]
    }

    pub(super) fn database(&self) -> &Db {
        &self.opened.db
    }
}

/// A batch of writes to the trees.
pub struct TreeBatch<'a> {
    trees: &'a [Tree],
    batch: Batch,
}

impl Tables for IndexyTables {
    type Batch<'a> = TreeBatch<'a>;

    fn open(open: &TableSetup<'_>) -> Outcome<Self> {
        Self::open_in(open, Residence::Anywhere)
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
            trees: &self.trees,
            batch: self.opened.db.batch(),
        }
    }

    fn settle(&self) -> Outcome<()> {
        self.opened.settle()
    }

    fn hurry(&self, hurry: bool) {
        self.opened.hurry(hurry);
    }

    fn memory_used(&self) -> Option<u64> {
        Some(self.opened.db.stats().memory_used_bytes)
    }

    fn counters(&self) -> BTreeMap<String, f64> {
        self.opened.counters()
    }

    fn close(self) -> Outcome<()> {
        self.opened.close()
    }
}

impl TableBatch for TreeBatch<'_> {
    fn put(&mut self, table: usize, key: &[u8], value: &[u8]) {
        self.batch.insert(&self.trees[table], key, value);
    }

    fn remove(&mut self, table: usize, key: &[u8]) {
        self.batch.remove(&self.trees[table], key);
    }

    fn commit(self) -> Outcome<()> {
        Ok(self.batch.commit()?)
    }
}
