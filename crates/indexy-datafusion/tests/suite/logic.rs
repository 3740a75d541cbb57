//! The files of `tests/logic`, in the format of sqllogictest, over the tables of `shop`.

use crate::support::Fixture;
use async_trait::async_trait;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use indexy_datafusion::{Error, datafusion};
use indexy_table::{Column, Index, Schema, Type};
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType, Runner};
use std::{path::Path, sync::Arc};

struct Shop(Arc<Fixture>);

#[async_trait]
impl AsyncDB for Shop {
    type Error = Error;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Error> {
        let batches = self.0.sql.query(sql).await?.collect().await?;
        let options = FormatOptions::default().with_null("NULL");
        let mut rows = Vec::new();
        for batch in &batches {
            let formats = batch.columns().iter();
            let formats = formats.map(|column| ArrayFormatter::try_new(column, &options));
            let formats: Vec<_> = formats.collect::<Result<_, _>>().unwrap();
            for at in 0..batch.num_rows() {
                let cells = formats.iter().map(|format| format.value(at).to_string());
                let row = cells.collect::<Vec<_>>().join(" ");
                // A plan is of several lines.
                rows.extend(row.lines().map(|line| vec![line.to_owned()]));
            }
        }
        Ok(DBOutput::Rows {
            types: vec![DefaultColumnType::Any],
            rows,
        })
    }

    async fn shutdown(&mut self) {}
}

fn shop() -> Fixture {
    let it = Fixture::new();
    let people = Schema::new("people")
        .column("id", Type::U64)
        .column("name", Type::Text)
        .column("city", Column::new(Type::Text).nullable())
        .column("age", Column::new(Type::I32).nullable())
        .primary_key(["id"])
        .index("by_city", Index::on(["city"]).include(["age"]))
        .index("by_name", Index::on(["name"]).unique());
    let people = it.tables.create_table(people).unwrap();
    let rows = [
        (1u64, "Ada", Some("London"), Some(36)),
        (2, "Alan", Some("London"), Some(41)),
        (3, "Grace", Some("New York"), None),
        (4, "Edsger", None, Some(72)),
        (5, "Barbara", Some("Paris"), Some(36)),
    ];
    rows.into_iter().for_each(|row| people.insert(row).unwrap());
    let orders = Schema::new("orders")
        .column("person", Type::U64)
        .column("number", Type::I32)
        .column("cents", Type::I64)
        .primary_key(["person", "number"]);
    let orders = it.tables.create_table(orders).unwrap();
    let rows = [
        (1u64, 1, 500i64),
        (1, 2, 250),
        (2, 1, 100),
        (5, 1, 900),
        (9, 1, 1),
    ];
    rows.into_iter().for_each(|row| orders.insert(row).unwrap());
    it
}

#[test]
fn the_files_hold() {
    let dir = Path::new("tests/logic");
    let shop = Arc::new(shop());
    let mut files = 0;
    for entry in dir.read_dir().unwrap() {
        let file = entry.unwrap().path();
        let mut runner = Runner::new(|| async { Ok(Shop(shop.clone())) });
        let ran = shop.wait(runner.run_file_async(&file));
        ran.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        files += 1;
    }
    assert!(files >= 5, "only {files} files");
}
