//! Scratch runs: sorted entries of no tree, in files that end with whoever holds them.
//!
//! A run is one or more tables, the keys of each behind those of the one before. It is written
//! once, in ascending order, read from any number of threads, and its files are removed when it is
//! dropped. Nothing is synced and nothing is found again by a later open, which removes the whole
//! folder. Pages go through the pool that the trees share.
//!
//! Keeps: I7 (what a run takes beside the pool is in [`ScratchRun::memory_bytes`]; a writer takes
//! [`WRITER_BYTES`]). Threads: any; a [`ScratchWriter`] and a [`ScratchStream`] one at a time.

use super::table::{
    Answer, FilterUse, Table, TableMeta, TableOptions, TableStream, TableWriter, file_name, hash_of,
};
use crate::{
    error::{Error, Result},
    key::{Key, Value},
    limits::MAX_VALUE_BYTES,
    storage::Storage,
    x::Order,
    y::{
        page::{PageSource, build::Content},
        pool::{Pool, chunk::Span},
    },
};
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
};

/// A table ends here and the next one begins: what a writer remembers of each leaf is bounded.
const TABLE_BYTES: u64 = 32 << 20;
/// What a writer holds: buffers, the hashes of a filter, the separators of a table.
pub(crate) const WRITER_BYTES: usize = 1 << 20;
/// Filters are read from the device for their own sake while they fit this part of the pool.
const FILTER_DIVISOR: usize = 2;
/// A stretch ends behind the entry that passes this: values may be long.
const STRETCH_BYTES: usize = 64 << 10;

/// Where scratch runs lie.
pub(crate) struct Scratch {
    storage: Arc<dyn Storage>,
    dir: PathBuf,
    pool: Arc<Pool>,
    table_bytes: u64,
    /// Tables so far: the number of the next one.
    next: AtomicU64,
    /// Of the filters of all runs.
    filter_bytes: AtomicUsize,
}

/// One table of a run.
struct ScratchTable {
    table: Table,
    scratch: Arc<Scratch>,
}

/// See the module header.
pub(crate) struct ScratchRun {
    scratch: Arc<Scratch>,
    /// By key.
    tables: Vec<ScratchTable>,
}

/// A run that is being written; dropped, it leaves nothing.
pub(crate) struct ScratchWriter {
    scratch: Arc<Scratch>,
    writer: Option<TableWriter>,
    tables: Vec<ScratchTable>,
}

/// A stretch of a run.
#[derive(Debug, Default)]
pub(crate) struct Stretch {
    /// In the asked order.
    pub(crate) entries: Vec<(Key, Value)>,
    /// What is left begins (descending: ends) here; `None`: nothing is left.
    pub(crate) resume: Option<Vec<u8>>,
}

impl Scratch {
    /// Runs in `dir`, which is made with the first one. Nothing else may be there.
    pub(crate) fn new(storage: Arc<dyn Storage>, dir: PathBuf, pool: Arc<Pool>) -> Self {
        Self {
            storage,
            dir,
            pool,
            table_bytes: TABLE_BYTES,
            next: AtomicU64::new(1),
            filter_bytes: AtomicUsize::new(0),
        }
    }

    /// The same with smaller tables.
    #[cfg(test)]
    pub(crate) fn with_tables_of(self, table_bytes: u64) -> Self {
        Self {
            table_bytes,
            ..self
        }
    }

    /// Begins a run. Errors: `Io`, `OutOfSpace`.
    pub(crate) fn writer(self: &Arc<Self>) -> Result<ScratchWriter> {
        self.storage.create_dir_all(&self.dir)?;
        Ok(ScratchWriter {
            scratch: Arc::clone(self),
            writer: None,
            tables: Vec::new(),
        })
    }

    fn filter_use(&self) -> FilterUse {
        match self.filter_bytes.load(Relaxed) <= self.pool.bytes() / FILTER_DIVISOR {
            true => FilterUse::First(u32::MAX),
            false => FilterUse::First(0),
        }
    }
}

impl ScratchWriter {
    /// Adds an entry behind all before. Errors: `Io`, `OutOfSpace`; `Unsupported` if the key does
    /// not ascend; `ValueTooLong` if no table could give the value back.
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if value.len() > MAX_VALUE_BYTES {
            return Err(Error::ValueTooLong {
                len: value.len(),
                limit: MAX_VALUE_BYTES,
            });
        }
        let full = |writer: &TableWriter| writer.bytes() >= self.scratch.table_bytes;
        if self.writer.as_ref().is_some_and(full) {
            self.end_table()?;
        }
        let writer = match &mut self.writer {
            Some(writer) => writer,
            empty => {
                let scratch = &self.scratch;
                let number = scratch.next.fetch_add(1, Relaxed);
                let options = TableOptions::default();
                empty.insert(TableWriter::new(
                    &scratch.storage,
                    &scratch.dir,
                    number,
                    options,
                )?)
            }
        };
        writer.add(key, Some(value))
    }

    fn end_table(&mut self) -> Result<()> {
        let finished = self.writer.take().map(TableWriter::finish).transpose()?;
        if let Some((meta, _)) = finished.flatten() {
            // Opened again, it stays open only as long as there is room for open files.
            let table = ScratchTable::open(&self.scratch, meta)?;
            self.tables.push(table);
        }
        Ok(())
    }

    /// The run; it may have no entry.
    pub(crate) fn finish(mut self) -> Result<ScratchRun> {
        self.end_table()?;
        Ok(ScratchRun {
            scratch: self.scratch,
            tables: self.tables,
        })
    }
}

