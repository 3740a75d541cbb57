//! Following the log beside appends, truncations, closings and power failures.

use super::*;
use crate::wal::record::decode_record;

/// Three segments of the small log.
const KEEP_BYTES: u64 = 12 << 10;

fn keeping(storage: Arc<dyn Storage>, from: Lsn) -> Result<Log> {
    let options = LogOptions {
        keep_bytes: KEEP_BYTES,
        ..small(LogDurability::Sync)
    };
    open_with(storage, options, from, Lsn(0), false).map(|(log, _)| log)
}

fn budget() -> Arc<Budget> {
    Arc::new(Budget::new(1 << 30))
}

/// Everything that `follower` has: the end of each record, and what it is.
fn drain(follower: &mut Follower, log: &Log) -> Result<Seen> {
    let mut seen = Seen::new();
    while let Some(bytes) = follower.next(log, log.end())? {
        let (record, len) = decode_record(bytes).unwrap();
        assert_eq!(len, bytes.len(), "one record");
        let record = own(record);
        seen.push((follower.position(), record));
    }
    Ok(seen)
}

/// A workload with a follower, and what both have.
#[derive(Default)]
struct Life {
    /// End and content of everything appended.
    appended: Seen,
    followed: Seen,
    floor: Lsn,
}

impl Life {
    fn run(&mut self, log: &Log, records: u64) -> Result<()> {
        let at = self.followed.last().map_or(Lsn(0), |r| r.0);
        let mut follower = log.follow(at, &budget())?;
        for i in 0..records {
            let record = record(i);
            let (_, end) = append(log, &record)?;
            self.appended.push((end, record));
            if i % 3 == 2 {
                log.wait_durable(end)?;
            }
            self.followed.extend(drain(&mut follower, log)?);
            if i % 10 == 7 {
                self.floor = self.floor.max(log.durable());
                log.truncate_below(self.floor)?;
            }
        }
        Ok(())
    }
}

#[test]
fn a_follower_sees_what_is_durable_and_nothing_else() {
    let log = keeping(Arc::new(Sim::default()), Lsn(0)).unwrap();
    let mut life = Life::default();
    life.run(&log, 120).unwrap();
    let durable = log.durable();
    let upto = life.appended.iter().filter(|r| r.0 <= durable).count();
    assert_eq!(life.followed, life.appended[..upto]);
    assert!(log.oldest() > Lsn(0), "old segments went");
    assert!(log.kept_bytes() >= KEEP_BYTES && log.kept_bytes() < 6 * KEEP_BYTES);
    // What the log does not need is there to be followed.
    assert!(log.oldest() < log.start());
    let mut late = log.follow(log.oldest(), &budget()).unwrap();
    let seen = drain(&mut late, &log).unwrap();
    assert_eq!(seen, life.followed[life.followed.len() - seen.len()..]);
    assert!(matches!(
        log.follow(Lsn(0), &budget()),
        Err(Error::ChangesGone { position: 0, .. })
    ));
    let beyond = Lsn(log.end().0 + 1);
    assert!(matches!(
        log.follow(beyond, &budget()),
        Err(Error::ChangesGone { .. })
    ));
    let inside = Lsn(life.followed[life.followed.len() - 2].0.0 + 1);
    let mut lost = log.follow(inside, &budget()).unwrap();
    assert!(matches!(
        lost.next(&log, log.end()),
        Err(Error::Unsupported { .. })
    ));
}

#[test]
fn one_that_falls_behind_is_told_and_holds_nothing_back() {
    let log = keeping(Arc::new(Sim::default()), Lsn(0)).unwrap();
    let mut never = log.follow(Lsn(0), &budget()).unwrap();
    let mut slow = log.follow(Lsn(0), &budget()).unwrap();
    append(&log, &record(0)).unwrap();
    log.wait_durable(log.end()).unwrap();
    assert!(slow.next(&log, log.end()).unwrap().is_some());
    let mut life = Life::default();
    life.followed.push((slow.position(), record(0)));
    life.run(&log, 120).unwrap();
    assert!(matches!(
        never.next(&log, log.end()),
        Err(Error::ChangesGone { .. })
    ));
    // It has its first segment open. The one after that is gone.
    let gone = (0..1000)
        .find_map(|_| slow.next(&log, log.end()).err())
        .unwrap();
    assert!(matches!(gone, Error::ChangesGone { .. }), "{gone}");
}

