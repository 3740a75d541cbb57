//! What every transport of `indexy-dex` does, over UCX: the verbs and their counts, errors in
//! bounded time, sessions, and what fencing stops. UCX's own transports are chosen by `UCX_TLS`;
//! each test that names some runs itself again in a process that has them.
//!
//! INDEXY_UCX_ROUNDS: how often a writer is stopped (default: 3).

use indexy_dex::{
    Address, Error,
    remote::{Counts, NODES_OFFSET, Region, RemoteMemory, Secret},
};
use indexy_dex_ucx::{Ucx, UcxServer};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

const PATIENCE: Duration = Duration::from_secs(1);
const LEASE: Duration = Duration::from_millis(400);
const ANY_PORT: ([u8; 4], u16) = ([127, 0, 0, 1], 0);
const WHICH: &str = "DEX_UCX_CHILD";

fn sum(region: &Region, request: &[u64]) -> Vec<u64> {
    let mut word = [0];
    region.read(NODES_OFFSET, &mut word).unwrap();
    vec![request.iter().sum::<u64>() + word[0]]
}

fn secret() -> Secret {
    Secret::new(*b"sixteen letters.").unwrap()
}

fn serve() -> UcxServer {
    UcxServer::start(ANY_PORT.into(), 1 << 16, sum, secret(), LEASE).unwrap()
}

/// Runs the test `name` again over UCX's transports `tls` (none: as here), as a child that knows
/// `with`.
fn child(name: &str, tls: &str, with: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    if !tls.is_empty() {
        command.env("UCX_TLS", tls);
    }
    command
        .args(["--exact", name, "--nocapture"])
        .env(WHICH, with)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Runs the calling test over both kinds of transports; true in the children.
fn in_children(name: &str) -> bool {
    if std::env::var_os(WHICH).is_some() {
        return true;
    }
    for tls in ["shm,self", "tcp,self"] {
        let child = child(name, tls, "all").wait_with_output().unwrap();
        let output = String::from_utf8_lossy(&child.stdout).into_owned();
        assert!(child.status.success(), "{tls}: {output}");
    }
    false
}

/// A line that a child printed behind a word.
fn said(child: &mut Child, word: &str) -> String {
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    let mut lines = lines.map_while(Result::ok);
    let line = lines.find_map(|line| line.strip_prefix(word).map(str::to_string));
    line.unwrap_or_else(|| panic!("the child never said {word}"))
}

/// The verbs, on two servers, as `crates/indexy-dex/tests/transports.rs` has them.
fn verbs(memory: &impl RemoteMemory) {
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
    let outside = memory.write(Address::new(0, (1 << 16) - 8), &[1, 2]);
    assert!(matches!(outside, Err(Error::Refused { server: 0, .. })));
    let nowhere = memory.call(2, &[]);
    assert!(matches!(nowhere, Err(Error::Refused { server: 2, .. })));
    let expected = Counts {
        reads: 3,
        writes: 2,
        swaps: 2,
        calls: 1,
        read_bytes: 56,
        written_bytes: 32,
        call_bytes: 24,
    };
    assert_eq!(memory.counts() - before, expected);
    // As large as a verb gets.
    let large: Vec<u64> = (0..4096).collect();
    let at = Address::new(0, NODES_OFFSET);
    memory.write(at, &large).unwrap();
    let mut back = vec![0; 4096];
    memory.read(at, &mut back).unwrap();
    assert_eq!(back, large);
    assert_eq!(memory.call(0, &large).unwrap(), [4096 * 4095 / 2]);
    assert!(memory.read(at, &mut vec![0; 4097]).is_err());
}

#[test]
fn verbs_are_done_and_counted_as_by_other_transports() {
    if !in_children("verbs_are_done_and_counted_as_by_other_transports") {
        return;
    }
    type Connect = fn(&[SocketAddr]) -> Ucx;
    let connects: [Connect; 2] = [
        |to| Ucx::connect(to, &secret(), PATIENCE).unwrap(),
        |to| Ucx::connect_as(3, to, &secret(), PATIENCE).unwrap(),
    ];
    for connect in connects {
        let servers = [serve(), serve()];
        let memory = connect(&servers.each_ref().map(UcxServer::address));
        verbs(&memory);
        // Every thread has a lane of its own.
        let at = Address::new(1, NODES_OFFSET);
        memory.write(at, &[0]).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut seen = 0;
                    for _ in 0..50 {
                        loop {
                            match memory.cas(at, seen, seen + 1).unwrap() {
                                was if was == seen => break,
                                was => seen = was,
                            }
                        }
                    }
                });
            }
        });
        let mut word = [0];
        memory.read(at, &mut word).unwrap();
        assert_eq!(word, [200]);
    }
}

