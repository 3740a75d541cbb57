//! What truncation, holds and copies keep; reading without writing; memory.

use super::*;
use crate::mem::budget::{Budget, Holder};

/// What the log holds: its buffers, and records beside them.
fn held(budget: &Budget) -> usize {
    budget.held(Holder::Log) + budget.held(Holder::LogPieces)
}

fn filled(sim: &Sim, n: u64) -> (Log, Vec<(Lsn, Lsn, Owned)>) {
    let (log, _) = open_sim(sim, Lsn(0), Lsn(0), false).unwrap();
    let mut all = Vec::new();
    for i in 0..n {
        let (start, end) = append(&log, &record(i)).unwrap();
        all.push((start, end, record(i)));
    }
    log.sync().unwrap();
    (log, all)
}

fn plain(all: &[(Lsn, Lsn, Owned)]) -> Seen {
    all.iter().map(|r| (r.0, r.2.clone())).collect()
}

#[test]
fn i6_truncation_keeps_everything_from_the_floor_on() {
    let sim = Sim::default();
    let (log, all) = filled(&sim, 200);
    let bytes = log.bytes_on_disk();
    assert_eq!(
        bytes,
        sim.contents().values().map(|c| c.len() as u64).sum::<u64>()
    );
    let mut freed = 0;
    for i in (0..200).step_by(9) {
        let floor = all[i].0;
        freed += log.truncate_below(floor).unwrap();
        assert!(log.start() <= floor);
        assert_eq!(log.bytes_on_disk(), bytes - freed);
        let (_, seen) = open_sim(&sim.snapshot(), floor, log.durable(), true).unwrap();
        assert_eq!(seen, plain(&all[i..]));
        // Also when the removals are lost, in any combination.
        for seed in 0..3 {
            let (_, seen) = open_sim(&sim.crash(seed), floor, log.durable(), false).unwrap();
            assert_eq!(seen, plain(&all[i..]));
        }
        if log.start() > Lsn(0) {
            assert!(matches!(
                open_sim(&sim.snapshot(), Lsn(0), Lsn(0), true),
                Err(Error::Corrupt { .. })
            ));
        }
    }
    assert!(freed > bytes / 2);
    log.truncate_below(Lsn(u64::MAX)).unwrap();
    assert_eq!(sim.contents().len(), 1, "the newest stays");
    let end = log.end();
    log.close().unwrap();
    let (log, seen) = open_sim(&sim, end, end, false).unwrap();
    assert!(seen.is_empty());
    assert_eq!(log.end(), end, "the position is kept");
}

#[test]
fn a_hold_pauses_truncation() {
    let sim = Sim::default();
    let (log, all) = filled(&sim, 60);
    let (first, second) = (log.hold(), log.hold());
    assert_eq!(log.truncate_below(all[59].0).unwrap(), 0);
    drop(first);
    assert_eq!(log.truncate_below(all[59].0).unwrap(), 0);
    drop(second);
    assert!(log.truncate_below(all[59].0).unwrap() > 0);
}

