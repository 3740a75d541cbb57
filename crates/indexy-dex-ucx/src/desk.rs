//! The memory server's thread: lanes come and go, and messages are done.
//!
//! Each lane has a worker of its own. Over shared memory the processes that send to a worker share
//! its queue, and one that is stopped or killed in the middle of a message blocks it for good: so
//! it blocks nobody else. And what ends a lane ends all that was sent by it (F1).

use crate::{
    ucp::{Context, Endpoint, Header, Message, Pending, Result, Status, Use, Worker},
    wire::{ANSWER, CALL, DONE, HELLO, NOT_UNDERSTOOD, OUTSIDE, SWAP, Ticket, WRITE, header},
};
use indexy_dex::remote::{Handler, MAX_WORDS, Region, Visitor};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::{
    os::fd::{AsFd, OwnedFd},
    rc::Rc,
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, TryRecvError},
    },
    time::{Duration, Instant},
};

/// Lanes at a time; more are refused. Each has some file descriptors and segments of memory.
const MAX_LANES: usize = 128;
/// Moves of a lane before the others have their turn.
const MAX_MOVES: usize = 16;
/// Longest wait for UCX to end an endpoint that was closed by force.
const CLOSING: Duration = Duration::from_secs(2);
/// How long the thread looks before it sleeps, for the next message comes soon.
const LOOKS: Duration = Duration::from_micros(50);
/// Longest sleep: peers that are gone are noticed by moving UCX.
const SLEEP: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 250_000_000,
};

/// Lanes that end.
pub(crate) enum Which {
    /// Of a session.
    Session(u64),
    /// Of a connection, if they have no session.
    Connection(u64),
    /// These, of this session.
    Tickets(Vec<Ticket>, u64),
}

impl Which {
    fn has(&self, ticket: &Ticket, visitor: &Visitor) -> bool {
        match self {
            Self::Session(session) => visitor.session == *session,
            Self::Connection(number) => visitor.session == 0 && visitor.connection == *number,
            Self::Tickets(tickets, session) => {
                visitor.session == *session && tickets.contains(ticket)
            }
        }
    }
}

/// What TCP's threads order.
pub(crate) enum Command {
    /// Somebody's worker connects; `done` is told the address of the lane's worker, if it may.
    Admit {
        ticket: Ticket,
        visitor: Visitor,
        address: Vec<u8>,
        done: SyncSender<Option<Vec<u8>>>,
    },
    /// Lanes end; `done` is told when nothing of them happens any more.
    End { which: Which, done: SyncSender<()> },
    /// The thread ends.
    Stop,
}

struct Lane {
    endpoint: Endpoint,
    ticket: Ticket,
    visitor: Visitor,
    /// It is who was told the ticket.
    said_hello: bool,
    /// Answers under way.
    answers: Vec<Pending>,
    worker: Rc<Worker>,
}

impl Lane {
    /// The lane, and its worker's address.
    fn open(
        context: &Arc<Context>,
        ticket: Ticket,
        visitor: Visitor,
        address: &[u8],
    ) -> Result<(Self, Vec<u8>)> {
        let worker = Worker::new(context.clone(), Use::Server)?;
        let own = worker.address()?;
        let lane = Self {
            endpoint: Endpoint::connect(&worker, address)?,
            ticket,
            visitor,
            said_hello: false,
            answers: Vec::new(),
            worker,
        };
        Ok((lane, own))
    }

    fn is_broken(&self) -> bool {
        self.endpoint.broken().is_err()
    }

    /// Moves what came and does it; false: there was nothing.
    fn step(&mut self, region: &Region, handler: Handler) -> bool {
        let moved = (0..MAX_MOVES)
            .take_while(|_| self.worker.progress())
            .count();
        let mut moved = moved > 0;
        while let Some(message) = self.worker.message() {
            moved = true;
            self.answer(&message, region, handler);
        }
        self.answers.retain(|answer| !answer.is_done());
        moved
    }

    fn answer(&mut self, message: &Message, region: &Region, handler: Handler) {
        let [kind, number, first, second, third, _] = message.header;
        if message.from != self.endpoint.id() {
            return;
        }
        if kind == HELLO && [first, second] == self.ticket {
            self.said_hello = true;
        }
        if !self.said_hello {
            return;
        }
        let request = [kind, first, second, third];
        let (status, word, words) = perform(region, handler, request, &message.words);
        let head: Header = header(&[ANSWER, number, status, word]);
        // An error: the client is gone, and the lane is found broken.
        if let Ok(sending) = self.endpoint.send(&head, &words)
            && !sending.is_done()
        {
            self.answers.push(sending);
        }
    }

    fn close(self) {
        // What it sends is dropped with its worker.
        self.endpoint.close(CLOSING);
    }
}

pub(crate) struct Desk {
    lanes: Vec<Lane>,
    region: Arc<Region>,
    handler: Handler,
    context: Arc<Context>,
}

