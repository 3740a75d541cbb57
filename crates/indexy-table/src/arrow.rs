//! Rows as Arrow record batches (feature `arrow`).
//!
//! A batch ends after a number of rows, or when its text and bytes have taken 16 MiB: a reader of a
//! stream holds one batch at a time, whatever the size of the table, and the rows that its scan
//! looked up ahead (`ahead.rs`).

use crate::{
    error::{Error, Result},
    query::Query,
    scan::Rows,
    table::Table,
    value::{Borrowed, Type},
    view::TableSnapshot,
};
use arrow_array::{
    ArrayRef, RecordBatch, RecordBatchOptions,
    builder::{
        BinaryBuilder, BooleanBuilder, Float64Builder, Int32Builder, Int64Builder, StringBuilder,
        TimestampMicrosecondBuilder, UInt64Builder,
    },
};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use std::{fmt, sync::Arc};

/// Text and bytes of a batch, about.
const MOST_BYTES: usize = 16 << 20;
/// The time zone of all timestamps.
const ZONE: &str = "UTC";

/// Record batches of a query over a snapshot, which it keeps open. After an error it is at its end.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
/// # use indexy_table::{Query, Schema, Tables, Type};
/// # let schema = Schema::new("t").column("id", Type::U64).column("text", Type::Text);
/// # let table = Tables::open(&db)?.create_table(schema.primary_key(["id"]))?;
/// for id in 0..5u64 {
///     table.insert((id, "text"))?;
/// }
/// let batches = table.batches(&Query::all(), 2)?;
/// assert_eq!(batches.schema().field(1).name(), "text");
/// let rows = batches.map(|batch| batch.map(|batch| batch.num_rows()));
/// let rows: Vec<usize> = rows.collect::<Result<_, _>>()?;
/// assert_eq!(rows, [2, 2, 1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Batches {
    rows: Rows<'static>,
    schema: SchemaRef,
    most_rows: usize,
    /// What comes behind the rows of the last batch.
    failed: Option<Error>,
    ended: bool,
}

impl fmt::Debug for Batches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batches")
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

impl Table {
    /// The rows of `query`, as they are at one moment, in batches of `rows` rows at most.
    /// [`Batches`] has an example. Errors: those of [`Table::scan`].
    pub fn batches(&self, query: &Query, rows: usize) -> Result<Batches> {
        self.now()?.batches(query, rows)
    }
}

impl TableSnapshot {
    /// The rows of `query` in batches of `rows` rows at most. Errors: those of
    /// [`TableSnapshot::scan`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Query, Schema, Tables, Type};
    /// # let schema = Schema::new("t").column("id", Type::U64).primary_key(["id"]);
    /// # let table = Tables::open(&db)?.create_table(schema)?;
    /// let now = table.at(&db.snapshot()?)?;
    /// assert!(now.batches(&Query::all(), 1024)?.next().is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn batches(&self, query: &Query, rows: usize) -> Result<Batches> {
        let found = self.scan(query)?;
        Ok(Batches {
            schema: self.arrow_schema_of(found.wanted()),
            rows: found,
            most_rows: rows.max(1),
            failed: None,
            ended: false,
        })
    }

    /// The schema of record batches of all columns.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Query, Schema, Tables, Type};
    /// # let schema = Schema::new("t").column("id", Type::U64).primary_key(["id"]);
    /// # let table = Tables::open(&db)?.create_table(schema)?;
    /// let now = table.at(&db.snapshot()?)?;
    /// assert_eq!(now.arrow_schema(), now.batches(&Query::all(), 1024)?.schema());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn arrow_schema(&self) -> SchemaRef {
        self.arrow_schema_of(&(0..self.layout.columns.len()).collect::<Vec<_>>())
    }

    fn arrow_schema_of(&self, columns: &[usize]) -> SchemaRef {
        let fields = columns.iter().map(|&at| {
            let column = &self.layout.definition.columns[at];
            Field::new(&column.name, data_type(column.ty), column.nullable)
        });
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }
}

