//! The pool in another process of this machine: its regions are mapped here.
//!
//! A memory server creates its region as a sealed memory file and sends a descriptor for reading
//! over a Unix socket, after both ends proved that they know the secret. A read is loads. Writes,
//! swaps and calls go over the socket, where the memory server looks at the session: it does here
//! what a network card does with the key of a region. (Stores could not be fenced: a process that
//! was stopped in the middle of one goes on when it is continued.)
//!
//! The mapping outlives the memory server: its death is seen by the next verb that is no read, and
//! by the lease.

use super::{
    contract::{Handler, Part},
    endpoint::{Endpoint, Reads},
    model::outside,
    region::{Region, RegionReader},
    session::Ways,
    socket::{
        auth::Secret,
        client::Connections,
        server::{Door, Server, Serving},
    },
    status::{PoolStatus, ask as ask_status},
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
    time::Duration,
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
    /// Serves `region` at the socket `path`, which must not exist.
    pub fn start(
        path: &Path,
        region: Arc<Region>,
        handler: Handler,
        secret: Secret,
        serving: impl Into<Serving>,
    ) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        let ear = listener.try_clone()?;
        let accept = move || Ok(listener.accept()?.0);
        let wake = move || {
            // An error says that the socket is closed already.
            let _ = rustix::net::shutdown(&ear, Shutdown::Both);
        };
        let door = Door {
            greet: send_region,
            accept,
            wake,
        };
        let server = Server::start(region, handler, secret, serving.into(), None, door)?;
        Ok(Self {
            path: path.to_path_buf(),
            server: Some(server),
        })
    }

    /// Where it listens.
    pub fn path(&self) -> &Path {
        &self.path
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
    let readable = region.descriptor_for_reading()?;
    let descriptors = [readable.as_fd()];
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

/// One compute server's end of a pool in shared memory.
pub type Shm = Endpoint<Mapped>;

/// Reads are loads from the memory servers' regions, in their order.
pub struct Mapped(Vec<RegionReader>);

/// The memory servers' memory, and the ways to them.
fn dial_all(
    paths: &[PathBuf],
    secret: &Secret,
    patience: Duration,
) -> Result<(Vec<RegionReader>, Vec<Connections<UnixStream>>)> {
    let (mut regions, mut ways) = (Vec::new(), Vec::new());
    for (number, path) in paths.iter().enumerate() {
        let path = path.clone();
        let dial = move || UnixStream::connect(&path);
        // A region of a later connection is another one only if the server is.
        let again = |stream: &mut UnixStream| receive_region(stream).map(drop);
        let (number, secret) = (number as u16, secret.clone());
        let way = Connections::new(number, secret, patience, Box::new(dial), again);
        regions.push(RegionReader::of(way.open(receive_region)?)?);
        ways.push(way);
    }
    Ok((regions, ways))
}

impl Shm {
    /// Connects to the memory servers at these sockets, numbered in this order. A verb other than
    /// a read fails as [`Error::Lost`] when it takes longer than `patience`. There is no session:
    /// nothing fences this end.
    pub fn connect(paths: &[PathBuf], secret: &Secret, patience: Duration) -> Result<Self> {
        let (regions, ways) = dial_all(paths, secret, patience)?;
        Self::new(Mapped(regions), ways, None)
    }

    /// Connects as compute server `owner`, with a session whose lease a thread renews. Dropping
    /// the value ends both.
    ///
    /// [`Error::Alive`]: the owner has a session whose lease runs; ask again when it lapsed.
    pub fn connect_as(
        owner: u16,
        paths: &[PathBuf],
        secret: &Secret,
        patience: Duration,
    ) -> Result<Self> {
        let (regions, ways) = dial_all(paths, secret, patience)?;
        Self::new(Mapped(regions), ways, Some(owner))
    }
}

/// Asks a memory server how it is.
pub fn status(path: &Path, secret: &Secret, patience: Duration) -> Result<PoolStatus> {
    let (_, servers) = dial_all(&[path.to_path_buf()], secret, patience)?;
    ask_status(&servers[0])
}

impl Reads for Mapped {
    type Socket = UnixStream;

    fn read(&self, ways: &Ways<UnixStream>, at: Address, into: &mut [u64]) -> Result<()> {
        let server = at.server();
        let what = "there is no such server";
        if let Some(way) = ways.servers().get(usize::from(server)) {
            // F4: what is read now is not overtaken by a write that failed before.
            way.end_leftovers()?;
        }
        let region = self.0.get(usize::from(server));
        let region = region.ok_or(Error::Refused { server, what })?;
        let done = region.read(at.offset(), into);
        done.ok_or_else(|| outside(server))
    }

    fn read_many(&self, ways: &Ways<UnixStream>, parts: &mut [Part<'_>]) -> Result<()> {
        let mut each = parts.iter_mut();
        each.try_for_each(|(at, into)| self.read(ways, *at, into))
    }
}
