//! Every transport does the same verbs and counts them alike; connections that are cut, forged or
//! late end in typed errors.

use indexy_dex::{
    Address, Error,
    remote::{
        Counts, Latency, Model, NODES_OFFSET, Region, RemoteMemory, Secret,
        shm::{Shm, ShmServer},
        tcp::{Tcp, TcpServer},
    },
};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    process::{Command, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

const PATIENCE: Duration = Duration::from_secs(5);
const ANY_PORT: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

fn sum(region: &Region, request: &[u64]) -> Vec<u64> {
    let mut word = [0];
    region.read(NODES_OFFSET, &mut word).unwrap();
    vec![request.iter().sum::<u64>() + word[0]]
}

fn secret() -> Secret {
    Secret::new(*b"sixteen letters.").unwrap()
}

fn region() -> Arc<Region> {
    Arc::new(Region::create(1 << 16).unwrap())
}

fn serve_tcp() -> TcpServer {
    TcpServer::start(ANY_PORT.into(), region(), sum, secret(), 2).unwrap()
}

/// The verbs, on two servers; returns what was counted.
fn verbs(memory: &impl RemoteMemory) -> Counts {
    assert_eq!(memory.servers(), 2);
    let before = memory.counts();
    let (one, two) = (Address::new(0, NODES_OFFSET), Address::new(1, 8192));
    memory.write(one, &[5, 6, 7]).unwrap();
    memory.write(two, &[8]).unwrap();
    let (mut three, mut single) = ([0; 3], [0; 1]);
    memory.read(one, &mut three).unwrap();
    assert_eq!(three, [5, 6, 7]);
    three.fill(0);
    let mut parts = [(two, &mut single[..]), (one, &mut three[..])];
    memory.read_many(&mut parts).unwrap();
    assert_eq!((three, single), ([5, 6, 7], [8]));
    assert_eq!(memory.cas(two, 8, 9).unwrap(), 8);
    assert_eq!(memory.cas(two, 8, 10).unwrap(), 9);
    assert_eq!(memory.call(0, &[1, 2]).unwrap(), [8]);
    let outside = memory.read(Address::new(0, 1 << 16), &mut single);
    assert!(matches!(outside, Err(Error::Refused { server: 0, .. })));
    let nowhere = memory.call(2, &[]);
    assert!(matches!(nowhere, Err(Error::Refused { server: 2, .. })));
    let counts = memory.counts() - before;
    let expected = Counts {
        reads: 3,
        writes: 2,
        swaps: 2,
        calls: 1,
        read_bytes: 56,
        written_bytes: 32,
        call_bytes: 24,
    };
    assert_eq!(counts, expected);
    assert_eq!((counts.verbs(), counts.bytes()), (8, 144));
    counts
}

#[test]
fn all_transports_do_and_count_the_same() {
    let model = Model::new(vec![region(), region()], sum, Latency::rdma());
    verbs(&model);

    let servers = [serve_tcp(), serve_tcp()];
    let addresses = servers.each_ref().map(TcpServer::address);
    verbs(&Tcp::connect(&addresses, &secret(), PATIENCE).unwrap());

    let folder = tempfile::tempdir().unwrap();
    let paths = ["a", "b"].map(|name| folder.path().join(name));
    let start = |path: &PathBuf| ShmServer::start(path, region(), sum, secret(), 2).unwrap();
    let servers = paths.each_ref().map(start);
    verbs(&Shm::connect(&paths, &secret(), PATIENCE).unwrap());
    drop(servers);
    assert!(paths.iter().all(|path| !path.exists()));
}

/// Runs in a process of its own, for `two_processes_share_a_region`: serves until its input ends.
#[test]
fn child_that_serves() {
    let Some(path) = std::env::var_os("DEX_TEST_SOCKET") else {
        return;
    };
    let _server = ShmServer::start(path.as_ref(), region(), sum, secret(), 1).unwrap();
    println!("\nready");
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
fn two_processes_share_a_region() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_serves", "--nocapture"])
        .env("DEX_TEST_SOCKET", &path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "ready"));
    let two = [path.clone(), path.clone()];
    // Both numbers stand for one server: what one wrote, the other reads.
    let (this, other) = (
        Shm::connect(&two, &secret(), PATIENCE).unwrap(),
        Shm::connect(&two, &secret(), PATIENCE).unwrap(),
    );
    verbs(&this);
    let mut word = [0];
    other.read(Address::new(1, 8192), &mut word).unwrap();
    assert_eq!(word, [9]);

    child.kill().unwrap();
    child.wait().unwrap();
    let started = Instant::now();
    assert!(matches!(this.call(0, &[1]), Err(Error::Lost { .. })));
    assert!(started.elapsed() < PATIENCE);
    // The memory outlives its server.
    this.read(Address::new(1, 8192), &mut word).unwrap();
    assert_eq!(word, [9]);
}

