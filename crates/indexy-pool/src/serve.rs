//! `serve`: one region, one listener, until a signal.

use crate::{
    args::{Place, RegionFlags, Serve},
    secret,
};
use anyhow::{Context, Result, bail};
use indexy_dex::{
    offload,
    remote::{Region, Secret, Serving, shm::ShmServer, tcp::TcpServer},
};
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
};
use std::{
    fs,
    io::{self, ErrorKind, Write},
    os::unix::net::UnixStream,
    path::Path,
    sync::Arc,
    time::Duration,
};

/// A server that runs. Dropped: it ended its connections and joined its threads.
enum Running {
    Tcp(TcpServer),
    Shm(ShmServer),
}

pub(crate) fn run(serve: &Serve) -> Result<()> {
    until_a_signal(&serve.region, |bytes, secret, lease| {
        let region = Region::create(bytes).context("no memory")?;
        let region = Arc::new(region);
        let serving = Serving::new(serve.threads).lease(lease);
        let started = match &serve.place {
            Place::Address(address) => {
                TcpServer::start(*address, region, offload::serve, secret, serving)
                    .map(Running::Tcp)
            }
            Place::Path(path) => {
                remove_stale(path)?;
                ShmServer::start(path, region, offload::serve, secret, serving).map(Running::Shm)
            }
        };
        let running = started.with_context(|| format!("cannot listen on {}", serve.place))?;
        let place = match &running {
            Running::Tcp(server) => server.address().to_string(),
            Running::Shm(server) => server.path().display().to_string(),
        };
        Ok((running, place))
    })
}

/// Starts a memory server and keeps it until SIGTERM or SIGINT. `start` gets the region's bytes,
/// the secret and the lease; it returns the server and where it is.
pub fn until_a_signal<S>(
    flags: &RegionFlags,
    start: impl FnOnce(u64, Secret, Duration) -> Result<(S, String)>,
) -> Result<()> {
    let secret = secret::read(&flags.secret)?;
    // From here on a signal waits until it is asked for.
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("signals")?;
    check_memory(flags.memory)?;
    let (running, place) = start(flags.memory, secret, flags.lease_ms)?;
    say(&format!("serving {} bytes at {place}", flags.memory))?;
    let signal = signals.forever().next();
    drop(running);
    let name = if signal == Some(SIGINT) {
        "SIGINT"
    } else {
        "SIGTERM"
    };
    say(&format!("ended by {name}"))
}

/// Nobody listening to the output is no reason to end.
fn say(line: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{line}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// A region takes memory when it is written: too late to say that there is none.
fn check_memory(bytes: u64) -> Result<()> {
    let Ok(info) = fs::read_to_string("/proc/meminfo") else {
        return Ok(());
    };
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    match kib {
        Some(kib) if kib * 1024 < bytes => {
            let (asked, there) = (bytes >> 20, kib >> 10);
            bail!("no memory: {asked} MiB asked for, {there} MiB available")
        }
        _ => Ok(()),
    }
}

/// A socket that a killed server left is removed; one that answers is in use.
fn remove_stale(path: &Path) -> Result<()> {
    let is_refused = |error: &io::Error| error.kind() == ErrorKind::ConnectionRefused;
    match UnixStream::connect(path) {
        Err(error) if is_refused(&error) => fs::remove_file(path)
            .with_context(|| format!("the socket {} of a server that is gone", path.display())),
        _ => Ok(()),
    }
}
