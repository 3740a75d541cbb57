//! Redis or Valkey as a pool is a sorted map, and its trips are counted. Skipped, with a line that
//! says so, where neither is installed.

mod pools;

use indexy_dex::baselines::Redis;
use pools::Dice;
use std::{
    collections::BTreeMap,
    net::{SocketAddr, TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(20);

/// A server that the test starts.
struct Server {
    process: Child,
    address: SocketAddr,
    _folder: TempDir,
}

impl Server {
    /// `None`: there is no such program.
    fn start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        // A free port, which nobody else takes in the moment until the server does.
        let free = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        for program in ["redis-server", "valkey-server"] {
            let started = Command::new(program)
                .args([
                    "--bind",
                    "127.0.0.1",
                    "--save",
                    "",
                    "--appendonly",
                    "no",
                    "--port",
                ])
                .arg(address.port().to_string())
                .current_dir(folder.path())
                .stdout(Stdio::null())
                .spawn();
            if let Ok(process) = started {
                let server = Self {
                    process,
                    address,
                    _folder: folder,
                };
                let deadline = Instant::now() + PATIENCE;
                while TcpStream::connect(address).is_err() {
                    assert!(Instant::now() < deadline, "{program} does not start");
                    sleep(Duration::from_millis(10));
                }
                return Some(server);
            }
        }
        eprintln!("skipped: neither redis-server nor valkey-server is installed");
        None
    }

    fn connect(&self) -> Redis {
        Redis::connect(self.address, "tree", PATIENCE).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn it_is_a_sorted_map() {
    let Some(server) = Server::start() else {
        return;
    };
    let redis = server.connect();
    let (mut model, mut dice) = (BTreeMap::new(), Dice(1));
    for i in 0..4_000_u64 {
        // Keys whose bytes are zeros and ones at both ends.
        let key = dice
            .roll(300)
            .wrapping_sub(150)
            .wrapping_mul(1 << (i % 3 * 20));
        match dice.roll(8) {
            0 => {
                let (to, most) = (key.saturating_add(dice.roll(200)), 1 + i as usize % 20);
                let expected = model.range(key..=to).take(most);
                let expected: Vec<(u64, u64)> = expected.map(|(k, v)| (*k, *v)).collect();
                assert_eq!(redis.scan(key, to, most).unwrap(), expected);
            }
            1 => assert_eq!(redis.remove(key).unwrap(), model.remove(&key)),
            2..4 => assert_eq!(redis.get(key).unwrap(), model.get(&key).copied()),
            _ => assert_eq!(redis.put(key, i).unwrap(), model.insert(key, i)),
        }
    }
    let all: Vec<(u64, u64)> = model.into_iter().collect();
    assert_eq!(redis.scan(0, u64::MAX, 100_000).unwrap(), all);
}

#[test]
fn each_operation_is_a_trip_and_a_scan_two() {
    let Some(server) = Server::start() else {
        return;
    };
    let redis = server.connect();
    let mut before = redis.counts();
    let mut trips = || {
        let counts = redis.counts() - before;
        before = redis.counts();
        assert_eq!((counts.reads, counts.writes, counts.swaps), (0, 0, 0));
        (counts.calls, counts.call_bytes)
    };
    assert_eq!(redis.get(7).unwrap(), None);
    // *3, HGET, tree/values, a key; nil.
    assert_eq!(trips(), (1, 4 + 10 + 18 + 14 + 5));
    redis.put(7, 70).unwrap();
    assert_eq!(trips().0, 1);
    assert_eq!(redis.get(7).unwrap(), Some(70));
    assert_eq!(trips(), (1, 4 + 10 + 18 + 14 + 14));
    assert_eq!(redis.scan(0, 100, 10).unwrap(), [(7, 70)]);
    assert_eq!(trips().0, 2);
    redis.remove(7).unwrap();
    assert_eq!(trips().0, 1);
}

#[test]
fn a_server_that_is_gone_is_an_error() {
    let Some(server) = Server::start() else {
        return;
    };
    let redis = server.connect();
    redis.put(1, 1).unwrap();
    drop(server);
    let gone = redis.get(1);
    assert!(
        matches!(gone, Err(indexy_dex::Error::Lost { .. })),
        "{gone:?}"
    );
}
