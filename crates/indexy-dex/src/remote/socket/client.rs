//! The compute server's end: connections of one memory server, each used by one thread at a time.
//!
//! A connection that fails is closed, and the verb with it; the next verb makes a new one. No verb
//! is sent twice: whether it happened is for the caller to find out. With a session, the next verb
//! first makes the memory server refuse what is left of the failed connection (F4 of `keys.rs`),
//! so what was late does not come after it.

use super::{
    auth::{self, Secret},
    frame::Frames,
    request::{ALIVE, ANY_LIFE, ATTACH, DONE, END, FENCED, OUTSIDE},
    stream::Stream,
};
use crate::{
    error::{Error, Result},
    remote::model::outside,
};
use parking_lot::Mutex;
use std::{
    io,
    sync::{
        OnceLock,
        atomic::{
            AtomicBool,
            Ordering::{Acquire, Release},
        },
    },
    time::Duration,
};

/// Idle connections that are kept.
const MAX_IDLE: usize = 64;

struct Connection<S> {
    stream: S,
    frames: Frames,
    number: u64,
    /// Which connection of the session.
    name: u64,
    answer: Vec<u64>,
}

impl<S: Stream> Connection<S> {
    /// Sends a request behind its number, and returns the answer behind it.
    fn exchange(&mut self, request: &mut [u64]) -> io::Result<&[u64]> {
        self.number += 1;
        if let Some(first) = request.first_mut() {
            *first = self.number;
        }
        self.frames.send(&mut self.stream, request)?;
        self.frames.receive(&mut self.stream, &mut self.answer)?;
        match &*self.answer {
            [number, rest @ ..] if *number == self.number => Ok(rest),
            _ => Err(io::Error::other("an answer came twice or is missing")),
        }
    }
}

/// Opens a socket to the memory server.
type Dial<S> = Box<dyn Fn() -> io::Result<S> + Send + Sync>;
/// Takes what the memory server sends to a new connection.
pub(crate) type Greeted<S> = fn(&mut S) -> io::Result<()>;

/// Whose connections these are: an owner and its session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identity {
    pub(crate) owner: u16,
    /// 0: the memory server draws it.
    pub(crate) session: u64,
}

/// The way to one memory server.
pub(crate) struct Connections<S> {
    server: u16,
    secret: Secret,
    patience: Duration,
    dial: Dial<S>,
    greeted: Greeted<S>,
    identity: OnceLock<Identity>,
    idle: Mutex<Vec<Connection<S>>>,
    /// Names of connections: those so far, and those that failed and may have left a request.
    names: Mutex<(u64, Vec<u64>)>,
    /// There are such that failed.
    has_failed: AtomicBool,
    /// Which life of the memory server the session is of.
    life: OnceLock<u64>,
}

impl<S: Stream> Connections<S> {
    pub(crate) fn new(
        server: u16,
        secret: Secret,
        patience: Duration,
        dial: Dial<S>,
        greeted: Greeted<S>,
    ) -> Self {
        Self {
            server,
            secret,
            patience,
            dial,
            greeted,
            identity: OnceLock::new(),
            idle: Mutex::default(),
            names: Mutex::default(),
            has_failed: AtomicBool::new(false),
            life: OnceLock::new(),
        }
    }

    fn lost(&self, source: io::Error) -> Error {
        let server = self.server;
        Error::Lost { server, source }
    }

    /// Connects without a session; `greeted` takes what the server sends first.
    pub(crate) fn open<T>(&self, greeted: impl FnOnce(&mut S) -> io::Result<T>) -> Result<T> {
        let (connection, greeting) = self.connect(greeted).map_err(|e| self.lost(e))?;
        self.idle.lock().push(connection);
        Ok(greeting)
    }

    /// Makes all connections those of a session; returns its number and its lease in ns.
    pub(crate) fn attach(&self, identity: Identity) -> Result<(u64, u64)> {
        let mut idle = self.idle.lock();
        idle.truncate(1);
        let mut connection = match idle.pop() {
            Some(connection) => connection,
            None => self.connect(self.greeted).map_err(|e| self.lost(e))?.0,
        };
        let (session, lease_ns) = self.introduce(&mut connection, identity)?;
        let owner = identity.owner;
        // Set once: a client attaches once.
        let _ = self.identity.set(Identity { owner, session });
        idle.push(connection);
        Ok((session, lease_ns))
    }

