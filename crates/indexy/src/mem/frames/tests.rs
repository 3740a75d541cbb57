//! Frames: what a guard protects, what comes back, and a race of readers with reuse.

use super::*;
use std::sync::atomic::{AtomicBool, AtomicU64};

fn fill(frames: &Frames, tag: u64) -> Option<u32> {
    let mut frame = frames.take()?;
    frame.bytes_mut().fill(tag as u8);
    Some(frame.publish(tag, 4096 - 64))
}

#[test]
fn a_guard_keeps_what_it_found() {
    let frames = Frames::new(4096, 1);
    let number = fill(&frames, 7).unwrap();
    let guard = frames.enter();
    let view = guard.find(number, 7, 1).unwrap();
    assert!(guard.find(number, 8, 1).is_none());
    assert!(frames.unlink(number, 7));
    assert!(!frames.unlink(number, 7));
    for _ in 0..10 {
        frames.reclaim();
        assert!(frames.take().is_none(), "still read");
    }
    assert!(view.bytes.iter().all(|&b| b == 7));
    assert_eq!((view.bytes.len(), view.words.len()), (4096 - 64, 8));
    assert!(guard.find(number, 7, 1).is_none());
    drop(guard);
    assert_eq!(frames.reclaim(), 1);
    assert_eq!(fill(&frames, 8), Some(number));
}

#[test]
fn the_limit_goes_down_and_up() {
    let frames = Frames::new(4096, 200);
    let numbers: Vec<u32> = (1..=200).map(|tag| fill(&frames, tag).unwrap()).collect();
    assert!(frames.take().is_none());
    frames.set_limit(50);
    for (number, tag) in numbers.iter().zip(1..) {
        assert!(frames.unlink(*number, tag));
    }
    while frames.reclaim() > 0 {}
    assert_eq!(frames.free_frames(), 50);
    frames.set_limit(300);
    assert_eq!(frames.free_frames(), 300);
    assert!((1..=300).all(|tag| fill(&frames, tag).is_some()));
    assert!(frames.take().is_none());
}

#[test]
fn a_limit_that_changes_while_frames_come_back_loses_and_exceeds_none() {
    for round in 0..500 {
        let frames = Frames::new(4096, 8);
        let owned: Vec<_> = (0..8).map(|_| frames.take().unwrap()).collect();
        let (from, to) = if round % 2 == 0 { (4, 8) } else { (8, 4) };
        frames.set_limit(from);
        let both = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                both.wait();
                drop(owned);
            });
            both.wait();
            frames.set_limit(to);
        });
        assert_eq!(frames.free_frames(), to, "from {from}, round {round}");
    }
}

/// Every frame is filled with its tag alone; a reader that finds a tag must find nothing else.
#[test]
fn readers_never_see_a_frame_change() {
    const TAGS: u64 = 64;
    let frames = Frames::new(4096, 4);
    let homes: Vec<AtomicU64> = (0..=TAGS).map(|_| AtomicU64::new(0)).collect();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 0..3u64 {
            let (frames, homes, stop) = (&frames, &homes, &stop);
            scope.spawn(move || {
                let mut at = seed;
                let mut found = 0u64;
                while !stop.load(Relaxed) {
                    at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let tag = at >> 33;
                    let tag = tag % TAGS + 1;
                    let guard = frames.enter();
                    let number = homes[tag as usize].load(Relaxed) as u32;
                    if let Some(view) = guard.find(number, tag, 1) {
                        found += 1;
                        std::thread::yield_now();
                        assert!(view.bytes.iter().all(|&b| b == tag as u8));
                    }
                }
                found
            });
        }
        for round in 0..20_000u64 {
            let tag = round % TAGS + 1;
            frames.reclaim();
            match fill(&frames, tag) {
                Some(number) => homes[tag as usize].store(u64::from(number), Relaxed),
                None => {
                    let victim = (round * 7) as u32 % 4;
                    frames.unlink(victim, frames.tag(victim));
                }
            }
        }
        stop.store(true, Relaxed);
    });
}

