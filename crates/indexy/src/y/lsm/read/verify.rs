//! Reads a whole snapshot past the block cache and checks it.
//!
//! Each table: the file against the checksum that the manifest keeps of it (data, index and filter
//! blocks), the entries against the table's own account (order, key range, count). Then the runs:
//! disjoint, in order.

#![forbid(unsafe_code)]

use crate::{
    error::{Error, Result},
    x::Order,
    y::lsm::{
        engine_calls::{contain, contain_any, typed},
        read::{
            merge::Merge,
            snapshot::{Run, Snapshot},
        },
        table::{TableReader, cursor::Bounds},
    },
};
use std::{fs::File, io::Read, sync::Arc};
use xxhash_rust::xxh3::Xxh3;

const READ_BYTES: usize = 256 << 10;

/// Checks everything; returns the number of live entries. Cost: reads every file three times.
pub(crate) fn verify(snapshot: &Arc<Snapshot>) -> Result<u64> {
    for run in &snapshot.runs {
        check_run(run)?;
        for table in &run.tables {
            check_file(table)?;
            check_entries(table)?;
        }
    }
    let mut merge = Merge::new(Arc::clone(snapshot), Bounds::everything(), Order::Ascending);
    let mut live = 0;
    while merge.next_live()?.is_some() {
        live += 1;
    }
    Ok(live)
}

fn check_run(run: &Run) -> Result<()> {
    for pair in run.tables.windows(2) {
        if let [left, right] = pair
            && left.max() >= right.min()
        {
            return Err(Error::corrupt(
                right.path(),
                0,
                format!("overlaps {}", left.path().display()),
            ));
        }
    }
    Ok(())
}

fn check_file(table: &TableReader) -> Result<()> {
    let path = table.path();
    let mut file = File::open(path).map_err(|e| Error::io("open", path, e))?;
    let mut hash = Xxh3::new();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let n = file
            .read(&mut buffer)
            .map_err(|e| Error::io("read", path, e))?;
        if n == 0 {
            break;
        }
        hash.update(buffer.get(..n).unwrap_or_default());
    }
    if hash.digest128() == table.engine().checksum().into_u128() {
        Ok(())
    } else {
        Err(Error::corrupt(
            path,
            0,
            "the file does not match the manifest's checksum",
        ))
    }
}

fn check_entries(table: &TableReader) -> Result<()> {
    let path = table.path();
    let fault = |what: &str| Err(Error::corrupt(path, 0, what));
    let mut scan = contain(path, "read", || table.engine().scan())?;
    let mut last: Option<lsm_tree::UserKey> = None;
    let (mut count, mut first) = (0, true);
    while let Some(entry) = contain_any(path, || scan.next())? {
        let entry = entry.map_err(|e| typed(path, "read", e))?;
        let key = entry.key.user_key;
        if first && *key != *table.min() {
            return fault("does not start with its smallest key");
        }
        // Several versions of a key stand side by side.
        if last.as_ref().is_some_and(|last| key < *last) {
            return fault("keys out of order");
        }
        (count, first, last) = (count + 1, false, Some(key));
    }
    if last.as_deref() != Some(table.max()) {
        return fault("does not end with its largest key");
    }
    if count != table.engine().metadata.item_count {
        return fault("number of entries differs from the table's account");
    }
    Ok(())
}
