//! Entries that are written anew while they are read: a key that was never absent is never answered
//! as absent, whatever the clock says meanwhile.

use crate::{
    gated_y::{Call, Gate, Gated, OpenAtDrop},
    pairs,
    places::fast_dir,
    support::{MIB, open},
};
use indexy::{Clock, Db, Fetch, IndexYKind, Options, Tree, TreeOptions, Ttl, Value};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

const MS: Duration = Duration::from_millis(1);

/// Milliseconds since 1970.
#[derive(Debug)]
struct ByHand(AtomicU64);

impl Clock for ByHand {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.0.load(SeqCst))
    }
}

fn expiring() -> TreeOptions {
    TreeOptions::new().ttl(Ttl::PerEntry)
}

/// `k` lives for 100 ms from 1000 on, and is on disk alone.
fn with_cold_key(options: &Options, how: TreeOptions, test: impl Fn(&Db, &Tree, &ByHand)) {
    let dir = fast_dir();
    let clock = Arc::new(ByHand(AtomicU64::new(1000)));
    let db = open(dir.path(), &options.clone().clock(clock.clone()));
    let tree = db.tree_with("t", how).unwrap();
    tree.insert_with_ttl("k", "old", 100 * MS).unwrap();
    tree.release::<&[u8]>(..).unwrap();
    test(&db, &tree, &clock);
}

/// It gets another life before its end, and then the time of the first one passes.
fn renew(tree: &Tree, clock: &ByHand) {
    clock.0.store(1090, SeqCst);
    tree.insert_with_ttl("k", "new", 1000 * MS).unwrap();
    clock.0.store(1150, SeqCst);
}

#[test]
fn a_ticket_has_what_lived_when_it_was_read() {
    for pair in pairs::chosen(0, 3) {
        let options = pairs::options(pair, Options::new(4 * MIB));
        with_cold_key(&options, expiring(), |_, tree, clock| {
            let Fetch::Later(ticket) = tree.try_get("k").unwrap() else {
                // It needs no read of a disk.
                return;
            };
            let began = Instant::now();
            while !ticket.is_ready() {
                assert!(began.elapsed() < Duration::from_secs(30));
                thread::sleep(MS);
            }
            renew(tree, clock);
            let found = ticket.wait().unwrap();
            assert!(found.is_some(), "{}", pairs::name(pair));
            assert_eq!(tree.get("k").unwrap().as_deref(), Some(&b"new"[..]));
        });
    }
}

/// The value was read, and the clock is asked later.
#[test]
fn a_read_that_is_overtaken_finds_the_new_life() {
    let reads: [fn(&Tree) -> Option<Value>; 3] = [
        |tree| tree.get("k").unwrap(),
        |tree| tree.multi_get(["k"]).unwrap().remove(0),
        |tree| tree.try_get("k").unwrap().wait().unwrap(),
    ];
    for read in reads {
        let gate: Arc<Gate> = Arc::default();
        let options = Options::new(4 * MIB)
            .register_index_y("gated", Arc::new(Gated(gate.clone())))
            .unwrap();
        let how = expiring().index_y(IndexYKind::custom("gated").unwrap());
        with_cold_key(&options, how, |_, tree, clock| {
            let _open = OpenAtDrop(&gate);
            gate.close(Call::Got);
            thread::scope(|scope| {
                let reader = scope.spawn(|| read(tree));
                gate.wait_until_reached();
                renew(tree, clock);
                gate.open();
                let found = reader.join().unwrap();
                assert_eq!(found.as_deref(), Some(&b"new"[..]));
            });
        });
    }
}

/// Two entries of one moment are there, or both gone, to one call.
#[test]
fn a_call_for_many_keys_sees_one_moment() {
    /// Goes on at each question.
    #[derive(Debug)]
    struct Restless(AtomicU64);
    impl Clock for Restless {
        fn now(&self) -> SystemTime {
            UNIX_EPOCH + Duration::from_millis(self.0.fetch_add(1, SeqCst))
        }
    }
    let dir = fast_dir();
    let clock = Arc::new(Restless(AtomicU64::new(1000)));
    let db = open(dir.path(), &Options::new(4 * MIB).clock(clock.clone()));
    let tree = db.tree_with("t", expiring()).unwrap();
    let keys = ["a", "b", "c"];
    let end = UNIX_EPOCH + 1500 * MS;
    for key in keys {
        tree.insert_until(key, "v", indexy::Expires::At(end))
            .unwrap();
    }
    while clock.0.load(SeqCst) < 1600 {
        let found = tree.multi_get(keys).unwrap();
        let there = found.iter().flatten().count();
        assert!(there == 0 || there == 3, "{there} at {clock:?}");
    }
}
