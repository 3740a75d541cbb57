//! In memory, and the price of a log.

use super::row::{Numbers, OURS, Row, Verdict, own_row, rate_row, text};

pub(super) fn memory_rows(n: &Numbers<'_>) -> Vec<Row> {
    const S: &str = "in memory";
    let one = "memory-1t";
    let mut rows = vec![
        rate_row(n, S, "get, 1 thread", (one, "get"), "congee", 0.8),
        rate_row(n, S, "get, 1 thread", (one, "get"), "btreemap", 1.5),
        rate_row(n, S, "get, 1 thread", (one, "get"), "skiplist", 1.0),
        rate_row(n, S, "insert, 1 thread", (one, "insert"), "congee", 0.7),
        rate_row(n, S, "insert, 1 thread", (one, "insert"), "btreemap", 0.7),
        rate_row(n, S, "insert, 1 thread", (one, "insert"), "skiplist", 1.0),
    ];
    let per_key = |who: &str| {
        n.value(one, who, "insert", |p| {
            (p.done > 0 && p.resident() > 0).then(|| p.resident() as f64 / p.done as f64)
        })
    };
    // Caches that are set aside at open, used or not, are no price of a key.
    let aside = n
        .value(one, OURS, "open", |p| Some(p.accounted? as f64))
        .unwrap_or(0.0);
    let accounted = n.value(one, OURS, "insert", |p| {
        Some((p.accounted? as f64 - aside) / p.done.max(1) as f64)
    });
    for (what, ours) in [
        ("memory per key, resident", per_key(OURS)),
        ("memory per key, by own count above that at open", accounted),
    ] {
        let peers = ["congee", "btreemap", "skiplist"]
            .map(|who| format!("{who} {}", text(per_key(who), |b| format!("{b:.1} B"))));
        rows.push(Row {
            section: S.to_owned(),
            work: what.to_owned(),
            ours: text(ours, |b| format!("{b:.1} B")),
            against: peers.join(", "),
            measured: text(ours, |b| format!("{b:.1} B")),
            goal: "<= 48 B (aim 30)".to_owned(),
            verdict: Verdict::of(ours.map(|b| b <= 48.0)),
        });
    }
    rows.push(own_row(
        n,
        S,
        "get, 2 threads against 1",
        ("memory-2t", "get"),
        (one, "get"),
        1.8,
    ));
    rows.push(own_row(
        n,
        S,
        "insert, 2 threads against 1",
        ("memory-2t", "insert"),
        (one, "insert"),
        1.6,
    ));
    rows.push(rate_row(
        n,
        S,
        "get, 2 threads",
        ("memory-2t", "get"),
        "congee",
        0.8,
    ));
    rows.push(rate_row(
        n,
        S,
        "insert, 2 threads",
        ("memory-2t", "insert"),
        "congee",
        0.7,
    ));
    rows
}

pub(super) fn durability_rows(n: &Numbers<'_>) -> Vec<Row> {
    const S: &str = "durability";
    let mut rows = Vec::new();
    for threads in [1, 2] {
        let at = format!("durability-buffered-{threads}t");
        let base = format!("durability-none-{threads}t");
        let work = format!("insert, Buffered against None, {threads} thread(s)");
        rows.push(own_row(
            n,
            S,
            &work,
            (&at, "insert"),
            (&base, "insert"),
            0.8,
        ));
    }
    for threads in [1, 16] {
        let at = format!("durability-sync-{threads}t");
        for peer in ["fjall", "rocksdb", "redb", "lmdb"] {
            let work = format!("insert, Sync, {threads} thread(s)");
            rows.push(rate_row(n, S, &work, (&at, "insert"), peer, 1.0));
        }
    }
    rows
}
