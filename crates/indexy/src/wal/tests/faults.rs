//! I/Os that fail: nothing acknowledged is lost, nothing hangs, a full device is survived without a
//! reopen.

use super::*;
use std::time::Instant;

struct Run {
    log: Log,
    /// Start, end, content.
    appended: Vec<(Lsn, Lsn, Owned)>,
    acked: Lsn,
    refused: Vec<Error>,
}

fn start(sim: &Sim, durability: LogDurability) -> Result<Run> {
    let (log, _) = open_with(
        Arc::new(sim.clone()),
        small(durability),
        Lsn(0),
        Lsn(0),
        false,
    )?;
    Ok(Run {
        log,
        appended: Vec::new(),
        acked: Lsn(0),
        refused: Vec::new(),
    })
}

impl Run {
    fn go(&mut self, records: std::ops::Range<u64>) {
        for i in records {
            match append(&self.log, &record(i)) {
                Ok((start, end)) => self.appended.push((start, end, record(i))),
                Err(e) => self.refused.push(e),
            }
            if i % 2 == 0 {
                let end = self.log.end();
                match self.log.wait_durable(end) {
                    Ok(()) => self.acked = end,
                    Err(e) => self.refused.push(e),
                }
            }
        }
    }

    #[track_caller]
    fn assert_survives(&self, sim: &Sim, seeds: u64) {
        for seed in 0..seeds {
            let (_, seen) = open_sim(&sim.crash(seed), Lsn(0), self.acked, false).unwrap();
            for (got, want) in seen.iter().zip(&self.appended) {
                assert_eq!((got.0, &got.1), (want.0, &want.2));
            }
            let acked = self.appended.iter().filter(|r| r.1 <= self.acked).count();
            assert!(seen.len() >= acked && seen.len() <= self.appended.len());
        }
    }
}

#[test]
fn a_fault_at_every_io_loses_nothing_acknowledged() {
    let calm = Sim::default();
    let mut run = start(&calm, LogDurability::Sync).unwrap();
    run.go(0..30);
    run.log.close().unwrap();
    let ios = calm.ios();
    for fault in [
        Fault::Eio,
        Fault::ShortWrite,
        Fault::FailedSync,
        Fault::Full,
        Fault::ShortFull,
        Fault::NoDescriptors,
    ] {
        for forever in [false, true] {
            for at in sites(ios) {
                let sim = Sim::default();
                sim.fail_at(at, fault, forever);
                let Ok(mut run) = start(&sim, LogDurability::Sync) else {
                    sim.heal();
                    start(&sim, LogDurability::Sync).map(drop).unwrap();
                    continue;
                };
                run.go(0..30);
                let closed = run.log.close();
                let count = |of: fn(&Error) -> bool| run.refused.iter().filter(|e| of(e)).count();
                let fatal = count(|e| matches!(e, Error::Poisoned { .. }));
                let full = count(|e| matches!(e, Error::OutOfSpace { .. }));
                let transient = count(Error::is_transient);
                assert_eq!(run.refused.len(), fatal + full + transient);
                let fatal = fatal > 0;
                if fatal {
                    assert!(
                        closed.is_err(),
                        "{fault:?} {forever} {at}: closed as if nothing had been"
                    );
                }
                if matches!(fault, Fault::Full | Fault::ShortFull | Fault::NoDescriptors) {
                    assert!(!fatal, "{fault:?} {forever} {at}: {:?}", run.refused);
                }
                assert!(full == 0 || matches!(fault, Fault::Full | Fault::ShortFull));
                assert!(transient == 0 || fault == Fault::NoDescriptors);
                if closed.is_ok() {
                    run.acked = run.log.durable();
                    assert_eq!(run.acked, run.appended.last().unwrap().1);
                }
                sim.heal();
                run.assert_survives(&sim, 3);
            }
        }
    }
}

/// After a failed sync the log is over: no later wait succeeds, although a later sync of the system
/// would.
#[test]
fn a_failed_sync_is_never_retried() {
    let sim = Sim::default();
    let mut run = start(&sim, LogDurability::Sync).unwrap();
    run.go(0..5);
    assert!(run.refused.is_empty());
    sim.fail_at(0, Fault::FailedSync, false);
    run.go(5..15);
    assert_eq!(sim.faults(), 1);
    let acked = run.acked;
    run.log.sync().unwrap_err();
    assert!(matches!(
        run.log.append(RecordRef::Remove { tree: 1, key: b"k" }),
        Err(Error::Poisoned { .. })
    ));
    assert!(run.log.admit(1).is_err());
    assert!(run.log.close().is_err());
    assert_eq!(run.log.durable(), acked);
    run.assert_survives(&sim, 50);
}

