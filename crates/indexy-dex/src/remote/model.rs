//! The pool in this process, with a virtual clock: no thread sleeps.
//!
//! Each thread of an endpoint has a clock. A verb moves it on by the latency and by the time its
//! bytes take. A call also waits for a free thread of the memory server: the queue lives in
//! virtual time and is shared, so calls of threads whose clocks differ much queue unrealistically.

use super::{
    contract::{Handler, Part, RemoteMemory},
    counts::{Counters, Counts},
    keys::{Guard, Keys, Member, Refusal},
    region::Region,
};
use crate::{
    address::Address,
    error::{Error, Result},
};
use parking_lot::Mutex;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use thread_local::ThreadLocal;

/// What verbs cost in virtual time.
#[derive(Debug, Clone, Copy)]
pub struct Latency {
    /// A one-sided verb, without its bytes.
    pub one_sided_ns: u64,
    /// A call, without bytes, waiting and service.
    pub two_sided_ns: u64,
    /// What the memory server computes for a call.
    pub service_ns: u64,
    /// Threads of each memory server that run calls.
    pub server_threads: usize,
    /// Bytes that the network carries in 1,000 ns.
    pub bytes_per_us: u64,
}

impl Latency {
    /// RDMA over a network of 100 Gbit/s: 2 us one-sided, 4 us two-sided.
    pub fn rdma() -> Self {
        Self {
            one_sided_ns: 2_000,
            two_sided_ns: 4_000,
            service_ns: 300,
            server_threads: 4,
            bytes_per_us: 12_500,
        }
    }

    fn bytes_ns(&self, words: usize) -> u64 {
        8_000 * words as u64 / self.bytes_per_us.max(1)
    }
}

/// A memory server of the model, shared by the endpoints.
struct Server {
    region: Arc<Region>,
    /// When each thread that runs calls is free again.
    free_at_ns: Mutex<Vec<u64>>,
}

/// One compute server's end of a modelled pool.
pub struct Model {
    servers: Arc<[Server]>,
    handler: Handler,
    latency: Latency,
    counters: Counters,
    clocks: ThreadLocal<AtomicU64>,
    keys: Arc<Keys>,
    owner: u16,
    member: Option<Member>,
}

impl Model {
    /// An endpoint of a new pool.
    pub fn new(regions: Vec<Arc<Region>>, handler: Handler, latency: Latency) -> Self {
        let servers = regions.into_iter().map(|region| Server {
            region,
            free_at_ns: Mutex::new(vec![0; latency.server_threads.max(1)]),
        });
        Self {
            servers: servers.collect(),
            handler,
            latency,
            counters: Counters::default(),
            clocks: ThreadLocal::new(),
            // A lease that lapses at once: whoever wants to may replace an owner.
            keys: Arc::new(Keys::new(Duration::ZERO, None)),
            owner: 0,
            member: None,
        }
    }

    /// An endpoint with a session for `owner`; it fences the owner's session before. Others may
    /// fence it at any time, for a lease of the model lapses at once.
    pub fn attach(&self, owner: u16) -> Result<Self> {
        let session = self.keys.attach(owner, 0, 0);
        let session = session.map_err(|refusal| self.refused(refusal))?;
        let connection = 0;
        Ok(Self {
            owner,
            member: Some(Member {
                session,
                connection,
            }),
            ..self.another()
        })
    }

    fn refused(&self, refusal: Refusal) -> Error {
        let owner = self.owner;
        match refusal {
            Refusal::Fenced => Error::Fenced {
                owner,
                what: "it was replaced",
            },
            Refusal::Alive(_) | Refusal::Exhausted => {
                Error::Options("the model has no more sessions".into())
            }
        }
    }

    /// F1 of `keys.rs`.
    fn admit(&self) -> Result<Option<Guard<'_>>> {
        if self.member.is_none() {
            return Ok(None);
        }
        let admitted = self.keys.admit(self.member);
        admitted.map(Some).map_err(|refusal| self.refused(refusal))
    }

    /// An endpoint for another compute server of the same pool, without a session.
    pub fn another(&self) -> Self {
        Self {
            servers: self.servers.clone(),
            handler: self.handler,
            latency: self.latency,
            counters: Counters::default(),
            clocks: ThreadLocal::new(),
            keys: self.keys.clone(),
            owner: 0,
            member: None,
        }
    }

    fn server(&self, server: u16) -> Result<&Server> {
        let what = "there is no such server";
        let found = self.servers.get(usize::from(server));
        found.ok_or(Error::Refused { server, what })
    }

    fn clock(&self) -> &AtomicU64 {
        self.clocks.get_or_default()
    }

    fn pass(&self, ns: u64) {
        self.clock().fetch_add(ns, Relaxed);
    }

    fn one_sided(&self, words: usize) {
        self.pass(self.latency.one_sided_ns + self.latency.bytes_ns(words));
    }

    /// Waits for a thread of the server and for its service.
    fn queue(&self, server: &Server) {
        let mut free_at = server.free_at_ns.lock();
        let now = self.now_ns();
        if let Some(thread) = free_at.iter_mut().min() {
            let end = now.max(*thread) + self.latency.service_ns;
            *thread = end;
            self.pass(end - now);
        }
    }
}

