//! What the fuzz targets need to see of the LSM adapter; see `crate::fuzzing`.

#![forbid(unsafe_code)]

use crate::y::lsm::{
    keys::{original, stored},
    manifest::{
        archive::{entries, trailer},
        levels,
    },
};

/// Levels: seven empty ones, and one table; a table of contents; a trailer.
pub(crate) fn samples() -> Vec<Vec<u8>> {
    let mut one_table = vec![7, 1, 1, 0, 0, 0];
    one_table.extend([3; 8]);
    one_table.push(0);
    one_table.extend([5; 24]);
    one_table.extend([0; 6]);
    let mut contents = b"TOC!\x01\0\0\0".to_vec();
    contents.extend([0; 16]);
    contents.extend(b"\x04\0data");
    let mut end = b"SFA!\x01\0".to_vec();
    end.extend([9; 32]);
    vec![vec![7, 0, 0, 0, 0, 0, 0, 0], one_table, contents, end]
}

/// Reads `bytes` as each of the engine's formats that we read ourselves.
pub(crate) fn decode(bytes: &[u8]) {
    if let Some(levels) = levels(bytes) {
        let tables: usize = levels.iter().flatten().map(Vec::len).sum();
        assert!(tables <= bytes.len());
    }
    if let Some(sections) = entries(bytes) {
        assert!(sections.len() <= bytes.len());
    }
    let _ = trailer(bytes);
}

/// Keys come back from the engine's form, in the same order.
pub(crate) fn keys(a: &[u8], b: &[u8]) {
    let (there_a, there_b) = (stored(a), stored(b));
    assert_eq!(original(&there_a), a);
    assert_eq!(a.cmp(b), there_a.cmp(&there_b));
    assert!(!there_a.is_empty());
}
