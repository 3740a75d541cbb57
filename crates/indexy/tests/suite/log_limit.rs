//! I6: a limit for the log forces cleaning by age. A key that is written all the time is never
//! picked by check-back; without its age the log would grow for ever behind it.

use crate::{
    pairs::{self, Pair},
    places::fast_dir,
    support::{MIB, assert_sound, open},
};
use indexy::{Db, Durability, Options, Tree};
use std::time::{Duration, Instant};

const LIMIT: u64 = 3 << 20;
/// A segment is no smaller.
const SEGMENT: u64 = 1 << 20;
const MOST: u64 = LIMIT + 2 * SEGMENT;
/// What is logged in all, as a multiple of the limit.
const TIMES: u64 = 7;
/// Writes between two looks at the log.
const LOOK: u64 = 256;
const PATIENCE: Duration = Duration::from_secs(20);
const HOT: [u8; 8] = [0xff; 8];

fn key(n: u64) -> [u8; 8] {
    (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 1).to_be_bytes()
}

fn value(n: u64) -> [u8; 400] {
    let mut value = [n as u8; 400];
    value[..8].copy_from_slice(&n.to_be_bytes());
    value
}

/// One write in twenty goes to a slow key, the others to the hot one.
fn write(tree: &Tree, n: u64, slow_keys: u64) {
    match n % 20 {
        0 => tree.insert(key(n / 20 % slow_keys), value(n)).unwrap(),
        _ => tree.insert(HOT, value(n)).unwrap(),
    }
}

/// The log may be over its limit for a moment; who only writes slowly then sees it come down again.
fn wait_for_log(db: &Db, tree: &Tree, n: u64) {
    let start = Instant::now();
    loop {
        let bytes = db.stats().log_bytes;
        assert!(bytes <= MOST, "the log has {bytes} bytes");
        if bytes <= LIMIT {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "the log stays at {bytes} bytes");
        tree.insert(HOT, value(n)).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// `slow_keys`: so few that everything fits and nothing is watched, or so many that regions are
/// released.
fn run(pair: Pair, budget: usize, slow_keys: u64) {
    let dir = fast_dir();
    let options = Options::new(budget)
        .durability(Durability::Buffered { interval_ms: 20 })
        .log_limit_bytes(LIMIT);
    let options = pairs::options(pair, options);
    let db = open(dir.path(), &options);
    let tree = db.tree("t").unwrap();
    for n in 0..slow_keys {
        tree.insert(key(n), value(n)).unwrap();
    }
    db.flush().unwrap();
    let writes = TIMES * LIMIT / 400;
    for n in 0..writes {
        write(&tree, n, slow_keys);
        if n % LOOK == 0 {
            wait_for_log(&db, &tree, n);
        }
    }
    tree.insert(HOT, value(writes)).unwrap();
    db.sync().unwrap();
    assert!(db.stats().log_bytes <= MOST);
    drop((tree, db));
    // Without a clean end: what is replayed is what the log has.
    let start = Instant::now();
    let db = open(dir.path(), &options);
    assert!(start.elapsed() < PATIENCE);
    let replayed = db.stats().x_keys;
    assert!(replayed <= MOST / 400 / 20 + 2, "{replayed} keys");
    let tree = db.tree("t").unwrap();
    assert_eq!(tree.get(HOT).unwrap().unwrap(), value(writes));
    for slow in (0..slow_keys).step_by(11) {
        let rounds = (0..writes.div_ceil(20)).skip(slow as usize);
        let newest = rounds.step_by(slow_keys as usize).last();
        let expected = value(newest.map_or(slow, |round| round * 20));
        assert_eq!(tree.get(key(slow)).unwrap().unwrap(), expected);
    }
    assert_sound(&db);
}

#[test]
fn i6_a_hot_key_does_not_keep_the_log_while_everything_fits() {
    run(pairs::named("art-lsm"), 64 * MIB, 500);
}

#[test]
fn i6_a_hot_key_does_not_keep_the_log_while_others_are_released() {
    run(pairs::named("art-lsm"), 4 * MIB, 30_000);
}
