//! F1 and F4 below the client: a lane that does not ask whether it may.

use super::*;
use crate::UcxServer;
use indexy_dex::remote::NODES_OFFSET;
use std::{process::Command, thread::sleep, time::Instant};

const PATIENCE: Duration = Duration::from_millis(500);
const LEASE: Duration = Duration::from_millis(300);
const IS_CHILD: &str = "DEX_UCX_CHILD";

/// Runs the calling test over both kinds of transports; true in the children.
fn in_children(name: &str) -> bool {
    if std::env::var_os(IS_CHILD).is_some() {
        return true;
    }
    for tls in ["shm,self", "tcp,self"] {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &format!("client::tests::{name}"), "--nocapture"])
            .envs([(IS_CHILD, "all"), ("UCX_TLS", tls)])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stderr);
        assert!(child.status.success(), "{tls}: {said}");
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(said.contains("1 passed"), "{tls}: {said}");
    }
    false
}

fn at() -> Address {
    Address::new(0, NODES_OFFSET)
}

struct Pool {
    server: UcxServer,
    /// Without a session.
    other: Ucx,
    secret: Secret,
}

impl Pool {
    fn start() -> Self {
        let secret = Secret::new(*b"sixteen letters.").unwrap();
        let any = ([127, 0, 0, 1], 0).into();
        let echo = |_: &indexy_dex::remote::Region, words: &[u64]| words.to_vec();
        let server = UcxServer::start(any, 1 << 16, echo, secret.clone(), LEASE).unwrap();
        let other = Ucx::connect(&[server.address()], &secret, PATIENCE).unwrap();
        other.write(at(), &[1]).unwrap();
        Self {
            server,
            other,
            secret,
        }
    }

    fn owner(&self) -> Ucx {
        let to = [self.server.address()];
        Ucx::connect_as(7, &to, &self.secret, PATIENCE).unwrap()
    }

    fn word(&self) -> u64 {
        let mut word = [0];
        self.other.read(at(), &mut word).unwrap();
        word[0]
    }
}

/// A lane that ended swaps and writes nothing, and reads nothing wrong.
fn check_ended(pool: &Pool, mut lane: Lane) {
    let swap = [NODES_OFFSET, 1, 3];
    let asked = lane.ask(0, SWAP, swap, &[]);
    assert!(asked.is_err(), "{asked:?}");
    let asked = lane.ask(0, WRITE, [NODES_OFFSET, 0, 0], &[2]);
    assert!(asked.is_err(), "{asked:?}");
    // About when UCX notices that the other end is gone.
    let (mut word, place) = ([9], lane.end(0).unwrap().place(NODES_OFFSET, 1).unwrap());
    for _ in 0..2 {
        if lane.read(&mut [(at(), &mut word)], &[place]).is_ok() {
            assert_eq!(word, [1]);
        }
    }
    sleep(Duration::from_millis(50));
    assert_eq!(pool.word(), 1);
    pool.other.write(at(), &[1]).unwrap();
}

#[test]
fn f1_a_lane_ends_with_its_session() {
    if !in_children("f1_a_lane_ends_with_its_session") {
        return;
    }
    let pool = Pool::start();
    let owner = pool.owner();
    owner.write(at(), &[1]).unwrap();
    let lane = owner.take().unwrap();
    owner.abandon();
    let started = Instant::now();
    while let Err(error) = pool.other.fence(owner.session()) {
        assert!(matches!(error, Error::Alive { .. }), "{error}");
        assert!(started.elapsed() < 10 * LEASE);
        sleep(Duration::from_millis(20));
    }
    check_ended(&pool, lane);
}

#[test]
fn f4_a_lane_that_failed_ends_before_the_next_verb() {
    if !in_children("f4_a_lane_that_failed_ends_before_the_next_verb") {
        return;
    }
    let pool = Pool::start();
    let owner = pool.owner();
    let lane = owner.take().unwrap();
    assert!(lane.end(0).is_some());
    owner.give_up(&lane);
    owner.write(at(), &[1]).unwrap();
    check_ended(&pool, lane);
    // Of nobody else.
    owner.write(at(), &[5]).unwrap();
    assert_eq!(pool.word(), 5);
}
