//! Sessions over sockets: who is replaced is refused, what is late does not arrive, and locks of
//! who is gone end in bounded time.

mod pools;

use indexy_dex::{
    Address, BulkLoad, Error, Options, Tree,
    node::{self, Image, NODE_WORDS},
    offload,
    partition::Table,
    remote::{
        NODES_OFFSET, ROOT_OFFSET, RemoteMemory, Serving, TABLE_OFFSET,
        shm::{Shm, ShmServer},
        tcp::{Tcp, TcpServer},
    },
};
use pools::{region, secret};
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    thread::{self, sleep},
    time::{Duration, Instant},
};

const PATIENCE: Duration = Duration::from_secs(5);
const LEASE: Duration = Duration::from_millis(400);
const ANY_PORT: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

fn word() -> Address {
    Address::new(0, NODES_OFFSET)
}

fn read(memory: &impl RemoteMemory) -> Result<u64, Error> {
    let mut into = [0];
    memory.read(word(), &mut into)?;
    Ok(into[0])
}

fn serving(lease: Duration) -> Serving {
    Serving::new(2).lease(lease)
}

fn serve(lease: Duration) -> TcpServer {
    let any = ANY_PORT.into();
    TcpServer::start(
        any,
        region(16 << 20),
        offload::serve,
        secret(),
        serving(lease),
    )
    .unwrap()
}

fn connect(owner: u16, address: SocketAddr) -> Result<Tcp, Error> {
    Tcp::connect_as(owner, &[address], &secret(), PATIENCE)
}

/// What both transports promise. `stop` makes the first one's lease lapse.
fn replaced<M: RemoteMemory>(connect: impl Fn(u16) -> Result<M, Error>, reads_are_refused: bool) {
    let (one, two) = (connect(7).unwrap(), connect(8).unwrap());
    assert!(one.session() > 0 && one.session() != two.session());
    assert!(matches!(connect(7), Err(Error::Alive { for_ms: 1.., .. })));
    one.write(word(), &[1]).unwrap();
    one.check_session().unwrap();
    // Renewed meanwhile: twice a lease is no reason to be replaced.
    sleep(2 * LEASE);
    assert!(matches!(two.fence(one.session()), Err(Error::Alive { .. })));
    // As if it was stopped: nothing renews the lease.
    let gone = one.session();
    assert_eq!(two.session_of(7).unwrap(), gone);
    one.abandon();
    let started = Instant::now();
    while two.fence(gone).is_err() {
        assert!(started.elapsed() < 3 * LEASE, "it ends in bounded time");
        sleep(Duration::from_millis(10));
    }
    assert!(matches!(
        one.write(word(), &[2]),
        Err(Error::Fenced { owner: 7, .. })
    ));
    assert!(matches!(one.check_session(), Err(Error::Fenced { .. })));
    assert!(one.cas(word(), 1, 2).is_err() && one.call(0, &[1, 0, 0, 0]).is_err());
    assert!(!reads_are_refused || read(&one).is_err());
    assert_eq!(read(&two).unwrap(), 1);
    // It may come back, as somebody new.
    let again = connect(7).unwrap();
    assert!(again.session() > two.session());
    again.write(word(), &[3]).unwrap();
    drop(again);
    // Who leaves makes room at once.
    connect(7).unwrap().check_session().unwrap();
    assert_eq!(read(&two).unwrap(), 3);
}

#[test]
fn f1_f2_f3_over_tcp() {
    let servers = [serve(LEASE), serve(LEASE)];
    let addresses = servers.each_ref().map(TcpServer::address);
    replaced(
        |owner| Tcp::connect_as(owner, &addresses, &secret(), PATIENCE),
        true,
    );
}

#[test]
fn f1_f2_f3_over_shared_memory() {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = ["a", "b"]
        .iter()
        .map(|name| folder.path().join(name))
        .collect();
    let start = |path: &PathBuf| {
        ShmServer::start(
            path,
            region(1 << 20),
            offload::serve,
            secret(),
            serving(LEASE),
        )
        .unwrap()
    };
    let _servers: Vec<_> = paths.iter().map(start).collect();
    replaced(
        |owner| Shm::connect_as(owner, &paths, &secret(), PATIENCE),
        false,
    );
}

static HOLDS: AtomicBool = AtomicBool::new(false);

/// Passes bytes on; the first connection's wait for a second while `HOLDS` is set.
fn slow_proxy(to: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind(SocketAddr::from(ANY_PORT)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for (number, client) in listener.incoming().enumerate() {
            let (mut client, mut server) = (client.unwrap(), TcpStream::connect(to).unwrap());
            let (mut back, mut to_client) =
                (server.try_clone().unwrap(), client.try_clone().unwrap());
            thread::spawn(move || std::io::copy(&mut back, &mut to_client));
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(bytes @ 1..) = client.read(&mut buffer) {
                    if number == 0 && HOLDS.load(SeqCst) {
                        sleep(Duration::from_secs(1));
                    }
                    let _ = server.write_all(&buffer[..bytes]);
                }
            });
        }
    });
    address
}

#[test]
fn f4_a_write_that_is_late_does_not_come_after_the_next_one() {
    let server = serve(Duration::from_secs(60));
    let proxy = slow_proxy(server.address());
    let patience = Duration::from_millis(200);
    let memory = Tcp::connect_as(7, &[proxy], &secret(), patience).unwrap();
    memory.write(word(), &[1]).unwrap();
    HOLDS.store(true, SeqCst);
    assert!(matches!(
        memory.write(word(), &[2]),
        Err(Error::Lost { .. })
    ));
    memory.write(word(), &[3]).unwrap();
    sleep(Duration::from_millis(1_500));
    assert_eq!(read(&memory).unwrap(), 3);
}