#[test]
fn a_copy_opens_by_itself_and_ends_where_asked() {
    let sim = Sim::default();
    let (log, all) = filled(&sim, 80);
    log.truncate_below(all[20].0).unwrap();
    let from = log.start();
    for (n, i) in (0..80).filter(|&i| all[i].0 >= from).enumerate() {
        let upto = all[i].0;
        let dest = Path::new("/copies").join(n.to_string());
        log.copy_to(&dest, upto).unwrap();
        // Durable without any further sync.
        let crashed = sim.crash(n as u64);
        let mut seen = Vec::new();
        let options = small(LogDurability::Sync);
        let budget = Arc::new(Budget::new(1 << 30));
        let copy = Log::open(
            Arc::new(crashed),
            &dest,
            options,
            from,
            upto,
            false,
            Arc::default(),
            budget,
            &mut |lsn, r| {
                seen.push((lsn, own(r)));
                Ok(())
            },
        )
        .unwrap();
        let want: Vec<_> = all[..i].iter().filter(|r| r.0 >= from).cloned().collect();
        assert_eq!(seen, plain(&want));
        assert_eq!(copy.end(), upto);
        put(&copy, 1, b"goes on");
        copy.close().unwrap();
    }
    assert!(
        log.copy_to(Path::new("/copies/bad"), Lsn(all[60].0.0 + 1))
            .is_err(),
        "inside a record"
    );
    // A log without a segment has a position to copy, too.
    let empty = Sim::default();
    let (log, _) = open_sim(&empty, Lsn(777), Lsn(0), false).unwrap();
    log.copy_to(Path::new("/copy"), Lsn(777)).unwrap();
    let options = small(LogDurability::Sync);
    let budget = Arc::new(Budget::new(1 << 30));
    let copy = Log::open(
        Arc::new(empty.crash(1)),
        Path::new("/copy"),
        options,
        Lsn(777),
        Lsn(777),
        false,
        Arc::default(),
        budget,
        &mut |_, _| Ok(()),
    )
    .unwrap();
    assert_eq!(copy.end(), Lsn(777));
}

#[test]
fn a_copy_beside_writers_is_a_prefix() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("log");
    std::fs::create_dir(&source).unwrap();
    let (log, _) = open(&source, false, Lsn(0), false).unwrap();
    std::thread::scope(|s| {
        for t in 0..2u64 {
            let log = &log;
            s.spawn(move || {
                for i in 0..30_000 {
                    put(log, t << 32 | i, b"some value");
                }
            });
        }
        for n in 0..5 {
            let upto = log.end();
            log.wait_durable(upto).unwrap();
            let dest = dir.path().join(n.to_string());
            log.copy_to(&dest, upto).unwrap();
            let (copy, _) = open(&dest, false, Lsn(0), false).unwrap();
            assert_eq!(copy.end(), upto);
        }
    });
}

#[test]
fn read_only_writes_nothing() {
    let sim = Sim::default();
    let (log, all) = filled(&sim, 30);
    drop(log);
    let (path, mut bytes) = sim.contents().into_iter().next_back().unwrap();
    bytes.extend_from_slice(b"torn tail");
    sim.tamper(&path, bytes);
    sim.tamper(
        &Path::new(DIR).join("00000000000000ff.wal-new"),
        b"unfinished".to_vec(),
    );
    let before = sim.contents();
    sim.fail_at(0, Fault::ShortFull, true);
    let (log, seen) = open_sim(&sim, Lsn(0), Lsn(0), true).unwrap();
    assert_eq!(seen, plain(&all));
    assert!(matches!(
        log.append(RecordRef::Remove { tree: 1, key: b"" }),
        Err(Error::ReadOnly)
    ));
    assert!(matches!(log.admit(1), Err(Error::ReadOnly)));
    assert!(matches!(
        log.truncate_below(log.end()),
        Err(Error::ReadOnly)
    ));
    log.sync().unwrap();
    log.close().unwrap();
    drop(log);
    assert_eq!(sim.contents(), before);
    assert_eq!(sim.faults(), 0);
}

#[test]
fn an_error_of_the_visitor_ends_the_open() {
    let sim = Sim::default();
    drop(filled(&sim, 10));
    let mut left = 3;
    let budget = Arc::new(Budget::new(1 << 30));
    let opened = Log::open(
        Arc::new(sim),
        Path::new(DIR),
        small(LogDurability::Sync),
        Lsn(0),
        Lsn(0),
        false,
        Arc::default(),
        budget,
        &mut |_, _| {
            left -= 1;
            if left == 0 {
                Err(Error::ForeignTree)
            } else {
                Ok(())
            }
        },
    );
    assert!(matches!(opened, Err(Error::ForeignTree)));
}

