//! One sorted run: tables written beside the tree, then taken over by it in one step.
//!
//! Why not a batch into the memtable: `docs/decisions/0003-rocksdb-as-index-y.md`.

#![forbid(unsafe_code)]

use super::{engine::Engine, fault::typed, files::INCOMING, shared::RocksShared};
use crate::{
    error::{Error, Result},
    limits::{MAX_KEY_BYTES, MAX_VALUE_BYTES},
    y::{RunEntry, RunSource},
};
use rocksdb::{IngestExternalFileOptions, SstFileWriter};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Payload of one table of a run. A longer run is several tables, taken over together; what RocksDB
/// holds of filter and index while it writes one grows with this.
const TABLE_BYTES: usize = 32 << 20;

/// The finished tables of a run; removed when dropped.
pub(super) struct RunFiles {
    dir: PathBuf,
    files: Vec<PathBuf>,
}

impl RunFiles {
    /// Streams `source` into tables of the tree in `dir`, synced but not part of the tree yet.
    pub(super) fn write(
        dir: &Path,
        shared: &RocksShared,
        source: &mut dyn RunSource,
    ) -> Result<Self> {
        let mut run = Self {
            dir: dir.join(INCOMING),
            files: Vec::new(),
        };
        let mut table: Option<Table<'_>> = None;
        source.drain(&mut |entry| {
            check(entry)?;
            if table.as_ref().is_some_and(|t| t.bytes >= TABLE_BYTES)
                && let Some(full) = table.take()
            {
                full.finish()?;
            }
            let table = match &mut table {
                Some(table) => table,
                empty => empty.insert(Table::create(run.next_file()?, shared)?),
            };
            table.add(entry)
        })?;
        if let Some(last) = table {
            last.finish()?;
        }
        Ok(run)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// A name for one more table.
    fn next_file(&mut self) -> Result<PathBuf> {
        if self.files.is_empty() {
            fs::create_dir_all(&self.dir).map_err(|e| Error::io("create", &self.dir, e))?;
        }
        let file = self.dir.join(format!("{}.run", self.files.len()));
        self.files.push(file.clone());
        Ok(file)
    }

    /// Makes the run part of the tree: visible as a whole, and durable on return.
    pub(super) fn publish(self, engine: &Engine) -> Result<()> {
        let mut options = IngestExternalFileOptions::default();
        options.set_move_files(true);
        options.set_allow_global_seqno(true);
        engine
            .db
            .ingest_external_file_opts(&options, self.files.clone())
            .map_err(|e| typed(&engine.dir, "publish", &e))
    }
}

impl Drop for RunFiles {
    fn drop(&mut self) {
        for file in &self.files {
            // Most are gone: they were moved. What stays is removed at the next open.
            let _ = fs::remove_file(file);
        }
    }
}

/// A table being written.
struct Table<'a> {
    writer: SstFileWriter<'a>,
    path: PathBuf,
    /// Payload so far.
    bytes: usize,
}

impl<'a> Table<'a> {
    fn create(path: PathBuf, shared: &'a RocksShared) -> Result<Self> {
        let writer = SstFileWriter::create(&shared.run);
        writer
            .open(&path)
            .map_err(|e| typed(dir(&path), "create", &e))?;
        Ok(Self {
            writer,
            path,
            bytes: 0,
        })
    }

    fn add(&mut self, (key, value): RunEntry<'_>) -> Result<()> {
        self.bytes += key.len() + value.map_or(0, <[u8]>::len);
        let written = match value {
            Some(value) => self.writer.put(key, value),
            None => self.writer.delete(key),
        };
        written.map_err(|e| typed(dir(&self.path), "write", &e))
    }

    /// Writes what is left and syncs.
    fn finish(mut self) -> Result<()> {
        let finished = self.writer.finish();
        finished.map_err(|e| typed(dir(&self.path), "write", &e))
    }
}

fn dir(file: &Path) -> &Path {
    file.parent().unwrap_or(file)
}

fn check((key, value): RunEntry<'_>) -> Result<()> {
    if key.len() > MAX_KEY_BYTES {
        return Err(Error::KeyTooLong {
            len: key.len(),
            limit: MAX_KEY_BYTES,
        });
    }
    match value {
        Some(value) if value.len() > MAX_VALUE_BYTES => Err(Error::ValueTooLong {
            len: value.len(),
            limit: MAX_VALUE_BYTES,
        }),
        _ => Ok(()),
    }
}
