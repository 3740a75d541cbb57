//! The pool on other machines: every verb is a frame on a TCP connection.
//!
//! The memory server's threads copy the words, so a verb takes two trips through both kernels. The
//! transport is for correctness and for machines without RDMA, not for speed.

use super::{
    ask,
    contract::{Handler, MAX_WORDS, Part, RemoteMemory},
    counts::{Counters, Counts},
    region::Region,
    session::Ways,
    socket::{
        auth::Secret,
        client::Connections,
        request::READ,
        server::{Server, Serving},
    },
    status::{PoolStatus, ask as ask_status},
};
use crate::{address::Address, error::Result};
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
    /// Serves `region` at `address` (port 0: any).
    pub fn start(
        address: SocketAddr,
        region: Arc<Region>,
        handler: Handler,
        secret: Secret,
        serving: impl Into<Serving>,
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
        let server = Server::start(region, handler, secret, serving.into(), greet, accept, wake)?;
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
    ways: Ways<TcpStream>,
    counters: Counters,
    started: Instant,
}

/// Connects to the memory servers, numbered in this order.
pub(super) fn dial_all(
    addresses: &[SocketAddr],
    secret: &Secret,
    patience: Duration,
) -> Result<Vec<Connections<TcpStream>>> {
    let mut servers = Vec::new();
    for (number, &address) in addresses.iter().enumerate() {
        let dial = move || {
            let stream = TcpStream::connect_timeout(&address, patience)?;
            stream.set_nodelay(true)?;
            Ok(stream)
        };
        let (number, secret) = (number as u16, secret.clone());
        let way = Connections::new(number, secret, patience, Box::new(dial), |_| Ok(()));
        way.open(|_| Ok(()))?;
        servers.push(way);
    }
    Ok(servers)
}

impl Tcp {
    /// Connects to the memory servers, numbered in this order. A verb fails as [`Error::Lost`]
    /// when it takes longer than `patience`. There is no session: nothing fences this end.
    pub fn connect(addresses: &[SocketAddr], secret: &Secret, patience: Duration) -> Result<Self> {
        let servers = dial_all(addresses, secret, patience)?;
        Ok(Self::over(Ways::without_session(servers)))
    }

    /// Connects as compute server `owner`, with a session whose lease a thread renews. Dropping
    /// the value ends both.
    ///
    /// [`Error::Alive`]: the owner has a session whose lease runs; ask again when it lapsed.
    pub fn connect_as(
        owner: u16,
        addresses: &[SocketAddr],
        secret: &Secret,
        patience: Duration,
    ) -> Result<Self> {
        let servers = dial_all(addresses, secret, patience)?;
        Ok(Self::over(Ways::attach(servers, owner)?))
    }

    fn over(ways: Ways<TcpStream>) -> Self {
        Self {
            ways,
            counters: Counters::default(),
            started: Instant::now(),
        }
    }

    /// Reads parts of one server.
    fn read_parts(&self, server: u16, parts: &mut [&mut Part<'_>]) -> Result<()> {
        let words: usize = parts.iter().map(|part| part.1.len()).sum();
        if words > MAX_WORDS || 2 * parts.len() > MAX_WORDS {
            return Err(ask::too_long(server));
        }
        let mut request = vec![0, READ];
        for (at, into) in parts.iter() {
            request.extend([at.offset(), into.len() as u64]);
        }
        self.ways.to(server)?.exchange(&mut request, |answer| {
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

/// Asks a memory server how it is.
pub fn status(address: SocketAddr, secret: &Secret, patience: Duration) -> Result<PoolStatus> {
    let servers = dial_all(&[address], secret, patience)?;
    ask_status(&servers[0])
}

impl RemoteMemory for Tcp {
    fn servers(&self) -> usize {
        self.ways.servers().len()
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
        ask::write(&self.ways, at, words)?;
        self.counters.wrote(words.len());
        Ok(())
    }

    fn cas(&self, at: Address, expected: u64, new: u64) -> Result<u64> {
        let was = ask::cas(&self.ways, at, expected, new)?;
        self.counters.swapped();
        Ok(was)
    }

    fn call(&self, server: u16, request: &[u64]) -> Result<Vec<u64>> {
        let answer = ask::call(&self.ways, server, request)?;
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
