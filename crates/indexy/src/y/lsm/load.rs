//! Sorted entries past runs: tables that nobody knows of until one version shows all of them.
//!
//! Threads: a load belongs to one; it takes no lock before it is published. Its tables are synced
//! before that, so that the commit has a record of the version log to write and little else. Beside
//! it runs, merges and commits go on: none of them sees the tables, and [`Versions::reap`] leaves
//! their files alone while the load holds them.
//!
//! [`Versions::reap`]: super::version::Versions::reap

use super::{
    stored::Stored,
    tree::LsmY,
    version::TableFile,
    write::{Level, Output},
};
use crate::{
    error::{Error, Result},
    y::contract::SortedLoad,
};
use std::sync::{Arc, atomic::Ordering::Relaxed};

/// See the module header.
pub(super) struct Load<'y> {
    y: &'y LsmY,
    /// `None`: sealed.
    output: Option<Output<'y>>,
    tables: Vec<Arc<Stored>>,
    /// What `load_bytes` of the tree has of this load (I7).
    counted: usize,
}

impl<'y> Load<'y> {
    pub(super) fn begin(y: &'y LsmY) -> Result<Self> {
        // First, so that whoever releases the files sees it or is seen here.
        y.loads.fetch_add(1, Relaxed);
        let load = Self {
            y,
            // What a merge would make of the range, which so has nothing to merge.
            output: Some(Output::new(y, y.sizes.partition_bytes, Level::Base)),
            tables: Vec::new(),
            counted: 0,
        };
        let _no_release = y.writing.lock();
        y.writable().map(|()| load)
    }

    fn count(&mut self, bytes: usize) {
        if bytes != self.counted {
            self.y.load_bytes.fetch_add(bytes, Relaxed);
            self.y.load_bytes.fetch_sub(self.counted, Relaxed);
            self.counted = bytes;
        }
    }
}

impl SortedLoad for Load<'_> {
    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        match &mut self.output {
            Some(output) => {
                output.add(key, Some(value))?;
                let bytes = output.finished_bytes();
                self.count(bytes);
                Ok(())
            }
            None => Err(Error::Closed),
        }
    }

    fn seal(&mut self) -> Result<()> {
        if let Some(output) = self.output.take() {
            self.tables = output.finish()?;
            let tables = self.tables.iter();
            let bytes = tables.map(|table| table.memory_bytes()).sum();
            self.count(bytes);
        }
        self.tables.iter().try_for_each(|table| table.sync())
    }

    fn publish(self: Box<Self>) -> Result<()> {
        let _one_writer = self.y.writing.lock();
        self.y.writable()?;
        if !self.tables.is_empty() {
            self.y
                .change(|version| Some(version.with_load(&self.tables)));
            self.y.clock.wrote();
        }
        self.y.versions.commit()
    }
}

impl Drop for Load<'_> {
    fn drop(&mut self) {
        // Files of tables that no version has go at once.
        drop(self.output.take());
        self.tables.clear();
        let _ = self.y.versions.reap();
        self.count(0);
        self.y.loads.fetch_sub(1, Relaxed);
    }
}
