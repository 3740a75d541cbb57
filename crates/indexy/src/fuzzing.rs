//! Fuzz targets: one per decoder of bytes that come from a disk. Compiled for tests and with the
//! feature `testing`.
//!
//! Each takes any bytes, and panics only if something is wrong. `fuzz/` runs them under a
//! coverage-guided fuzzer; the tests below run each for a second on mutated samples
//! (`INDEXY_FUZZ_SECONDS`).

#![forbid(unsafe_code)]

use crate::{db, wal, y};

/// A decoder under test.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, that of the file in `fuzz/fuzz_targets`.
    pub name: &'static str,
    /// Feeds it.
    pub run: fn(&[u8]),
    /// Inputs to begin with.
    pub samples: fn() -> Vec<Vec<u8>>,
}

/// All targets.
pub const TARGETS: [Target; 9] = [
    Target {
        name: "log_record",
        run: log_record,
        samples: || vec![wal::fuzzing::records()],
    },
    Target {
        name: "log_group",
        run: log_group,
        samples: || {
            let segment = wal::fuzzing::segment(&wal::fuzzing::records());
            vec![segment.get(64..).unwrap_or_default().to_vec()]
        },
    },
    Target {
        name: "log_segment",
        run: log_segment,
        samples: || vec![wal::fuzzing::segment(&wal::fuzzing::records())],
    },
    Target {
        name: "log_payload",
        run: log_payload,
        samples: || vec![wal::fuzzing::records()],
    },
    Target {
        name: "manifest",
        run: manifest,
        samples: || vec![db::fuzzing::manifest_sample()],
    },
    Target {
        name: "hot_set",
        run: hot_set,
        samples: || vec![db::hot_set_fuzzing::sample()],
    },
    Target {
        name: "index_y_page",
        run: index_y_page,
        samples: || y::fuzzing::page_samples(),
    },
    Target {
        name: "run_table",
        run: run_table,
        samples: || y::fuzzing::table_samples(),
    },
    Target {
        name: "version_log",
        run: version_log,
        samples: || y::fuzzing::version_samples(),
    },
];

/// Records as they follow each other in the log.
pub fn log_record(bytes: &[u8]) {
    wal::fuzzing::decode_records(bytes);
}

/// A group with its header.
pub fn log_group(bytes: &[u8]) {
    wal::fuzzing::decode_one_group(bytes);
}

/// A whole segment file: recovery twice, read-only and not.
pub fn log_segment(bytes: &[u8]) {
    wal::fuzzing::recover(bytes);
}

/// Records behind good checksums.
pub fn log_payload(bytes: &[u8]) {
    wal::fuzzing::recover(&wal::fuzzing::segment(bytes));
}

/// The manifest of a database: as a file, and as a body behind a good checksum.
pub fn manifest(bytes: &[u8]) {
    db::fuzzing::manifest(bytes);
}

/// The hot set of a database: as a file, and as a block behind good checksums.
pub fn hot_set(bytes: &[u8]) {
    db::hot_set_fuzzing::hot_set(bytes);
}

/// Pages of a paged B+ tree: nodes, chains, the map, the superblock.
pub fn index_y_page(bytes: &[u8]) {
    y::fuzzing::decode_page(bytes);
}

/// A table of the LSM tree: its footer, a filter, and the whole file behind good checksums.
pub fn run_table(bytes: &[u8]) {
    y::fuzzing::decode_table(bytes);
}

/// The version log of an LSM tree: as a file, and as a record behind a good checksum.
pub fn version_log(bytes: &[u8]) {
    y::fuzzing::decode_versions(bytes);
}

#[cfg(test)]
mod tests;
