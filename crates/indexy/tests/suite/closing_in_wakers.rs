//! Wakers that close the database, or drop its last handle: on the thread that closes it, on a
//! thread that it joins, and as the first to do so. Nobody waits for himself.

use crate::{
    gated_y::{Call, Gate, Gated, OpenAtDrop},
    places::fast_dir,
    support::{MIB, open},
};
use indexy::{Db, Durability, Error, Fetch, IndexYKind, Options, Result, Ticket, Tree};
use std::{
    pin::Pin,
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    task::{Context, Wake, Waker},
    time::{Duration, Instant},
};

/// Whatever is waited for comes before that.
const SOON: Duration = Duration::from_secs(10);
/// What waits for something has begun to by then.
const A_MOMENT: Duration = Duration::from_millis(100);

fn key(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

struct World {
    dir: tempfile::TempDir,
    options: Options,
    gate: Arc<Gate>,
    db: Db,
    tree: Tree,
}

/// All keys are in the Index Y alone.
fn world(durability: Durability) -> World {
    let dir = fast_dir();
    let gate: Arc<Gate> = Arc::default();
    let options = Options::new(4 * MIB)
        .index_y(IndexYKind::custom("gated").unwrap())
        .durability(durability)
        .register_index_y("gated", Arc::new(Gated(gate.clone())))
        .unwrap();
    let db = open(dir.path(), &options);
    let tree = db.tree("t").unwrap();
    for n in 0..100 {
        tree.insert(key(n), key(n)).unwrap();
    }
    tree.release::<&[u8]>(..).unwrap();
    World {
        dir,
        options,
        gate,
        db,
        tree,
    }
}

/// Closes the database once, and tells what came of it.
struct Closes {
    db: Db,
    told: Sender<Result<()>>,
}

impl Wake for Closes {
    fn wake(self: Arc<Self>) {
        let _ = self.told.send(self.db.close());
    }
}

/// A read that is under way, whose waker closes `db`.
fn closing(db: &Db, tree: &Tree, n: u32) -> (Ticket, Receiver<Result<()>>) {
    let (told, closed) = channel();
    let waker = Closes {
        db: db.clone(),
        told,
    };
    (polled(tree, n, &Arc::new(waker).into()), closed)
}

fn polled(tree: &Tree, n: u32, waker: &Waker) -> Ticket {
    let Fetch::Later(mut ticket) = tree.try_get(key(n)).unwrap() else {
        panic!("it was released");
    };
    let polled = Pin::new(&mut ticket).poll(&mut Context::from_waker(waker));
    assert!(polled.is_pending());
    ticket
}

/// Not a scoped thread: one that hangs is left behind.
fn close_beside(db: &Db) -> Receiver<Result<()>> {
    let (told, closed) = channel();
    let db = db.clone();
    std::thread::spawn(move || {
        let _ = told.send(db.close());
    });
    closed
}

fn soon(closed: &Receiver<Result<()>>) -> Result<()> {
    closed.recv_timeout(SOON).expect("it does not hang")
}

/// The closing has come so far that writers are refused: it waits for no operation any more.
fn wait_until_closing(tree: &Tree) {
    let start = Instant::now();
    while !matches!(tree.insert(b"k", b"v"), Err(Error::Closed)) {
        assert!(start.elapsed() < SOON, "it does not begin");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn on_a_thread_that_is_joined() {
    let World { gate, db, tree, .. } = &world(Durability::default());
    let _opened = OpenAtDrop(gate);
    gate.close(Call::Get);
    let (ticket, in_waker) = closing(db, tree, 7);
    gate.wait_until_reached();
    let first = close_beside(db);
    wait_until_closing(tree);
    std::thread::sleep(A_MOMENT);
    gate.open();
    let told = soon(&in_waker);
    assert!(matches!(told, Err(Error::Closed)), "{told:?}");
    soon(&first).unwrap();
    // It was read before the end.
    assert!(matches!(ticket.wait(), Ok(Some(_)) | Err(Error::Closed)));
    // Now that it is over there is nothing to wait for.
    db.close().unwrap();
}

#[test]
fn on_the_thread_that_closes() {
    let World { gate, db, tree, .. } = &world(Durability::default());
    let _opened = OpenAtDrop(gate);
    gate.close(Call::Get);
    // Keeps the fetcher busy.
    let (first_read, in_fetcher) = closing(db, tree, 7);
    gate.wait_until_reached();
    // Waits in the queue until the closing answers it.
    let (second_read, in_closing) = closing(db, tree, 8);
    let first = close_beside(db);
    let told = soon(&in_closing);
    assert!(matches!(told, Err(Error::Closed)), "{told:?}");
    gate.open();
    let told = soon(&in_fetcher);
    assert!(matches!(told, Err(Error::Closed)), "{told:?}");
    soon(&first).unwrap();
    assert!(matches!(second_read.wait(), Err(Error::Closed)));
    drop(first_read);
}

/// A waker is the first to close; another thread that does so waits until it has.
#[test]
fn as_the_first_one() {
    let World {
        dir,
        options,
        gate,
        db,
        tree,
    } = &world(Durability::default());
    let _opened = OpenAtDrop(gate);
    gate.close(Call::Get);
    let (ticket, in_waker) = closing(db, tree, 7);
    gate.wait_until_reached();
    tree.insert(b"dirty", b"1").unwrap();
    // The closing has something to write, and stands still there.
    gate.close(Call::WriteRun);
    gate.wait_until_reached();
    let second = close_beside(db);
    let waits = second.recv_timeout(A_MOMENT);
    assert!(matches!(waits, Err(RecvTimeoutError::Timeout)), "{waits:?}");
    gate.open();
    soon(&in_waker).unwrap();
    soon(&second).unwrap();
    drop(ticket);
    let db = open(dir.path(), options);
    assert_eq!(db.tree("t").unwrap().get("dirty").unwrap().unwrap(), b"1");
}

/// Holds a handle until it is called.
struct Holds(Mutex<Option<Db>>);

impl Wake for Holds {
    fn wake(self: Arc<Self>) {
        drop(self.0.lock().unwrap().take());
    }
}

/// The thread of the database that drops the last handle ends all others, and itself.
#[test]
fn the_last_handle_goes_in_a_waker() {
    for durability in [Durability::default(), Durability::None] {
        let World {
            dir,
            options,
            gate,
            db,
            tree,
        } = world(durability);
        let _opened = OpenAtDrop(&gate);
        gate.close(Call::Get);
        tree.insert(b"dirty", b"1").unwrap();
        let holds = Arc::new(Holds(Mutex::new(Some(db.clone()))));
        drop(polled(&tree, 7, &holds.into()));
        gate.wait_until_reached();
        drop((tree, db));
        gate.open();
        let start = Instant::now();
        let db = loop {
            match Db::open(dir.path(), options.clone()) {
                Ok(db) => break db,
                Err(error) => {
                    assert!(matches!(error, Error::Locked { .. }), "{error:?}");
                    assert!(start.elapsed() < SOON, "it does not end");
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        };
        let dirty = db.tree("t").unwrap().get("dirty").unwrap();
        assert_eq!(dirty.unwrap(), b"1");
    }
}

/// A waker closes the database while a writer, whom the closing waits for, waits for a key that the
/// same thread reads: in the same batch, or in the queue behind it.
#[test]
fn while_a_writer_waits_for_another_ticket() {
    for same_batch in [true, false] {
        let World { gate, db, tree, .. } = &world(Durability::default());
        let _opened = OpenAtDrop(gate);
        tree.insert(b"a", b"1").unwrap();
        gate.close(Call::Get);
        // Keeps the fetcher busy, so that what follows waits together.
        let busy = same_batch.then(|| tree.try_get(key(1)).unwrap());
        if same_batch {
            gate.wait_until_reached();
        }
        let (first_read, in_waker) = closing(db, tree, 7);
        gate.wait_until_reached();
        let ((asks, asked), (told, updated)) = (channel(), channel());
        let writer = tree.clone();
        // Not a scoped thread: one that hangs is left behind.
        std::thread::spawn(move || {
            let updated = writer.update(b"a", |_| {
                let read = writer.try_get(key(9)).unwrap();
                asks.send(()).unwrap();
                let _ = read.wait();
                None
            });
            let _ = told.send(updated.map(|_| ()));
        });
        asked.recv_timeout(SOON).unwrap();
        gate.open();
        soon(&in_waker).unwrap();
        let updated = soon(&updated);
        assert!(
            matches!(updated, Ok(()) | Err(Error::Closed)),
            "{updated:?}"
        );
        drop((first_read, busy));
    }
}
