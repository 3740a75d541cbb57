//! Runs a workload on small tables, and tables that lose a write.

use super::{Application, Client as _, Done, TableId};
use crate::{
    contender::{BTreeTables, Durability, Focus, Outcome, Setup, TableBatch, TableSetup, Tables},
    workload::rng,
};
use std::{
    collections::BTreeMap,
    ops::Range,
    path::Path,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
};

pub(crate) const SEED: u64 = 5;
pub(crate) const THREADS: u64 = 2;

/// Tables for `application` at `path`.
pub(crate) fn open<T: Tables>(application: &impl Application, path: &Path, variant: &str) -> T {
    let setup = Setup {
        path: path.to_path_buf(),
        budget: 24 << 20,
        durability: Durability::None,
        threads: THREADS as usize,
        records: 0,
        key_bytes: 39,
        value_bytes: 700,
        page_bytes: 0,
        focus: Focus::Mixed,
        variant: variant.to_owned(),
        cold: None,
    };
    T::open(&TableSetup {
        setup: &setup,
        names: &application.names(),
    })
    .unwrap()
}

/// A map for each table of `application`.
pub(crate) fn map(application: &impl Application) -> BTreeTables {
    open(application, Path::new(""), "")
}

/// Loads all pieces; returns the rows.
pub(crate) fn load<T: Tables>(application: &impl Application, tables: &T) -> u64 {
    let unit = |unit| application.load(tables, unit).unwrap().0;
    (0..application.units()).map(unit).sum()
}

/// Runs `each` transactions in each of two threads; returns the sums of what they counted.
pub(crate) fn run<T: Tables>(
    application: &impl Application,
    tables: &T,
    each: u32,
) -> Done<BTreeMap<String, f64>> {
    let one = |thread: u64| -> Done<Vec<(String, f64)>> {
        let mut client = application.client(tables, thread);
        let mut draws = rng(SEED, 7, thread);
        for _ in 0..each {
            client.next(&mut draws)?;
        }
        Ok(client.finish())
    };
    let mut sums = BTreeMap::new();
    let counted: Vec<_> = thread::scope(|scope| {
        let one = &one;
        let threads: Vec<_> = (0..THREADS).map(|t| scope.spawn(move || one(t))).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    for counters in counted {
        for (name, count) in counters? {
            *sums.entry(name).or_default() += count;
        }
    }
    Ok(sums)
}

/// Holds all conditions; returns rows seen.
pub(crate) fn check<T: Tables>(application: &impl Application, tables: &T) -> Done<u64> {
    let parts = 0..application.parts();
    parts.map(|part| application.check(tables, part)).sum()
}

/// All entries, by the number of their table.
pub(crate) fn dump<T: Tables>(
    application: &impl Application,
    tables: &T,
) -> Vec<(usize, Vec<u8>, Vec<u8>)> {
    let mut all = Vec::new();
    for table in 0..application.names().len() {
        let see = |key: &[u8], value: &[u8]| {
            all.push((table, key.to_vec(), value.to_vec()));
            true
        };
        tables.scan(table, &[], &[0xff; 20], see).unwrap();
    }
    all
}

pub(crate) fn put<T: Tables>(tables: &T, table: impl TableId, key: &[u8], value: &[u8]) {
    let mut batch = tables.batch();
    batch.put(table.index(), key, value);
    batch.commit().unwrap();
}

pub(crate) fn remove<T: Tables>(tables: &T, table: impl TableId, key: &[u8]) {
    let mut batch = tables.batch();
    batch.remove(table.index(), key);
    batch.commit().unwrap();
}

pub(crate) fn row<T: Tables>(tables: &T, table: impl TableId, key: &[u8]) -> Option<Vec<u8>> {
    tables.get(table.index(), key, <[u8]>::to_vec).unwrap()
}

/// Maps, of which one loses some puts in the middle of their batches.
pub(crate) struct Lossy {
    tables: BTreeTables,
    table: usize,
    puts: AtomicU64,
    lost: Range<u64>,
}

impl Lossy {
    /// Of the puts to `table` from now on, those numbered `lost` are lost.
    pub(crate) fn over(tables: BTreeTables, table: impl TableId, lost: Range<u64>) -> Self {
        Self {
            tables,
            table: table.index(),
            puts: AtomicU64::new(0),
            lost,
        }
    }
}

pub(crate) struct LossyBatch<'a> {
    of: &'a Lossy,
    batch: <BTreeTables as Tables>::Batch<'a>,
}

impl Tables for Lossy {
    type Batch<'a> = LossyBatch<'a>;

    fn open(_: &TableSetup<'_>) -> Outcome<Self> {
        Err("is made of maps that are open".into())
    }

    fn get<R>(&self, table: usize, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        self.tables.get(table, key, see)
    }

    fn scan(
        &self,
        table: usize,
        from: &[u8],
        to: &[u8],
        see: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Outcome<()> {
        self.tables.scan(table, from, to, see)
    }

    fn last<R>(
        &self,
        table: usize,
        from: &[u8],
        to: &[u8],
        see: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Outcome<Option<R>> {
        self.tables.last(table, from, to, see)
    }

    fn batch(&self) -> LossyBatch<'_> {
        LossyBatch {
            of: self,
            batch: self.tables.batch(),
        }
    }

    fn settle(&self) -> Outcome<()> {
        Ok(())
    }

    fn close(self) -> Outcome<()> {
        Ok(())
    }
}

impl TableBatch for LossyBatch<'_> {
    fn put(&mut self, table: usize, key: &[u8], value: &[u8]) {
        let of = self.of;
        let lost = table == of.table && of.lost.contains(&of.puts.fetch_add(1, Relaxed));
        if !lost {
            self.batch.put(table, key, value);
        }
    }

    fn remove(&mut self, table: usize, key: &[u8]) {
        self.batch.remove(table, key);
    }

    fn commit(self) -> Outcome<()> {
        self.batch.commit()
    }
}
