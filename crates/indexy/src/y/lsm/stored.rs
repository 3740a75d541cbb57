//! A table as versions see it, and as reads use it.

use super::{
    table::{Table, TableMeta},
    version::{Estimate, Facts, TableFile},
};
use crate::{
    error::{Error, Result},
    storage::Storage,
    y::pool::Pool,
};
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
};

/// See the module header.
pub(crate) struct Stored {
    facts: Facts,
    table: Table,
    /// So many of the first segments of its filter have a place in the pool.
    segments_that_fit: AtomicU32,
}

impl Stored {
    /// Opens the table that the version log knows by `facts`, in the folder `tables`. Cost: no read
    /// but of the file's length. Errors: `Corrupt`, `Io`.
    pub(super) fn open(
        storage: &dyn Storage,
        tables: &Path,
        facts: Facts,
        pool: &Arc<Pool>,
    ) -> Result<Self> {
        let meta = meta_of(&facts).map_err(|wrong| {
            let path = tables.join(facts.number.to_string());
            Error::corrupt(path, 0, format!("version log: {wrong}"))
        })?;
        let table = Table::open(storage, tables, meta, pool)?;
        Ok(Self {
            facts,
            table,
            segments_that_fit: AtomicU32::new(0),
        })
    }

    /// Opens the table that was just written.
    pub(super) fn of_meta(
        storage: &dyn Storage,
        tables: &Path,
        meta: TableMeta,
        pool: &Arc<Pool>,
    ) -> Result<Self> {
        Ok(Self {
            facts: facts_of(&meta),
            table: Table::open(storage, tables, meta, pool)?,
            segments_that_fit: AtomicU32::new(0),
        })
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    pub(super) fn segments_that_fit(&self) -> u32 {
        self.segments_that_fit.load(Relaxed)
    }

    /// Gives the filter a place, as far as there is `room` for it; returns what is left.
    pub(super) fn place_filter(&self, room: usize) -> usize {
        let (segments, left) = self.table.segments_in(room);
        self.segments_that_fit.store(segments, Relaxed);
        left
    }

    /// Bytes of memory that the open table takes.
    pub(super) fn memory_bytes(&self) -> usize {
        let keys = self.facts.min.len() + self.facts.max.len();
        size_of::<Facts>() + keys + self.facts.extra.len() + self.table.memory_bytes()
    }
}

impl TableFile for Stored {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn estimate(&self, from: &[u8], to: Option<&[u8]>) -> Estimate {
        // What cannot be read is found by those who need it.
        let all = (self.facts.entries, self.facts.bytes());
        let (entries, bytes) = self.table.estimate(from, to).unwrap_or(all);
        Estimate { entries, bytes }
    }

    fn middle(&self, from: &[u8], to: Option<&[u8]>) -> Result<Option<Box<[u8]>>> {
        self.table.middle(from, to)
    }

    fn sync(&self) -> Result<()> {
        self.table.sync()
    }

    fn check_format(&self) -> Result<()> {
        self.table.check_format()
    }
}

fn facts_of(meta: &TableMeta) -> Facts {
    let mut extra = Vec::new();
    meta.encode(&mut extra);
    Facts {
        number: meta.number,
        id: meta.id,
        pages: meta.pages,
        entries: meta.entries,
        deletes: meta.deletes,
        near_bytes: meta.near_bytes,
        far_bytes: meta.far_bytes,
        root: meta.root,
        height: meta.height,
        min: meta.min.clone(),
        max: meta.max.clone(),
        extra: extra.into(),
    }
}

/// What the table itself wants to know. `Err`: what is wrong with it.
fn meta_of(facts: &Facts) -> std::result::Result<TableMeta, &'static str> {
    let (meta, taken) = TableMeta::decode(&facts.extra)?;
    let same = taken == facts.extra.len() && facts_of(&meta) == *facts;
    same.then_some(meta)
        .ok_or("a table's facts contradict each other")
}
