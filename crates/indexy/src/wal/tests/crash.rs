//! Power failures at every I/O: what comes back is a prefix that holds all that was acknowledged
//! (I8).

use super::*;

/// What a workload got to before the lights went out.
#[derive(Default, Clone)]
struct Progress {
    /// Start, end and content of everything appended, in order.
    appended: Vec<(Lsn, Lsn, Owned)>,
    /// Everything that ends at or below was acknowledged as durable.
    acked: Lsn,
    /// The manifest's floor.
    floor: Lsn,
}

impl Progress {
    /// Appends `n` records, waiting, truncating and reading positions in between.
    fn go_on(&mut self, log: &Log, n: u64) -> Result<()> {
        for _ in 0..n {
            let i = self.appended.len() as u64;
            let record = record(i);
            let (start, end) = append(log, &record)?;
            self.appended.push((start, end, record));
            if i % 3 == 2 {
                log.wait_durable(end)?;
                self.acked = end;
            }
            if i % 10 == 7 {
                let below = self.appended.len().saturating_sub(8);
                let floor = self.appended[below].0.min(self.acked).max(self.floor);
                self.floor = floor;
                log.truncate_below(floor)?;
            }
        }
        Ok(())
    }

    /// Checks what a log opened from `self.floor` returned, and forgets what was lost.
    fn settle(&mut self, seen: &Seen, end: Lsn) {
        let known: Vec<_> = self.appended.iter().filter(|r| r.0 >= self.floor).collect();
        assert!(
            seen.len() <= known.len(),
            "{} records came back, {} were appended",
            seen.len(),
            known.len()
        );
        for (got, want) in seen.iter().zip(&known) {
            assert_eq!(got.0, want.0);
            assert!(got.1 == want.2, "another record at {:?}", got.0);
        }
        let acked = known.iter().filter(|r| r.1 <= self.acked).count();
        assert!(
            seen.len() >= acked,
            "{} records came back, {acked} were acknowledged",
            seen.len()
        );
        let kept = self.appended.len() - known.len() + seen.len();
        self.appended.truncate(kept);
        let last = self.appended.last().map_or(self.floor, |r| r.1);
        assert_eq!(end, last.max(self.floor));
    }
}

fn run(sim: &Sim, progress: &mut Progress, hint: bool, n: u64) -> Result<()> {
    let hint = if hint { progress.acked } else { Lsn(0) };
    let (log, seen) = open_sim(sim, progress.floor, hint, false)?;
    progress.settle(&seen, log.end());
    // What was read is durable now.
    progress.acked = log.durable();
    progress.go_on(&log, n)?;
    log.close()?;
    progress.acked = log.durable();
    Ok(())
}

#[test]
fn i8_crash_at_every_io_leaves_a_prefix_with_all_acknowledged() {
    let sim = Sim::default();
    run(&sim, &mut Progress::default(), false, 60).unwrap();
    let ios = sim.ios();
    assert!(ios > 100);
    let seeds: u64 = std::env::var("INDEXY_CRASH_SEEDS").map_or(6, |s| s.parse().unwrap());
    for at in sites(ios + 1) {
        for seed in 0..seeds {
            let seed = at * 1000 + seed;
            let sim = Sim::default();
            sim.fail_at(at, Fault::PowerLoss, true);
            let mut progress = Progress::default();
            let _ = run(&sim, &mut progress, false, 60);
            // The second life ends in a power failure too, some in the middle of recovery.
            let sim = sim.crash(seed);
            sim.fail_at(seed * 7919 % 41 + 1, Fault::PowerLoss, true);
            let _ = run(&sim, &mut progress, seed % 2 == 0, 12);
            let sim = sim.crash(seed + 1);
            let read_only = open_sim(&sim, progress.floor, progress.acked, true)
                .unwrap()
                .1;
            let mut reader = progress.clone();
            reader.settle(
                &read_only,
                reader
                    .appended
                    .iter()
                    .filter(|r| r.0 >= reader.floor)
                    .nth(read_only.len().wrapping_sub(1))
                    .map_or(reader.floor, |r| r.1),
            );
            run(&sim, &mut progress, true, 5).unwrap();
            run(&sim, &mut progress, true, 0).unwrap();
        }
    }
}

/// A process that dies without the system: everything written is there, nothing was synced by it.
/// Recovery must not call durable what is only in the page cache.
#[test]
fn i5_what_recovery_calls_durable_survives_a_power_failure() {
    let sim = Sim::default();
    let (log, _) = open_with(
        Arc::new(sim.clone()),
        small(LogDurability::Buffered {
            interval: Duration::from_secs(600),
        }),
        Lsn(0),
        Lsn(0),
        false,
    )
    .unwrap();
    let mut progress = Progress::default();
    for i in 0..40 {
        let (start, end) = append(&log, &record(i)).unwrap();
        progress.appended.push((start, end, record(i)));
    }
    while sim.contents().values().map(Vec::len).sum::<usize>() < 20_000 {
        std::thread::yield_now();
    }
    // The log object stays as it is, like a process that was killed.
    let (second, seen) = open_sim(&sim, Lsn(0), Lsn(0), false).unwrap();
    let end = second.end();
    assert!(!seen.is_empty());
    assert_eq!(second.durable(), end);
    for seed in 0..50 {
        let (_, again) = open_sim(&sim.crash(seed), Lsn(0), end, true).unwrap();
        assert_eq!(again, seen);
    }
}