    fn introduce(&self, connection: &mut Connection<S>, identity: Identity) -> Result<(u64, u64)> {
        let owner = u64::from(identity.owner);
        let life = self.life.get().copied().unwrap_or(ANY_LIFE);
        let mut request = [0, ATTACH, owner, identity.session, connection.name, life];
        let answer = connection.exchange(&mut request);
        match self.result(answer.map_err(|e| self.lost(e))?)? {
            &[session, lease_ns, life] => {
                self.life.get_or_init(|| life);
                Ok((session, lease_ns))
            }
            _ => Err(self.odd()),
        }
    }

    fn connect<T>(
        &self,
        greeted: impl FnOnce(&mut S) -> io::Result<T>,
    ) -> io::Result<(Connection<S>, T)> {
        let mut stream = (self.dial)()?;
        stream.set_read_limit(Some(self.patience))?;
        stream.set_write_limit(self.patience)?;
        auth::as_client(&mut stream, &self.secret)?;
        let greeting = greeted(&mut stream)?;
        let mut names = self.names.lock();
        names.0 += 1;
        let connection = Connection {
            stream,
            frames: Frames::default(),
            number: 0,
            name: names.0,
            answer: Vec::new(),
        };
        Ok((connection, greeting))
    }

    /// A connection to use: of the session, and without leftovers of failed ones.
    fn take(&self) -> Result<Connection<S>> {
        // A statement of its own: the lock must not be held while a connection is made.
        let kept = self.idle.lock().pop();
        let mut connection = match kept {
            Some(connection) => connection,
            None => {
                let mut new = self.connect(self.greeted).map_err(|e| self.lost(e))?.0;
                if let Some(identity) = self.identity.get() {
                    self.introduce(&mut new, *identity)?;
                }
                new
            }
        };
        if self.identity.get().is_some() {
            self.end_failed(&mut connection)?;
        }
        Ok(connection)
    }

    /// F4. Others wait here: their verbs must not overtake.
    fn end_failed(&self, connection: &mut Connection<S>) -> Result<()> {
        let mut names = self.names.lock();
        if names.1.is_empty() {
            return Ok(());
        }
        let mut request = vec![0, END];
        request.extend(&names.1);
        let answer = match connection.exchange(&mut request) {
            Ok(answer) => answer,
            Err(error) => {
                names.1.push(connection.name);
                return Err(self.lost(error));
            }
        };
        self.result(answer)?;
        names.1.clear();
        self.has_failed.store(false, Release);
        Ok(())
    }

    /// F4, for what does not come this way: nothing of a verb that failed before happens later.
    /// Cost: a load; a trip after a failure.
    #[inline]
    pub(crate) fn end_leftovers(&self) -> Result<()> {
        match self.has_failed.load(Acquire) {
            true => self.make_end(),
            false => Ok(()),
        }
    }

    #[cold]
    fn make_end(&self) -> Result<()> {
        let connection = self.take()?;
        self.idle.lock().push(connection);
        Ok(())
    }

    /// The result in an answer.
    fn result<'a>(&self, answer: &'a [u64]) -> Result<&'a [u64]> {
        let server = self.server;
        let owner = self.identity.get().map_or(0, |identity| identity.owner);
        match answer {
            [DONE, words @ ..] => Ok(words),
            [OUTSIDE, ..] => Err(outside(server)),
            [FENCED] => {
                let what = "it was replaced";
                Err(Error::Fenced { owner, what })
            }
            [ALIVE, ns] => Err(Error::Alive {
                who: "the owner".into(),
                for_ms: ns.div_ceil(1_000_000),
            }),
            _ => {
                let what = "the request is not understood";
                Err(Error::Refused { server, what })
            }
        }
    }

    fn odd(&self) -> Error {
        let what = "an answer has the wrong length";
        self.lost(io::Error::new(io::ErrorKind::InvalidData, what))
    }

    /// Sends `request`, whose first word is left for the number; `take` gets the answer's words.
    pub(crate) fn exchange<T>(
        &self,
        request: &mut [u64],
        take: impl FnOnce(&[u64]) -> Option<T>,
    ) -> Result<T> {
        let mut connection = self.take()?;
        let answer = match connection.exchange(request) {
            Ok(answer) => answer,
            Err(error) => {
                // Without a session nobody can end it.
                if self.identity.get().is_some() {
                    let mut names = self.names.lock();
                    names.1.push(connection.name);
                    self.has_failed.store(true, Release);
                }
                return Err(self.lost(error));
            }
        };
        let result = match self.result(answer) {
            Ok(words) => take(words).ok_or_else(|| self.odd()),
            Err(error) => Err(error),
        };
        if !matches!(result, Err(Error::Lost { .. })) {
            let mut idle = self.idle.lock();
            if idle.len() < MAX_IDLE {
                idle.push(connection);
            }
        }
        result
    }
}