#[test]
fn nothing_that_was_followed_is_taken_back_by_a_crash_at_any_io() {
    let sim = Sim::default();
    let mut life = Life::default();
    let log = keeping(Arc::new(sim.clone()), Lsn(0)).unwrap();
    life.run(&log, 60).unwrap();
    log.close().unwrap();
    let ios = sim.ios();
    for at in 1..=ios {
        let sim = Sim::default();
        sim.fail_at(at, Fault::PowerLoss, true);
        let mut life = Life::default();
        if let Ok(log) = keeping(Arc::new(sim.clone()), Lsn(0)) {
            let _ = life.run(&log, 60);
        }
        // The manifest never names a floor that it did not have durably.
        let sim = sim.crash(at);
        let floor = life.floor;
        let Ok(log) = keeping(Arc::new(sim.clone()), floor) else {
            panic!("crash at {at}: the log opens");
        };
        let place = life.followed.last().map_or(Lsn(0), |r| r.0);
        assert!(place <= log.end(), "crash at {at}");
        let rest = drain(&mut log.follow(place, &budget()).unwrap(), &log).unwrap();
        let from = life.followed.len();
        assert_eq!(
            rest,
            life.appended[from..from + rest.len()],
            "crash at {at}"
        );
        // And the older ones are there.
        let old = drain(&mut log.follow(log.oldest(), &budget()).unwrap(), &log).unwrap();
        let upto = from + rest.len();
        assert_eq!(old, life.appended[upto - old.len()..upto], "crash at {at}");
    }
}

#[test]
fn damage_is_an_error_and_no_change() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), true, Lsn(0), false).unwrap();
    let end = (0..100).map(|i| put(&log, i, &[i as u8; 100])).last();
    log.wait_durable(end.unwrap()).unwrap();
    let segment = std::fs::read_dir(dir.path()).unwrap().next().unwrap();
    let segment = segment.unwrap().path();
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[4000] ^= 1;
    std::fs::write(&segment, &bytes).unwrap();
    let mut follower = log.follow(Lsn(0), &budget()).unwrap();
    let mut damaged = || loop {
        match follower.next(&log, log.end()) {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the damage was not seen"),
            Err(error) => return error,
        }
    };
    assert!(matches!(damaged(), Error::Corrupt { .. }));
    // The same again, and not the end.
    assert!(matches!(damaged(), Error::Corrupt { .. }));
}

#[test]
fn waits_end_with_news_a_timeout_or_the_close() {
    let long = Duration::from_secs(60);
    let log = keeping(Arc::new(Sim::default()), Lsn(0)).unwrap();
    assert!(!log.wait_beyond(Lsn(0), Duration::from_millis(5)).unwrap());
    std::thread::scope(|s| {
        let waiter = s.spawn(|| log.wait_beyond(Lsn(0), long));
        let (_, end) = append(&log, &record(1)).unwrap();
        log.wait_durable(end).unwrap();
        assert!(waiter.join().unwrap().unwrap());
        let waiter = s.spawn(|| log.wait_beyond(log.end(), Duration::MAX));
        std::thread::sleep(Duration::from_millis(20));
        log.close().unwrap();
        assert!(matches!(waiter.join().unwrap(), Err(Error::Closed)));
    });
}

#[test]
fn writers_and_followers_side_by_side() {
    const EACH: u64 = 5000;
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), false, Lsn(0), false).unwrap();
    std::thread::scope(|s| {
        for t in 0..3u64 {
            let log = &log;
            s.spawn(move || {
                (0..EACH).for_each(|i| {
                    put(log, t << 32 | i, &i.to_le_bytes()[..(i % 9) as usize]);
                });
            });
        }
        let follow = || {
            let mut follower = log.follow(Lsn(0), &budget()).unwrap();
            let mut seen = Seen::new();
            while (seen.len() as u64) < 3 * EACH {
                let news = log.wait_beyond(follower.position(), Duration::from_secs(60));
                assert!(news.unwrap());
                seen.extend(drain(&mut follower, &log).unwrap());
            }
            seen
        };
        let (one, other) = (s.spawn(follow), s.spawn(follow));
        let seen = one.join().unwrap();
        assert!(seen.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(seen, other.join().unwrap());
    });
}
