//! A compute server's end of a pool behind sockets. Transports differ in how they read.

use super::{
    contract::{MAX_WORDS, Part, RemoteMemory},
    counts::{Counters, Counts},
    session::Ways,
    socket::{
        client::Connections,
        request::{CALL, SWAP, WRITE},
        stream::Stream,
    },
};
use crate::{
    address::Address,
    error::{Error, Result},
};
use std::time::Instant;

/// How words come from memory servers. Sealed: its types have no public names.
pub trait Reads: Send + Sync {
    /// What connections are made of.
    type Socket: Stream + Sync;

    /// One read.
    fn read(&self, ways: &Ways<Self::Socket>, at: Address, into: &mut [u64]) -> Result<()>;

    /// Several, under way together.
    fn read_many(&self, ways: &Ways<Self::Socket>, parts: &mut [Part<'_>]) -> Result<()>;
}

/// One compute server's end: [`Shm`](super::shm::Shm) or [`Tcp`](super::tcp::Tcp).
pub struct Endpoint<R: Reads> {
    reads: R,
    ways: Ways<R::Socket>,
    counters: Counters,
    started: Instant,
}

pub(super) fn too_long(server: u16) -> Error {
    let what = "a verb carries at most 4096 words";
    Error::Refused { server, what }
}

impl<R: Reads> Endpoint<R> {
    /// Without an owner there is no session.
    pub(super) fn new(
        reads: R,
        servers: Vec<Connections<R::Socket>>,
        owner: Option<u16>,
    ) -> Result<Self> {
        let ways = match owner {
            Some(owner) => Ways::attach(servers, owner)?,
            None => Ways::without_session(servers),
        };
        Ok(Self {
            reads,
            ways,
            counters: Counters::default(),
            started: Instant::now(),
        })
    }

    /// Sends a request behind its number.
    pub(super) fn ask<T>(
        &self,
        server: u16,
        head: &[u64],
        words: &[u64],
        take: impl FnOnce(&[u64]) -> Option<T>,
    ) -> Result<T> {
        if words.len() > MAX_WORDS {
            return Err(too_long(server));
        }
        let mut request = vec![0];
        request.extend_from_slice(head);
        request.extend_from_slice(words);
        self.ways.to(server)?.exchange(&mut request, take)
    }
}

impl<R: Reads> RemoteMemory for Endpoint<R> {
    fn servers(&self) -> usize {
        self.ways.servers().len()
    }

    fn read(&self, at: Address, into: &mut [u64]) -> Result<()> {
        self.reads.read(&self.ways, at, into)?;
        self.counters.read(into.len());
        Ok(())
    }

    fn read_many(&self, parts: &mut [Part<'_>]) -> Result<()> {
        self.reads.read_many(&self.ways, parts)?;
        for (_, into) in parts {
            self.counters.read(into.len());
        }
        Ok(())
    }

    fn write(&self, at: Address, words: &[u64]) -> Result<()> {
        let nothing = |answer: &[u64]| answer.is_empty().then_some(());
        self.ask(at.server(), &[WRITE, at.offset()], words, nothing)?;
        self.counters.wrote(words.len());
        Ok(())
    }

    fn cas(&self, at: Address, expected: u64, new: u64) -> Result<u64> {
        let request = [SWAP, at.offset(), expected, new];
        let was = self.ask(at.server(), &request, &[], |answer| match answer {
            &[was] => Some(was),
            _ => None,
        })?;
        self.counters.swapped();
        Ok(was)
    }

    fn call(&self, server: u16, request: &[u64]) -> Result<Vec<u64>> {
        let answer = self.ask(server, &[CALL], request, |answer| Some(answer.to_vec()))?;
        self.counters.called(request.len() + answer.len());
        Ok(answer)
    }

    fn counts(&self) -> Counts {
        self.counters.get()
    }

    fn session(&self) -> u64 {
        self.ways.session()
    }

    #[inline]
    fn check_session(&self) -> Result<()> {
        self.ways.check()
    }

    fn abandon(&self) {
        self.ways.abandon();
    }

    fn session_of(&self, owner: u16) -> Result<u64> {
        self.ways.session_of(owner)
    }

    fn fence(&self, session: u64) -> Result<()> {
        self.ways.fence(session)
    }

    fn now_ns(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }
}
