//! One step of maintenance: what the policy says is due, done.
//!
//! A merge reads past the pool and writes tables that nobody knows of. Then one new version has
//! them in the place of what was merged; runs that came meanwhile stay above. The version is made
//! durable at once, because only then the old files go. A merge that is interrupted, that fails, or
//! whose partitions changed meanwhile leaves nothing.
//!
//! I7: a merge holds a buffer for each table that it reads, [`MOST_BUFFERED`] together, and those
//! of one table that is written.

use super::{
    compact::{
        Deletes, Effort, Limits, MergeInput, MergeOutput, Merged, Step, merge, next, shape_of,
    },
    stored::Stored,
    table::TableStream,
    tree::LsmY,
    version::{Inputs, Part, Version},
    write::Output,
};
use crate::error::Result;
use std::{ops::Range, sync::Arc};

/// Bytes of the buffers of all inputs of a merge together, and the least of one.
const MOST_BUFFERED: usize = 1 << 20;
const LEAST_BUFFERED: usize = 32 << 10;

impl LsmY {
    /// One step, if something is due; false: nothing is. The caller holds `maintaining`.
    pub(super) fn do_what_is_due(&self) -> Result<bool> {
        let (effort, runs) = self.clock.effort();
        let done = self.step(effort)?;
        if !done {
            self.clock.rests(effort, runs);
        }
        Ok(done)
    }

    fn step(&self, effort: Effort) -> Result<bool> {
        let version = self.version();
        let shape = shape_of(&version, effort, self.limits());
        self.do_step(&version, next(&shape))
    }

    /// One step until nothing of `[from, to)` takes space in vain; false: nothing does. The caller
    /// holds `maintaining`.
    pub(super) fn compact_step(&self, from: &[u8], to: Option<&[u8]>) -> Result<bool> {
        let version = self.version();
        let end = match to {
            // The last partition with a key below `to`.
            Some(to) => version.find(to) + 1,
            None => version.partitions().len(),
        };
        let shape = shape_of(&version, Effort::Thorough, self.limits());
        let step = next(&shape.within(&(version.find(from)..end)));
        self.do_step(&version, step)
    }

    fn do_step(&self, version: &Version<Stored>, step: Step) -> Result<bool> {
        match step {
            Step::Rest => Ok(false),
            Step::Major(partitions) => self.major(version, partitions),
            Step::Minor(partition, layers) => {
                let inputs = Inputs::minor(version, partition, layers);
                self.merge(inputs, self.sizes.table_bytes)
            }
            Step::Cut(partition) => match version.middle(partition)? {
                Some(key) => Ok(self.change(|version| Some(version.cut(&key)))),
                None => self.major(version, partition..partition + 1),
            },
        }
    }

    fn major(&self, version: &Version<Stored>, partitions: Range<usize>) -> Result<bool> {
        let inputs = Inputs::major(version, partitions);
        self.merge(inputs, self.sizes.partition_bytes)
    }

    fn limits(&self) -> Limits {
        Limits::new(self.sizes.partition_bytes)
    }

    /// Some partition has so many layers that runs should wait.
    pub(super) fn is_congested(&self) -> bool {
        let version = self.versions.current();
        self.limits().congested(version.totals().depth)
    }

    /// Merges `inputs` and publishes the output in tables of about `table_bytes`; false if it was
    /// interrupted, or in vain.
    fn merge(&self, inputs: Option<Inputs<Stored>>, table_bytes: u64) -> Result<bool> {
        let Some(inputs) = inputs else {
            return Ok(false);
        };
        let mut output = Output::new(self, table_bytes);
        for part in &inputs.parts {
            if !self.merge_part(part, inputs.major, &mut output)? {
                return Ok(false);
            }
        }
        let tables = output.finish()?;
        let published = self.change(|version| version.with_merge(&inputs, &tables));
        drop((inputs, tables));
        // The files of what was merged go with the commit. If it fails they stay until the next.
        self.versions.commit()?;
        Ok(published)
    }

    /// False: interrupted.
    fn merge_part(
        &self,
        part: &Part<Stored>,
        major: bool,
        output: &mut Output<'_>,
    ) -> Result<bool> {
        let layers = part.layers();
        let base = part.base(major);
        let count = layers.len() + usize::from(!base.is_empty());
        let buffer = (MOST_BUFFERED / count.max(1)).clamp(LEAST_BUFFERED, self.sizes.read_bytes);
        let (from, to) = (&*part.partition.from, part.partition.to.as_deref());
        let slice = |tables: &[Arc<Stored>]| Slices::new(tables.to_vec(), from, to, buffer);
        let mut inputs = Vec::with_capacity(count);
        for layer in layers {
            inputs.push(slice(std::slice::from_ref(layer))?);
        }
        if !base.is_empty() {
            inputs.push(slice(base)?);
        }
        let deletes = if major { Deletes::Drop } else { Deletes::Keep };
        let prefix = part.shared_prefix(major);
        let merged = merge(&mut inputs, output, deletes, prefix, &self.interrupted)?;
        Ok(merged != Merged::Cancelled)
    }
}

/// What tables that do not overlap have in a range, one behind the other.
struct Slices {
    /// Those that were not begun, in descending order.
    rest: Vec<Arc<Stored>>,
    stream: Option<TableStream>,
    from: Vec<u8>,
    to: Option<Vec<u8>>,
    buffer: usize,
}

impl Slices {
    /// `tables` ascend.
    fn new(
        mut tables: Vec<Arc<Stored>>,
        from: &[u8],
        to: Option<&[u8]>,
        buffer: usize,
    ) -> Result<Self> {
        tables.reverse();
        let mut slices = Self {
            rest: tables,
            stream: None,
            from: from.to_vec(),
            to: to.map(<[u8]>::to_vec),
            buffer,
        };
        slices.go_on()?;
        Ok(slices)
    }

    /// To the next table that has something, if the present one is at its end.
    fn go_on(&mut self) -> Result<()> {
        while self
            .stream
            .as_ref()
            .is_none_or(|stream| stream.key().is_none())
        {
            self.stream = None;
            let Some(table) = self.rest.pop() else {
                break;
            };
            let stream = table
                .table()
                .stream(&self.from, self.to.as_deref(), self.buffer)?;
            self.stream = Some(stream);
        }
        Ok(())
    }
}

impl MergeInput for Slices {
    #[inline]
    fn key(&self) -> Option<&[u8]> {
        self.stream.as_ref()?.key()
    }

    #[inline]
    fn load(&mut self) -> Result<()> {
        self.stream.as_mut().map_or(Ok(()), TableStream::load)
    }

    #[inline]
    fn value(&self) -> Option<&[u8]> {
        self.stream.as_ref()?.value()
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        let Some(stream) = &mut self.stream else {
            return Ok(());
        };
        stream.advance()?;
        if stream.key().is_none() {
            self.go_on()?;
        }
        Ok(())
    }
}

impl MergeOutput for Output<'_> {
    #[inline]
    fn add(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        Output::add(self, key, value)
    }
}
