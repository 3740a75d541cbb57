//! Figures of the log on this machine. Not assertions; run with
//! `cargo test --release -p indexy --lib wal::tests::measure -- --ignored --nocapture --test-threads 1`.
//! `INDEXY_MEASURE_DIR` names the directory to measure in.

use super::*;
use std::time::Instant;

fn place() -> tempfile::TempDir {
    std::env::var_os("INDEXY_MEASURE_DIR").map_or_else(
        || tempfile::tempdir().unwrap(),
        |dir| tempfile::tempdir_in(dir).unwrap(),
    )
}

fn open_big(
    dir: &Path,
    durability: LogDurability,
    visit: &mut dyn FnMut(Lsn, RecordRef<'_>) -> Result<()>,
) -> Log {
    let options = LogOptions {
        durability,
        segment_bytes: 64 << 20,
        buffer_bytes: 1 << 20,
        database_id: 7,
    };
    let budget = Arc::new(Budget::new(1 << 30));
    Log::open(
        Arc::new(Buffered),
        dir,
        options,
        Lsn(0),
        Lsn(0),
        false,
        Arc::default(),
        budget,
        visit,
    )
    .unwrap()
}

const BUFFERED: LogDurability = LogDurability::Buffered {
    interval: Duration::from_millis(100),
};

#[test]
#[ignore = "a measurement"]
fn append_and_replay() {
    for threads in [1, 2, 4] {
        let dir = place();
        let log = open_big(dir.path(), BUFFERED, &mut |_, _| Ok(()));
        let per_thread = 8_000_000u64 / threads;
        let start = Instant::now();
        std::thread::scope(|s| {
            for t in 0..threads {
                let log = &log;
                s.spawn(move || {
                    for i in 0..per_thread {
                        put(log, t << 32 | i, &i.to_le_bytes());
                    }
                });
            }
        });
        let took = start.elapsed();
        let count = per_thread * threads;
        println!(
            "append 8 B/8 B, {threads} threads: {:.2} M/s, {:.0} ns each per thread",
            count as f64 / took.as_secs_f64() / 1e6,
            took.as_nanos() as f64 / per_thread as f64
        );
        log.close().unwrap();
        let bytes = log.bytes_on_disk();
        drop(log);
        let start = Instant::now();
        let mut seen = 0u64;
        let log = open_big(dir.path(), BUFFERED, &mut |_, r| {
            if let RecordRef::Put { key, value, .. } = r {
                seen += 1 + u64::from(key.len() + value.len() != 16);
            }
            Ok(())
        });
        let took = start.elapsed();
        assert_eq!(seen, count);
        println!(
            "replay {seen} records, {bytes} bytes: {:.2} M/s",
            seen as f64 / took.as_secs_f64() / 1e6
        );
        drop(log);
    }
}

/// Appends that fit the buffers: no write-back beside them.
#[test]
#[ignore = "a measurement"]
fn append_alone() {
    let dir = place();
    let log = open_big(dir.path(), BUFFERED, &mut |_, _| Ok(()));
    let mut best = f64::MAX;
    for _ in 0..50 {
        let n = 40_000u64;
        let start = Instant::now();
        for i in 0..n {
            put(&log, i, &i.to_le_bytes());
        }
        best = best.min(start.elapsed().as_nanos() as f64 / n as f64);
        log.sync().unwrap();
    }
    println!("append 8 B/8 B into memory: {best:.1} ns");
}

#[test]
#[ignore = "a measurement"]
fn sync_latency_and_throughput() {
    for threads in [1u64, 2, 4, 16, 64] {
        let dir = place();
        let log = open_big(dir.path(), LogDurability::Sync, &mut |_, _| Ok(()));
        let per_thread = 60_000 / threads.max(3);
        let start = Instant::now();
        let mut nanos: Vec<u64> = std::thread::scope(|s| {
            let each: Vec<_> = (0..threads)
                .map(|t| {
                    let log = &log;
                    s.spawn(move || {
                        let mut nanos = Vec::new();
                        for i in 0..per_thread {
                            let start = Instant::now();
                            let end = put(log, t << 32 | i, &i.to_le_bytes());
                            log.wait_durable(end).unwrap();
                            nanos.push(start.elapsed().as_nanos() as u64);
                        }
                        nanos
                    })
                })
                .collect();
            each.into_iter().flat_map(|t| t.join().unwrap()).collect()
        });
        let took = start.elapsed();
        nanos.sort_unstable();
        let at = |q: f64| nanos[((nanos.len() - 1) as f64 * q) as usize] / 1000;
        println!(
            "sync puts, {threads} threads: {:.1} k/s, p50 {} us, p99 {} us, p99.9 {} us",
            nanos.len() as f64 / took.as_secs_f64() / 1e3,
            at(0.5),
            at(0.99),
            at(0.999)
        );
    }
}
