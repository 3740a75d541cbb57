//! The compute server's end: connections of one memory server, each used by one thread at a time.
//!
//! A connection that fails is closed, and the verb with it; the next verb makes a new one. No verb
//! is sent twice: whether it happened is for the caller to find out.

use super::{
    auth::{self, Secret},
    frame::Frames,
    request::{DONE, OUTSIDE},
    stream::Stream,
};
use crate::{
    error::{Error, Result},
    remote::model::outside,
};
use parking_lot::Mutex;
use std::{io, time::Duration};

/// Idle connections that are kept.
const MAX_IDLE: usize = 64;

struct Connection<S> {
    stream: S,
    frames: Frames,
    number: u64,
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

/// The way to one memory server.
pub(crate) struct Connections<S> {
    server: u16,
    secret: Secret,
    patience: Duration,
    dial: Dial<S>,
    idle: Mutex<Vec<Connection<S>>>,
}

impl<S: Stream> Connections<S> {
    pub(crate) fn new(server: u16, secret: Secret, patience: Duration, dial: Dial<S>) -> Self {
        Self {
            server,
            secret,
            patience,
            dial,
            idle: Mutex::default(),
        }
    }

    fn lost(&self, source: io::Error) -> Error {
        let server = self.server;
        Error::Lost { server, source }
    }

    /// Connects; `greeted` takes what the server sends first.
    pub(crate) fn open<T>(&self, greeted: impl FnOnce(&mut S) -> io::Result<T>) -> Result<T> {
        let (connection, greeting) = self.connect(greeted).map_err(|e| self.lost(e))?;
        self.idle.lock().push(connection);
        Ok(greeting)
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
        let connection = Connection {
            stream,
            frames: Frames::default(),
            number: 0,
            answer: Vec::new(),
        };
        Ok((connection, greeting))
    }

    /// Sends `request`, whose first word is left for the number; `take` gets the answer's words.
    /// `greeted` is for a connection that is made now.
    pub(crate) fn exchange<T>(
        &self,
        request: &mut [u64],
        greeted: impl FnOnce(&mut S) -> io::Result<()>,
        take: impl FnOnce(&[u64]) -> Option<T>,
    ) -> Result<T> {
        // A statement of its own: the lock must not be held while a connection is made.
        let kept = self.idle.lock().pop();
        let mut connection = match kept {
            Some(connection) => connection,
            None => self.connect(greeted).map_err(|e| self.lost(e))?.0,
        };
        let answer = connection.exchange(request).map_err(|e| self.lost(e))?;
        let result = match answer {
            [DONE, words @ ..] => take(words).ok_or_else(|| {
                let what = "an answer has the wrong length";
                self.lost(io::Error::new(io::ErrorKind::InvalidData, what))
            }),
            [OUTSIDE, ..] => Err(outside(self.server)),
            _ => Err(Error::Refused {
                server: self.server,
                what: "the request is not understood",
            }),
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
