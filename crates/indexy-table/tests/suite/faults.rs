//! Disk indexes that fail for a while: what the catalogue says and what is there stay one.

use crate::failing_y::{Faults, open};
use indexy::{Durability, Error as Below};
use indexy_table::{Error, Tables};
use std::io;

const EMFILE: i32 = 24;

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