#[test]
fn f5_a_server_that_was_started_anew_is_not_taken_for_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    let paths = [dir.path().join("pool")];
    let start = || {
        let (region, serving) = (region(16 << 20), serving(LEASE));
        ShmServer::start(&paths[0], region, offload::serve, secret(), serving).unwrap()
    };
    let connect = || Shm::connect_as(7, &paths, &secret(), PATIENCE).unwrap();
    let server = start();
    let memory = connect();
    memory.write(word(), &[1]).unwrap();
    drop(server);
    let _server = start();
    for _ in 0..5 {
        assert!(memory.write(word(), &[2]).is_err());
    }
    // Nor does it keep the place of one that knows the new pool.
    sleep(2 * LEASE);
    let fresh = connect();
    assert_eq!(read(&fresh).unwrap(), 0);
    fresh.write(word(), &[3]).unwrap();
    assert!(memory.write(word(), &[4]).is_err());
    assert!(memory.check_session().is_err());
    assert_eq!(read(&fresh).unwrap(), 3);
}

/// A tree of two owners, whose root and one node below are shared.
fn tree_of_two(memory: &impl RemoteMemory) -> u64 {
    let load = BulkLoad::default().table(Table::new(vec![(0, 0), (50_000, 1)]).unwrap());
    let entries = (0..5_000).map(|key| (20 * key, key));
    let table = load.load(memory, entries).unwrap();
    table.segments().nth(1).unwrap().0
}

#[test]
fn l1_locks_of_one_that_is_gone_end() {
    let server = serve(LEASE);
    let connect = |owner| connect(owner, server.address());
    let border = tree_of_two(&Tcp::connect(&[server.address()], &secret(), PATIENCE).unwrap());
    let gone = connect(0).unwrap();
    let mut root = [0];
    gone.read(Address::new(0, ROOT_OFFSET), &mut root).unwrap();
    let root = Address::from_word(root[0]).unwrap();
    let tree = Tree::open(connect(1).unwrap(), Options::new(1, 100)).unwrap();
    // The words of the table, of the root and of the node below, locked by a session.
    let mut image = Image::zero();
    gone.read(root, &mut image.0).unwrap();
    let below = Address::from_word(node::route(&image, border).word).unwrap();
    for place in [Address::new(0, TABLE_OFFSET), root, below] {
        let mut was = [0];
        gone.read(place, &mut was).unwrap();
        assert_eq!(
            gone.cas(place, was[0], gone.session() << 40 | was[0] | 1)
                .unwrap(),
            was[0]
        );
    }
    let started = Instant::now();
    // While the holder lives, others wait.
    assert!(matches!(
        Table::load(tree.memory()),
        Err(Error::Locked { .. })
    ));
    assert!(started.elapsed() < Duration::from_secs(7));
    gone.abandon();
    let started = Instant::now();
    assert_eq!(tree.get(border).unwrap(), Some(border / 20));
    assert!(started.elapsed() < 4 * LEASE, "{:?}", started.elapsed());
    Table::load(tree.memory()).unwrap();
    tree.take_over(0).unwrap();
    assert_eq!(tree.get(0).unwrap(), Some(0));
    let (mut found, mut version) = (Vec::new(), [0]);
    assert_eq!(
        tree.scan(0, u64::MAX, usize::MAX, &mut found).unwrap(),
        None
    );
    assert_eq!(found.len(), 5_000);
    tree.memory().read(root, &mut version).unwrap();
    assert!(version[0] & 1 == 0 && NODE_WORDS == image.0.len());
}

#[test]
fn p4_an_owner_that_comes_back_keeps_what_nobody_took() {
    let server = serve(LEASE);
    let connect = |owner| connect(owner, server.address());
    tree_of_two(&Tcp::connect(&[server.address()], &secret(), PATIENCE).unwrap());
    let two = Tree::open(connect(1).unwrap(), Options::new(1, 100)).unwrap();
    let one = Tree::open(connect(0).unwrap(), Options::new(0, 100)).unwrap();
    one.put(1, 11).unwrap();
    assert!(matches!(two.take_over(0), Err(Error::Alive { .. })));
    one.flush().unwrap();
    drop(one);
    let one = Tree::open(connect(0).unwrap(), Options::new(0, 100)).unwrap();
    assert!(matches!(two.take_over(0), Err(Error::Alive { .. })));
    assert_eq!(one.get(1).unwrap(), Some(11));
    // It hangs without a word.
    one.memory().abandon();
    let started = Instant::now();
    while let Err(error) = two.take_over(0) {
        assert!(matches!(error, Error::Alive { .. }), "{error}");
        assert!(started.elapsed() < 3 * LEASE);
        sleep(Duration::from_millis(10));
    }
    assert_eq!(two.get(1).unwrap(), Some(11));
    assert!(matches!(one.get(1), Err(Error::Fenced { .. })));
    let one = Tree::open(connect(0).unwrap(), Options::new(0, 100)).unwrap();
    assert!(matches!(one.get(1), Err(Error::NotOwner { .. })));
    // A session is for the tree of its owner.
    let wrong = Tree::open(connect(3).unwrap(), Options::new(4, 100));
    assert!(matches!(wrong, Err(Error::Options(_))));
}
