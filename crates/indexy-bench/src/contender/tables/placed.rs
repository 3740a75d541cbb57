//! Where the tables are: all in the contender, or only the one under test, the others in a database
//! of ours.
//!
//! The second is the paper's: one table has the system under test, all others the same pair of
//! indexes whatever that system is. The budget is divided by a fixed share, the same for every
//! contender. A batch is one batch per database, the table under test last: atomic for a thread
//! that holds the driver's locks, not over a crash. Two databases are needed for pairs of ours too:
//! beside trees that have an Index X the caches of Index Y stay small, so that a tree without one
//! would get no memory.

use super::{
    contract::{TableBatch, TableSetup, Tables},
    indexy::{IndexyTables, Residence, TreeBatch},
};
use crate::contender::contract::{Fault, Focus, Outcome, Setup};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fs, panic::resume_unwind, thread};

const OTHERS_DIRECTORY: &str = "others";
const SUBJECT_DIRECTORY: &str = "subject";
/// Of the others' share; a database has a least budget.
const SHARE_BOUNDS: (f64, f64) = (0.05, 0.95);

/// Where the tables are that are not the one under test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Others {
    /// In the contender, with the same budget.
    #[default]
    Same,
    /// In a database of ours with a pair of indexes of their own, as `art-lsm`, and a fixed share
    /// of the budget.
    Apart {
        /// Index X and Index Y, as the variants of contenders spell them.
        pair: String,
        /// True if they never leave memory, as in the paper.
        resident: bool,
        /// Their share of the budget, of 0..1.
        share: f64,
    },
}

/// Which table is under test, and where the others are.
#[derive(Debug, Clone, Copy)]
pub struct Placement<'a> {
    /// The table under test, which the contender has in any case.
    pub subject: usize,
    /// Where the others are.
    pub others: &'a Others,
}

/// Tables of a contender, with or without a database of ours beside it.
#[derive(Debug)]
pub struct Placed<T> {
    /// All tables, or the one under test alone.
    tables: T,
    apart: Option<Apart>,
}

/// All tables but one, in their order.
#[derive(Debug)]
struct Apart {
    subject: usize,
    tables: IndexyTables,
}

/// Who has a table, and its number there.
enum Home<'a> {
    Contender(usize),
    Apart(&'a IndexyTables, usize),
}

impl<T: Tables> Placed<T> {
    /// Opens the tables of `setup` where `placement` wants them, or creates them.
    ///
    /// Errors: those of the engines; a pair that there is not; resident tables of a pair without an
    /// Index X.
    pub fn place(setup: &TableSetup<'_>, placement: &Placement<'_>) -> Outcome<Self> {
        let Others::Apart {
            pair,
            resident,
            share,
        } = placement.others
        else {
            return Self::open(setup);
        };
        let whole = setup.setup;
        let share = share.clamp(SHARE_BOUNDS.0, SHARE_BOUNDS.1);
        let budget = (whole.budget as f64 * share) as u64;
        let part = |directory: &str, budget: u64, variant: &str| -> Outcome<Setup> {
            let path = whole.path.join(directory);
            fs::create_dir_all(&path)?;
            let variant = variant.to_owned();
            Ok(Setup {
                path,
                budget,
                variant,
                ..whole.clone()
            })
        };
        let rest = part(OTHERS_DIRECTORY, budget, pair)?;
        let own = part(SUBJECT_DIRECTORY, whole.budget - budget, &whole.variant)?;
        let mut names = setup.names.to_vec();
        let subject = names.remove(placement.subject);
        let residence = if *resident {
            Residence::Memory
        } else {
            Residence::Anywhere
        };
        let others = TableSetup {
            setup: &rest,
            names: &names,
        };
        Ok(Self {
            apart: Some(Apart {
                subject: placement.subject,
                tables: IndexyTables::open_in(&others, residence)?,
            }),
            tables: T::open(&TableSetup {
                setup: &own,
                names: &[subject],
            })?,
        })
    }

    #[inline]
    fn home(&self, table: usize) -> Home<'_> {
        match &self.apart {
            None => Home::Contender(table),
            Some(apart) if apart.subject == table => Home::Contender(0),
            // The one under test is missing in their order.
            Some(apart) => Home::Apart(&apart.tables, table - usize::from(table > apart.subject)),
        }
    }
}

/// A batch of each database.
pub struct PlacedBatch<'a, T: Tables> {
    of: &'a Placed<T>,
    batch: T::Batch<'a>,
    apart: Option<TreeBatch<'a>>,
}

impl<'a, T: Tables> PlacedBatch<'a, T> {
    /// That of the other database.
    fn others(&mut self) -> &mut TreeBatch<'a> {
        self.apart
            .as_mut()
            .expect("a batch has as many parts as the tables have homes")
    }
}

