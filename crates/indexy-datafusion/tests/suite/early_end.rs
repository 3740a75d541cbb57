//! A stream that is dropped early ends its scan, and lets go of the snapshot.

use crate::support::Fixture;
use futures::StreamExt as _;
use indexy::{Db, Options};
use indexy_table::{Schema, Type};
use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

const ROWS: u64 = 100_000;
/// Far more than a batch takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A scan's thread keeps the directory locked as long as it lives.
fn opens_soon(dir: &Path) {
    let begun = Instant::now();
    while let Err(error) = Db::open(dir, Options::new(8 << 20)) {
        assert!(matches!(error, indexy::Error::Locked { .. }), "{error}");
        assert!(begun.elapsed() < PATIENCE, "a scan did not end");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_dropped_stream_lets_go_of_the_database() {
    let it = Fixture::new();
    let schema = Schema::new("t").column("id", Type::U64);
    let table = it.tables.create_table(schema.primary_key(["id"])).unwrap();
    let all = |tx: &mut indexy::Transaction| {
        let mut table = table.within(tx)?;
        (0..ROWS).try_for_each(|id| table.insert(id))
    };
    it.tables.transact(all).unwrap();
    let mut stream = it.wait(async {
        let frame = it.sql.query("SELECT id FROM t").await.unwrap();
        frame.execute_stream().await.unwrap()
    });
    let first = it.wait(stream.next()).unwrap().unwrap();
    assert!(first.num_rows() > 0 && (first.num_rows() as u64) < ROWS);
    drop(stream);
    drop(table);
    // The runtime lives on: what is left of the scan is not ended by it.
    let Fixture {
        sql,
        tables,
        db,
        runtime,
        dir,
    } = it;
    drop((sql, tables, db));
    opens_soon(dir.path());
    drop(runtime);
}

/// Nothing of a query that was never run, or only planned, stays.
#[test]
fn a_plan_that_is_dropped_lets_go() {
    let it = Fixture::new();
    let schema = Schema::new("t").column("id", Type::U64);
    drop(it.tables.create_table(schema.primary_key(["id"])).unwrap());
    let frame = it.wait(it.sql.query("SELECT id FROM t")).unwrap();
    let plan = it.wait(frame.create_physical_plan()).unwrap();
    drop((frame, plan));
    let Fixture {
        sql,
        tables,
        db,
        runtime,
        dir,
    } = it;
    drop((sql, tables, db, runtime));
    opens_soon(dir.path());
}