#[test]
fn a_client_with_another_secret_is_refused() {
    let server = serve();
    let other = Secret::new(*b"another sixteen.").unwrap();
    let refused = Ucx::connect(&[server.address()], &other, PATIENCE);
    assert!(matches!(refused, Err(Error::Lost { server: 0, .. })));
}

/// A memory server in a process of its own, until its input ends.
#[test]
fn child_that_serves() {
    if std::env::var_os(WHICH).is_none() {
        return;
    }
    let server = serve();
    println!("\nserving {}", server.address());
    let _ = std::io::stdin().read(&mut [0]);
}

/// Returns when the child has ended or stopped: a signal takes its time.
fn send_and_wait(child: &Child, signal: Signal) {
    let id = Pid::from_child(child);
    kill_process(id, signal).unwrap();
    let (_, status) = waitpid(Some(id), WaitOptions::UNTRACED).unwrap().unwrap();
    assert!(status.stopped() == (signal == Signal::STOP), "{status:?}");
}

fn wait_until_killed(name: &str, signal: Signal) {
    if !in_children(name) {
        return;
    }
    let mut pool = child("child_that_serves", "", "serve");
    let address = said(&mut pool, "serving ").parse().unwrap();
    let memory = Ucx::connect_as(1, &[address], &secret(), PATIENCE).unwrap();
    let free = Ucx::connect(&[address], &secret(), PATIENCE).unwrap();
    let at = Address::new(0, NODES_OFFSET);
    memory.write(at, &[1]).unwrap();
    assert_eq!(free.call(0, &[1]).unwrap(), [2]);
    send_and_wait(&pool, signal);
    for memory in [&memory, &free] {
        let started = Instant::now();
        // The second time by a new way.
        for _ in 0..2 {
            let lost = memory.call(0, &[1]);
            assert!(matches!(lost, Err(Error::Lost { .. })), "{lost:?}");
        }
        assert!(started.elapsed() < 5 * PATIENCE, "{:?}", started.elapsed());
    }
    assert!(memory.write(at, &[2]).is_err());
    // It may have ended.
    let _ = pool.kill();
    let _ = pool.wait();
}

#[test]
fn a_killed_memory_server_is_an_error_in_bounded_time() {
    let name = "a_killed_memory_server_is_an_error_in_bounded_time";
    wait_until_killed(name, Signal::KILL);
}

#[test]
fn a_stopped_memory_server_is_an_error_in_bounded_time() {
    let name = "a_stopped_memory_server_is_an_error_in_bounded_time";
    wait_until_killed(name, Signal::STOP);
}

/// A compute server that counts a word up until it fails.
#[test]
fn child_that_writes() {
    let Ok(with) = std::env::var(WHICH) else {
        return;
    };
    let Ok(address) = with.parse() else {
        return;
    };
    let memory = Ucx::connect_as(7, &[address], &secret(), PATIENCE).unwrap();
    let at = Address::new(0, NODES_OFFSET);
    let mut line = std::io::stdout();
    let mut number = 0;
    let error = loop {
        number += 1;
        // A large one, which is easily stopped in its middle.
        if let Err(error) = memory.write(at, &[number; 1024]) {
            break error;
        }
        if number == 10 {
            writeln!(line, "\nwriting session={}", memory.session()).unwrap();
        }
    };
    writeln!(line, "\nended by {error:?}").unwrap();
}

#[test]
fn f1_a_stopped_compute_server_that_was_fenced_writes_nothing() {
    if !in_children("f1_a_stopped_compute_server_that_was_fenced_writes_nothing") {
        return;
    }
    let rounds = std::env::var("INDEXY_UCX_ROUNDS").map_or(3, |rounds| rounds.parse().unwrap());
    (0..rounds).for_each(stop_and_fence);
}