/// I7: what the log takes it gives back, and long records of many threads do not pile up.
#[test]
fn i7_memory_is_bounded_and_given_back() {
    let dir = tempfile::tempdir().unwrap();
    let budget = Arc::new(Budget::new(1 << 30));
    let durability = LogDurability::Buffered {
        interval: Duration::from_millis(5),
    };
    let options = LogOptions {
        durability,
        segment_bytes: 1 << 20,
        buffer_bytes: 64 << 10,
        database_id: 7,
        keep_bytes: 0,
    };
    let log = Log::open(
        Arc::new(Buffered),
        dir.path(),
        options,
        Lsn(0),
        Lsn(0),
        false,
        Arc::default(),
        budget.clone(),
        &mut |_, _| Ok(()),
    )
    .unwrap();
    let idle = held(&budget);
    let worst = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|s| {
        for t in 0..8u64 {
            let (log, budget, worst) = (&log, &budget, &worst);
            s.spawn(move || {
                let value = vec![t as u8; 4 << 20];
                for i in 0..200u64 {
                    let len = if i % 10 == 0 { value.len() } else { 3000 };
                    let put = RecordRef::Put {
                        tree: 1,
                        key: &i.to_be_bytes(),
                        value: &value[..len],
                    };
                    let _admission = log.admit(put.encoded_len()).unwrap();
                    log.append(put).unwrap();
                    worst.fetch_max(held(budget), std::sync::atomic::Ordering::Relaxed);
                }
            });
        }
    });
    log.sync().unwrap();
    assert_eq!(held(&budget), idle);
    let bound = idle + (4 << 20) + 100 + 8 * (64 << 10);
    let worst = worst.into_inner();
    assert!(worst <= bound, "{worst} bytes held, {bound} expected");
    drop(log);
    assert_eq!(held(&budget), 0);
}

/// A copy that could not be opened is none: a damaged group in the middle is found while copying.
#[test]
fn a_copy_of_a_damaged_log_is_refused() {
    let sim = Sim::default();
    let (log, _) = filled(&sim, 200);
    let end = log.durable();
    let contents = sim.contents();
    assert!(contents.len() > 2, "several segments");
    let (path, bytes) = contents.iter().next().unwrap();
    log.copy_to(Path::new("/copies/whole"), end).unwrap();
    // In the payload of the last group of the oldest segment.
    let mut damaged = bytes.clone();
    damaged[bytes.len() - 16] ^= 1;
    sim.tamper(path, damaged);
    let copied = log.copy_to(Path::new("/copies/damaged"), end);
    assert!(matches!(copied, Err(Error::Corrupt { .. })), "{copied:?}");
}

/// A log that is synced after little writes into space that it has: its length stays. One that is
/// synced after much takes no more than it holds.
#[test]
fn small_syncs_allocate_ahead() {
    let newest = |sim: &Sim| {
        let files = sim.contents();
        files.values().next_back().map_or(0, Vec::len) as u64
    };
    for (records, ahead) in [(1, true), (60, false)] {
        let sim = Sim::default();
        let interval = Duration::from_secs(3600);
        let large = LogOptions {
            durability: LogDurability::Buffered { interval },
            segment_bytes: 1 << 20,
            buffer_bytes: 256 << 10,
            ..options(false)
        };
        let storage: Arc<dyn Storage> = Arc::new(sim.clone());
        let (log, _) = open_with(storage, large, Lsn(0), Lsn(0), false).unwrap();
        let value = Owned::Put(1, b"key".to_vec(), vec![7; 2000]);
        for _ in 0..3 {
            for _ in 0..records {
                append(&log, &value).unwrap();
            }
            log.sync().unwrap();
        }
        let end = log.end().0;
        assert_eq!(
            newest(&sim) > 2 * end + (64 << 10),
            ahead,
            "{records} records a sync"
        );
        assert_eq!(log.bytes_on_disk(), newest(&sim));
        assert!(newest(&sim) <= 1 << 20, "no more than a segment");
        log.close().unwrap();
        assert!(
            newest(&sim) < end + (8 << 10),
            "what is closed takes what it holds"
        );
    }
}