/// A segment may have its name from a process that died before that was durable: no older one goes
/// because of it until it is.
#[test]
fn i6_a_name_is_durable_before_older_segments_go() {
    for at in 1..8 {
        for cut in 1..4 {
            for seed in 0..40 {
                let sim = Sim::default();
                let (log, _) = open_sim(&sim, Lsn(0), Lsn(0), false).unwrap();
                // A segment takes one of these.
                append(&log, &record(4)).unwrap();
                log.sync().unwrap();
                sim.fail_at(sim.ios() + at, Fault::PowerLoss, true);
                append(&log, &record(4)).unwrap();
                log.sync().unwrap_err();
                drop(log);
                sim.heal();
                let (log, _) = open_sim(&sim, Lsn(0), Lsn(0), false).unwrap();
                // The manifest says so.
                let floor = log.end();
                sim.fail_at(sim.ios() + cut, Fault::PowerLoss, true);
                let _ = log.truncate_below(floor);
                let opened = open_sim(&sim.crash(seed), floor, floor, true);
                opened.unwrap_or_else(|e| panic!("{at} {cut} {seed}: {e}"));
            }
        }
    }
}

/// Buffered: what was appended becomes durable by itself, soon, and is there after a power failure
/// although nobody ever waited for it.
#[test]
fn i8_buffered_records_become_durable_by_themselves() {
    const PATIENCE: Duration = Duration::from_secs(20);
    for seed in 0..12u64 {
        let sim = Sim::default();
        let interval = Duration::from_millis(20);
        let options = small(LogDurability::Buffered { interval });
        let (log, _) = open_with(Arc::new(sim.clone()), options, Lsn(0), Lsn(0), false).unwrap();
        let mut progress = Progress::default();
        // A few records that fill no buffer, then some that fill a few.
        for records in [1, 3, 40] {
            for _ in 0..records {
                let record = record(progress.appended.len() as u64);
                let (start, end) = append(&log, &record).unwrap();
                progress.appended.push((start, end, record));
            }
            let (end, start) = (log.end(), std::time::Instant::now());
            while log.durable() < end {
                assert!(start.elapsed() < PATIENCE, "nobody made it durable");
                std::thread::sleep(Duration::from_millis(1));
            }
            progress.acked = end;
            // The power fails now; the log is not closed, and goes on in another world.
            let (after, seen) = open_sim(&sim.crash(seed), Lsn(0), Lsn(0), false).unwrap();
            let mut survivor = progress.clone();
            survivor.settle(&seen, after.end());
            assert_eq!(survivor.appended.len(), progress.appended.len());
        }
    }
}

#[test]
fn i8_crash_under_concurrent_writers() {
    for seed in 0..60u64 {
        let sim = Sim::default();
        sim.fail_at(10 + seed * 5, Fault::PowerLoss, true);
        let mut all: Vec<(Lsn, Owned, bool)> = Vec::new();
        if let Ok((log, _)) = open_sim(&sim, Lsn(0), Lsn(0), false) {
            std::thread::scope(|s| {
                let threads: Vec<_> = (0..4u64)
                    .map(|t| {
                        let log = &log;
                        s.spawn(move || {
                            let mut mine = Vec::new();
                            for i in 0..200 {
                                let record = Owned::Put(
                                    1,
                                    (t << 32 | i).to_be_bytes().to_vec(),
                                    vec![t as u8; (i * 31 % 300) as usize],
                                );
                                let Owned::Put(tree, key, value) = &record else {
                                    unreachable!()
                                };
                                let put = RecordRef::Put {
                                    tree: *tree,
                                    key,
                                    value,
                                };
                                let Ok(_admission) = log.admit(put.encoded_len()) else {
                                    break;
                                };
                                let Ok(end) = log.append(put) else { break };
                                let acked = i % 4 == 0 && log.wait_durable(end).is_ok();
                                mine.push((end, record, acked));
                            }
                            mine
                        })
                    })
                    .collect();
                all.extend(threads.into_iter().flat_map(|t| t.join().unwrap()));
            });
        }
        all.sort_unstable_by_key(|r| r.0);
        let (log, seen) = open_sim(&sim.crash(seed), Lsn(0), Lsn(0), false).unwrap();
        let mut next = Lsn(0);
        for ((start, got), (end, want, _)) in seen.iter().zip(&all) {
            assert_eq!(*start, next, "a gap");
            assert_eq!(got, want);
            next = *end;
        }
        assert_eq!(log.end(), next);
        assert!(
            all.iter().skip(seen.len()).all(|r| !r.2),
            "an acknowledged record is lost"
        );
    }
}