/// The error of a verb that would leave the region.
pub(super) fn outside(server: u16) -> Error {
    let what = "the words do not lie in the region";
    Error::Refused { server, what }
}

impl RemoteMemory for Model {
    fn servers(&self) -> usize {
        self.servers.len()
    }

    fn read(&self, at: Address, into: &mut [u64]) -> Result<()> {
        let _admitted = self.admit()?;
        let region = &self.server(at.server())?.region;
        let done = region.read(at.offset(), into);
        done.ok_or_else(|| outside(at.server()))?;
        self.one_sided(into.len());
        self.counters.read(into.len());
        Ok(())
    }

    fn read_many(&self, parts: &mut [Part<'_>]) -> Result<()> {
        let _admitted = self.admit()?;
        let mut words = 0;
        for (at, into) in parts.iter_mut() {
            let region = &self.server(at.server())?.region;
            let done = region.read(at.offset(), into);
            done.ok_or_else(|| outside(at.server()))?;
            self.counters.read(into.len());
            words += into.len();
        }
        if words > 0 {
            self.one_sided(words);
        }
        Ok(())
    }

    fn write(&self, at: Address, words: &[u64]) -> Result<()> {
        let _admitted = self.admit()?;
        let region = &self.server(at.server())?.region;
        let done = region.write(at.offset(), words);
        done.ok_or_else(|| outside(at.server()))?;
        self.one_sided(words.len());
        self.counters.wrote(words.len());
        Ok(())
    }

    fn cas(&self, at: Address, expected: u64, new: u64) -> Result<u64> {
        let _admitted = self.admit()?;
        let region = &self.server(at.server())?.region;
        let was = region.cas(at.offset(), expected, new);
        let was = was.ok_or_else(|| outside(at.server()))?;
        self.one_sided(1);
        self.counters.swapped();
        Ok(was)
    }

    fn call(&self, server: u16, request: &[u64]) -> Result<Vec<u64>> {
        let _admitted = self.admit()?;
        let at = self.server(server)?;
        let answer = (self.handler)(&at.region, request);
        let words = request.len() + answer.len();
        self.pass(self.latency.two_sided_ns + self.latency.bytes_ns(words));
        self.queue(at);
        self.counters.called(words);
        Ok(answer)
    }

    fn counts(&self) -> Counts {
        self.counters.get()
    }

    fn session(&self) -> u64 {
        self.member.map_or(0, |member| member.session)
    }

    #[inline]
    fn check_session(&self) -> Result<()> {
        self.admit().map(drop)
    }

    fn abandon(&self) {
        if let Some(member) = self.member {
            self.keys.leave(member);
        }
    }

    fn session_of(&self, owner: u16) -> Result<u64> {
        Ok(self.keys.session_of(owner))
    }

    fn fence(&self, session: u64) -> Result<()> {
        let fenced = self.keys.fence(session, 0);
        fenced.map_err(|refusal| self.refused(refusal))
    }

    fn now_ns(&self) -> u64 {
        self.clock().load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn echo(_: &Region, request: &[u64]) -> Vec<u64> {
        request.to_vec()
    }

    fn model() -> Model {
        let regions = vec![Arc::new(Region::create(1 << 16).unwrap())];
        Model::new(regions, echo, Latency::rdma())
    }

    #[test]
    fn verbs_take_virtual_time_by_their_bytes() {
        let model = model();
        let mut node = [0; 128];
        model.read(Address::new(0, 4096), &mut node).unwrap();
        // 1,024 bytes at 12.5 bytes a ns are 81 ns.
        assert_eq!(model.now_ns(), 2_081);
        let mut other = [0; 128];
        let mut parts: [Part<'_>; 2] = [
            (Address::new(0, 4096), &mut node),
            (Address::new(0, 8192), &mut other),
        ];
        model.read_many(&mut parts).unwrap();
        assert_eq!(model.now_ns(), 2_081 + 2_163);
        assert_eq!(model.counts().reads, 3);
    }

    #[test]
    fn calls_wait_for_a_thread_of_the_server() {
        let model = model();
        model.servers[0].free_at_ns.lock().fill(10_000);
        model.call(0, &[1]).unwrap();
        assert_eq!(model.now_ns(), 10_300);
    }
}
