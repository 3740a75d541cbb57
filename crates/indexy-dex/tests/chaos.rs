//! A tree over a network that cuts, damages, delays and doubles messages: nothing hangs, every
//! error is typed, and no key has a value that nobody put.

mod pools;

use indexy_dex::{
    BulkLoad, Error, Options, Tree, offload,
    remote::{
        Serving,
        tcp::{Tcp, TcpServer},
    },
};
use pools::{Dice, region, secret};
use std::{
    collections::{BTreeMap, BTreeSet},
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    thread::{self, sleep},
    time::{Duration, Instant},
};

const LEASE: Duration = Duration::from_millis(300);
const PATIENCE: Duration = Duration::from_millis(150);
/// Of one operation: its verbs, each at most as long as the patience, and the wait for a lease.
const BOUND: Duration = Duration::from_secs(8);
const KEYS: u64 = 2_000;
const OPERATIONS: u64 = 3_000;

/// What the network does to one of so many messages.
struct Weather {
    one_of: AtomicU64,
    messages: AtomicU64,
    harm: AtomicU64,
}

/// Passes messages between clients and the server, in both directions; harms some.
fn proxy(to: SocketAddr, weather: &Arc<Weather>) -> SocketAddr {
    let any: SocketAddr = ([127, 0, 0, 1], 0).into();
    let listener = TcpListener::bind(any).unwrap();
    let address = listener.local_addr().unwrap();
    let weather = weather.clone();
    thread::spawn(move || {
        for client in listener.incoming() {
            let (client, server) = (client.unwrap(), TcpStream::connect(to).unwrap());
            client.set_nodelay(true).unwrap();
            server.set_nodelay(true).unwrap();
            let ways = [
                (client.try_clone().unwrap(), server.try_clone().unwrap()),
                (server, client),
            ];
            for (from, to) in ways {
                let weather = weather.clone();
                thread::spawn(move || pass(from, to, &weather));
            }
        }
    });
    address
}

