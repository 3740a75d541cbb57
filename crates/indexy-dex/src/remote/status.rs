//! What a memory server says of itself.

use super::socket::{client::Connections, request::STATUS, stream::Stream};
use crate::error::Result;
use std::time::Duration;

/// How a memory server is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStatus {
    /// Of the region.
    pub bytes: u64,
    /// Of it, given to compute servers for nodes; they may have free ones among them.
    pub used_bytes: u64,
    /// Open connections, this one too.
    pub connections: u64,
    /// How long a compute server may be silent.
    pub lease: Duration,
    /// Those that are not fenced.
    pub sessions: Vec<SessionStatus>,
}

/// A compute server's session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionStatus {
    /// The compute server.
    pub owner: u16,
    /// The number of its session.
    pub session: u64,
    /// Until it may be replaced; zero: it may be.
    pub lease_left: Duration,
}

pub(super) fn ask<S: Stream>(way: &Connections<S>) -> Result<PoolStatus> {
    way.exchange(&mut [0, STATUS], |answer| {
        let (&[bytes, used_bytes, connections, lease_ns], rest) = answer.split_first_chunk()?;
        let (sessions, rest) = rest.as_chunks::<3>();
        let sessions = sessions.iter().map(|&[owner, session, left_ns]| {
            Some(SessionStatus {
                owner: u16::try_from(owner).ok()?,
                session,
                lease_left: Duration::from_nanos(left_ns),
            })
        });
        rest.is_empty().then_some(PoolStatus {
            bytes,
            used_bytes,
            connections,
            lease: Duration::from_nanos(lease_ns),
            sessions: sessions.collect::<Option<_>>()?,
        })
    })
}
