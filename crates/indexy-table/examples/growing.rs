//! A table that gets a column and an index while it is written, and what a snapshot sees of that.
//!
//!     cargo run -p indexy-table --example growing

use indexy::{Db, Options};
use indexy_table::{Column, Index, Query, Schema, Tables, Type};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let db = Db::open(dir.path(), Options::new(16 << 20))?;
    let events = Tables::open(&db)?.create_table(
        Schema::new("events")
            .column("id", Type::U64)
            .column("kind", Type::Text)
            .primary_key(["id"]),
    )?;
    let kinds = ["opened", "closed", "moved"];
    for id in 0..2000u64 {
        events.insert((id, kinds[id as usize % 3]))?;
    }
    let before = db.snapshot()?;
    // Rows are not rewritten: old ones have the default.
    events.add_column("source", Column::new(Type::Text).default("unknown"))?;

    let stop = AtomicBool::new(false);
    let written = std::thread::scope(|s| {
        let writer = s.spawn(|| {
            let mut id = 2000u64;
            while !stop.load(Relaxed) {
                events.insert((id, kinds[id as usize % 3], "door"))?;
                id += 1;
            }
            Ok::<u64, indexy_table::Error>(id)
        });
        // The writer goes on meanwhile.
        let built = events.create_index("by_source", Index::on(["source", "kind"]));
        stop.store(true, Relaxed);
        built.and(writer.join().expect("the writer does not panic"))
    })?;

    let moved = Query::index("by_source")
        .prefix(("unknown", "moved"))
        .columns(["id"]);
    println!(
        "{} of {written} events were moved before",
        events.scan(&moved)?.count()
    );
    assert_eq!(events.scan(&moved)?.count(), 666);
    let old = events.at(&before)?;
    assert_eq!(old.scan(&Query::all())?.count(), 2000);
    assert!(
        old.scan(&moved).is_err(),
        "the snapshot is from before the index"
    );
    let report = events.verify()?;
    assert!(report.is_ok(), "{report:?}");
    println!("{} rows, {:?}", report.rows, report.indexes);
    db.close()?;
    Ok(())
}
