//! What several compute servers change: words behind a lock word, and a holder that may be gone.
//!
//! L1: a lock ends in bounded time. Its holder ends it, or its lease lapses; then whoever waits
//! fences the holder (F1, F2 of `keys.rs`) and ends the lock itself. The fenced holder's own write
//! of the word does nothing.

use super::contract::RemoteMemory;
use crate::{
    address::Address,
    error::{Error, Result},
    lock_word,
    wait::{LOCK_LIMIT, Wait},
};

/// Waits a little for the holder of the locked `word` at `at`. A holder that is gone is fenced,
/// and `end` ends its lock. [`Error::Locked`]: it took too long.
pub(crate) fn wait_for_holder<M: RemoteMemory>(
    memory: &M,
    at: Address,
    word: u64,
    wait: &mut Wait,
    end: impl FnOnce(&M, u64) -> Result<()>,
) -> Result<()> {
    let goes_on = wait.again();
    let waits = || match goes_on {
        true => Ok(()),
        false => Err(Error::Locked { address: at }),
    };
    let holder = lock_word::holder(word);
    let may_be_gone = lock_word::is_locked(word) && holder != 0 && holder != memory.session();
    if !may_be_gone || (goes_on && !wait.is_due()) {
        return waits();
    }
    match memory.fence(holder) {
        Ok(()) => end(memory, word),
        Err(Error::Alive { .. }) => waits(),
        Err(error) => Err(error),
    }
}

/// Reads words, the first of which is a lock word, as one state: three reads, more while somebody
/// changes them. `end` ends the lock of a holder that is gone.
pub(crate) fn read_versioned<M: RemoteMemory>(
    memory: &M,
    at: Address,
    words: &mut [u64],
    end: impl Fn(&M, u64) -> Result<()>,
) -> Result<()> {
    let mut wait = Wait::new(LOCK_LIMIT);
    loop {
        let (mut before, mut after) = ([0], [0]);
        memory.read(at, &mut before)?;
        memory.read(at, words)?;
        memory.read(at, &mut after)?;
        if !lock_word::is_locked(before[0]) && before == after {
            return Ok(());
        }
        wait_for_holder(memory, at, before[0], &mut wait, &end)?;
    }
}

/// Locks what is behind a lock word; returns its version. `guess`: a version that saves a swap.
pub(crate) fn take_lock<M: RemoteMemory>(
    memory: &M,
    at: Address,
    guess: u64,
    end: impl Fn(&M, u64) -> Result<()>,
) -> Result<u64> {
    let mut version = lock_word::version(guess);
    let mut wait = Wait::new(LOCK_LIMIT);
    loop {
        let was = swap_lock(memory, at, version, version)?;
        if was == version {
            return Ok(version);
        }
        version = lock_word::version(was);
        wait_for_holder(memory, at, was, &mut wait, &end)?;
    }
}

/// Locks at `version` if the word is `expected`; returns what it was.
pub(crate) fn swap_lock<M: RemoteMemory>(
    memory: &M,
    at: Address,
    expected: u64,
    version: u64,
) -> Result<u64> {
    let locked = lock_word::locked(version, memory.session());
    let was = memory.cas(at, expected, locked);
    if matches!(was, Err(Error::Lost { .. })) {
        // Locked by us or not: our lease must lapse.
        memory.abandon();
    }
    was
}
