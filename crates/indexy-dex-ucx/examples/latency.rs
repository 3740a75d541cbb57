//! How long verbs take over UCX and over the transports of `indexy-dex`, between two processes of
//! this machine: `cargo run --release --example latency [VERBS]`. One thread, one verb at a time.

use indexy_dex::{
    Address, Result,
    remote::{
        NODES_OFFSET, Region, RemoteMemory, Secret,
        shm::{Shm, ShmServer},
        tcp::{Tcp, TcpServer},
    },
};
use indexy_dex_ucx::{Ucx, UcxServer};
use std::{
    env,
    io::{BufRead, BufReader, Read},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

type Failure = Box<dyn std::error::Error>;

const PATIENCE: Duration = Duration::from_secs(5);
const LEASE: Duration = Duration::from_secs(2);
const BYTES: u64 = 16 << 20;
const ANY_PORT: ([u8; 4], u16) = ([127, 0, 0, 1], 0);
/// Name of a row, transport, UCX's transports.
const ROWS: [(&str, &str, &str); 4] = [
    ("UCX, shared memory", "ucx", "shm,self"),
    ("`remote::shm`", "shm", ""),
    ("UCX, TCP", "ucx", "tcp,self"),
    ("`remote::tcp`", "tcp", ""),
];

fn echo(_: &Region, request: &[u64]) -> Vec<u64> {
    request.to_vec()
}

fn secret() -> Result<Secret> {
    Secret::new(*b"sixteen letters.")
}

/// A memory server until the input ends.
fn serve(transport: &str, path: &str) -> std::result::Result<(), Failure> {
    let until_the_end = |place: String| {
        println!("{place}");
        std::io::stdin().read(&mut [0]).map(drop)
    };
    let region = || Region::create(BYTES).map(Arc::new);
    match transport {
        "ucx" => {
            let server = UcxServer::start(ANY_PORT.into(), BYTES, echo, secret()?, LEASE)?;
            until_the_end(server.address().to_string())?;
        }
        "tcp" => {
            let server = TcpServer::start(ANY_PORT.into(), region()?, echo, secret()?, 1)?;
            until_the_end(server.address().to_string())?;
        }
        _ => {
            let _server = ShmServer::start(path.as_ref(), region()?, echo, secret()?, 1)?;
            until_the_end(path.to_string())?;
        }
    }
    Ok(())
}

fn again(arguments: &[&str], tls: &str) -> std::result::Result<Child, Failure> {
    let mut command = Command::new(env::current_exe()?);
    command.args(arguments).stdin(Stdio::piped());
    if !tls.is_empty() {
        command.env("UCX_TLS", tls);
    }
    Ok(command.stdout(Stdio::piped()).spawn()?)
}

/// Median and 99th percentile in microseconds.
fn time(verbs: usize, mut verb: impl FnMut(u64) -> Result<()>) -> Result<String> {
    let mut taken = Vec::with_capacity(verbs);
    for number in 0..(verbs + verbs / 10) as u64 {
        let started = Instant::now();
        verb(number)?;
        taken.push(started.elapsed());
    }
    // Connecting and caches.
    let mut taken = taken.split_off(verbs / 10);
    taken.sort_unstable();
    let at = |part: usize| taken[(taken.len() - 1) * part / 100].as_secs_f64() * 1e6;
    Ok(format!("{:.1} ({:.1})", at(50), at(99)))
}

fn row(memory: &impl RemoteMemory, verbs: usize) -> Result<Vec<String>> {
    let at = |number: u64| {
        let node = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        Address::new(0, NODES_OFFSET + node % 10_000 * 1024)
    };
    let mut node = [0; 128];
    Ok(vec![
        time(verbs, |n| memory.read(at(n), &mut [0]))?,
        time(verbs, |n| memory.read(at(n), &mut node))?,
        time(verbs, |n| memory.write(at(n), &[n; 128]))?,
        time(verbs, |n| memory.cas(at(n), n, n + 1).map(drop))?,
        time(verbs, |n| memory.call(0, &[n, 1]).map(drop))?,
    ])
}

fn measure(transport: &str, verbs: usize) -> std::result::Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("pool");
    let path = path.to_str().ok_or("a path that is no text")?;
    let mut server = again(&["serve", transport, path], "")?;
    let out = server.stdout.take().ok_or("no output")?;
    let place = BufReader::new(out).lines().next().ok_or("no place")??;
    let times = match transport {
        "ucx" => {
            let to = [place.parse()?];
            let memory = Ucx::connect_as(1, &to, &secret()?, PATIENCE)?;
            row(&memory, verbs)?
        }
        "tcp" => row(
            &Tcp::connect_as(1, &[place.parse()?], &secret()?, PATIENCE)?,
            verbs,
        )?,
        _ => row(
            &Shm::connect_as(1, &[place.into()], &secret()?, PATIENCE)?,
            verbs,
        )?,
    };
    println!("{}", times.join(" | "));
    drop(server.stdin.take());
    server.wait()?;
    Ok(())
}

fn main() -> std::result::Result<(), Failure> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let verbs = match arguments[..] {
        ["serve", transport, path] => return serve(transport, path),
        ["measure", transport, verbs] => {
            return measure(transport, verbs.parse()?);
        }
        [verbs] => verbs,
        [] => "20000",
        _ => return Err("usage: latency [VERBS]".into()),
    };
    verbs.parse::<usize>()?;
    println!("| | read 8 B | read 1 KiB | write 1 KiB | swap | call |");
    println!("|---|---|---|---|---|---|");
    for (name, transport, tls) in ROWS {
        let measured = again(&["measure", transport, verbs], tls)?;
        let output = measured.wait_with_output()?;
        if !output.status.success() {
            return Err(format!("{name}: failed").into());
        }
        let times = String::from_utf8(output.stdout)?;
        println!("| {name} | {} |", times.trim());
    }
    Ok(())
}
