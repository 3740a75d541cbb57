//! Waiting for a lock of another compute server, which may be gone.
//!
//! L1: a lock ends in bounded time. Its holder ends it, or its lease lapses; then whoever waits
//! fences the holder (F1, F2 of `keys.rs`) and ends the lock itself. The fenced holder's own write
//! of the word does nothing.

use super::contract::RemoteMemory;
use crate::{
    address::Address,
    error::{Error, Result},
    lock_word,
    wait::Wait,
};

/// Attempts between two looks at the holder's lease.
const ATTEMPTS_DIVISOR: u32 = 256;

/// Waits a little for the holder of the locked `word` at `at`. A holder that is gone is fenced,
/// and `end` ends its lock. [`Error::Locked`]: it took too long.
pub(crate) fn wait_for_holder<M: RemoteMemory>(
    memory: &M,
    at: Address,
    word: u64,
    wait: &mut Wait,
    end: impl FnOnce(&M, u64) -> Result<()>,
) -> Result<()> {
    if !wait.again() {
        return Err(Error::Locked { address: at });
    }
    let holder = lock_word::holder(word);
    let may_be_gone = lock_word::is_locked(word) && holder != 0 && holder != memory.session();
    if !may_be_gone || !wait.attempts().is_multiple_of(ATTEMPTS_DIVISOR) {
        return Ok(());
    }
    match memory.fence(holder) {
        Ok(()) => end(memory, word),
        Err(Error::Alive { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
