//! Record batches of ranges of keys, read on a thread that may block.
//!
//! Threads: one of the runtime's blocking pool for each partition that is executed. It waits for
//! nothing but disk reads and for the reader of the channel, which holds [`AHEAD`] batches. A
//! reader that is gone closes the channel: the thread ends with the batch that it is reading, and
//! drops its reference to the snapshot.

use crate::{access::Bounds, table::Seen};
use datafusion::{
    arrow::{compute::concat_batches, datatypes::SchemaRef, record_batch::RecordBatch},
    error::{DataFusionError, Result},
    execution::SendableRecordBatchStream,
    physical_plan::{
        metrics::BaselineMetrics,
        stream::{RecordBatchReceiverStream, RecordBatchReceiverStreamBuilder},
    },
};
use indexy_table::Query;
use std::{ops::ControlFlow, sync::Arc};

/// Bytes of short ranges that make a batch together.
const MOST_BYTES: usize = 16 << 20;
/// Batches in the channel.
const AHEAD: usize = 2;

/// What one partition reads.
#[derive(Debug)]
pub(crate) struct Reading {
    pub table: Arc<Seen>,
    /// Columns, order and limit; the bounds are not in it.
    pub query: Query,
    /// In the order in which they are read.
    pub bounds: Vec<Bounds>,
    pub limit: Option<usize>,
    pub schema: SchemaRef,
    pub batch_rows: usize,
    pub metrics: BaselineMetrics,
}

/// Begins to read.
pub(crate) fn read(reading: Reading) -> SendableRecordBatchStream {
    let mut builder: RecordBatchReceiverStreamBuilder =
        RecordBatchReceiverStream::builder(reading.schema.clone(), AHEAD);
    let to = builder.tx();
    builder.spawn_blocking(move || {
        // A reader that is gone is told nothing.
        let _gone = reading.run(&mut |batch| match to.blocking_send(Ok(batch)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        })?;
        Ok(())
    });
    builder.build()
}

/// An error of the tables, as DataFusion carries it.
pub(crate) fn external(error: indexy_table::Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

type Send<'a> = &'a mut dyn FnMut(RecordBatch) -> ControlFlow<()>;

impl Reading {
    fn run(&self, send: Send<'_>) -> Result<ControlFlow<()>> {
        let mut left = self.limit.unwrap_or(usize::MAX);
        let mut small = Small::default();
        for bounds in &self.bounds {
            if left == 0 {
                break;
            }
            let query = bounds.apply(self.query.clone()).limit(left as u64);
            let batches = self.table.snapshot.batches(&query, self.batch_rows);
            let mut batches = batches.map_err(external)?;
            loop {
                let timer = self.metrics.elapsed_compute().timer();
                let Some(batch) = batches.next() else { break };
                let batch = batch.map_err(external)?;
                timer.done();
                left -= batch.num_rows().min(left);
                if !small.has_room(&batch) && self.give(small.take(&self.schema)?, send).is_break()
                {
                    return Ok(ControlFlow::Break(()));
                }
                small.add(batch);
                let more = small.rows < self.batch_rows && small.bytes < MOST_BYTES;
                if more && self.bounds.len() > 1 {
                    continue;
                }
                if self.give(small.take(&self.schema)?, send).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(self.give(small.take(&self.schema)?, send))
    }

    fn give(&self, batch: Option<RecordBatch>, send: Send<'_>) -> ControlFlow<()> {
        let Some(batch) = batch else {
            return ControlFlow::Continue(());
        };
        self.metrics.record_output(batch.num_rows());
        send(batch)
    }
}

/// Batches of short ranges, until they are enough for one.
#[derive(Default)]
struct Small {
    batches: Vec<RecordBatch>,
    rows: usize,
    /// What the batches hold, not only what is used of it.
    bytes: usize,
}

impl Small {
    /// Whether `batch` may go with those that are here.
    fn has_room(&self, batch: &RecordBatch) -> bool {
        self.bytes + batch.get_array_memory_size() <= MOST_BYTES
    }

    fn add(&mut self, batch: RecordBatch) {
        self.rows += batch.num_rows();
        self.bytes += batch.get_array_memory_size();
        self.batches.push(batch);
    }

    fn take(&mut self, schema: &SchemaRef) -> Result<Option<RecordBatch>> {
        (self.rows, self.bytes) = (0, 0);
        match &mut self.batches[..] {
            [] => Ok(None),
            [_] => Ok(self.batches.pop()),
            many => {
                let one = concat_batches(schema, &*many)?;
                self.batches.clear();
                Ok(Some(one))
            }
        }
    }
}
