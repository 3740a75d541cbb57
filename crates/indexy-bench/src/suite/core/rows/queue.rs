//! A queue: ranges of ten, and pops from both ends.

use super::row::{Numbers, Row, rate_row};

pub(super) fn queue_rows(n: &Numbers<'_>) -> Vec<Row> {
    const PEERS: [&str; 4] = ["lmdb", "redb", "fjall", "rocksdb"];
    let mut rows = Vec::new();
    for (scenario, section) in [
        ("queue-memory", "a queue in memory"),
        ("queue-larger", "a queue larger than memory"),
    ] {
        for (phase, work) in [
            ("ranges-of-10", "ranges of 10 records, 1 thread"),
            ("pops", "pops from both ends, 1 thread"),
        ] {
            rows.extend(PEERS.map(|peer| rate_row(n, section, work, (scenario, phase), peer, 1.0)));
        }
    }
    rows
}
