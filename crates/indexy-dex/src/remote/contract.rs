//! What a compute server can do to the memory of others.

use super::counts::Counts;
use crate::{address::Address, error::Result};
use std::sync::Arc;

/// Most words that a verb carries: a frame of a connection is bounded by it.
pub const MAX_WORDS: usize = 4096;

/// One read of a batch: where, and where to.
pub type Part<'a> = (Address, &'a mut [u64]);

/// The verbs. One value is one compute server; its threads share it.
///
/// Words are 8 bytes, in the machine's order (all machines of a pool have the same). A word is
/// read and written whole. Several words of one verb are not: the tree's protocols see to that.
///
/// A verb that fails is not counted; whether a write, a swap or a call happened is then unknown.
pub trait RemoteMemory: Send + Sync {
    /// Memory servers of the pool, numbered from 0.
    fn servers(&self) -> usize;

    /// Copies words from `at` on.
    fn read(&self, at: Address, into: &mut [u64]) -> Result<()>;

    /// Reads that are under way together: one round trip for each server. Counted one by one.
    fn read_many(&self, parts: &mut [Part<'_>]) -> Result<()>;

    /// Writes words from `at` on, and returns when they stand in the memory at the other side.
    fn write(&self, at: Address, words: &[u64]) -> Result<()>;

    /// Stores `new` at `at` if the word is `expected`; returns what it was.
    fn cas(&self, at: Address, expected: u64, new: u64) -> Result<u64>;

    /// Runs the pool's handler at `server`.
    fn call(&self, server: u16, request: &[u64]) -> Result<Vec<u64>>;

    /// Verbs and bytes of this compute server so far.
    fn counts(&self) -> Counts;

    /// The number of this compute server's session at the memory servers; 0: it has none, and
    /// nothing fences it.
    fn session(&self) -> u64 {
        0
    }

    /// What was read from a cache *before* this call was current then: the lease runs.
    /// [`Error::Fenced`](crate::Error::Fenced): this compute server was replaced.
    ///
    /// Cost: a look at the clock; verbs that are not counted if the lease lapsed.
    fn check_session(&self) -> Result<()> {
        Ok(())
    }

    /// Gives the session up: nobody knows what became of a change of a shared node. Every verb
    /// fails from here on, and the lease lapses.
    fn abandon(&self) {}

    /// The last session of compute server `owner`, or 0.
    fn session_of(&self, owner: u16) -> Result<u64> {
        let _ = owner;
        Ok(0)
    }

    /// Revokes a session at all memory servers: no verb of it happens after this call.
    /// [`Error::Alive`](crate::Error::Alive): its lease runs.
    fn fence(&self, session: u64) -> Result<()> {
        let what = format!("this transport cannot fence session {session}");
        Err(crate::Error::Options(what))
    }

    /// The time of this transport in ns: the machine's clock, or the calling thread's virtual one.
    fn now_ns(&self) -> u64;
}

/// A compute server that several owners of it share.
impl<M: RemoteMemory> RemoteMemory for Arc<M> {
    fn servers(&self) -> usize {
        (**self).servers()
    }

    fn read(&self, at: Address, into: &mut [u64]) -> Result<()> {
        (**self).read(at, into)
    }

    fn read_many(&self, parts: &mut [Part<'_>]) -> Result<()> {
        (**self).read_many(parts)
    }

    fn write(&self, at: Address, words: &[u64]) -> Result<()> {
        (**self).write(at, words)
    }

    fn cas(&self, at: Address, expected: u64, new: u64) -> Result<u64> {
        (**self).cas(at, expected, new)
    }

    fn call(&self, server: u16, request: &[u64]) -> Result<Vec<u64>> {
        (**self).call(server, request)
    }

    fn counts(&self) -> Counts {
        (**self).counts()
    }

    fn session(&self) -> u64 {
        (**self).session()
    }

    fn check_session(&self) -> Result<()> {
        (**self).check_session()
    }

    fn abandon(&self) {
        (**self).abandon();
    }

    fn session_of(&self, owner: u16) -> Result<u64> {
        (**self).session_of(owner)
    }

    fn fence(&self, session: u64) -> Result<()> {
        (**self).fence(session)
    }

    fn now_ns(&self) -> u64 {
        (**self).now_ns()
    }
}

/// What a memory server does when it is called: reads and writes its own region, and answers.
/// Requests come from outside and are not trusted.
pub type Handler = fn(&super::region::Region, &[u64]) -> Vec<u64>;
