//! A compute server's end of a pool over UCX.

use crate::{
    lane::Lane,
    ucp::{Context, Result as Ucp, Status, Use},
    wire::{CALL, DONE, END, LANE, OUTSIDE, Reach, SWAP, Ticket, WRITE, put_bytes},
};
use indexy_dex::{
    Address, Error, Result,
    remote::{Counters, Counts, MAX_WORDS, Part, RemoteMemory, Secret, tcp::Tcp},
};
use parking_lot::Mutex;
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{
            AtomicBool,
            Ordering::{Acquire, Release},
            fence,
        },
    },
    time::Duration,
};

/// Lanes that are kept.
const MAX_IDLE: usize = 64;

/// What a server's lanes left under way when they failed.
#[derive(Default)]
struct Failed {
    any: AtomicBool,
    tickets: Mutex<Vec<Ticket>>,
}

/// One compute server's end. Each thread that is in a verb has a lane: a UCX worker and an
/// endpoint for each memory server.
pub struct Ucx {
    lanes: Mutex<Vec<Lane>>,
    failed: Vec<Failed>,
    counters: Counters,
    patience: Duration,
    addresses: Vec<SocketAddr>,
    context: Arc<Context>,
    control: Tcp,
}

fn refused<T>(server: u16, what: &'static str) -> Result<T> {
    Err(Error::Refused { server, what })
}

fn outside<T>(server: u16) -> Result<T> {
    refused(server, "the words do not lie in the region")
}

impl Ucx {
    /// Connects to the memory servers ([`UcxServer`](crate::UcxServer)), numbered in this order. A
    /// verb fails as [`Error::Lost`] when it takes longer than `patience`, or two or three times
    /// as long if it has to connect. There is no session: nothing fences this end.
    pub fn connect(addresses: &[SocketAddr], secret: &Secret, patience: Duration) -> Result<Self> {
        let control = Tcp::connect(addresses, secret, patience)?;
        Self::new(control, addresses, patience)
    }

    /// Connects as compute server `owner`, with a session whose lease a thread renews.
    ///
    /// [`Error::Alive`]: the owner has a session whose lease runs; ask again when it lapsed.
    pub fn connect_as(
        owner: u16,
        addresses: &[SocketAddr],
        secret: &Secret,
        patience: Duration,
    ) -> Result<Self> {
        let control = Tcp::connect_as(owner, addresses, secret, patience)?;
        Self::new(control, addresses, patience)
    }

    fn new(control: Tcp, addresses: &[SocketAddr], patience: Duration) -> Result<Self> {
        let context = Context::new(Use::Client).map_err(|status| Error::System {
            what: "UCX",
            source: status.into(),
        })?;
        let this = Self {
            lanes: Mutex::default(),
            failed: addresses.iter().map(|_| Failed::default()).collect(),
            counters: Counters::default(),
            patience,
            addresses: addresses.to_vec(),
            context,
            control,
        };
        // A network that cannot reach them is an error now.
        this.with(|lane| (0..addresses.len()).try_for_each(|server| this.reach(lane, server)))?;
        Ok(this)
    }

    /// Runs a verb with a lane of its own.
    fn with<T>(&self, verb: impl FnOnce(&mut Lane) -> Result<T>) -> Result<T> {
        let mut lane = self.take()?;
        let result = verb(&mut lane);
        let mut lanes = self.lanes.lock();
        if !matches!(result, Err(Error::Lost { .. })) && lanes.len() < MAX_IDLE {
            lanes.push(lane);
            return result;
        }
        drop(lanes);
        self.give_up(&lane);
        result
    }

    fn take(&self) -> Result<Lane> {
        loop {
            // A statement of its own: the lock is not held while a lane is given up.
            let kept = self.lanes.lock().pop();
            match kept {
                Some(lane) if lane.is_broken() => self.give_up(&lane),
                Some(lane) => return Ok(lane),
                None => break,
            }
        }
        let new = Lane::new(self.context.clone(), self.addresses.len(), self.patience);
        new.map_err(|status| self.lost(0, status))
    }

    fn lost(&self, server: usize, status: Status) -> Error {
        Error::Lost {
            server: server as u16,
            source: status.into(),
        }
    }

    /// F4: what a lane left under way is ended before the next verb at that server.
    fn give_up(&self, lane: &Lane) {
        for (server, ticket) in lane.tickets() {
            if let Some(failed) = self.failed.get(server) {
                failed.tickets.lock().push(ticket);
                failed.any.store(true, Release);
            }
        }
    }

