//! The pool on other machines: every verb is a frame on a TCP connection.
//!
//! The memory server's threads copy the words, so a verb takes two trips through both kernels. The
//! transport is for correctness and for machines without RDMA, not for speed.

use super::{
    contract::{Handler, MAX_WORDS, Part, RemoteMemory},
    counts::{Counters, Counts},
    region::Region,
    socket::{
        auth::Secret,
        client::Connections,
        request::{CALL, READ, SWAP, WRITE},
        server::Server,
    },
};
use crate::{
    address::Address,
    error::{Error, Result},
};
use rustix::net::Shutdown;
use std::{
    io,
    net::{SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    time::{Duration, Instant},
};

/// A memory server on TCP. Dropping it ends all connections and joins its threads.
pub struct TcpServer {
    address: SocketAddr,
    _server: Server<TcpStream>,
}

impl TcpServer {
    /// Serves `region` at `address` (port 0: any). At most `call_threads` calls run at a time.
    pub fn start(
        address: SocketAddr,
        region: Arc<Region>,
        handler: Handler,
        secret: Secret,
        call_threads: usize,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let ear = listener.try_clone()?;
        let accept = move || {
            let (stream, _) = listener.accept()?;
            stream.set_nodelay(true)?;
            Ok(stream)
        };
        let wake = move || {
            // An error says that the socket is closed already.
            let _ = rustix::net::shutdown(&ear, Shutdown::Both);
        };
        let greet = |_: &mut TcpStream, _: &Region| Ok(());
        let server = Server::start(region, handler, secret, call_threads, greet, accept, wake)?;
        Ok(Self {
            address,
            _server: server,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// One compute server's end of a pool on TCP.
pub struct Tcp {
    servers: Vec<Connections<TcpStream>>,
    counters: Counters,
    started: Instant,
}

fn too_long(server: u16) -> Error {
    let what = "a verb carries at most 4096 words";
    Error::Refused { server, what }
}

impl Tcp {
    /// Connects to the memory servers, numbered in this order. A verb fails as [`Error::Lost`]
    /// when it takes longer than `patience`.
    pub fn connect(addresses: &[SocketAddr], secret: &Secret, patience: Duration) -> Result<Self> {
        let mut servers = Vec::new();
        for (number, &address) in addresses.iter().enumerate() {
            let dial = move || {
                let stream = TcpStream::connect_timeout(&address, patience)?;
                stream.set_nodelay(true)?;
                Ok(stream)
            };
            let number = number as u16;
            let way = Connections::new(number, secret.clone(), patience, Box::new(dial));
            way.open(|_| Ok(()))?;
            servers.push(way);
        }
        Ok(Self {
            servers,
            counters: Counters::default(),
            started: Instant::now(),
        })
    }

    fn ask<T>(
        &self,
        server: u16,
        mut request: Vec<u64>,
        take: impl FnOnce(&[u64]) -> Option<T>,
    ) -> Result<T> {
        let what = "there is no such server";
        let way = self.servers.get(usize::from(server));
        let way = way.ok_or(Error::Refused { server, what })?;
        way.exchange(&mut request, |_| Ok(()), take)
    }

    /// Reads parts of one server.
    fn read_parts(&self, server: u16, parts: &mut [&mut Part<'_>]) -> Result<()> {
        let words: usize = parts.iter().map(|part| part.1.len()).sum();
        if words > MAX_WORDS || 2 * parts.len() > MAX_WORDS {
            return Err(too_long(server));
        }
        let mut request = vec![0, READ];
        for (at, into) in parts.iter() {
            request.extend([at.offset(), into.len() as u64]);
        }
        self.ask(server, request, |answer| {
            if answer.len() != words {
                return None;
            }
            let mut rest = answer;
            for (_, into) in parts.iter_mut() {
                let (own, others) = rest.split_at_checked(into.len())?;
                into.copy_from_slice(own);
                rest = others;
            }
            Some(())
        })?;
        for (_, into) in parts {
            self.counters.read(into.len());
        }
        Ok(())
    }
}

impl RemoteMemory for Tcp {
    fn servers(&self) -> usize {
        self.servers.len()
    }

    fn read(&self, at: Address, into: &mut [u64]) -> Result<()> {
        self.read_parts(at.server(), &mut [&mut (at, into)])
    }

    fn read_many(&self, parts: &mut [Part<'_>]) -> Result<()> {
        let mut sorted: Vec<&mut Part<'_>> = parts.iter_mut().collect();
        sorted.sort_by_key(|(at, _)| at.server());
        for group in sorted.chunk_by_mut(|a, b| a.0.server() == b.0.server()) {
            if let Some(server) = group.first().map(|part| part.0.server()) {
                self.read_parts(server, group)?;
            }
        }
        Ok(())
    }

    fn write(&self, at: Address, words: &[u64]) -> Result<()> {
        if words.len() > MAX_WORDS {
            return Err(too_long(at.server()));
        }
        let mut request = vec![0, WRITE, at.offset()];
        request.extend_from_slice(words);
        let nothing = |answer: &[u64]| answer.is_empty().then_some(());
        self.ask(at.server(), request, nothing)?;
        self.counters.wrote(words.len());
        Ok(())
    }

    fn cas(&self, at: Address, expected: u64, new: u64) -> Result<u64> {
        let request = vec![0, SWAP, at.offset(), expected, new];
        let was = self.ask(at.server(), request, |answer| match answer {
            [was] => Some(*was),
            _ => None,
        })?;
        self.counters.swapped();
        Ok(was)
    }

    fn call(&self, server: u16, request: &[u64]) -> Result<Vec<u64>> {
        if request.len() > MAX_WORDS {
            return Err(too_long(server));
        }
        let mut framed = vec![0, CALL];
        framed.extend_from_slice(request);
        let answer = self.ask(server, framed, |answer| Some(answer.to_vec()))?;
        self.counters.called(request.len() + answer.len());
        Ok(answer)
    }

    fn counts(&self) -> Counts {
        self.counters.get()
    }

    fn now_ns(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }
}
