//! Runs, and tables on their way into a version.
//!
//! A run is written to tables whose files nobody knows of. When it is complete and logged (I5), one
//! new version shows all of it. A run that fails leaves nothing: its tables were in no version, and
//! their files are removed at once.

use super::{
    stored::Stored,
    table::{TableMeta, TableWriter},
    tree::{LsmY, PAGE_BYTES},
    version::{MAX_EXTRA_BYTES, TableFile},
};
use crate::{
    error::{Error, Result},
    limits::{MAX_KEY_BYTES, MAX_VALUE_BYTES},
    y::{RunSource, pool::TABLE_PAGES},
};
use std::sync::Arc;

/// No table is begun to be longer: what still comes then, a value, inner pages, filters and the
/// footer, has as much room before the table is too long to be opened.
pub(super) const MOST_TABLE_PAGES: u64 = TABLE_PAGES / 2;

/// No table goes on whose filter has begun with so many bytes of keys: the version log keeps them,
/// and refuses more of one table.
const MOST_KEPT_BYTES: usize = MAX_EXTRA_BYTES / 2;
const _: () = assert!(MOST_KEPT_BYTES + 4 * MAX_KEY_BYTES < MAX_EXTRA_BYTES);

/// Entries that become tables, one behind the other. Dropped before [`Output::finish`] it removes
/// their files.
pub(super) struct Output<'y> {
    y: &'y LsmY,
    table_bytes: u64,
    level: Level,
    writer: Option<TableWriter>,
    finished: Vec<TableMeta>,
    /// What `finished` takes in memory.
    finished_bytes: usize,
}

/// Where tables go: it decides how many bits their filters have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Layer,
    Base,
    /// A run's table is a layer where it stands over something.
    Run,
}

impl Level {
    /// Bits a key of a table that begins with `key`.
    fn bits(self, y: &LsmY, key: &[u8]) -> usize {
        let bits = y.filter_bits();
        let stands_over = || {
            let version = y.versions.current();
            let mut over = version.partition(key).into_iter().flat_map(|p| p.tables());
            over.any(|table| *table.facts().max >= *key)
        };
        match self {
            Self::Layer => bits.layer,
            Self::Base => bits.base,
            Self::Run if stands_over() => bits.layer,
            Self::Run => bits.base,
        }
    }
}

impl<'y> Output<'y> {
    /// Tables end when they have `table_bytes`, or else soon enough to be opened again.
    pub(super) fn new(y: &'y LsmY, table_bytes: u64, level: Level) -> Self {
        Self {
            y,
            table_bytes: table_bytes.min(MOST_TABLE_PAGES * PAGE_BYTES as u64),
            level,
            writer: None,
            finished: Vec::new(),
            finished_bytes: 0,
        }
    }

    /// Adds an entry; keys ascend.
    pub(super) fn add(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        if self
            .writer
            .as_ref()
            .is_some_and(|w| w.bytes() >= self.table_bytes || w.kept_bytes() >= MOST_KEPT_BYTES)
        {
            self.end_table()?;
        }
        let writer = match &mut self.writer {
            Some(writer) => writer,
            empty => {
                let (dir, number) = (self.y.tables_dir(), self.y.versions.new_number());
                let bits = self.level.bits(self.y, key);
                let options = self.y.table_options(bits);
                empty.insert(TableWriter::new(&self.y.storage, &dir, number, options)?)
            }
        };
        writer.add(key, value)
    }

    /// As if the present table had so many pages more.
    #[cfg(test)]
    pub(super) fn skip(&mut self, pages: u64) {
        self.writer.iter_mut().for_each(|writer| writer.skip(pages));
    }

    fn end_table(&mut self) -> Result<()> {
        let finished = self.writer.take().map(TableWriter::finish).transpose()?;
        // The file is opened again to be read: then it stays open only as long as there is room.
        if let Some((meta, _)) = finished.flatten() {
            self.finished_bytes += meta.memory_bytes();
            self.finished.push(meta);
        }
        Ok(())
    }

    /// Bytes of memory that grow with the number of tables.
    pub(super) fn finished_bytes(&self) -> usize {
        self.finished_bytes
    }

    /// The tables, which [`Versions`](super::version::Versions) knows of from now on.
    pub(super) fn finish(mut self) -> Result<Vec<Arc<Stored>>> {
        self.end_table()?;
        let mut tables = Vec::with_capacity(self.finished.len());
        let dir = self.y.tables_dir();
        for meta in &self.finished {
            tables.push(Arc::new(self.y.open_table(&dir, meta)?));
        }
        self.finished.clear();
        for table in &tables {
            self.y.versions.adopt(Arc::clone(table));
        }
        Ok(tables)
    }
}

impl Drop for Output<'_> {
    fn drop(&mut self) {
        for meta in &self.finished {
            let path = self.y.tables_dir().join(meta.number.to_string());
            // One that stays is removed by the next open.
            let _ = self.y.storage.remove(&path);
        }
    }
}

impl LsmY {
    /// Writes one run. The caller holds `writing`.
    pub(super) fn apply_run(&self, source: &mut dyn RunSource) -> Result<()> {
        let mut output = Output::new(self, self.sizes.table_bytes, Level::Run);
        source.drain(&mut |(key, value)| {
            check_lengths(key, value)?;
            output.add(key, value)
        })?;
        let tables = output.finish()?;
        if let Err(error) = source.before_publish() {
            drop(tables);
            let _ = self.versions.reap();
            return Err(error);
        }
        if !tables.is_empty() {
            self.change(|version| Some(version.with_run(&tables)));
            self.clock.wrote();
        }
        Ok(())
    }
}

fn check_lengths(key: &[u8], value: Option<&[u8]>) -> Result<()> {
    if key.len() > MAX_KEY_BYTES {
        return Err(Error::KeyTooLong {
            len: key.len(),
            limit: MAX_KEY_BYTES,
        });
    }
    if let Some(len) = value.map(<[u8]>::len).filter(|len| *len > MAX_VALUE_BYTES) {
        return Err(Error::ValueTooLong {
            len,
            limit: MAX_VALUE_BYTES,
        });
    }
    Ok(())
}
