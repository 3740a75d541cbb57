//! T7: hand-overs of one compute server that meet. The pool holds a write of the first one back
//! until the second one had its chance.

mod pools;

use indexy_dex::{
    Address, BulkLoad, Error, Options, Result, Tree,
    node::{self, Image},
    partition::{MAX_SEGMENTS, Table},
    remote::{Counts, Model, Part, RemoteMemory},
};
use pools::{ModelPool, Pool};
use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

const KEYS: u64 = 8_000;

/// What becomes of the write that is held back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Done,
    Lost,
}

/// Holds back one write of a leaf: says so, and waits for its end.
struct Held {
    model: Model,
    is_armed: Arc<AtomicBool>,
    says: SyncSender<()>,
    ends: Mutex<Receiver<End>>,
}

impl RemoteMemory for Held {
    fn servers(&self) -> usize {
        self.model.servers()
    }

    fn read(&self, at: Address, into: &mut [u64]) -> Result<()> {
        self.model.read(at, into)
    }

    fn read_many(&self, parts: &mut [Part<'_>]) -> Result<()> {
        self.model.read_many(parts)
    }

    fn write(&self, at: Address, words: &[u64]) -> Result<()> {
        let image = words.first_chunk::<128>().map(|words| Image(*words));
        let is_leaf = image.is_some_and(|image| node::level(&image) == 0);
        if is_leaf && self.is_armed.swap(false, SeqCst) {
            self.says.send(()).unwrap();
            if self.ends.lock().unwrap().recv().unwrap() == End::Lost {
                let source = io::ErrorKind::TimedOut.into();
                return Err(Error::Lost { server: 0, source });
            }
        }
        self.model.write(at, words)
    }

    fn cas(&self, at: Address, expected: u64, new: u64) -> Result<u64> {
        self.model.cas(at, expected, new)
    }

    fn call(&self, server: u16, request: &[u64]) -> Result<Vec<u64>> {
        self.model.call(server, request)
    }

    fn counts(&self) -> Counts {
        self.model.counts()
    }

    fn now_ns(&self) -> u64 {
        self.model.now_ns()
    }
}

struct Meeting {
    /// Of all keys below `KEYS / 2`, some of them changed.
    giver: Tree<Held>,
    taker: Tree<Model>,
    is_armed: Arc<AtomicBool>,
    said: Receiver<()>,
    end: SyncSender<End>,
}

impl Meeting {
    fn new() -> Self {
        let pool = ModelPool::new(1, 64 << 20);
        let table = Table::new(vec![(0, 0), (KEYS / 2, 1)]).unwrap();
        let load = BulkLoad::default().table(table).fill(40);
        let entries = (0..KEYS).map(|key| (key, key));
        load.load(&pool.connect(), entries).unwrap();
        let is_armed = Arc::new(AtomicBool::new(false));
        let (says, said) = sync_channel(1);
        let (end, ends) = sync_channel(1);
        let held = Held {
            model: pool.connect(),
            is_armed: is_armed.clone(),
            says,
            ends: Mutex::new(ends),
        };
        let giver = Tree::open(held, Options::new(0, 1_000).leaf_admission(1.0)).unwrap();
        let taker = Tree::open(pool.connect(), Options::new(1, 1_000)).unwrap();
        for key in (0..KEYS / 2).step_by(10) {
            giver.put(key, !key).unwrap();
        }
        Self {
            giver,
            taker,
            is_armed,
            said,
            end,
        }
    }

    /// Ends that leaves have.
    fn range(&self, from: u64, to: u64) -> (u64, u64) {
        let start = |key| self.giver.leaf_start(key).unwrap();
        (start(from), start(to) - 1)
    }

    /// Releases `range`; `other` begins in its middle. Returns the first one's result.
    fn release_beside(
        &self,
        range: (u64, u64),
        end: End,
        other: impl FnOnce() + Send,
    ) -> Result<u64> {
        self.is_armed.store(true, SeqCst);
        let giver = &self.giver;
        thread::scope(|scope| {
            let first = scope.spawn(move || giver.release(range.0, range.1, 1));
            self.said.recv_timeout(Duration::from_secs(10)).unwrap();
            let other = scope.spawn(other);
            // Long enough to end, if it does not wait.
            thread::sleep(Duration::from_millis(200));
            self.end.send(end).unwrap();
            other.join().unwrap();
            first.join().unwrap()
        })
    }

    /// Nobody serves what another one serves.
    fn check(&self, given: (u64, u64)) {
        self.taker.adopt_table().unwrap();
        let (giver, taker) = (self.giver.ownership(), self.taker.ownership());
        for &(low, high) in taker.ranges() {
            assert!(!giver.overlaps(low, high), "{giver:?} and {taker:?}");
        }
        assert!(taker.contains(given.0, given.1));
        for key in (0..KEYS).step_by(10) {
            let expected = if key < KEYS / 2 { !key } else { key };
            let found = match giver.contains(key, key) {
                true => self.giver.get(key).unwrap(),
                false => self.taker.get(key).unwrap(),
            };
            assert_eq!(found, Some(expected), "{key}");
        }
    }
}

#[test]
fn t7_a_range_on_its_way_is_not_adopted_again() {
    let meeting = Meeting::new();
    let given = meeting.range(1_000, 2_000);
    let released = meeting.release_beside(given, End::Done, || {
        meeting.giver.adopt_table().unwrap();
    });
    released.unwrap();
    meeting.check(given);
}

#[test]
fn t7_a_release_that_fails_takes_back_its_own_range_alone() {
    let meeting = Meeting::new();
    let (kept, given) = (meeting.range(1_000, 2_000), meeting.range(3_000, 3_500));
    let released = meeting.release_beside(kept, End::Lost, || {
        meeting.giver.release(given.0, given.1, 1).unwrap();
    });
    assert!(matches!(released, Err(Error::Lost { .. })));
    assert!(meeting.giver.ownership().contains(kept.0, kept.1));
    meeting.check(given);
}

/// Every second leaf goes to another owner, until the table is full.
#[test]
fn a_range_that_the_table_has_no_room_for_is_served_on() {
    let pool = ModelPool::new(1, 64 << 20);
    let load = BulkLoad::default().fill(40);
    let entries = (0..KEYS).map(|key| (key, key));
    load.load(&pool.connect(), entries).unwrap();
    let tree = Tree::open(pool.connect(), Options::new(0, 1_000).leaf_admission(1.0)).unwrap();
    let leaf_after = |start: u64| {
        let mut keys = start + 1..;
        keys.find(|&key| tree.leaf_start(key).unwrap() == key)
            .unwrap()
    };
    let (mut kept, mut given) = (0, 0);
    let (error, start) = loop {
        let start = leaf_after(kept);
        kept = leaf_after(start);
        match tree.release(start, kept - 1, 1) {
            Ok(_) => given += 1,
            Err(error) => break (error, start),
        }
    };
    assert!(matches!(error, Error::Options(_)), "{error:?}");
    assert_eq!(given, (MAX_SEGMENTS - 1) / 2);
    tree.put(start, 7).unwrap();
    assert_eq!(tree.get(start).unwrap(), Some(7));
}