impl ScratchTable {
    fn open(scratch: &Arc<Scratch>, meta: TableMeta) -> Result<Self> {
        let path = scratch.dir.join(file_name(meta.number));
        let table = Table::open(&*scratch.storage, &scratch.dir, meta, &scratch.pool)
            .inspect_err(|_| drop(scratch.storage.remove(&path)))?;
        scratch
            .filter_bytes
            .fetch_add(table.filter_bytes(), Relaxed);
        Ok(Self {
            table,
            scratch: Arc::clone(scratch),
        })
    }
}

impl Drop for ScratchTable {
    fn drop(&mut self) {
        let scratch = &self.scratch;
        let filter = self.table.filter_bytes();
        scratch.filter_bytes.fetch_sub(filter, Relaxed);
        let path = scratch.dir.join(file_name(self.table.meta().number));
        // What cannot be removed goes at the next open.
        let _ = scratch.storage.remove(&path);
    }
}

impl ScratchRun {
    /// The folder of the files.
    pub(crate) fn dir(&self) -> &Path {
        &self.scratch.dir
    }

    /// Bytes on disk.
    pub(crate) fn bytes(&self) -> u64 {
        let tables = self.tables.iter();
        tables.map(|t| t.table.meta().file_bytes()).sum()
    }

    /// Bytes of memory beside the pool.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.tables.iter().map(|t| t.table.memory_bytes()).sum()
    }

    /// The value of `key`. Cost: a page of the filter, and where that does not deny the key, the
    /// way to its leaf; a long value is one read more.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        let at = self.tables.partition_point(|t| *t.table.meta().max < *key);
        let Some(ScratchTable { table, scratch }) = self.tables.get(at) else {
            return Ok(None);
        };
        match table.ask(key, hash_of(key), scratch.filter_use())? {
            Answer::Value(value) => Ok(Some(value)),
            Answer::Denied | Answer::Nothing | Answer::Deleted => Ok(None),
        }
    }

    /// The first entries of `[from, to)` in `order`: some leaf's, and perhaps none though there are
    /// more.
    pub(crate) fn stretch(&self, from: &[u8], to: Option<&[u8]>, order: Order) -> Result<Stretch> {
        let within = |t: &&ScratchTable| {
            let meta = t.table.meta();
            *from <= *meta.max && to.is_none_or(|to| *meta.min < *to)
        };
        let mut tables = self.tables.iter().filter(within);
        let (first, next) = match order {
            Order::Ascending => (tables.next(), tables.next()),
            Order::Descending => (tables.next_back(), tables.next_back()),
        };
        let Some(ScratchTable { table, .. }) = first else {
            return Ok(Stretch::default());
        };
        let chunk = table.chunk(Span { from, to, order })?;
        let mut stretch = Stretch::default();
        let mut bytes = 0;
        for entry in chunk.entries {
            let key = entry.key.whole(&|far| table.file().fetch(far))?;
            if bytes > STRETCH_BYTES {
                stretch.resume = match order {
                    Order::Ascending => Some(key.to_vec()),
                    Order::Descending => stretch.entries.last().map(|(key, _)| key.to_vec()),
                };
                return Ok(stretch);
            }
            let value = match entry.value {
                Content::Near(value) => value,
                Content::Far(far) => table.file().fetch(far)?.into(),
                Content::Deleted => continue,
            };
            bytes += key.len() + value.len();
            stretch.entries.push((key.into(), value));
        }
        let inside = chunk
            .rest
            .filter(|at| **at > *from && to.is_none_or(|to| **at < *to));
        // Behind the last entry of a table comes the next table.
        stretch.resume = inside.or_else(|| {
            next.map(|next| match order {
                Order::Ascending => next.table.meta().min.to_vec(),
                Order::Descending => table.meta().min.to_vec(),
            })
        });
        Ok(stretch)
    }

    /// All entries in order, read with `read_bytes` at a time past the pool.
    pub(crate) fn stream(&self, read_bytes: usize) -> Result<ScratchStream<'_>> {
        let mut stream = ScratchStream {
            rest: self.tables.iter(),
            now: None,
            read_bytes,
        };
        stream.next_table()?;
        Ok(stream)
    }
}

/// All entries of a run.
pub(crate) struct ScratchStream<'r> {
    rest: std::slice::Iter<'r, ScratchTable>,
    now: Option<TableStream>,
    read_bytes: usize,
}

impl ScratchStream<'_> {
    fn next_table(&mut self) -> Result<()> {
        loop {
            self.now = match self.rest.next() {
                None => None,
                Some(t) => Some(t.table.stream(&[], None, self.read_bytes)?),
            };
            if self.now.as_ref().is_none_or(|now| now.key().is_some()) {
                return Ok(());
            }
        }
    }

    /// The key of the present entry; `None`: the end.
    pub(crate) fn key(&self) -> Option<&[u8]> {
        self.now.as_ref().and_then(TableStream::key)
    }

    /// The value of the present entry.
    pub(crate) fn value(&mut self) -> Result<&[u8]> {
        let Some(now) = &mut self.now else {
            return Ok(&[]);
        };
        now.load()?;
        Ok(now.value().unwrap_or_default())
    }

    /// Goes to the next entry.
    pub(crate) fn advance(&mut self) -> Result<()> {
        let Some(now) = &mut self.now else {
            return Ok(());
        };
        now.advance()?;
        match now.key() {
            Some(_) => Ok(()),
            None => self.next_table(),
        }
    }
}

#[cfg(test)]
mod tests;