impl<T: Tables> Tables for Placed<T> {
    type Batch<'a> = PlacedBatch<'a, T>;

    /// All tables in the contender.
    fn open(setup: &TableSetup<'_>) -> Outcome<Self> {
        Ok(Self {
            tables: T::open(setup)?,
            apart: None,
        })
    }

    #[inline]
    fn get<R>(&self, table: usize, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        match self.home(table) {
            Home::Contender(table) => self.tables.get(table, key, see),
            Home::Apart(others, table) => others.get(table, key, see),
        }
    }

    fn scan(
        &self,
        table: usize,
        from: &[u8],
        to: &[u8],
        see: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Outcome<()> {
        match self.home(table) {
            Home::Contender(table) => self.tables.scan(table, from, to, see),
            Home::Apart(others, table) => others.scan(table, from, to, see),
        }
    }

    fn last<R>(
        &self,
        table: usize,
        from: &[u8],
        to: &[u8],
        see: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Outcome<Option<R>> {
        match self.home(table) {
            Home::Contender(table) => self.tables.last(table, from, to, see),
            Home::Apart(others, table) => others.last(table, from, to, see),
        }
    }

    fn batch(&self) -> PlacedBatch<'_, T> {
        PlacedBatch {
            of: self,
            batch: self.tables.batch(),
            apart: self.apart.as_ref().map(|apart| apart.tables.batch()),
        }
    }

    /// Two databases have no transaction over both.
    fn isolates(&self) -> bool {
        self.apart.is_none() && self.tables.isolates()
    }

    fn is_conflict(&self, fault: &Fault) -> bool {
        self.tables.is_conflict(fault)
    }

    #[inline]
    fn get_in<R>(
        &self,
        batch: &PlacedBatch<'_, T>,
        table: usize,
        key: &[u8],
        see: impl FnOnce(&[u8]) -> R,
    ) -> Outcome<Option<R>> {
        match self.isolates() {
            true => self.tables.get_in(&batch.batch, table, key, see),
            false => self.get(table, key, see),
        }
    }

    fn scan_in(
        &self,
        batch: &PlacedBatch<'_, T>,
        table: usize,
        from: &[u8],
        to: &[u8],
        see: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Outcome<()> {
        match self.isolates() {
            true => self.tables.scan_in(&batch.batch, table, from, to, see),
            false => self.scan(table, from, to, see),
        }
    }

    fn last_in<R>(
        &self,
        batch: &PlacedBatch<'_, T>,
        table: usize,
        from: &[u8],
        to: &[u8],
        see: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Outcome<Option<R>> {
        match self.isolates() {
            true => self.tables.last_in(&batch.batch, table, from, to, see),
            false => self.last(table, from, to, see),
        }
    }

    fn focus(&self, focus: Focus) -> Outcome<()> {
        self.tables.focus(focus)
    }

    fn hurry(&self, hurry: bool) {
        self.tables.hurry(hurry);
        if let Some(apart) = &self.apart {
            apart.tables.hurry(hurry);
        }
    }

    /// Both databases at once.
    fn settle(&self) -> Outcome<()> {
        let Some(apart) = &self.apart else {
            return self.tables.settle();
        };
        thread::scope(|scope| {
            let others = scope.spawn(|| apart.tables.settle());
            self.tables.settle()?;
            others.join().unwrap_or_else(|panic| resume_unwind(panic))
        })
    }

    /// None if the contender does not say it.
    fn memory_used(&self) -> Option<u64> {
        let own = self.tables.memory_used()?;
        let others = self.apart.as_ref().and_then(|a| a.tables.memory_used());
        Some(own + others.unwrap_or(0))
    }

    /// Those of the contender, and of the other database with a prefix.
    fn counters(&self) -> BTreeMap<String, f64> {
        let mut all = self.tables.counters();
        if let Some(apart) = &self.apart {
            let others = apart.tables.counters().into_iter();
            all.extend(others.map(|(name, value)| (format!("others_{name}"), value)));
        }
        all
    }

    fn close(self) -> Outcome<()> {
        if let Some(apart) = self.apart {
            apart.tables.close()?;
        }
        self.tables.close()
    }
}

impl<T: Tables> TableBatch for PlacedBatch<'_, T> {
    fn put(&mut self, table: usize, key: &[u8], value: &[u8]) {
        match self.of.home(table) {
            Home::Contender(table) => self.batch.put(table, key, value),
            Home::Apart(_, table) => self.others().put(table, key, value),
        }
    }

    fn remove(&mut self, table: usize, key: &[u8]) {
        match self.of.home(table) {
            Home::Contender(table) => self.batch.remove(table, key),
            Home::Apart(_, table) => self.others().remove(table, key),
        }
    }

    /// The table under test last.
    fn commit(self) -> Outcome<()> {
        if let Some(others) = self.apart {
            others.commit()?;
        }
        self.batch.commit()
    }
}