#[test]
fn a_client_with_another_secret_is_refused() {
    let server = serve_tcp();
    let other = Secret::new(*b"another sixteen.").unwrap();
    let refused = Tcp::connect(&[server.address()], &other, PATIENCE);
    assert!(matches!(refused, Err(Error::Lost { server: 0, .. })));
}

#[test]
fn a_server_that_is_gone_is_an_error_at_once_and_a_new_one_is_found() {
    let server = serve_tcp();
    let address = server.address();
    let tcp = Tcp::connect(&[address], &secret(), PATIENCE).unwrap();
    let at = Address::new(0, NODES_OFFSET);
    tcp.write(at, &[1]).unwrap();
    drop(server);
    let started = Instant::now();
    assert!(matches!(tcp.write(at, &[2]), Err(Error::Lost { .. })));
    assert!(started.elapsed() < PATIENCE);
    let again = TcpServer::start(address, region(), sum, secret(), 1).unwrap();
    tcp.write(at, &[3]).unwrap();
    assert_eq!(tcp.counts().writes, 2);
    drop(again);
}

/// Sits between a client and a server; `change` may damage, double or hold back what passes to
/// the server after the handshake (56 bytes).
fn proxy(to: SocketAddr, change: fn(&[u8], &mut TcpStream)) -> SocketAddr {
    let listener = TcpListener::bind(SocketAddr::from(ANY_PORT)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut server = TcpStream::connect(to).unwrap();
        let (mut back, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
        thread::spawn(move || std::io::copy(&mut back, &mut to_client));
        let mut hello = [0; 56];
        client.read_exact(&mut hello[..24]).unwrap();
        server.write_all(&hello[..24]).unwrap();
        client.read_exact(&mut hello[24..]).unwrap();
        server.write_all(&hello[24..]).unwrap();
        let mut buffer = [0; 4096];
        while let Ok(bytes @ 1..) = client.read(&mut buffer) {
            change(&buffer[..bytes], &mut server);
        }
    });
    address
}

fn swap_through(change: fn(&[u8], &mut TcpStream)) -> (Result<u64, Error>, u64) {
    let server = serve_tcp();
    let address = proxy(server.address(), change);
    let patience = Duration::from_millis(300);
    let tcp = Tcp::connect(&[address], &secret(), patience).unwrap();
    let at = Address::new(0, NODES_OFFSET);
    let result = tcp.cas(at, 0, 5);
    // Twice, so that an answer to a doubled request would be taken for this one.
    let result = result.and_then(|_| tcp.cas(at, 5, 6));
    let direct = Tcp::connect(&[server.address()], &secret(), PATIENCE).unwrap();
    let mut word = [0];
    direct.read(at, &mut word).unwrap();
    (result, word[0])
}

#[test]
fn messages_that_pass_unchanged_are_done() {
    let (result, word) = swap_through(|bytes, server| server.write_all(bytes).unwrap());
    assert_eq!((result.unwrap(), word), (5, 6));
}

#[test]
fn a_damaged_request_does_nothing() {
    let (result, word) = swap_through(|bytes, server| {
        let mut damaged = bytes.to_vec();
        *damaged.last_mut().unwrap() ^= 1;
        server.write_all(&damaged).unwrap();
    });
    assert!(matches!(result, Err(Error::Lost { .. })));
    assert_eq!(word, 0);
}

#[test]
fn a_request_that_comes_twice_is_done_once() {
    let (result, word) = swap_through(|bytes, server| {
        let _ = server.write_all(bytes);
        let _ = server.write_all(bytes);
    });
    assert!(matches!(result, Err(Error::Lost { .. })), "{result:?}");
    assert_eq!(word, 5);
}

#[test]
fn a_request_that_never_arrives_fails_in_bounded_time() {
    let started = Instant::now();
    let (result, word) = swap_through(|_, _| {});
    assert!(matches!(result, Err(Error::Lost { .. })));
    assert_eq!(word, 0);
    assert!(started.elapsed() < Duration::from_secs(4));
}

#[test]
fn a_cut_request_does_nothing() {
    let (result, word) = swap_through(|bytes, server| {
        let _ = server.write_all(&bytes[..bytes.len() - 3]);
        let _ = server.shutdown(std::net::Shutdown::Write);
    });
    assert!(matches!(result, Err(Error::Lost { .. })));
    assert_eq!(word, 0);
}
