//! A table at one moment, as queries see it.

use crate::{condition::Columns, paths::Path};
use datafusion::arrow::datatypes::SchemaRef;
use indexy_table::TableSnapshot;

/// See the module header. It keeps the snapshot open.
#[derive(Debug)]
pub(crate) struct Seen {
    pub name: String,
    pub snapshot: TableSnapshot,
    /// Of all columns.
    pub schema: SchemaRef,
    pub columns: Columns,
    pub paths: Vec<Path>,
}

impl Seen {
    pub(crate) fn new(snapshot: TableSnapshot) -> Self {
        let schema = snapshot.schema();
        let columns = Columns::of(&schema);
        Self {
            name: schema.name().to_owned(),
            schema: snapshot.arrow_schema(),
            paths: Path::all(&schema, &columns),
            columns,
            snapshot,
        }
    }
}
