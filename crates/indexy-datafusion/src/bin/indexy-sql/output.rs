//! Rows on standard output; quiet when the reader goes away (`indexy-sql ... | head -1`).

use crate::args::Format;
use datafusion::arrow::{
    csv,
    datatypes::SchemaRef,
    error::ArrowError,
    json::{LineDelimitedWriter, WriterBuilder, writer::LineDelimited},
    record_batch::RecordBatch,
    util::{display::FormatOptions, pretty::pretty_format_batches_with_options},
};
use indexy_datafusion::datafusion;
use std::{
    fmt,
    io::{self, BufWriter, Stdout, Write as _},
};

const BUFFER_BYTES: usize = 64 << 10;

/// The reader of standard output is gone: nobody is left to tell anything.
#[derive(Debug)]
pub struct ReaderGone;

impl fmt::Display for ReaderGone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the reader of standard output is gone")
    }
}

impl std::error::Error for ReaderGone {}

type Buffered = BufWriter<Stdout>;

/// Prints rows in one format.
pub enum Output {
    Table(SchemaRef, Vec<RecordBatch>),
    Csv(Box<csv::Writer<Buffered>>, SchemaRef),
    Json(Box<LineDelimitedWriter<Buffered>>),
}

impl Output {
    pub fn new(format: Format, schema: SchemaRef) -> Self {
        let to = || BufWriter::with_capacity(BUFFER_BYTES, io::stdout());
        match format {
            Format::Table => Self::Table(schema, Vec::new()),
            Format::Csv => Self::Csv(Box::new(csv::Writer::new(to())), schema),
            Format::Json => {
                let builder = WriterBuilder::new().with_explicit_nulls(true);
                Self::Json(Box::new(builder.build::<_, LineDelimited>(to())))
            }
        }
    }

    pub fn write(&mut self, batch: RecordBatch) -> anyhow::Result<()> {
        match self {
            Self::Table(_, batches) => batches.push(batch),
            Self::Csv(writer, _) => writer.write(&batch).map_err(explain)?,
            Self::Json(writer) => writer.write(&batch).map_err(explain)?,
        }
        Ok(())
    }

    /// Writes what is left. Without it, output is lost.
    pub fn finish(self) -> anyhow::Result<()> {
        let flushed = match self {
            Self::Table(schema, mut batches) => {
                batches.push(RecordBatch::new_empty(schema));
                let options = FormatOptions::default().with_null("NULL");
                let table = pretty_format_batches_with_options(&batches, &options)?;
                let mut to = BufWriter::with_capacity(BUFFER_BYTES, io::stdout());
                writeln!(to, "{table}").and_then(|()| to.flush())
            }
            Self::Csv(mut writer, schema) => {
                // The line of names is there without rows, too.
                writer
                    .write(&RecordBatch::new_empty(schema))
                    .map_err(explain)?;
                writer.into_inner().flush()
            }
            Self::Json(mut writer) => {
                writer.finish().map_err(explain)?;
                writer.into_inner().flush()
            }
        };
        flushed.map_err(|error| explain_io(error.kind(), error.into()))
    }
}

fn explain(error: ArrowError) -> anyhow::Error {
    match &error {
        ArrowError::IoError(_, io) => explain_io(io.kind(), error.into()),
        // Of the CSV writer, which keeps the text of an error alone.
        ArrowError::CsvError(text) if text.contains("Broken pipe") => ReaderGone.into(),
        _ => error.into(),
    }
}

fn explain_io(kind: io::ErrorKind, error: anyhow::Error) -> anyhow::Error {
    match kind {
        io::ErrorKind::BrokenPipe => ReaderGone.into(),
        _ => error.context("cannot write to standard output"),
    }
}
