//! One step of maintenance: what the policy says is due, done.
//!
//! A merge reads past the pool and writes tables that nobody knows of. Then one new version has
//! them in the place of what was merged; runs that came meanwhile stay above. The version is made
//! durable at once, because only then the old files go. A merge that is interrupted, that fails, or
//! whose partitions changed meanwhile leaves nothing. One that meets damage does so too; the
//! damaged part is left alone from then on (`damaged.rs`).
//!
//! I7: a merge holds a buffer for each table that it reads, [`MOST_BUFFERED`] together, and those
//! of one table that is written.

use super::{
    compact::{
        Deletes, Effort, Known, Limits, MergeInput, MergeOutput, Merged, Shape, Step, merge, next,
        shape_of,
    },
    damaged::unreadable,
    stored::Stored,
    table::TableStream,
    tree::LsmY,
    version::{Inputs, Part, Version},
    write::{Level, Output},
};
use crate::error::{Error, Result};
use std::{ops::Range, sync::Arc};

/// Bytes of the buffers of all inputs of a merge together, and the least of one.
const MOST_BUFFERED: usize = 1 << 20;
const LEAST_BUFFERED: usize = 32 << 10;

impl LsmY {
    /// One step, if something is due; false: nothing is. The caller holds `maintaining`. Errors:
    /// those of a merge; `Corrupt` if nothing is due because damage leaves a partition more layers
    /// than reads bear.
    pub(super) fn do_what_is_due(&self, known: &mut Known<Stored>) -> Result<bool> {
        let (effort, runs) = self.clock.effort();
        let version = self.version();
        let step = next(self.shape(&version, effort, known));
        let rests = step == Step::Rest;
        let done = self.do_step(&version, step)?;
        if !done {
            self.clock.rests(effort, runs);
            // A merge that was interrupted says nothing about what can be merged.
            if rests && let Some(found) = self.unbearable(&version) {
                return Err(found);
            }
        }
        Ok(done)
    }

    /// Damage of a partition whose layers are so many that runs wait for a merge. If nothing is
    /// due, they would wait for ever.
    fn unbearable(&self, version: &Version<Stored>) -> Option<Error> {
        let limits = self.limits();
        let mut congested = version
            .partitions()
            .iter()
            .filter(|partition| limits.congested(partition.depth()));
        congested.find_map(|partition| self.damaged.of(partition))
    }

    /// One step until nothing of `[from, to)` takes space in vain; false: nothing does. The caller
    /// holds `maintaining`.
    pub(super) fn compact_step(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        known: &mut Known<Stored>,
    ) -> Result<bool> {
        let version = self.version();
        let end = match to {
            // The last partition with a key below `to`.
            Some(to) => version.find(to) + 1,
            None => version.partitions().len(),
        };
        let shape = self.shape(&version, Effort::Thorough, known).clone();
        let step = next(&shape.within(&(version.find(from)..end)));
        self.do_step(&version, step)
    }

    fn shape<'k>(
        &self,
        version: &Arc<Version<Stored>>,
        effort: Effort,
        known: &'k mut Known<Stored>,
    ) -> &'k Shape {
        known.shape(version, self.damaged.met(), effort, || {
            self.damaged.keep(version);
            let any = self.damaged.count() > 0;
            let damaged = |partition: &_, table: &_| any && self.damaged.is_in(partition, table);
            shape_of(version, effort, self.limits(), damaged)
        })
    }

    pub(super) fn do_step(&self, version: &Version<Stored>, step: Step) -> Result<bool> {
        match step {
            Step::Rest => Ok(false),
            Step::Major(partitions) => self.major(version, partitions),
            Step::Minor(partition, layers) => self.minor(version, partition, layers),
            Step::Cut(partition, instead) => match (middle(version, partition)?, instead) {
                (Some(key), _) => Ok(self.change(|version| Some(version.cut(&key)))),
                (None, None) => self.major(version, partition..partition + 1),
                (None, Some(layers)) => self.minor(version, partition, layers),
            },
        }
    }

    fn minor(
        &self,
        version: &Version<Stored>,
        partition: usize,
        layers: Range<usize>,
    ) -> Result<bool> {
        // One table: two would be layers of like size again.
        self.merge(Inputs::minor(version, partition, layers), u64::MAX)
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

    /// Merges `inputs` and publishes the output in tables of about `table_bytes`; false if there
    /// are none, or it was interrupted. True where it was in vain, too: what it merged has changed,
    /// so that something else may be due.
    fn merge(&self, inputs: Option<Inputs<Stored>>, table_bytes: u64) -> Result<bool> {
        let Some(inputs) = inputs else {
            return Ok(false);
        };
        let level = if inputs.major {
            Level::Base
        } else {
            Level::Layer
        };
        let mut output = Output::new(self, table_bytes, level);
        for part in &inputs.parts {
            match self.merge_part(part, inputs.major, &mut output) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(error) => {
                    let tables = self.tables_dir();
                    self.damaged.note(part, inputs.major, &tables, error)?;
                    // Something else may be due.
                    return Ok(true);
                }
            }
        }
        let tables = output.finish()?;
        self.change(|version| version.with_merge(&inputs, &tables));
        drop((inputs, tables));
        // The files of what was merged go with the commit. If it fails they stay until the next.
        self.versions.commit()?;
        Ok(true)
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

/// Where to cut a partition. `None` also where what cannot be read would have to be: the merge
/// meets it, and notes it.
fn middle(version: &Version<Stored>, partition: usize) -> Result<Option<Box<[u8]>>> {
    match version.middle(partition) {
        Err(error) if unreadable(&error).is_some() => Ok(None),
        middle => middle,
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