impl Desk {
    pub(crate) fn new(context: Arc<Context>, region: Arc<Region>, handler: Handler) -> Self {
        Self {
            lanes: Vec::new(),
            region,
            handler,
            context,
        }
    }

    /// The thread: until it is told to stop, or nobody is left to tell.
    pub(crate) fn run(mut self, ordered: &Receiver<Command>, bell: &OwnedFd) {
        let mut busy = Instant::now();
        loop {
            let mut moved = false;
            for lane in &mut self.lanes {
                moved |= lane.step(&self.region, self.handler);
            }
            loop {
                match ordered.try_recv() {
                    Ok(Command::Stop) | Err(TryRecvError::Disconnected) => {
                        return self.close(|_| true);
                    }
                    Ok(command) => self.obey(command),
                    Err(TryRecvError::Empty) => break,
                }
                moved = true;
            }
            if moved {
                busy = Instant::now();
            } else if busy.elapsed() > LOOKS {
                self.close(Lane::is_broken);
                self.sleep(bell);
            }
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Admit {
                ticket,
                visitor,
                address,
                done,
            } => {
                // Nobody may wait for it, here and below.
                let _ = done.try_send(self.admit(ticket, visitor, &address).ok());
            }
            Command::End { which, done } => {
                self.close(|lane| which.has(&lane.ticket, &lane.visitor));
                let _ = done.try_send(());
            }
            Command::Stop => {}
        }
    }

    fn sleep(&self, bell: &OwnedFd) {
        let mut fds = vec![PollFd::from_borrowed_fd(bell.as_fd(), PollFlags::IN)];
        for lane in &self.lanes {
            let Some(wakes) = lane.worker.arm() else {
                return;
            };
            fds.push(PollFd::from_borrowed_fd(wakes, PollFlags::IN));
        }
        // A signal is as good as an event: everything is looked at again.
        let _ = poll(&mut fds, Some(&SLEEP));
        // Empty is as good.
        let _ = rustix::io::read(bell, &mut [0; 8]);
    }

    fn admit(&mut self, ticket: Ticket, visitor: Visitor, address: &[u8]) -> Result<Vec<u8>> {
        if self.lanes.len() >= MAX_LANES {
            self.close(Lane::is_broken);
        }
        if self.lanes.len() >= MAX_LANES {
            return Err(Status::LATE);
        }
        let (lane, own) = Lane::open(&self.context, ticket, visitor, address)?;
        self.lanes.push(lane);
        Ok(own)
    }

    /// Ends lanes: nothing of them happens any more.
    fn close(&mut self, mut is_meant: impl FnMut(&Lane) -> bool) {
        for lane in self.lanes.extract_if(.., |lane| is_meant(lane)) {
            lane.close();
        }
    }
}

/// Does what a message asks for: status, a word, words.
fn perform(
    region: &Region,
    handler: Handler,
    request: [u64; 4],
    words: &[u64],
) -> (u64, u64, Vec<u64>) {
    let outside = (OUTSIDE, 0, Vec::new());
    match request {
        [HELLO, ..] => (DONE, 0, Vec::new()),
        [WRITE, offset, ..] => match region.write(offset, words) {
            Some(()) => (DONE, 0, Vec::new()),
            None => outside,
        },
        [SWAP, offset, expected, new] => match region.cas(offset, expected, new) {
            Some(was) => (DONE, was, Vec::new()),
            None => outside,
        },
        [CALL, ..] => {
            let answer = handler(region, words);
            match answer.len() {
                ..=MAX_WORDS => (DONE, 0, answer),
                _ => (NOT_UNDERSTOOD, 0, Vec::new()),
            }
        }
        _ => (NOT_UNDERSTOOD, 0, Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indexy_dex::remote::NODES_OFFSET;

    #[test]
    fn requests_are_done_or_refused() {
        let region = Region::create(8192).unwrap();
        let ask =
            |request, words: &[u64]| perform(&region, |_, words| words.repeat(2), request, words);
        let done = |words: &[u64]| (DONE, 0, words.to_vec());
        assert_eq!(ask([WRITE, NODES_OFFSET, 0, 0], &[5, 6]), done(&[]));
        assert_eq!(ask([SWAP, NODES_OFFSET, 5, 7], &[]), (DONE, 5, vec![]));
        assert_eq!(ask([CALL, 0, 0, 0], &[1, 2]), done(&[1, 2, 1, 2]));
        assert_eq!(ask([WRITE, 8192, 0, 0], &[5]).0, OUTSIDE);
        assert_eq!(ask([SWAP, u64::MAX, 0, 0], &[]).0, OUTSIDE);
        assert_eq!(ask([99, 0, 0, 0], &[]).0, NOT_UNDERSTOOD);
        assert_eq!(ask([CALL, 0, 0, 0], &vec![0; MAX_WORDS]).0, NOT_UNDERSTOOD);
    }
}
