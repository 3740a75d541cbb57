//! The compute server's side of a session: its lease, and the thread that renews it.
//!
//! F2 of `keys.rs`: what a cache says is an answer only if the lease ran *after* the cache was
//! read. So an operation looks at its cache first and at the lease last. A thread that was stopped
//! in between finds the lease at an end, asks for more, and is told that it was replaced.
//!
//! The lease here counts from before the memory servers were asked, there from when they heard.

use super::{
    keys::now_ns,
    socket::{
        client::{Connections, Identity},
        request::{FENCE, LEAVE, RENEW, SESSION_OF},
        stream::Stream,
    },
};
use crate::error::{Error, Result};
use parking_lot::{Condvar, Mutex};
use std::{
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    thread::{self, JoinHandle, sleep},
    time::Duration,
};

/// Renewals in the time of a lease.
const RENEWALS: u64 = 4;
/// Longest time between two renewals.
const MAX_NAP: Duration = Duration::from_secs(1);
/// Longest wait for leases at the other memory servers, once the first one has fenced.
const FENCE_ATTEMPTS: u32 = 100;

struct Lease {
    owner: u16,
    session: u64,
    /// On the clock of `now_ns`.
    until_ns: AtomicU64,
    lease_ns: u64,
    /// It was replaced, or gave up.
    over: AtomicBool,
}

/// The memory servers of a pool, and the session there if there is one.
pub struct Ways<S: Stream> {
    shared: Arc<Shared<S>>,
    keeper: Option<JoinHandle<()>>,
}

struct Shared<S: Stream> {
    servers: Vec<Connections<S>>,
    lease: Option<Lease>,
    stopped: Mutex<bool>,
    stop: Condvar,
}

impl<S: Stream + Sync> Ways<S> {
    /// No session: nothing fences what comes this way.
    pub(super) fn without_session(servers: Vec<Connections<S>>) -> Self {
        Self {
            shared: Arc::new(Shared::new(servers, None)),
            keeper: None,
        }
    }

    /// A new session of `owner` at all servers. [`Error::Alive`]: one runs.
    pub(super) fn attach(servers: Vec<Connections<S>>, owner: u16) -> Result<Self> {
        let started = now_ns();
        let mut identity = Identity { owner, session: 0 };
        let mut shortest = u64::MAX;
        for server in &servers {
            let (session, lease_ns) = server.attach(identity)?;
            identity.session = session;
            shortest = shortest.min(lease_ns);
        }
        let lease = Lease {
            owner,
            session: identity.session,
            until_ns: AtomicU64::new(started + shortest),
            lease_ns: shortest,
            over: AtomicBool::new(false),
        };
        let shared = Arc::new(Shared::new(servers, Some(lease)));
        let kept = shared.clone();
        let keeper = thread::Builder::new()
            .name("dex-lease".into())
            .spawn(move || kept.keep(shortest))
            .map_err(|source| Error::System {
                what: "a thread for the lease",
                source,
            })?;
        Ok(Self {
            shared,
            keeper: Some(keeper),
        })
    }

    pub(super) fn servers(&self) -> &[Connections<S>] {
        &self.shared.servers
    }

    /// The way to a server.
    pub(super) fn to(&self, server: u16) -> Result<&Connections<S>> {
        let what = "there is no such server";
        let way = self.shared.servers.get(usize::from(server));
        let way = way.ok_or(Error::Refused { server, what })?;
        match &self.shared.lease {
            Some(lease) if lease.over.load(Acquire) => Err(lease.is_over()),
            _ => Ok(way),
        }
    }

    pub(super) fn session(&self) -> u64 {
        self.shared.lease.as_ref().map_or(0, |lease| lease.session)
    }

    /// What was read from a cache before this call was not replaced then.
    #[inline]
    pub(super) fn check(&self) -> Result<()> {
        let Some(lease) = &self.shared.lease else {
            return Ok(());
        };
        if lease.over.load(Acquire) {
            return Err(lease.is_over());
        }
        if now_ns() < lease.until_ns.load(Acquire) {
            return Ok(());
        }
        self.shared.renew()
    }

    /// Ends the session here: the rest of its lease passes at the memory servers.
    pub(super) fn abandon(&self) {
        if let Some(lease) = &self.shared.lease {
            lease.over.store(true, Release);
        }
    }

    /// The last session of `owner`.
    pub(super) fn session_of(&self, owner: u16) -> Result<u64> {
        let mut request = [0, SESSION_OF, u64::from(owner)];
        self.to(0)?.exchange(&mut request, |answer| match answer {
            &[session] => Some(session),
            _ => None,
        })
    }

    /// Fences a session at all memory servers. [`Error::Alive`]: its lease runs.
    pub(super) fn fence(&self, session: u64) -> Result<()> {
        for number in 0..self.servers().len() {
            let way = self.to(number as u16)?;
            let mut attempts = 0;
            loop {
                let fenced = way.exchange(&mut [0, FENCE, session], |_| Some(()));
                attempts += 1;
                match fenced {
                    // The first server has fenced it: it does not renew the others for long.
                    Err(Error::Alive { for_ms, .. }) if number > 0 && attempts < FENCE_ATTEMPTS => {
                        sleep(Duration::from_millis(for_ms.min(100)));
                    }
                    other => break other?,
                }
            }
        }
        Ok(())
    }
}

impl Lease {
    fn is_over(&self) -> Error {
        Error::Fenced {
            owner: self.owner,
            what: "it was replaced or gave up",
        }
    }
}

impl<S: Stream> Shared<S> {
    fn new(servers: Vec<Connections<S>>, lease: Option<Lease>) -> Self {
        Self {
            servers,
            lease,
            stopped: Mutex::new(false),
            stop: Condvar::new(),
        }
    }

    fn renew(&self) -> Result<()> {
        let Some(lease) = &self.lease else {
            return Ok(());
        };
        // Before the first is asked.
        let started = now_ns();
        for server in &self.servers {
            let renewed = server.exchange(&mut [0, RENEW], |_| Some(()));
            if matches!(renewed, Err(Error::Fenced { .. })) {
                lease.over.store(true, Release);
            }
            renewed?;
        }
        lease.until_ns.fetch_max(started + lease.lease_ns, Release);
        Ok(())
    }

    /// The thread: renews until it is stopped or the session is over.
    fn keep(&self, lease_ns: u64) {
        let nap = Duration::from_nanos(lease_ns / RENEWALS).min(MAX_NAP);
        let mut stopped = self.stopped.lock();
        while !*stopped {
            // Woken by the drop.
            self.stop.wait_for(&mut stopped, nap);
            if *stopped || self.is_over() {
                return;
            }
            drop(stopped);
            // A server that does not answer is asked again; `check` tells the operations.
            let _ = self.renew();
            stopped = self.stopped.lock();
        }
    }

    fn is_over(&self) -> bool {
        let lease = self.lease.as_ref();
        lease.is_none_or(|lease| lease.over.load(Relaxed))
    }
}

impl<S: Stream> Drop for Ways<S> {
    fn drop(&mut self) {
        *self.shared.stopped.lock() = true;
        self.shared.stop.notify_all();
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
        if !self.shared.is_over() {
            for server in &self.shared.servers {
                // A courtesy: the lease would lapse.
                let _ = server.exchange(&mut [0, LEAVE], |_| Some(()));
            }
        }
    }
}
