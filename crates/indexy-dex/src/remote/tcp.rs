//! The pool on other machines: every verb is a frame on a TCP connection.
//!
//! The memory server's threads copy the words, so a verb takes two trips through both kernels. The
//! transport is for correctness and for machines without RDMA, not for speed.

use super::{
    contract::{Handler, MAX_WORDS, Part},
    endpoint::{Endpoint, Reads, too_long},
    fabric::{Fabric, Way},
    region::Region,
    session::Ways,
    socket::{
        auth::Secret,
        client::Connections,
        request::{REACH, READ},
        server::{Door, Server, Serving},
    },
    status::{PoolStatus, ask as ask_status},
};
#[cfg(doc)]
use crate::Error;
use crate::{address::Address, error::Result};
use rustix::net::Shutdown;
use std::{
    io,
    net::{SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    time::Duration,
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
        Self::start_with(address, region, handler, secret, serving.into(), None)
    }

    /// The same with another way to the region, which [`Tcp::reach`] asks.
    pub fn start_beside(
        address: SocketAddr,
        region: Arc<Region>,
        handler: Handler,
        secret: Secret,
        serving: impl Into<Serving>,
        fabric: Arc<dyn Fabric>,
    ) -> io::Result<Self> {
        let serving = serving.into();
        Self::start_with(address, region, handler, secret, serving, Some(fabric))
    }

    fn start_with(
        address: SocketAddr,
        region: Arc<Region>,
        handler: Handler,
        secret: Secret,
        serving: Serving,
        fabric: Way,
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
        let door = Door {
            greet: |_: &mut TcpStream, _: &Region| Ok(()),
            accept,
            wake,
        };
        let server = Server::start(region, handler, secret, serving, fabric, door)?;
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
pub type Tcp = Endpoint<OverTcp>;

/// Reads are messages, as all verbs.
pub struct OverTcp(());

/// Connects to the memory servers, numbered in this order.
fn dial_all(
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
        Self::new(OverTcp(()), servers, None)
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
        Self::new(OverTcp(()), servers, Some(owner))
    }

    /// Asks the [`Fabric`] beside a memory server; no verb, and not counted.
    ///
    /// Cost: a trip. [`Error::Refused`]: there is no fabric, or it does not understand.
    /// [`Error::Fenced`]: the session is over.
    pub fn reach(&self, server: u16, request: &[u64]) -> Result<Vec<u64>> {
        self.ask(server, &[REACH], request, |answer| Some(answer.to_vec()))
    }
}

impl OverTcp {
    /// Reads parts of one server.
    fn read_parts(ways: &Ways<TcpStream>, server: u16, parts: &mut [&mut Part<'_>]) -> Result<()> {
        let words: usize = parts.iter().map(|part| part.1.len()).sum();
        if words > MAX_WORDS || 2 * parts.len() > MAX_WORDS {
            return Err(too_long(server));
        }
        let mut request = vec![0, READ];
        for (at, into) in parts.iter() {
            request.extend([at.offset(), into.len() as u64]);
        }
        ways.to(server)?.exchange(&mut request, |answer| {
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
        })
    }
}

/// Asks a memory server how it is.
pub fn status(address: SocketAddr, secret: &Secret, patience: Duration) -> Result<PoolStatus> {
    let servers = dial_all(&[address], secret, patience)?;
    ask_status(&servers[0])
}

impl Reads for OverTcp {
    type Socket = TcpStream;

    fn read(&self, ways: &Ways<TcpStream>, at: Address, into: &mut [u64]) -> Result<()> {
        Self::read_parts(ways, at.server(), &mut [&mut (at, into)])
    }

    fn read_many(&self, ways: &Ways<TcpStream>, parts: &mut [Part<'_>]) -> Result<()> {
        let mut sorted: Vec<&mut Part<'_>> = parts.iter_mut().collect();
        sorted.sort_by_key(|(at, _)| at.server());
        for group in sorted.chunk_by_mut(|a, b| a.0.server() == b.0.server()) {
            if let Some(server) = group.first().map(|part| part.0.server()) {
                Self::read_parts(ways, server, group)?;
            }
        }
        Ok(())
    }
}