fn data_type(ty: Type) -> DataType {
    match ty {
        Type::Bool => DataType::Boolean,
        Type::I32 => DataType::Int32,
        Type::I64 => DataType::Int64,
        Type::U64 => DataType::UInt64,
        Type::F64 => DataType::Float64,
        Type::Text => DataType::Utf8,
        Type::Bytes => DataType::Binary,
        Type::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some(ZONE.into())),
    }
}

/// A column that grows.
enum Builder {
    Bool(BooleanBuilder),
    I32(Int32Builder),
    I64(Int64Builder),
    U64(UInt64Builder),
    F64(Float64Builder),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
    Timestamp(TimestampMicrosecondBuilder),
}

impl Builder {
    fn of(ty: &DataType) -> Self {
        match ty {
            DataType::Boolean => Self::Bool(BooleanBuilder::new()),
            DataType::Int32 => Self::I32(Int32Builder::new()),
            DataType::Int64 => Self::I64(Int64Builder::new()),
            DataType::UInt64 => Self::U64(UInt64Builder::new()),
            DataType::Float64 => Self::F64(Float64Builder::new()),
            DataType::Utf8 => Self::Text(StringBuilder::new()),
            DataType::Binary => Self::Bytes(BinaryBuilder::new()),
            _ => Self::Timestamp(TimestampMicrosecondBuilder::new().with_timezone(ZONE)),
        }
    }

    /// Appends a value of its type, or NULL.
    fn push(&mut self, value: Borrowed<'_>) {
        macro_rules! push {
            ($($variant:ident),*) => {
                match (self, value) {
                    $((Self::$variant(to), Borrowed::$variant(v)) => to.append_value(v),)*
                    $((Self::$variant(to), _) => to.append_null(),)*
                }
            };
        }
        push!(Bool, I32, I64, U64, F64, Text, Bytes, Timestamp);
    }

    fn finish(mut self) -> ArrayRef {
        match &mut self {
            Self::Bool(from) => Arc::new(from.finish()),
            Self::I32(from) => Arc::new(from.finish()),
            Self::I64(from) => Arc::new(from.finish()),
            Self::U64(from) => Arc::new(from.finish()),
            Self::F64(from) => Arc::new(from.finish()),
            Self::Text(from) => Arc::new(from.finish()),
            Self::Bytes(from) => Arc::new(from.finish()),
            Self::Timestamp(from) => Arc::new(from.finish()),
        }
    }
}