/// A log whose process is gone, killed or after a failed sync. All that was appended can be read;
/// the last group, acknowledged or not, has nothing that proves it durable.
fn left_behind(killed: bool) -> (Sim, Run) {
    let sim = Sim::default();
    let mut run = start(&sim, LogDurability::Sync).unwrap();
    // Small ones: all are in one segment.
    run.go(0..3);
    if !killed {
        sim.fail_at(0, Fault::FailedSync, false);
        run.go(5..7);
        assert_eq!(run.refused.len(), 1);
        run.log.close().unwrap_err();
        sim.heal();
    }
    (sim, run)
}

#[test]
fn a_reopen_makes_durable_what_a_failed_sync_has_left() {
    let (sim, mut run) = left_behind(false);
    let (log, seen) = open_sim(&sim, Lsn(0), run.acked, false).unwrap();
    assert_eq!(seen.len(), run.appended.len());
    assert!(run.acked < log.durable());
    // I5: what was replayed may be in Y by now.
    run.acked = log.durable();
    run.assert_survives(&sim, 200);
    // The next segment begins where the one that was not synced ends.
    let (start, end) = append(&log, &record(50)).unwrap();
    log.wait_durable(end).unwrap();
    run.appended.push((start, end, record(50)));
    run.acked = end;
    run.assert_survives(&sim, 200);
}

/// A fault at every I/O of the reopen, and power lost right after it, takes nothing acknowledged;
/// the next open makes it whole.
#[test]
fn a_reopen_cut_short_loses_nothing_acknowledged() {
    for killed in [true, false] {
        for fault in [
            Fault::PowerLoss,
            Fault::FailedSync,
            Fault::ShortWrite,
            Fault::Full,
        ] {
            for at in 1.. {
                let (sim, mut run) = left_behind(killed);
                sim.fail_at(sim.ios() + at, fault, false);
                let opened = open_sim(&sim, Lsn(0), run.acked, false);
                if sim.faults() == 0 {
                    assert!(at > 4, "{fault:?}: the reopen writes nothing");
                    opened.unwrap();
                    break;
                }
                let refused = opened.err().unwrap();
                assert_eq!(
                    fault == Fault::Full,
                    matches!(refused, Error::OutOfSpace { .. })
                );
                sim.heal();
                run.assert_survives(&sim, 50);
                if fault != Fault::PowerLoss {
                    let (log, _) = open_sim(&sim, Lsn(0), run.acked, false).unwrap();
                    run.acked = log.durable();
                    assert_eq!(run.acked, run.appended.last().unwrap().1);
                    run.assert_survives(&sim, 50);
                }
            }
        }
    }
}

/// What is known to be durable is not written again.
#[test]
fn a_reopen_after_a_close_writes_nothing() {
    let sim = Sim::default();
    let mut run = start(&sim, LogDurability::Sync).unwrap();
    run.go(0..5);
    run.log.close().unwrap();
    sim.fail_at(0, Fault::Full, true);
    open_sim(&sim, Lsn(0), Lsn(0), false).unwrap();
    assert_eq!(sim.faults(), 0);
}

