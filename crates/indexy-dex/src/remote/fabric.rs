//! A second way to a memory server's region: a network that this crate does not know.
//!
//! A crate outside brings it, say one for network cards. Compute servers still connect by TCP,
//! where they prove that they know the secret and get their session. By that connection they ask
//! the fabric how to reach the region. The fabric is told when a session is over.
//!
//! F1 of `keys.rs` for a fabric: [`Fabric::revoke`] is called under the write half of the lock
//! that admits verbs, and returns when nothing of the session happens any more.

use std::sync::Arc;

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visitor {
    /// A connection of the memory server: no other has had this number.
    pub connection: u64,
    /// Its session; 0: none.
    pub session: u64,
}

/// What a memory server asks of another way to its region. Called by any number of threads.
///
/// None of the calls may ask the memory server for anything: it holds its lock of sessions.
pub trait Fabric: Send + Sync {
    /// Answers [`Tcp::reach`](super::tcp::Tcp::reach). `None`: the request is not understood.
    fn reach(&self, visitor: Visitor, request: &[u64]) -> Option<Vec<u64>>;

    /// A session is over: no verb of it happens after this call.
    fn revoke(&self, session: u64);

    /// A connection is gone. Ways that it asked for as part of no session end.
    fn gone(&self, connection: u64);
}

pub(super) type Way = Option<Arc<dyn Fabric>>;