impl Batches {
    /// The columns. [`Batches`] has an example.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn step(&mut self) -> Result<Option<RecordBatch>> {
        let fields = self.schema.fields().iter();
        let mut columns: Vec<Builder> =
            fields.map(|field| Builder::of(field.data_type())).collect();
        let (mut rows, mut bytes) = (0, 0);
        while rows < self.most_rows && bytes < MOST_BYTES {
            let seen = self.rows.visit_next(|to, value| {
                bytes += match &value {
                    Borrowed::Text(text) => text.len(),
                    Borrowed::Bytes(bytes) => bytes.len(),
                    _ => 0,
                };
                columns[to].push(value);
            });
            match seen {
                Ok(true) => rows += 1,
                Ok(false) => break,
                Err(error) if rows == 0 => return Err(error),
                // The rows before it first.
                Err(error) => {
                    self.failed = Some(error);
                    break;
                }
            }
        }
        if rows == 0 {
            return Ok(None);
        }
        let mut arrays: Vec<ArrayRef> = columns.into_iter().map(Builder::finish).collect();
        for &(from, to) in self.rows.copies() {
            arrays[to] = arrays[from].clone();
        }
        // A query of no columns has rows, too.
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options);
        let wrong = |error: arrow_schema::ArrowError| {
            Error::corrupt(self.rows.table(), format!("a record batch: {error}"))
        };
        batch.map(Some).map_err(wrong)
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let step = match self.failed.take() {
            Some(error) => Err(error),
            None => self.step(),
        };
        self.ended = !matches!(step, Ok(Some(_)));
        step.transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Column, Schema as TableSchema, Tables, Timestamp, Value};
    use arrow_array::{Array, cast::AsArray, types::UInt64Type};

    #[test]
    fn batches_have_the_rows_of_a_scan() {
        let dir = tempfile::tempdir().unwrap();
        let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20)).unwrap();
        let types = [
            Type::Bool,
            Type::I32,
            Type::I64,
            Type::F64,
            Type::Text,
            Type::Bytes,
            Type::Timestamp,
        ];
        let mut schema = TableSchema::new("t")
            .column("id", Type::U64)
            .primary_key(["id"]);
        for ty in types {
            schema = schema.column(ty.to_string(), Column::new(ty).nullable());
        }
        let table = Tables::open(&db).unwrap().create_table(schema).unwrap();
        for id in 0..10u64 {
            let values: [Value; 7] = match id % 3 {
                0 => std::array::from_fn(|_| Value::Null),
                _ => [
                    true.into(),
                    (-1i32).into(),
                    2i64.into(),
                    0.5.into(),
                    format!("text {id}").into(),
                    vec![0u8; id as usize].into(),
                    Timestamp(7).into(),
                ],
            };
            let row = std::iter::once(Value::U64(id)).chain(values);
            table.insert(row.collect::<Vec<_>>()).unwrap();
        }
        let mut seen = 0u64;
        for batch in table.batches(&Query::all(), 4).unwrap() {
            let batch = batch.unwrap();
            assert_eq!(batch.num_columns(), 8);
            let ids = batch.column(0).as_primitive::<UInt64Type>();
            let texts = batch.column(5).as_string::<i32>();
            for at in 0..batch.num_rows() {
                assert_eq!(ids.value(at), seen);
                let null = seen.is_multiple_of(3);
                assert!(
                    batch.columns()[1..]
                        .iter()
                        .all(|column| column.is_null(at) == null)
                );
                assert!(null || texts.value(at) == format!("text {seen}"));
                seen += 1;
            }
        }
        assert_eq!(seen, 10);
        let two = Query::all().rev().columns(["text", "id"]).limit(2);
        let batch = table.batches(&two, 100).unwrap().next().unwrap().unwrap();
        assert_eq!((batch.num_columns(), batch.num_rows()), (2, 2));
        assert_eq!(batch.column(1).as_primitive::<UInt64Type>().value(0), 9);
    }

    /// A column that is asked for twice is there twice, of rows that are looked up, too.
    #[test]
    fn columns_may_be_asked_for_twice() {
        let dir = tempfile::tempdir().unwrap();
        let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20)).unwrap();
        let schema = TableSchema::new("t")
            .column("id", Type::U64)
            .column("text", Type::Text)
            .column("n", Type::I64)
            .primary_key(["id"])
            .index("by_text", crate::Index::on(["text"]));
        let table = Tables::open(&db).unwrap().create_table(schema).unwrap();
        for id in 0..300u64 {
            let text = format!("a\0b {id:03}");
            table.insert((id, text, id as i64)).unwrap();
        }
        for wanted in [["text", "id", "text"], ["n", "text", "n"]] {
            let query = Query::index("by_text").columns(wanted);
            let batches = table.batches(&query, 1000).unwrap();
            let batches: Vec<_> = batches.collect::<Result<_>>().unwrap();
            let [batch] = &batches[..] else {
                panic!("{} batches", batches.len());
            };
            assert_eq!(batch.num_rows(), 300);
            assert_eq!(batch.column(0), batch.column(2));
            let names = batch.schema();
            let names: Vec<_> = names
                .fields()
                .iter()
                .map(|field| field.name().as_str())
                .collect();
            assert_eq!(names, wanted);
        }
    }

    /// A batch ends when it is large, whatever the number of rows asked.
    #[test]
    fn large_rows_make_small_batches() {
        let dir = tempfile::tempdir().unwrap();
        let db = indexy::Db::open(dir.path(), indexy::Options::new(64 << 20)).unwrap();
        let schema = TableSchema::new("t")
            .column("id", Type::U64)
            .column("data", Type::Bytes);
        let tables = Tables::open(&db).unwrap();
        let table = tables.create_table(schema.primary_key(["id"])).unwrap();
        for id in 0..6u64 {
            table.insert((id, vec![7; 6 << 20])).unwrap();
        }
        let batches = table.batches(&Query::all(), 1000).unwrap();
        let rows: Vec<usize> = batches.map(|batch| batch.unwrap().num_rows()).collect();
        assert_eq!(rows, [3, 3]);
    }
}
