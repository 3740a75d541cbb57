//! An optimistic latch: a version that is odd while a writer holds it.
//!
//! Readers: load the version (acquire), read words (relaxed), fence (acquire), compare. Writers:
//! swap the version to odd (acquire), fence (release), write words (relaxed), store the next even
//! version (release). A reader that saw a word of a writer sees its odd or next version too: the
//! release fence before the words pairs with the acquire fence after them.

use std::{
    hint::spin_loop,
    sync::atomic::{
        AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
        fence,
    },
    thread::yield_now,
};

/// Looks at a locked latch before a reader starts again from the root.
const READ_SPINS: usize = 64;
/// Looks before a waiting writer yields.
const LOCK_SPINS: usize = 128;

#[derive(Default)]
pub(crate) struct Latch(AtomicU64);

impl Latch {
    /// The version to read under; `None`: a writer holds the latch.
    #[inline]
    pub(crate) fn read(&self) -> Option<u64> {
        for _ in 0..READ_SPINS {
            // Pairs with the release in `Latched::drop`.
            let version = self.0.load(Acquire);
            if version & 1 == 0 {
                return Some(version);
            }
            spin_loop();
        }
        None
    }

    /// What was read since `read` gave `version` is one state.
    #[inline]
    pub(crate) fn is_at(&self, version: u64) -> bool {
        // Pairs with the release fence in `lock_at`.
        fence(Acquire);
        self.0.load(Relaxed) == version
    }

    /// Locks if nothing was written since `version`.
    pub(crate) fn lock_at(&self, version: u64) -> Option<Latched<'_>> {
        if version & 1 == 1 {
            return None;
        }
        let locked = self
            .0
            .compare_exchange(version, version | 1, Acquire, Relaxed);
        locked.ok()?;
        // Pairs with the acquire fence in `is_at`.
        fence(Release);
        Some(Latched {
            latch: self,
            version,
            next: version,
        })
    }

    /// Locks if nobody else has.
    pub(crate) fn try_lock(&self) -> Option<Latched<'_>> {
        self.lock_at(self.0.load(Relaxed))
    }

    /// Locks. Ends when the holder unlocks: holders wait only for verbs and for latches below.
    pub(crate) fn lock(&self) -> Latched<'_> {
        let mut looks = 0;
        loop {
            if let Some(latched) = self.try_lock() {
                return latched;
            }
            looks += 1;
            if looks % LOCK_SPINS == 0 {
                yield_now();
            }
            spin_loop();
        }
    }
}

/// A latch that is held; dropping it unlocks.
pub(crate) struct Latched<'a> {
    latch: &'a Latch,
    version: u64,
    next: u64,
}

impl Latched<'_> {
    /// Readers that came before start again. Call it before the words are changed.
    pub(crate) fn changes(&mut self) {
        self.next = self.version.wrapping_add(2);
    }

    /// The latch belongs to `latch`.
    pub(crate) fn is_of(&self, latch: &Latch) -> bool {
        std::ptr::eq(self.latch, latch)
    }
}

impl Drop for Latched<'_> {
    fn drop(&mut self) {
        // Pairs with the acquire in `read` and `lock_at`.
        self.latch.0.store(self.next, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{sync::atomic::AtomicBool, thread};

    #[test]
    fn c1_readers_see_one_state() {
        let latch = Latch::default();
        let words: [AtomicU64; 8] = Default::default();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let writers: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        for _ in 0..100_000 {
                            let mut latched = latch.lock();
                            latched.changes();
                            for word in &words {
                                word.store(word.load(Relaxed) + 1, Relaxed);
                            }
                        }
                    })
                })
                .collect();
            scope.spawn(|| {
                let mut valid = 0_u64;
                while !done.load(Relaxed) || valid == 0 {
                    let Some(version) = latch.read() else {
                        continue;
                    };
                    let seen = words.each_ref().map(|word| word.load(Relaxed));
                    if latch.is_at(version) {
                        assert!(seen.iter().all(|word| *word == seen[0]), "{seen:?}");
                        valid += 1;
                    }
                }
            });
            writers
                .into_iter()
                .for_each(|writer| writer.join().unwrap());
            done.store(true, Relaxed);
        });
        assert_eq!(words[7].load(Relaxed), 200_000);
    }

    #[test]
    fn a_latch_that_changed_nothing_keeps_its_version() {
        let latch = Latch::default();
        let version = latch.read().unwrap();
        drop(latch.try_lock().unwrap());
        assert!(latch.is_at(version));
        let mut latched = latch.lock_at(version).unwrap();
        assert!(latch.try_lock().is_none() && latch.read().is_none());
        latched.changes();
        drop(latched);
        assert!(!latch.is_at(version) && latch.lock_at(version).is_none());
    }
}