fn pass(mut from: TcpStream, mut to: TcpStream, weather: &Weather) {
    let mut buffer = [0; 16 << 10];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        let message = &mut buffer[..length];
        let number = weather.messages.fetch_add(1, SeqCst);
        let one_of = weather.one_of.load(SeqCst);
        let mut dice = Dice(number);
        let mut twice = false;
        if one_of > 0 && dice.roll(one_of) == 0 {
            weather.harm.fetch_add(1, SeqCst);
            match dice.roll(5) {
                0 => message[dice.roll(length as u64) as usize] ^= 0x20,
                1 => {
                    let _ = to.write_all(&message[..length / 2]);
                    break;
                }
                2 => sleep(PATIENCE + Duration::from_millis(30)),
                3 => twice = true,
                _ => break,
            }
        }
        if to.write_all(message).is_err() || (twice && to.write_all(message).is_err()) {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

/// A session through the weather; the last one may have to lapse first.
fn open(proxy: SocketAddr, seed: u64) -> Tree<Tcp> {
    let started = Instant::now();
    loop {
        let memory = Tcp::connect_as(0, &[proxy], &secret(), PATIENCE);
        let options = Options::new(0, 24).leaf_admission(0.5).seed(seed);
        match memory.and_then(|memory| Tree::open(memory, options)) {
            Ok(tree) => return tree,
            Err(Error::Alive { .. } | Error::Lost { .. } | Error::Fenced { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        assert!(started.elapsed() < 3 * BOUND);
        sleep(Duration::from_millis(20));
    }
}

/// What a key may have.
struct Allowed(BTreeMap<u64, BTreeSet<Option<u64>>>);

impl Allowed {
    fn is(&self, key: u64, value: Option<u64>) -> bool {
        self.0[&key].contains(&value)
    }
}

/// A pool with a tree, the way to it, and the weather there.
fn set_out() -> (TcpServer, SocketAddr, Arc<Weather>) {
    let any = ([127, 0, 0, 1], 0).into();
    let serving = Serving::new(2).lease(LEASE);
    let server = TcpServer::start(any, region(16 << 20), offload::serve, secret(), serving);
    let server = server.unwrap();
    let direct = Tcp::connect(&[server.address()], &secret(), Duration::from_secs(5)).unwrap();
    let load = BulkLoad::default().fill(6);
    load.load(&direct, (0..KEYS).map(|key| (key, key))).unwrap();
    let weather = Arc::new(Weather {
        one_of: AtomicU64::new(0),
        messages: AtomicU64::new(0),
        harm: AtomicU64::new(0),
    });
    let way = proxy(server.address(), &weather);
    (server, way, weather)
}

#[test]
fn operations_end_and_nothing_comes_from_nowhere() {
    let (_server, way, weather) = set_out();
    let mut tree = open(way, 1);
    weather.one_of.store(60, SeqCst);
    let mut allowed = Allowed((0..KEYS).map(|key| (key, [Some(key)].into())).collect());
    let (mut dice, mut failed) = (Dice(5), 0);
    let is_typed = |error: &Error| matches!(error, Error::Lost { .. } | Error::Fenced { .. });
    for i in 0..OPERATIONS {
        let key = dice.roll(KEYS);
        let started = Instant::now();
        let all = allowed.0.get_mut(&key).unwrap();
        let (what, done) = match dice.roll(5) {
            0 | 1 => (None, tree.get(key)),
            2 => (Some(None), tree.remove(key)),
            _ => (Some(Some(KEYS + i)), tree.put(key, KEYS + i)),
        };
        assert!(started.elapsed() < BOUND, "{:?}", started.elapsed());
        match done {
            Ok(found) => {
                assert!(all.contains(&found), "{key} has {found:?}, not {all:?}");
                // What was found and what was put are certain until something fails.
                *all = [what.unwrap_or(found)].into();
            }
            Err(error) => {
                assert!(is_typed(&error), "{error}");
                all.extend(what);
                failed += 1;
            }
        }
        if i % 50 == 49
            && let Err(error) = tree.flush()
        {
            assert!(is_typed(&error), "{error}");
        }
        if matches!(tree.get(key), Err(Error::Fenced { .. })) {
            // Changes of its cache since they were written are lost: all values since the start
            // of the session are possible, so this test gives up what it knows.
            drop(tree);
            tree = open(way, i);
            forget(&mut allowed, &tree);
        }
    }
    weather.one_of.store(0, SeqCst);
    assert!(
        weather.harm.load(SeqCst) > 20,
        "{} harmed",
        weather.harm.load(SeqCst)
    );
    assert!(failed > 5, "{failed} failed");
    in_fine_weather(|| tree.flush());
    for key in 0..KEYS {
        let value = in_fine_weather(|| tree.get(key));
        assert!(
            allowed.is(key, value),
            "{key} has {value:?}, not {:?}",
            allowed.0[&key]
        );
    }
    let mut found = Vec::new();
    in_fine_weather(|| {
        found.clear();
        tree.scan(0, u64::MAX, usize::MAX, &mut found)
    });
    assert!(
        found
            .iter()
            .all(|(key, value)| allowed.is(*key, Some(*value)))
    );
}

/// What `call` comes to when the network works again. What was doubled or cut before may wait in
/// connections that nobody has used since: each of them fails once more.
fn in_fine_weather<T>(mut call: impl FnMut() -> Result<T, Error>) -> T {
    let started = Instant::now();
    loop {
        match call() {
            Ok(done) => return done,
            Err(Error::Lost { .. }) => assert!(started.elapsed() < BOUND),
            Err(error) => panic!("{error}"),
        }
    }
}

/// A new session: what it finds, if it was ever put there, is what stands.
fn forget(allowed: &mut Allowed, tree: &Tree<Tcp>) {
    for (key, all) in &mut allowed.0 {
        let found = loop {
            match tree.get(*key) {
                Ok(found) => break found,
                Err(Error::Lost { .. }) => {}
                // Over again already: everything stays possible.
                Err(_) => return,
            }
        };
        // The key's number, or the number of an operation that put it.
        assert!(
            found.is_none_or(|value| value == *key || value >= KEYS),
            "{key}: {found:?}"
        );
        *all = [found].into();
    }
}

#[test]
fn a_tree_works_on_when_a_network_works_again() {
    let (_server, way, weather) = set_out();
    let tree = open(way, 1);
    assert_eq!(tree.put(5, 55).unwrap(), Some(5));
    // Every message is harmed for longer than a lease: nobody took over, so nothing is lost.
    weather.one_of.store(1, SeqCst);
    sleep(2 * LEASE);
    let started = Instant::now();
    assert!(matches!(tree.get(5), Err(Error::Lost { .. })));
    assert!(started.elapsed() < BOUND);
    weather.one_of.store(0, SeqCst);
    let started = Instant::now();
    while tree.get(5).ok() != Some(Some(55)) {
        assert!(started.elapsed() < BOUND);
        sleep(Duration::from_millis(10));
    }
}
