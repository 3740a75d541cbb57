//! The version latch of a node: optimistic lock coupling on one word.
//!
//! Bit 0 is *locked*, bit 1 *obsolete* (the node has left the tree; it never changes again), the
//! other 62 bits count modifications. A reader takes the version, reads the node's words as relaxed
//! atomics, and validates that the version is still the same *before* it uses what it read. A
//! writer locks, changes words, and unlocks with the next version.
//!
//! Ordering. Reader: acquire-load of the version,
//! relaxed reads, `fence(Acquire)`, relaxed load of the version. Writer: lock with Acquire, then
//! `fence(Release)`, relaxed writes, unlock with Release. The fence after locking is
//! needed: an Acquire read-modify-write orders nothing before its own *store*, so without it a
//! reader could see new words under the old version. On x86 both fences are free.
//! `tests/latch_model.rs` checks this and fails without either fence.
//!
//! Threads: any. Waiting is a bounded spin, then yielding the processor; the holder never blocks
//! while it has the latch.
//! Not here: what a restart does, which latches are taken in which order (`x/`).

use crate::sync::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence, point, spin_loop, yield_now,
};

const LOCKED: u64 = 1;
const OBSOLETE: u64 = 2;
/// One modification; the counter starts at bit 2.
const STEP: u64 = 4;
/// Turns of a wait that only spin; later ones give the processor away, because the
/// holder may have lost its own.
const SPINS: u32 = if cfg!(loom) { 0 } else { 64 };

/// See the module header.
#[repr(transparent)]
#[derive(Debug, Default)]
pub(crate) struct Latch(AtomicU64);

/// An unlocked, live version of a node, as a reader saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version(u64);

impl Latch {
    /// Unlocked, live, at version 0: what a zeroed word is, too.
    #[allow(dead_code, reason = "nodes use zeroed words in place")]
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// The latch that lives in `word`.
    #[allow(dead_code, reason = "the model test has no words")]
    #[inline(always)]
    pub(crate) fn of(word: &AtomicU64) -> &Self {
        // SAFETY: `Latch` is `repr(transparent)` over `AtomicU64`, and every value of it is a valid
        // latch.
        unsafe { &*std::ptr::from_ref(word).cast::<Self>() }
    }

    /// Waits until unlocked and returns the version; `None` if the node is obsolete.
    #[inline(always)]
    pub(crate) fn read(&self) -> Option<Version> {
        point();
        // Acquire: partner is the Release of `unlock`; the reads that follow see at least that
        // writer's words.
        let word = self.0.load(Acquire);
        if word & (LOCKED | OBSOLETE) == 0 {
            self.as_if_locked(word);
            return Some(Version(word));
        }
        self.read_slow()
    }

    /// What taking or giving up a read-write lock would cost a reader at least: the word's cache
    /// line for itself, twice a node. Nothing, unless built with `--cfg indexy_read_locks`, which
    /// is there to measure what optimistic reading is worth.
    #[inline(always)]
    fn as_if_locked(&self, word: u64) {
        if cfg!(indexy_read_locks) {
            // Whether it succeeds does not matter: the word stays as it is.
            let _ = self.0.compare_exchange(word, word, Acquire, Relaxed);
        }
    }

    #[cold]
    fn read_slow(&self) -> Option<Version> {
        let mut turn = 0;
        loop {
            let word = self.0.load(Acquire);
            if word & OBSOLETE != 0 {
                return None;
            }
            if word & LOCKED == 0 {
                return Some(Version(word));
            }
            wait(&mut turn);
        }
    }

    /// Whether nothing changed since `seen`: all that was read in between is one consistent state.
    #[inline(always)]
    pub(crate) fn validate(&self, seen: Version) -> bool {
        point();
        // Partner is the `fence(Release)` of `try_upgrade` and `lock`: if one of the reads before
        // this fence saw a word written under a later lock, the load below sees that lock.
        fence(Acquire);
        self.as_if_locked(seen.0);
        self.0.load(Relaxed) == seen.0
    }

    /// Locks if nothing changed since `seen`. Never waits.
    #[inline(always)]
    pub(crate) fn try_upgrade(&self, seen: Version) -> bool {
        point();
        // Acquire: partner is the Release of `unlock`.
        let locked = self
            .0
            .compare_exchange(seen.0, seen.0 | LOCKED, Acquire, Relaxed)
            .is_ok();
        if locked {
            // Partner is the `fence(Acquire)` of `validate`.
            fence(Release);
        }
        locked
    }

    /// Waits for the lock; false, without it, if the node is or becomes obsolete.
    #[inline]
    pub(crate) fn lock(&self) -> bool {
        loop {
            match self.read() {
                None => return false,
                Some(seen) if self.try_upgrade(seen) => return true,
                Some(_) => spin_loop(),
            }
        }
    }

    /// Ends a modification. The caller holds the lock.
    #[inline(always)]
    pub(crate) fn unlock(&self) {
        self.release(|word| (word & !LOCKED).wrapping_add(STEP));
    }

    /// Gives the lock back when *nothing* was written under it: readers keep their versions.
    #[inline(always)]
    #[allow(dead_code, reason = "for the model check")]
    pub(crate) fn unlock_unchanged(&self) {
        self.release(|word| word & !LOCKED);
    }

    /// Ends the last modification: the node is out of the tree, every reader inside restarts. The
    /// caller holds the lock.
    #[inline(always)]
    pub(crate) fn unlock_obsolete(&self) {
        self.release(|word| (word & !LOCKED).wrapping_add(STEP) | OBSOLETE);
    }

    #[inline(always)]
    fn release(&self, next: impl FnOnce(u64) -> u64) {
        point();
        // Relaxed: only the holder changes a locked word.
        let word = self.0.load(Relaxed);
        debug_assert!(
            word & LOCKED != 0,
            "unlock of a latch that is not locked: {word:#x}"
        );
        // Release: partner is the Acquire of `read`, `try_upgrade` and `lock`.
        self.0.store(next(word), Release);
    }

    /// Whether it is held at this moment. For assertions.
    #[inline]
    #[allow(dead_code, reason = "for the model check")]
    pub(crate) fn is_locked(&self) -> bool {
        self.0.load(Relaxed) & LOCKED != 0
    }

    /// Whether the node has left the tree.
    #[inline]
    #[allow(dead_code, reason = "for the model check")]
    pub(crate) fn is_obsolete(&self) -> bool {
        self.0.load(Relaxed) & OBSOLETE != 0
    }
}

/// One turn of waiting for a holder.
fn wait(turn: &mut u32) {
    if *turn < SPINS {
        *turn += 1;
        spin_loop();
    } else {
        yield_now();
    }
}

#[cfg(all(test, not(loom)))]
#[path = "latch_tests.rs"]
mod tests;
