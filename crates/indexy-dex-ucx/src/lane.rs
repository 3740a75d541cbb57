//! A compute server's way to all memory servers: one UCX worker, and an endpoint for each server.
//! One thread uses it at a time. A lane of which any verb failed is given up whole.

use crate::{
    ucp::{Context, Endpoint, Result, Status, Use, Worker, wait_for},
    wire::{ANSWER, HELLO, Reach, Ticket, header},
};
use indexy_dex::remote::Part;
use std::{rc::Rc, sync::Arc, time::Duration};

/// Longest wait for UCX to end an endpoint that failed.
const CLOSING: Duration = Duration::from_secs(1);

/// The way to one memory server.
pub(crate) struct End {
    endpoint: Endpoint,
    ticket: Ticket,
    start: u64,
    bytes: u64,
}

impl End {
    /// Where `words` words at `offset` lie; `None`: not in the region.
    pub(crate) fn place(&self, offset: u64, words: usize) -> Option<u64> {
        let end = offset.checked_add(8 * words as u64)?;
        (offset.is_multiple_of(8) && end <= self.bytes).then_some(self.start + offset)
    }
}

pub(crate) struct Lane {
    ends: Vec<Option<End>>,
    number: u64,
    /// Buffers to use again.
    spare: Vec<Vec<u64>>,
    patience: Duration,
    worker: Rc<Worker>,
}

// SAFETY: all that holds the worker by `Rc` is in here (`ends`, `worker`), and no method returns
// anything else that does: what is under way ends, or is dropped, before. So it moves together.
// UCX's worker is serialized: one thread at a time may use it, whichever.
#[allow(unsafe_code, reason = "all else that is unsafe is in ucp")]
unsafe impl Send for Lane {}

impl Lane {
    pub(crate) fn new(context: Arc<Context>, servers: usize, patience: Duration) -> Result<Self> {
        Ok(Self {
            ends: (0..servers).map(|_| None).collect(),
            number: 0,
            spare: Vec::new(),
            patience,
            worker: Worker::new(context, Use::Client)?,
        })
    }

    /// How its worker is reached.
    pub(crate) fn address(&self) -> Result<Vec<u8>> {
        self.worker.address()
    }

    pub(crate) fn end(&self, server: usize) -> Option<&End> {
        self.ends.get(server)?.as_ref()
    }

    /// A server that it reached is gone, or has ended it.
    pub(crate) fn is_broken(&self) -> bool {
        let ends = self.ends.iter().flatten();
        ends.into_iter().any(|end| end.endpoint.broken().is_err())
    }

    /// The servers that it reached, and its name there.
    pub(crate) fn tickets(&self) -> impl Iterator<Item = (usize, Ticket)> {
        let ends = self.ends.iter().enumerate();
        ends.filter_map(|(server, end)| Some((server, end.as_ref()?.ticket)))
    }

    /// Connects to a server that said how it is reached. After an error the lane is of no use.
    pub(crate) fn connect(&mut self, server: usize, reach: &Reach) -> Result<()> {
        let Some(place) = self.ends.get_mut(server) else {
            return Err(Status::ODD);
        };
        let mut endpoint = Endpoint::connect(&self.worker, &reach.worker)?;
        let unpacked = endpoint.unpack(&reach.key);
        *place = Some(End {
            endpoint,
            ticket: reach.ticket,
            start: reach.start,
            bytes: reach.bytes,
        });
        unpacked?;
        let [first, second] = reach.ticket;
        self.ask(server, HELLO, [first, second, 0], &[]).map(drop)
    }

    fn buffer(&mut self, words: usize) -> Vec<u64> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.resize(words, 0);
        buffer
    }

    /// Reads the parts, all under way together, from these places of their servers. An error says
    /// at which server.
    pub(crate) fn read(
        &mut self,
        parts: &mut [Part<'_>],
        places: &[u64],
    ) -> std::result::Result<(), (u16, Status)> {
        let mut reading = Vec::with_capacity(parts.len());
        for ((at, into), place) in parts.iter().zip(places) {
            let buffer = self.buffer(into.len());
            let endpoint = self.endpoint(usize::from(at.server()));
            let started = endpoint.and_then(|endpoint| endpoint.get(buffer, *place));
            reading.push(started.map_err(|status| (at.server(), status))?);
        }
        for ((at, into), reading) in parts.iter_mut().zip(reading) {
            let ended = reading.wait(self.patience).and_then(|buffer| {
                // What ended because its endpoint did is no answer, whatever its status.
                self.endpoint(usize::from(at.server()))?.broken()?;
                Ok(buffer)
            });
            let buffer = ended.map_err(|status| (at.server(), status))?;
            into.copy_from_slice(&buffer);
            self.spare.push(buffer);
        }
        Ok(())
    }

    /// Sends a request and waits for the answer: its status and word, and its words.
    pub(crate) fn ask(
        &mut self,
        server: usize,
        kind: u64,
        arguments: [u64; 3],
        words: &[u64],
    ) -> Result<(u64, u64, Vec<u64>)> {
        self.number += 1;
        let [first, second, third] = arguments;
        let head = header(&[kind, self.number, first, second, third]);
        let endpoint = self.endpoint(server)?;
        let sending = endpoint.send(&head, words)?;
        let came = wait_for(&self.worker, self.patience, || {
            if let Err(status) = endpoint.broken() {
                return Some(Err(status));
            }
            let message = self.worker.message()?;
            let [kind, number, ..] = message.header;
            (kind == ANSWER && number == self.number).then_some(Ok(message))
        });
        let message = came.unwrap_or(Err(Status::LATE))?;
        sending.wait(self.patience)?;
        let [_, _, status, word, ..] = message.header;
        Ok((status, word, message.words))
    }

    fn endpoint(&self, server: usize) -> Result<&Endpoint> {
        let end = self.ends.get(server).and_then(Option::as_ref);
        end.map(|end| &end.endpoint).ok_or(Status::ODD)
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        for end in self.ends.iter_mut().filter_map(Option::take) {
            end.endpoint.close(CLOSING);
        }
    }
}