/// The writer is stopped anywhere in a message: it blocks nobody else, and writes nothing more.
fn stop_and_fence(round: u64) {
    let server = serve();
    let mut writer = child("child_that_writes", "", &server.address().to_string());
    let session: u64 = said(&mut writer, "writing session=").parse().unwrap();
    let memory = Ucx::connect(&[server.address()], &secret(), PATIENCE).unwrap();
    sleep(Duration::from_micros(round * 137 % 5_000));
    send_and_wait(&writer, Signal::STOP);
    let mut refused = 0;
    let started = Instant::now();
    while let Err(error) = memory.fence(session) {
        assert!(matches!(error, Error::Alive { .. }), "{error}");
        assert!(started.elapsed() < 10 * LEASE);
        refused += 1;
        sleep(Duration::from_millis(20));
    }
    assert!(refused > 0, "its lease ran");
    let at = Address::new(0, NODES_OFFSET);
    memory.write(at, &[0; 1024]).unwrap();
    kill_process(Pid::from_child(&writer), Signal::CONT).unwrap();
    let ended = said(&mut writer, "ended by ");
    assert!(
        ended.starts_with("Fenced") || ended.starts_with("Lost"),
        "{ended}"
    );
    let mut words = [1; 1024];
    memory.read(at, &mut words).unwrap();
    assert_eq!(words, [0; 1024], "a fenced session wrote");
    let output = writer.wait_with_output().unwrap();
    assert!(output.status.success());
}

#[test]
fn a_killed_compute_server_is_replaced_and_others_go_on() {
    let name = "a_killed_compute_server_is_replaced_and_others_go_on";
    if !in_children(name) {
        return;
    }
    let server = serve();
    let to = [server.address()];
    let memory = Ucx::connect(&to, &secret(), PATIENCE).unwrap();
    let at = Address::new(0, NODES_OFFSET);
    memory.write(at, &[0]).unwrap();
    let mut writer = child("child_that_writes", "", &to[0].to_string());
    said(&mut writer, "writing session=");
    send_and_wait(&writer, Signal::KILL);
    let started = Instant::now();
    let next = loop {
        match Ucx::connect_as(7, &to, &secret(), PATIENCE) {
            Err(Error::Alive { .. }) => sleep(Duration::from_millis(20)),
            connected => break connected.unwrap(),
        }
    };
    assert!(started.elapsed() < 10 * LEASE);
    // Long enough for both sides to look after their peers.
    sleep(Duration::from_millis(2_500));
    memory.write(at, &[1]).unwrap();
    next.write(at, &[2]).unwrap();
    assert_eq!(memory.call(0, &[0]).unwrap(), [2]);
    assert_eq!(memory.cas(at, 2, 3).unwrap(), 2);
}

/// F4: what was late does not come after what was done later.
#[test]
fn f4_a_write_that_was_given_up_does_not_come_later() {
    let name = "f4_a_write_that_was_given_up_does_not_come_later";
    if !in_children(name) {
        return;
    }
    let mut pool = child("child_that_serves", "", "serve");
    let address = said(&mut pool, "serving ").parse().unwrap();
    let memory = Ucx::connect_as(1, &[address], &secret(), PATIENCE).unwrap();
    let at = Address::new(0, NODES_OFFSET);
    memory.write(at, &[1; 1024]).unwrap();
    for number in 2..5 {
        send_and_wait(&pool, Signal::STOP);
        let lost = memory.write(at, &[u64::MAX; 1024]);
        assert!(matches!(lost, Err(Error::Lost { .. })), "{lost:?}");
        kill_process(Pid::from_child(&pool), Signal::CONT).unwrap();
        while let Err(error) = memory.write(at, &[number; 1024]) {
            assert!(matches!(error, Error::Lost { .. }), "{error}");
        }
        for _ in 0..20 {
            let mut words = [0; 1024];
            memory.read(at, &mut words).unwrap();
            assert_eq!(words, [number; 1024]);
            sleep(Duration::from_millis(5));
        }
    }
    pool.kill().unwrap();
    pool.wait().unwrap();
}

#[test]
fn f3_an_owner_has_one_session() {
    let server = serve();
    let to = [server.address()];
    let connect = || Ucx::connect_as(7, &to, &secret(), PATIENCE);
    let first = connect().unwrap();
    let Err(Error::Alive { .. }) = connect() else {
        panic!("a second session");
    };
    first.write(Address::new(0, NODES_OFFSET), &[1]).unwrap();
    drop(first);
    connect().unwrap();
}
