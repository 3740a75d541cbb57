//! The pool in another process of this machine: its regions are mapped here.
//!
//! A memory server creates its region as a sealed memory file and sends the descriptor over a Unix
//! socket, after both ends proved that they know the secret. One-sided verbs are loads and stores;
//! a call goes over the socket. The mapping outlives the memory server: its death is seen by the
//! next call, not by a read.

use super::{
    contract::{Handler, MAX_WORDS, Part, RemoteMemory},
    counts::{Counters, Counts},
    model::outside,
    region::Region,
    socket::{auth::Secret, client::Connections, request::CALL, server::Server},
};
use crate::{
    address::Address,
    error::{Error, Result},
};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, recvmsg, sendmsg,
};
use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

/// The byte that the descriptor travels with.
const WITH_DESCRIPTOR: u8 = b'R';

/// A memory server on a Unix socket. Dropping it ends all connections, joins its threads and
/// removes the socket.
pub struct ShmServer {
    path: PathBuf,
    server: Option<Server<UnixStream>>,
}

impl ShmServer {
    /// Serves `region` at the socket `path`, which must not exist. At most `call_threads` calls
    /// run at a time.
    pub fn start(
        path: &Path,
        region: Arc<Region>,
        handler: Handler,
        secret: Secret,
        call_threads: usize,
    ) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        let ear = listener.try_clone()?;
        let accept = move || Ok(listener.accept()?.0);
        let wake = move || {
            // An error says that the socket is closed already.
            let _ = rustix::net::shutdown(&ear, Shutdown::Both);
        };
        let server = Server::start(
            region,
            handler,
            secret,
            call_threads,
            send_region,
            accept,
            wake,
        )?;
        Ok(Self {
            path: path.to_path_buf(),
            server: Some(server),
        })
    }
}

impl Drop for ShmServer {
    fn drop(&mut self) {
        drop(self.server.take());
        // Already gone is as good.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn send_region(stream: &mut UnixStream, region: &Region) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [region.descriptor()];
    if !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::other("no space for a descriptor"));
    }
    let byte = [WITH_DESCRIPTOR];
    let flags = SendFlags::NOSIGNAL;
    sendmsg(stream.as_fd(), &[IoSlice::new(&byte)], &mut control, flags)?;
    Ok(())
}

fn receive_region(stream: &mut UnixStream) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut parts = [IoSliceMut::new(&mut byte)];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(stream.as_fd(), &mut parts, &mut control, flags)?;
    let mut descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    let descriptor = descriptors.next();
    match descriptor {
        Some(descriptor) if received.bytes == 1 && byte == [WITH_DESCRIPTOR] => Ok(descriptor),
        _ => Err(io::Error::other("the memory server sent no region")),
    }
}

struct Mapped {
    region: Region,
    calls: Connections<UnixStream>,
}

/// One compute server's end of a pool in shared memory.
pub struct Shm {
    servers: Vec<Mapped>,
    counters: Counters,
    started: Instant,
}

impl Shm {
    /// Connects to the memory servers at these sockets, numbered in this order. A call fails as
    /// [`Error::Lost`] when it takes longer than `patience`.
    pub fn connect(paths: &[PathBuf], secret: &Secret, patience: Duration) -> Result<Self> {
        let mut servers = Vec::new();
        for (number, path) in paths.iter().enumerate() {
            let path = path.clone();
            let dial = move || UnixStream::connect(&path);
            let number = number as u16;
            let calls = Connections::new(number, secret.clone(), patience, Box::new(dial));
            let region = Region::of(calls.open(receive_region)?)?;
            servers.push(Mapped { region, calls });
        }
        Ok(Self {
            servers,
            counters: Counters::default(),
            started: Instant::now(),
        })
    }

    fn server(&self, server: u16) -> Result<&Mapped> {
        let what = "there is no such server";
        let found = self.servers.get(usize::from(server));
        found.ok_or(Error::Refused { server, what })
    }
}

impl RemoteMemory for Shm {
    fn servers(&self) -> usize {
        self.servers.len()
    }

    fn read(&self, at: Address, into: &mut [u64]) -> Result<()> {
        let region = &self.server(at.server())?.region;
        let done = region.read(at.offset(), into);
        done.ok_or_else(|| outside(at.server()))?;
        self.counters.read(into.len());
        Ok(())
    }

    fn read_many(&self, parts: &mut [Part<'_>]) -> Result<()> {
        for (at, into) in parts {
            self.read(*at, into)?;
        }
        Ok(())
    }

    fn write(&self, at: Address, words: &[u64]) -> Result<()> {
        let region = &self.server(at.server())?.region;
        let done = region.write(at.offset(), words);
        done.ok_or_else(|| outside(at.server()))?;
        self.counters.wrote(words.len());
        Ok(())
    }

    fn cas(&self, at: Address, expected: u64, new: u64) -> Result<u64> {
        let region = &self.server(at.server())?.region;
        let was = region.cas(at.offset(), expected, new);
        let was = was.ok_or_else(|| outside(at.server()))?;
        self.counters.swapped();
        Ok(was)
    }

    fn call(&self, server: u16, request: &[u64]) -> Result<Vec<u64>> {
        if request.len() > MAX_WORDS {
            return Err(outside(server));
        }
        let mut framed = vec![0, CALL];
        framed.extend_from_slice(request);
        let again = |stream: &mut UnixStream| receive_region(stream).map(drop);
        let take = |answer: &[u64]| Some(answer.to_vec());
        let answer = self
            .server(server)?
            .calls
            .exchange(&mut framed, again, take)?;
        self.counters.called(request.len() + answer.len());
        Ok(answer)
    }

    fn counts(&self) -> Counts {
        self.counters.get()
    }

    fn now_ns(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }
}
