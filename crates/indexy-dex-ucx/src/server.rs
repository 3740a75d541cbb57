//! A memory server whose region UCX reaches.
//!
//! It is a memory server on TCP (`TcpServer` of `indexy-dex`), where compute servers prove that
//! they know the secret, get sessions and renew leases, with a fabric beside it: one thread that
//! has UCX. A compute server asks by TCP for a *lane* and sends the address of its own
//! worker; the thread makes a worker for the lane and an endpoint to the other one, and answers
//! with the address of its worker. UCX makes
//! one connection of both endpoints, which the first message (hello) proves. From then on the
//! compute server reads the region itself, and sends messages to the thread: writes, swaps, calls.
//!
//! # What is fenced (F1 of `indexy-dex`)
//! A lane of a session ends when the session does: the thread closes its endpoint and its worker,
//! and with them every message that was not done, before fencing is answered. Writes are no
//! one-sided verbs, though UCX has them: nothing stops a store into shared memory of a process that
//! was replaced, and a flush of UCX may say that a write is done that a lost peer never saw.
//!
//! The region's key is one for all, and no secret: UCX does not check it over TCP. Whoever reaches
//! UCX's port reaches the memory of this process. Networks have to be closed to others.
//!
//! # Threads
//! The thread `dex-ucx` has all of UCX (workers, endpoints) and runs the handler. TCP threads send
//! it commands by a channel and ring a bell; they wait for its answer, or for its end. It waits
//! for nobody; it sleeps when UCX has nothing to do.

use crate::{
    desk::{Command, Desk, Which},
    ucp::{Context, Memory, Use, Worker},
    wire::{END, LANE, Reach, Ticket, take_bytes},
};
use indexy_dex::remote::{Fabric, Handler, Region, Secret, Serving, Visitor, tcp::TcpServer};
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};
use std::{
    io,
    net::SocketAddr,
    os::fd::OwnedFd,
    sync::{
        Arc,
        mpsc::{self, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// The TCP side's end of the thread.
struct Way {
    commands: Mutex<Sender<Command>>,
    bell: Arc<OwnedFd>,
    start: u64,
    bytes: u64,
    key: Vec<u8>,
}

impl Way {
    fn order(&self, command: Command) {
        // An error: the thread has ended, and everything with it.
        let _ = self.commands.lock().send(command);
        // It cannot overflow: the thread reads it.
        let _ = rustix::io::write(&*self.bell, &1_u64.to_ne_bytes());
    }

    /// Ends lanes; returns when nothing of them happens any more.
    fn end(&self, which: Which) {
        let (done, ended) = mpsc::sync_channel(1);
        self.order(Command::End { which, done });
        // Ends with the thread, too.
        let _ = ended.recv();
    }
}

impl Fabric for Way {
    fn reach(&self, visitor: Visitor, request: &[u64]) -> Option<Vec<u64>> {
        match request {
            [LANE, rest @ ..] => {
                let mut rest = rest;
                let address = take_bytes(&mut rest).filter(|_| rest.is_empty())?;
                let ticket: Ticket = rand::random();
                let (done, admitted) = mpsc::sync_channel(1);
                self.order(Command::Admit {
                    ticket,
                    visitor,
                    address,
                    done,
                });
                // Ends with the thread, too.
                let Some(worker) = admitted.recv().ok().flatten() else {
                    return Some(Vec::new());
                };
                let reach = Reach {
                    ticket,
                    start: self.start,
                    bytes: self.bytes,
                    key: self.key.clone(),
                    worker,
                };
                Some(reach.encode())
            }
            [END, tickets @ ..] => {
                let (tickets, rest) = tickets.as_chunks::<2>();
                if !rest.is_empty() {
                    return None;
                }
                self.end(Which::Tickets(tickets.to_vec(), visitor.session));
                Some(Vec::new())
            }
            _ => None,
        }
    }

    fn revoke(&self, session: u64) {
        self.end(Which::Session(session));
    }

    fn gone(&self, connection: u64) {
        self.order(Command::End {
            which: Which::Connection(connection),
            done: mpsc::sync_channel(1).0,
        });
    }
}

/// A memory server that UCX reaches. Dropping it ends all connections and joins its threads.
pub struct UcxServer {
    // Dropped first: its threads ask the other one.
    control: Option<TcpServer>,
    way: Arc<Way>,
    thread: Option<JoinHandle<()>>,
}

impl UcxServer {
    /// Serves a new region of `bytes` at `address` (port 0: any) by TCP, and by UCX where its
    /// transports listen. Calls run one at a time, on UCX's thread.
    ///
    /// `lease`: how long a compute server may be silent until others may replace it. `UCX_TLS`
    /// chooses transports. Errors: no such address, no memory, or UCX has no transport.
    pub fn start(
        address: SocketAddr,
        bytes: u64,
        handler: Handler,
        secret: Secret,
        lease: Duration,
    ) -> io::Result<Self> {
        let context = Context::new(Use::Server)?;
        let length = usize::try_from(bytes).map_err(io::Error::other)?;
        let memory = Memory::new(context.clone(), length)?;
        let (start, key) = (memory.address(), memory.pack_key()?);
        let region = Region::over(Box::new(memory)).map_err(io::Error::other)?;
        let region = Arc::new(region);
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (commands, ordered) = mpsc::channel();
        // A transport that is missing is an error now.
        drop(Worker::new(context.clone(), Use::Server)?);
        let (for_thread, ring) = (region.clone(), bell.clone());
        let thread = thread::Builder::new()
            .name("dex-ucx".into())
            .spawn(move || Desk::new(context, for_thread, handler).run(&ordered, &ring))?;
        let way = Arc::new(Way {
            commands: Mutex::new(commands),
            bell,
            start,
            bytes,
            key,
        });
        let mut this = Self {
            control: None,
            way: way.clone(),
            thread: Some(thread),
        };
        // None of them serves calls: they come by UCX.
        let serving = Serving::new(1).lease(lease);
        let control = TcpServer::start_beside(address, region, handler, secret, serving, way)?;
        this.control = Some(control);
        Ok(this)
    }

    /// Where compute servers connect.
    pub fn address(&self) -> SocketAddr {
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        self.control.as_ref().map_or(nowhere, TcpServer::address)
    }
}

impl Drop for UcxServer {
    fn drop(&mut self) {
        drop(self.control.take());
        self.way.order(Command::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