#[test]
fn a_full_device_and_too_few_descriptors_are_survived_without_a_reopen() {
    for (fault, durability) in [
        (Fault::NoDescriptors, LogDurability::Sync),
        (Fault::Full, LogDurability::Sync),
        (Fault::ShortFull, LogDurability::Sync),
        (
            Fault::ShortFull,
            LogDurability::Buffered {
                interval: Duration::from_millis(2),
            },
        ),
    ] {
        for at in (0..25).step_by(4) {
            let sim = Sim::default();
            let mut run = start(&sim, durability).unwrap();
            run.go(0..10);
            assert!(run.refused.is_empty());
            sim.fail_at(sim.ios() + at, fault, true);
            let mut i = 10;
            while run.refused.is_empty() {
                run.go(i..i + 1);
                i += 1;
            }
            let passes = |e: &Error| match fault {
                Fault::NoDescriptors => e.is_transient(),
                _ => matches!(e, Error::OutOfSpace { .. }),
            };
            assert!(run.refused.iter().all(passes), "{:?}", run.refused);
            // While it is full, appends are refused at once, and memory does not grow.
            let full = Instant::now();
            let before = run.appended.len();
            run.go(i..i + 50);
            assert_eq!(run.appended.len(), before);
            assert!(full.elapsed() < Duration::from_secs(2));
            run.assert_survives(&sim, 3);
            sim.heal();
            run.refused.clear();
            let deadline = Instant::now() + Duration::from_secs(10);
            loop {
                match append(&run.log, &record(1000)) {
                    Ok((start, end)) => break run.appended.push((start, end, record(1000))),
                    Err(e) => assert!(
                        Instant::now() < deadline,
                        "{at} {fault:?} {durability:?}: {e}"
                    ),
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            run.go(1..20);
            assert!(run.refused.is_empty());
            run.log.close().unwrap();
            run.acked = run.log.durable();
            run.assert_survives(&sim, 3);
        }
    }
}

/// Many threads wait while the device fails: all of them return.
#[test]
fn waiters_wake_when_the_device_fails() {
    for fault in [Fault::Eio, Fault::FailedSync, Fault::Full, Fault::PowerLoss] {
        for buffered in [false, true] {
            let sim = Sim::default();
            let durability = if buffered {
                LogDurability::Buffered {
                    interval: Duration::from_millis(1),
                }
            } else {
                LogDurability::Sync
            };
            let (log, _) = open_with(
                Arc::new(sim.clone()),
                small(durability),
                Lsn(0),
                Lsn(0),
                false,
            )
            .unwrap();
            sim.fail_at(60, fault, true);
            std::thread::scope(|s| {
                for t in 0..8u64 {
                    let log = &log;
                    s.spawn(move || {
                        for i in 0.. {
                            let value = vec![7; (i % 40) as usize * 500];
                            let put = RecordRef::Put {
                                tree: 1,
                                key: &(t << 32 | i).to_be_bytes(),
                                value: &value,
                            };
                            let Ok(_admission) = log.admit(put.encoded_len()) else {
                                return;
                            };
                            let Ok(end) = log.append(put) else { return };
                            if i % 3 == 0 && log.wait_durable(end).is_err() {
                                return;
                            }
                        }
                    });
                }
            });
            log.close().unwrap_err();
        }
    }
}

/// A log that failed while pieces were queued: its flusher ends, and does not ask for them again
/// and again.
#[test]
fn the_flusher_ends_with_its_log() {
    let sim = Sim::default();
    let interval = Duration::from_secs(600);
    let Run { log, .. } = start(&sim, LogDurability::Buffered { interval }).unwrap();
    let (_, end) = append(&log, &record(1)).unwrap();
    sim.fail_at(0, Fault::Eio, true);
    std::thread::scope(|s| {
        let paused = sim.pause();
        let waiter = s.spawn(|| log.wait_durable(end));
        while log.shared.out.try_lock().is_some() {
            std::thread::yield_now();
        }
        // The leader is in its write. What is sealed meanwhile stays in the queue.
        for i in 0..40 {
            let put = RecordRef::Put {
                tree: 1,
                key: &[i],
                value: &[7; 200],
            };
            log.append(put).unwrap();
        }
        drop(paused);
        waiter.join().unwrap().unwrap_err();
    });
    let deadline = Instant::now() + Duration::from_secs(10);
    let ended = || log.end.lock().flusher.as_ref().unwrap().is_finished();
    while !ended() {
        assert!(Instant::now() < deadline, "the flusher goes on");
        std::thread::sleep(Duration::from_millis(1));
    }
    log.close().unwrap_err();
}

/// What a close could not make durable is not given up: another close can.
#[test]
fn a_close_without_space_can_be_repeated() {
    let sim = Sim::default();
    let interval = Duration::from_secs(600);
    let mut run = start(&sim, LogDurability::Buffered { interval }).unwrap();
    let (start, end) = append(&run.log, &record(1)).unwrap();
    run.appended.push((start, end, record(1)));
    sim.fail_at(0, Fault::Full, true);
    for _ in 0..2 {
        let refused = run.log.close();
        assert!(
            matches!(refused, Err(Error::OutOfSpace { .. })),
            "{refused:?}"
        );
    }
    sim.heal();
    run.log.close().unwrap();
    run.acked = end;
    run.assert_survives(&sim, 10);
}

/// What a close could not write stays unwritten once somebody else may have the directory.
#[test]
fn a_log_that_was_given_up_writes_nothing() {
    let sim = Sim::default();
    let interval = Duration::from_secs(600);
    let run = start(&sim, LogDurability::Buffered { interval }).unwrap();
    let (_, end) = append(&run.log, &record(1)).unwrap();
    sim.fail_at(0, Fault::Full, true);
    assert!(matches!(run.log.close(), Err(Error::OutOfSpace { .. })));
    sim.heal();
    let before = sim.contents();
    run.log.give_up();
    let waited = run.log.wait_durable(end);
    assert!(matches!(waited, Err(Error::Poisoned { .. })), "{waited:?}");
    run.log.close().unwrap();
    drop(run);
    assert!(sim.contents() == before);
}

/// A poison set elsewhere refuses appends, but does not lose what was appended before.
#[test]
fn a_poison_from_elsewhere_keeps_the_log_writing() {
    let sim = Sim::default();
    let poison = Arc::new(Poison::default());
    let options = small(LogDurability::Buffered {
        interval: Duration::from_secs(600),
    });
    let budget = Arc::new(Budget::new(1 << 30));
    let log = Log::open(
        Arc::new(sim.clone()),
        Path::new(DIR),
        options,
        Lsn(0),
        Lsn(0),
        false,
        poison.clone(),
        budget,
        &mut |_, _| Ok(()),
    )
    .unwrap();
    append(&log, &record(1)).unwrap();
    poison.set(&"the other part failed");
    assert!(matches!(
        append(&log, &record(2)),
        Err(Error::Poisoned { .. })
    ));
    log.close().unwrap();
    assert_eq!(
        open_sim(&sim.crash(1), Lsn(0), Lsn(0), true)
            .unwrap()
            .1
            .len(),
        1
    );
}
