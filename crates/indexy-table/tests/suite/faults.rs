//! Disk indexes that fail for a while: what the catalogue says and what is there stay one.

use crate::failing_y::{Faults, open};
use indexy::{Durability, Error as Below};
use indexy_table::{Error, Index, Query, Schema, Tables, Type};
use std::{io, sync::mpsc, time::Duration};

/// How long another thread may take.
const LIMIT: Duration = Duration::from_secs(60);
const EMFILE: i32 = 24;

fn schema() -> Schema {
    let schema = Schema::new("t").column("id", Type::U64);
    schema.column("n", Type::I64).primary_key(["id"])
}

fn fail_reads(faults: &Faults, error: impl Into<Option<Below>>) {
    *faults.reads.lock().unwrap() = error.into();
}

fn too_few_descriptors() -> Below {
    Below::io("open", "y", io::Error::from_raw_os_error(EMFILE))
}

/// What the catalogue lacks, or seems to, is told only by who could read.
#[test]
fn a_read_that_fails_for_a_while_is_no_damage() {
    for has_catalogue in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let (db, faults) = open(dir.path(), Durability::default());
        if has_catalogue {
            drop(Tables::open(&db).unwrap());
            // A table that has no definition.
            let catalogue = db.tree("indexy.tables").unwrap();
            let generation = [&b"g"[..], &7u64.to_be_bytes()].concat();
            catalogue.insert(generation, 1u64.to_le_bytes()).unwrap();
        }
        let rows = db.tree("indexy.table.7").unwrap();
        rows.insert("key", "value").unwrap();
        let opened = |fault: Option<Below>| {
            // The open before has read them, maybe.
            fail_reads(&faults, None);
            rows.release::<&str>(..).unwrap();
            fail_reads(&faults, fault);
            Tables::open(&db).unwrap_err()
        };
        for damage in [None, Some(Below::corrupt("y", 0, "checksum"))] {
            let failed = opened(Some(too_few_descriptors()));
            let passes = matches!(&failed, Error::Db(error) if error.is_transient());
            assert!(passes, "{has_catalogue}: {failed}");
            let lost = opened(damage);
            let of_catalogue =
                matches!(&lost, Error::Corrupt { table, .. } if table == "indexy.tables");
            assert!(of_catalogue, "{has_catalogue}: {lost}");
        }
    }
}

/// A creation whose flush failed has left a table that is seen; the next one makes it durable.
#[test]
fn a_creation_that_is_repeated_is_durable_without_a_log() {
    let dir = tempfile::tempdir().unwrap();
    let (db, faults) = open(dir.path(), Durability::None);
    let tables = Tables::open(&db).unwrap();
    let full = Below::io("write", "y", io::ErrorKind::StorageFull.into());
    *faults.writes.lock().unwrap() = Some(full);
    for _ in 0..2 {
        let failed = tables.create_table(schema()).unwrap_err();
        let full = matches!(&failed, Error::Db(Below::OutOfSpace { .. }));
        assert!(full, "{failed}");
        assert_eq!(tables.names().unwrap(), ["t"]);
        assert!(db.stats().x_dirty_keys > 0);
    }
    *faults.writes.lock().unwrap() = None;
    tables.create_table(schema()).unwrap();
    assert_eq!(db.stats().x_dirty_keys, 0);
}

/// A build failed, and so did what takes its index back: the next creation does that first.
#[test]
fn an_index_that_a_failed_build_left_does_not_hinder_a_creation() {
    let dir = tempfile::tempdir().unwrap();
    let (db, faults) = open(dir.path(), Durability::default());
    let tables = Tables::open(&db).unwrap();
    let table = tables.create_table(schema()).unwrap();
    table.insert((1u64, 1)).unwrap();
    let before = db.tree_names();
    let rows = db.tree("indexy.table.1").unwrap();
    assert!(rows.release::<&str>(..).unwrap() > 0);
    let catalogue = db.tree("indexy.tables").unwrap();

    let (there, is_there) = mpsc::channel();
    let (go, goes) = mpsc::channel();
    *faults.pause.lock().unwrap() = Some((there, goes));
    std::thread::scope(|s| {
        let build = s.spawn(|| table.create_index("by_n", Index::on(["n"])));
        is_there.recv_timeout(LIMIT).unwrap();
        // The build reads rows. It finds no catalogue when it ends.
        assert!(catalogue.release::<&str>(..).unwrap() > 0);
        fail_reads(&faults, too_few_descriptors());
        go.send(()).unwrap();
        assert!(build.join().unwrap().is_err());
    });
    fail_reads(&faults, None);
    assert_eq!(table.schema().unwrap().indexes().count(), 1);

    let with_index = schema().index("by_n", Index::on(["n"]));
    let asked = tables.create_table(with_index).unwrap_err();
    assert!(matches!(asked, Error::SchemaMismatch { .. }), "{asked}");
    assert_eq!(db.tree_names(), before);
    tables.create_table(schema()).unwrap();
}

/// Rows are looked up many at a time: those before one that is missing are given.
#[test]
fn the_rows_before_damage_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let (db, _) = open(dir.path(), Durability::default());
    let tables = Tables::open(&db).unwrap();
    let with_index = Schema::new("t")
        .column("id", Type::U64)
        .column("n", Type::I64)
        .column("more", Type::I64)
        .primary_key(["id"])
        .index("by_n", Index::on(["n"]));
    let table = tables.create_table(with_index).unwrap();
    for id in 0..100u64 {
        table.insert((id, id as i64, 1)).unwrap();
    }
    let rows = db.tree("indexy.table.1").unwrap();
    let lost = rows.iter().nth(77).unwrap().unwrap().0;
    rows.remove(&lost).unwrap();
    let mut scan = table.scan(&Query::index("by_n")).unwrap();
    let read: Vec<_> = scan.by_ref().take_while(Result::is_ok).collect();
    assert_eq!(read.len(), 77);
    assert!(scan.next().is_none(), "it is at its end");
    let mut scan = table.scan(&Query::index("by_n")).unwrap();
    assert!(matches!(scan.nth(77), Some(Err(Error::Corrupt { .. }))));
}