    /// Makes sure that `lane` reaches `server`, and that nothing of a lane that failed comes later
    /// (F4 of `indexy-dex`).
    fn reach(&self, lane: &mut Lane, server: usize) -> Result<()> {
        let Some(failed) = self.failed.get(server) else {
            return refused(server as u16, "there is no such server");
        };
        let number = server as u16;
        // Others wait here: their verbs must not overtake.
        if failed.any.load(Acquire) {
            let mut tickets = failed.tickets.lock();
            let mut request = vec![END];
            request.extend(tickets.iter().flatten());
            self.control.reach(number, &request)?;
            tickets.clear();
            failed.any.store(false, Release);
        }
        if lane.end(server).is_some() {
            return Ok(());
        }
        let mut request = vec![LANE];
        let address = lane.address().map_err(|status| self.lost(server, status))?;
        put_bytes(&mut request, &address);
        let answer = self.control.reach(number, &request)?;
        if answer.is_empty() {
            return refused(
                number,
                "no lane is left, or none of UCX's transports reaches it",
            );
        }
        let reach = Reach::decode(&answer).ok_or_else(|| self.lost(server, Status::ODD))?;
        let connected = lane.connect(server, &reach);
        connected.map_err(|status| self.lost(server, status))
    }

    fn done<T>(&self, server: usize, result: Ucp<T>) -> Result<T> {
        result.map_err(|status| self.lost(server, status))
    }

    /// Where `words` words lie at the server of `at`, which `lane` reaches from here on.
    fn place(&self, lane: &mut Lane, at: Address, words: usize) -> Result<u64> {
        if words > MAX_WORDS {
            return refused(at.server(), "a verb carries at most 4096 words");
        }
        let server = usize::from(at.server());
        self.reach(lane, server)?;
        match lane.end(server) {
            Some(end) => match end.place(at.offset(), words) {
                Some(place) => Ok(place),
                None => outside(at.server()),
            },
            None => Err(self.lost(server, Status::LATE)),
        }
    }

    /// Asks by a message.
    fn ask(
        &self,
        server: u16,
        kind: u64,
        arguments: [u64; 3],
        words: &[u64],
    ) -> Result<(u64, Vec<u64>)> {
        if words.len() > MAX_WORDS {
            return refused(server, "a verb carries at most 4096 words");
        }
        self.control.check_session()?;
        self.with(|lane| {
            let number = usize::from(server);
            self.reach(lane, number)?;
            let asked = lane.ask(number, kind, arguments, words);
            match self.done(number, asked)? {
                (DONE, word, answer) => Ok((word, answer)),
                (OUTSIDE, ..) => outside(server),
                _ => refused(server, "the request is not understood"),
            }
        })
    }
}

impl RemoteMemory for Ucx {
    fn servers(&self) -> usize {
        self.addresses.len()
    }

    fn read(&self, at: Address, into: &mut [u64]) -> Result<()> {
        self.read_many(&mut [(at, into)])
    }

    fn read_many(&self, parts: &mut [Part<'_>]) -> Result<()> {
        self.with(|lane| {
            let mut places = Vec::with_capacity(parts.len());
            for (at, into) in parts.iter() {
                places.push(self.place(lane, *at, into.len())?);
            }
            let read = lane.read(parts, &places);
            read.map_err(|(server, status)| self.lost(usize::from(server), status))?;
            // What a read saw comes before what is read next.
            fence(Acquire);
            Ok(())
        })?;
        for (_, into) in parts {
            self.counters.read(into.len());
        }
        Ok(())
    }

    fn write(&self, at: Address, words: &[u64]) -> Result<()> {
        self.ask(at.server(), WRITE, [at.offset(), 0, 0], words)?;
        self.counters.wrote(words.len());
        Ok(())
    }

    fn cas(&self, at: Address, expected: u64, new: u64) -> Result<u64> {
        let arguments = [at.offset(), expected, new];
        let was = self.ask(at.server(), SWAP, arguments, &[])?.0;
        self.counters.swapped();
        Ok(was)
    }

    fn call(&self, server: u16, request: &[u64]) -> Result<Vec<u64>> {
        let (_, answer) = self.ask(server, CALL, [0; 3], request)?;
        self.counters.called(request.len() + answer.len());
        Ok(answer)
    }

    fn counts(&self) -> Counts {
        self.counters.get()
    }

    fn session(&self) -> u64 {
        self.control.session()
    }

    #[inline]
    fn check_session(&self) -> Result<()> {
        self.control.check_session()
    }

    fn abandon(&self) {
        self.control.abandon();
    }

    fn session_of(&self, owner: u16) -> Result<u64> {
        self.control.session_of(owner)
    }

    fn fence(&self, session: u64) -> Result<()> {
        self.control.fence(session)
    }

    fn now_ns(&self) -> u64 {
        self.control.now_ns()
    }
}

#[cfg(test)]
mod tests;
