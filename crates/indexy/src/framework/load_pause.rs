//! Loads pause while Y changes behind X's back: a value that goes past X, a range that is removed.
//!
//! Y shows such a change when X has no entry that tells, and whoever read Y just before could load
//! what he read after somebody was told of the newer state. So the writer of a key *pauses* loads,
//! then gives the key a fresh stamp, then has Y show the change, then drops what X has of the key,
//! which changes the stamp again, and ends the pause. A load looks whether there is a pause just
//! before it takes place.
//!
//! Who removes a range, which may be all of a tree, gives it no stamps before: he waits, in the
//! pause, until the loads that are [taking place](Loads) are over.
//!
//! Keeps: I3, also for plain readers meanwhile. Suppose that what was read of Y before the change
//! is loaded. Its search was before the first stamps: then the load was, too, and whoever asks is
//! told by X until the entry goes, which is after Y shows the change. Or it was between the first
//! stamps and the last ones: then the load found a pause, or came after the last ones, and its
//! stamp is old. Or it was after the last ones: then Y said the new state. With a range it was
//! before the end of the wait, or found the pause, or came after the pause: by then the range has
//! fresh stamps, or, where all of X was dropped, no mount that is as old.
//!
//! Threads: any number of writers, and of loads, which look at one word and count themselves in one
//! that few threads share. Whoever waits may hold stripes and run locks: a load waits for neither.
//! Loads of other trees, which no pause of this one holds off, do not keep him: he has newcomers
//! count themselves elsewhere (the *phase*), and so sees each word at zero.

#![forbid(unsafe_code)]

use crate::mem;
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use std::{
    sync::atomic::{
        AtomicUsize,
        Ordering::{Relaxed, Release, SeqCst},
    },
    thread::{sleep, yield_now},
    time::Duration,
};

/// Places in which loads are counted.
const SHARDS: usize = 8;
const PHASES: usize = 2;
/// Looks at a word with a yield between them, until the first sleep.
const YIELDS: u32 = 64;
const NAP: Duration = Duration::from_micros(50);

/// See the module header.
#[derive(Debug, Default)]
pub(crate) struct LoadPause(AtomicUsize);

/// While it lives, nothing is loaded.
#[derive(Debug)]
pub(crate) struct Paused<'a>(&'a LoadPause);

impl LoadPause {
    /// Before the first stamp.
    pub(crate) fn begin(&self) -> Paused<'_> {
        self.0.fetch_add(1, SeqCst);
        Paused(self)
    }

    /// Just before a load that is to take place while the result lives; `None`: there is a pause.
    pub(super) fn pass<'l>(&self, loads: &'l Loads) -> Option<Loading<'l>> {
        let shard = &loads.counts[mem::thread_number() % SHARDS];
        let word = &shard[loads.phase.load(Relaxed) % PHASES];
        // Before the look. Partner: `begin`, and behind it the loads of `wait`.
        word.fetch_add(1, SeqCst);
        let loading = Loading(word);
        (self.0.load(SeqCst) == 0).then_some(loading)
    }
}

/// How many loads take place, of all trees of a database.
#[derive(Debug, Default)]
pub(crate) struct Loads {
    /// Where newcomers count themselves.
    phase: AtomicUsize,
    counts: [CachePadded<[AtomicUsize; PHASES]>; SHARDS],
    waiting: Mutex<()>,
}

/// A load takes place.
#[derive(Debug)]
pub(super) struct Loading<'l>(&'l AtomicUsize);

impl Loads {
    /// In a pause: returns when every load that did not find it is over. Cost: a few loads, and as
    /// long as an entry is being put into memory.
    pub(super) fn wait(&self) {
        let _alone = self.waiting.lock();
        // What comes while a phase is waited for counts itself in the other one, but for those that
        // read the phase before it changed; each of them does so once.
        for _ in 0..PHASES {
            let old = self.phase.fetch_add(1, SeqCst) % PHASES;
            for shard in &self.counts {
                wait_for_zero(&shard[old]);
            }
        }
    }
}

fn wait_for_zero(word: &AtomicUsize) {
    let mut looks = 0;
    // Partner: `pass`. A load that counts itself later finds the pause.
    while word.load(SeqCst) != 0 {
        looks += 1;
        match looks < YIELDS {
            true => yield_now(),
            false => sleep(NAP),
        }
    }
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        // Partner: `wait`.
        self.0.fetch_sub(1, Release);
    }
}

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        sync::{Barrier, atomic::AtomicBool},
        thread,
        time::{Duration, Instant},
    };

    /// Loads of other trees follow each other so closely that one is always under way.
    #[test]
    fn a_wait_ends_beside_loads_without_end() {
        const LONG: Duration = Duration::from_secs(20);
        let (loads, stop) = (Loads::default(), AtomicBool::new(false));
        let (started, begun) = (Instant::now(), Barrier::new(5));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let other = LoadPause::default();
                    let mut last = other.pass(&loads);
                    begun.wait();
                    while !stop.load(SeqCst) && started.elapsed() < LONG {
                        last = other.pass(&loads);
                    }
                    drop(last);
                });
            }
            let this = LoadPause::default();
            begun.wait();
            for _ in 0..100 {
                let _paused = this.begin();
                loads.wait();
            }
            stop.store(true, SeqCst);
            assert!(started.elapsed() < LONG);
        });
    }

    /// Whichever phase it counts itself in.
    #[test]
    fn every_load_that_found_no_pause_is_waited_for() {
        let (loads, pause) = (Loads::default(), LoadPause::default());
        for _ in 0..5 {
            let loading = pause.pass(&loads).unwrap();
            let ended = AtomicBool::new(false);
            thread::scope(|scope| {
                scope.spawn(|| {
                    let _paused = pause.begin();
                    loads.wait();
                    assert!(ended.load(SeqCst));
                });
                thread::sleep(Duration::from_millis(10));
                ended.store(true, SeqCst);
                drop(loading);
            });
        }
    }
}
