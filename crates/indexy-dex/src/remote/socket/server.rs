//! The memory server's end: one thread accepts, one thread serves each connection, and a fixed
//! number of them may run calls at a time.
//!
//! Dropping [`Server`] ends the connections, wakes the acceptor and joins all threads.

use super::{
    auth::{self, Secret},
    frame::Frames,
    request::{self, Desk},
    stream::Stream,
};
use crate::remote::{
    contract::Handler,
    fabric::Way,
    keys::{Keys, Member},
    region::Region,
};
use parking_lot::{Condvar, Mutex};
use std::{
    collections::HashMap,
    io,
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicUsize,
            Ordering::{Relaxed, SeqCst},
        },
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// Connections at a time; more are closed at once.
pub(crate) const MAX_CONNECTIONS: usize = 1024;
/// Longest wait for a client that should prove itself, or take an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Threads that may run calls.
struct Permits {
    free: Mutex<usize>,
    freed: Condvar,
}

struct Permit<'a>(&'a Permits);

impl Permits {
    fn take(&self) -> Permit<'_> {
        let mut free = self.free.lock();
        // Ends when a call ends: a handler never waits.
        while *free == 0 {
            self.freed.wait(&mut free);
        }
        *free -= 1;
        Permit(self)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.0.free.lock() += 1;
        self.0.freed.notify_one();
    }
}

/// What a new connection gets after it proved itself.
pub(crate) type Greeting<S> = fn(&mut S, &Region) -> io::Result<()>;

/// What all connections of a server share.
struct Shared<S> {
    region: Arc<Region>,
    handler: Handler,
    secret: Secret,
    keys: Keys,
    greet: Greeting<S>,
    permits: Permits,
    stopped: AtomicBool,
    /// A handle of each connection that is open.
    open: Mutex<HashMap<u64, S>>,
    connections: AtomicUsize,
    fabric: Way,
}

/// What a memory server can choose.
#[derive(Debug, Clone, Copy)]
pub struct Serving {
    call_threads: usize,
    lease: Duration,
}

impl Serving {
    /// At most so many calls run at a time; leases of 2 seconds.
    pub fn new(call_threads: usize) -> Self {
        Self {
            call_threads,
            lease: Duration::from_secs(2),
        }
    }

    /// How long a compute server may be silent until others may replace it. All memory servers of
    /// a pool should have the same; at most half of the 5 seconds that others wait for its locks.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }
}

impl From<usize> for Serving {
    /// So many calls at a time.
    fn from(call_threads: usize) -> Self {
        Self::new(call_threads)
    }
}

/// A memory server that runs.
pub(crate) struct Server<S: Stream> {
    shared: Arc<Shared<S>>,
    acceptor: Option<JoinHandle<()>>,
    wake: Box<dyn Fn() + Send + Sync>,
}

/// How connections come.
pub(crate) struct Door<S, A, W> {
    /// What a new one is sent.
    pub(crate) greet: Greeting<S>,
    /// Waits for the next one.
    pub(crate) accept: A,
    /// Makes `accept` return, and fail from then on.
    pub(crate) wake: W,
}

impl<S: Stream> Server<S> {
    pub(crate) fn start<A, W>(
        region: Arc<Region>,
        handler: Handler,
        secret: Secret,
        serving: Serving,
        fabric: Way,
        door: Door<S, A, W>,
    ) -> io::Result<Self>
    where
        A: Fn() -> io::Result<S> + Send + 'static,
        W: Fn() + Send + Sync + 'static,
    {
        let Door {
            greet,
            accept,
            wake,
        } = door;
        let shared = Arc::new(Shared {
            region,
            handler,
            secret,
            keys: Keys::new(serving.lease, fabric.clone()),
            greet,
            permits: Permits {
                free: Mutex::new(serving.call_threads.max(1)),
                freed: Condvar::new(),
            },
            stopped: AtomicBool::new(false),
            open: Mutex::default(),
            connections: AtomicUsize::new(0),
            fabric,
        });
        let for_acceptor = shared.clone();
        let acceptor = thread::Builder::new()
            .name("dex-accept".into())
            .spawn(move || accept_all(&for_acceptor, accept))?;
        Ok(Self {
            shared,
            acceptor: Some(acceptor),
            wake: Box::new(wake),
        })
    }
}

impl<S: Stream> Drop for Server<S> {
    fn drop(&mut self) {
        self.shared.stopped.store(true, SeqCst);
        (self.wake)();
        if let Some(acceptor) = self.acceptor.take() {
            // It ends the connections and joins their threads before it returns.
            let _ = acceptor.join();
        }
    }
}

fn accept_all<S: Stream>(shared: &Arc<Shared<S>>, accept: impl Fn() -> io::Result<S>) {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    let mut number = 0;
    while !shared.stopped.load(SeqCst) {
        let Ok(stream) = accept() else {
            // Too many descriptors, or a client that left: neither lasts.
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        threads.retain(|thread| !thread.is_finished());
        if shared.stopped.load(SeqCst) || threads.len() >= MAX_CONNECTIONS {
            stream.end();
            continue;
        }
        let Ok(another) = stream.another() else {
            continue;
        };
        number += 1;
        let this = number;
        shared.open.lock().insert(this, another);
        let of_connection = shared.clone();
        let spawned = thread::Builder::new()
            .name("dex-serve".into())
            .spawn(move || {
                // The error is the client's: it sees the connection end.
                of_connection.connections.fetch_add(1, Relaxed);
                let _ = serve(&of_connection, this, stream);
                of_connection.connections.fetch_sub(1, Relaxed);
                if let Some(fabric) = &of_connection.fabric {
                    fabric.gone(this);
                }
                if let Some(stream) = of_connection.open.lock().remove(&this) {
                    stream.end();
                }
            });
        match spawned {
            Ok(thread) => threads.push(thread),
            Err(_) => drop(shared.open.lock().remove(&this)),
        }
    }
    for stream in shared.open.lock().values() {
        stream.end();
    }
    for thread in threads {
        let _ = thread.join();
    }
}

fn serve<S: Stream>(shared: &Shared<S>, connection: u64, mut stream: S) -> io::Result<()> {
    stream.set_read_limit(Some(PATIENCE))?;
    stream.set_write_limit(PATIENCE)?;
    auth::as_server(&mut stream, &shared.secret)?;
    (shared.greet)(&mut stream, &shared.region)?;
    // A client may be idle for as long as it likes.
    stream.set_read_limit(None)?;
    let mut member = None;
    let result = answer_all(shared, connection, &mut stream, &mut member);
    if let Some(member) = member {
        shared.keys.forget(member);
    }
    result
}

fn answer_all<S: Stream>(
    shared: &Shared<S>,
    connection: u64,
    stream: &mut S,
    member: &mut Option<Member>,
) -> io::Result<()> {
    let mut frames = Frames::default();
    let (mut asked, mut answer) = (Vec::new(), Vec::new());
    for number in 1.. {
        frames.receive(stream, &mut asked)?;
        let Some((&first, body)) = asked.split_first() else {
            break;
        };
        if first != number {
            return Err(io::Error::other("a request came twice or is missing"));
        }
        answer.clear();
        answer.push(number);
        let desk = Desk {
            region: &shared.region,
            handler: shared.handler,
            keys: &shared.keys,
            connections: shared.connections.load(Relaxed),
            connection,
            fabric: shared.fabric.as_deref(),
        };
        let permits = || shared.permits.take();
        request::perform(&desk, member, permits, body, &mut answer);
        frames.send(stream, &answer)?;
    }
    Ok(())
}
