//! What the fuzz targets need to see of the version log; see `crate::fuzzing`.

#![forbid(unsafe_code)]

use super::{
    Estimate, Facts, Opening, TableFile, Version, Versions,
    files::{VERSIONS, table_path},
    log::{Change, Hunk, Log, Placed},
    paid::Paid,
};
use crate::{
    error::{Error, Result},
    storage::{Storage, sim::Sim},
};
use std::{path::Path, sync::Arc};

const DIR: &str = "/tree";
const OWNER: u64 = 7;
/// Tables that a damaged log may have files for here.
const MOST_TABLES: u64 = 200;

/// A table of which only the facts are there.
struct Known(Facts);

impl TableFile for Known {
    fn facts(&self) -> &Facts {
        &self.0
    }
    fn estimate(&self, _: &[u8], _: Option<&[u8]>) -> Estimate {
        Estimate {
            entries: self.0.entries / 2,
            bytes: self.0.bytes() / 2,
        }
    }
    fn middle(&self, _: &[u8], _: Option<&[u8]>) -> Result<Option<Box<[u8]>>> {
        Ok(None)
    }
    fn sync(&self) -> Result<()> {
        Ok(())
    }
}

fn facts(number: u64, min: &[u8], max: &[u8]) -> Facts {
    Facts {
        number,
        id: 3,
        pages: 9,
        entries: 10,
        deletes: 1,
        near_bytes: 90,
        far_bytes: 0,
        root: 8,
        height: 2,
        min: min.into(),
        max: max.into(),
        extra: Box::default(),
    }
}

/// A version of three partitions.
fn change() -> Change {
    let placed = |from: &[u8], base: &[u64], layers: &[u64]| Placed {
        from: from.into(),
        base: base.to_vec(),
        layers: layers.to_vec(),
    };
    Change {
        tables: vec![
            facts(1, b"a", b"c"),
            facts(2, b"b", b"x"),
            facts(3, b"d", b"d"),
        ],
        hunks: vec![Hunk {
            at: 0,
            removed: 0,
            inserted: vec![
                placed(b"", &[1, 3], &[2]),
                placed(b"e", &[], &[]),
                placed(b"f", &[], &[2]),
            ],
        }],
        paid: Paid::in_one(2, 70, 3000),
    }
}

/// What a record says, and a log of two records.
pub(crate) fn samples() -> Vec<Vec<u8>> {
    let (sim, path) = (Sim::default(), Path::new(DIR).join(VERSIONS));
    if let Ok(mut log) = Log::create(&sim, &path, OWNER, 1, &change().encode()) {
        let removed = Change {
            tables: Vec::new(),
            hunks: vec![Hunk {
                at: 2,
                removed: 1,
                inserted: Vec::new(),
            }],
            paid: Paid::in_one(1, 70, 3),
        };
        let written = log.write(&removed.encode());
        let _ = written.and_then(|written| log.sync(written));
    }
    let file = sim.contents().remove(&path).unwrap_or_default();
    vec![change().encode(), file]
}

/// Reads `bytes` as a log, and as what a record behind a good checksum says.
pub(crate) fn decode(bytes: &[u8]) {
    let path = Path::new(DIR).join(VERSIONS);
    let whole = Sim::default();
    whole.tamper(&path, bytes.to_vec());
    open(&whole);
    let sim = Sim::default();
    if Log::create(&sim, &path, OWNER, 1, bytes).is_ok() {
        open(&sim);
    }
}

/// Opens what is there, and uses it.
fn open(sim: &Sim) {
    for number in 1..MOST_TABLES {
        sim.tamper(&table_path(Path::new(DIR), number), Vec::new());
    }
    let storage: Arc<dyn Storage> = Arc::new(sim.clone());
    let opened = Versions::open(Opening {
        storage: &storage,
        dir: Path::new(DIR),
        owner: OWNER,
        read_only: false,
        partition_bytes: 1 << 20,
        open_table: &mut |facts| Ok(Known(facts)),
    });
    let versions = match opened {
        Ok(versions) => versions,
        Err(Error::Corrupt { .. } | Error::FormatVersion { .. }) => return,
        Err(error) => panic!("{error}"),
    };
    let _ = versions.current().totals();
    let smaller = |v: &Version<Known>| Some(v.without_range(b"b", Some(b"dd")));
    assert!(versions.update(smaller));
    let committed = versions.commit().and_then(|()| versions.close());
    // Numbers of records end somewhere.
    if committed.is_err() {
        return;
    }
    // One copy of a record may be damaged, and is worth telling; an open takes the other one.
    let verified = versions.verify();
    assert!(matches!(verified, Ok(()) | Err(Error::Corrupt { .. })));
    let listing = versions.current().totals();
    drop(versions);
    let opened = Versions::open(Opening {
        storage: &storage,
        dir: Path::new(DIR),
        owner: OWNER,
        read_only: true,
        partition_bytes: 1 << 20,
        open_table: &mut |facts| Ok(Known(facts)),
    });
    assert!(opened.is_ok_and(|again| again.current().totals() == listing));
}