/// The same under a scheduler that may put another thread in at every step: what is rare with real
/// threads is common here. One thread evicts and refills the only frame. The readers take no lock,
/// so that nothing ever waits for one. They have few counters: the scheduler may stop at each.
#[test]
fn no_schedule_shows_a_reader_a_frame_that_changes() {
    use crate::sync::{point, while_scheduled};
    use shuttle::{scheduler::RandomScheduler, thread};
    use std::sync::Arc;
    const SCHEDULES: usize = 3000;
    const ROUNDS: u64 = 4;
    let scenario = || {
        let frames = Arc::new(Frames::with_reader_shards(4096, 1, 2));
        let number = fill(&frames, 1).unwrap();
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let frames = frames.clone();
                thread::spawn(move || {
                    for tag in 1..=ROUNDS {
                        let guard = frames.enter();
                        if let Some(view) = guard.find(number, tag, 1) {
                            for at in [0, 1000, 4000] {
                                point();
                                assert_eq!(u64::from(view.bytes[at]), tag, "the frame changed");
                            }
                        }
                    }
                })
            })
            .collect();
        for tag in 1..ROUNDS {
            assert!(frames.unlink(number, tag));
            while frames.reclaim() == 0 {
                point();
            }
            assert_eq!(fill(&frames, tag + 1), Some(number));
            point();
        }
        readers.into_iter().for_each(|r| r.join().unwrap());
    };
    let runner = shuttle::Runner::new(RandomScheduler::new(SCHEDULES), shuttle::Config::default());
    while_scheduled(|| {
        runner.run(scenario);
    });
}

/// Bytes of the frames that are resident, and those of them in huge pages.
#[cfg(target_os = "linux")]
fn resident(frames: &Frames) -> (usize, usize) {
    let mappings = frames.segments.mappings();
    let mut sum = (0, 0);
    let mut ours = false;
    for line in std::fs::read_to_string("/proc/self/smaps").unwrap().lines() {
        let (first, rest) = line.split_once(' ').unwrap();
        if let Some((start, _)) = first.split_once('-') {
            let start = usize::from_str_radix(start, 16).unwrap();
            ours = mappings.iter().any(|mapping| mapping.contains(&start));
        } else if ours && let Some(kib) = rest.trim().strip_suffix(" kB") {
            let bytes = kib.trim().parse::<usize>().unwrap() << 10;
            match first {
                "Rss:" => sum.0 += bytes,
                "AnonHugePages:" => sum.1 += bytes,
                _ => {}
            }
        }
    }
    sum
}

/// A huge page is as resident as its frames may be: no more than the limit in all.
#[test]
#[cfg(target_os = "linux")]
fn huge_pages_stay_below_the_limit() {
    const FULL: usize = 1636;
    let frames = Frames::new(4096, FULL);
    let numbers: Vec<u32> = (1..=FULL as u64)
        .map(|tag| fill(&frames, tag).unwrap())
        .collect();
    let (bytes, huge) = resident(&frames);
    println!("{bytes} resident, {huge} in huge pages");
    assert!(bytes <= FULL * 4096);
    frames.set_limit(1000);
    for (number, tag) in numbers.iter().zip(1..) {
        assert!(*number < 1000 || frames.unlink(*number, tag));
    }
    while frames.reclaim() > 0 {}
    assert!(resident(&frames).0 <= 1000 * 4096);
    frames.set_limit(FULL);
    assert!((1..=FULL - 1000).all(|tag| fill(&frames, tag as u64).is_some()));
    assert!(resident(&frames).0 <= FULL * 4096);
}

/// What a huge page made resident goes back although it was never used.
#[test]
#[cfg(target_os = "linux")]
fn a_smaller_limit_takes_back_what_was_never_used() {
    const USED: usize = 962;
    let frames = Frames::new(4096, 4000);
    assert!((1..=USED as u64).all(|tag| fill(&frames, tag).is_some()));
    println!("{} resident", resident(&frames).0);
    frames.set_limit(USED + 1);
    assert!(resident(&frames).0 <= (USED + 1) * 4096);
    assert_eq!(frames.free_frames(), 1);
    frames.set_limit(2000);
    assert_eq!(frames.free_frames(), 2000 - USED);
    let tags = 1..=(2000 - USED) as u64;
    assert!(tags.into_iter().all(|tag| fill(&frames, tag).is_some()));
    assert!(frames.take().is_none());
    assert!(resident(&frames).0 <= 2000 * 4096);
}

/// A use keeps a page for so many rounds, whatever keeps it less beside.
#[test]
fn a_page_stays_for_the_rounds_that_it_was_found_for() {
    let frames = Frames::new(4096, 8);
    let number = frames.take().unwrap().publish(7, 4096);
    assert!(!frames.pass_over(number), "it was only brought");
    for (uses, stays) in [(&[1][..], 1), (&[3, 1, 0], 3), (&[0], 0)] {
        let guard = frames.enter();
        for rounds in uses {
            assert!(guard.find(number, 7, *rounds).is_some());
        }
        let passed = (0..9).take_while(|_| frames.pass_over(number)).count();
        assert_eq!(passed, stays, "{uses:?}");
    }
}
