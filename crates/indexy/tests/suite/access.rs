//! Access by the byte: who has it, and that no answer depends on it.

use super::support::{MIB, Random, assert_sound, child, child_argument, wait};
use crate::places::fast_dir;
use indexy::{
    Access, Admission, Db, DeviceProfile, Error, IndexXKind, IndexYKind, Options, TreeOptions,
};
use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    path::{Path, PathBuf},
    time::Duration,
};

const PAGED: IndexYKind = IndexYKind::BPlus { page_bytes: 4096 };

fn by_byte() -> Options {
    Options::new(4 * MIB).index_y(PAGED).access(Access::Byte)
}

fn is_refused(opened: Result<impl Sized, Error>) {
    match opened.map(|_| ()) {
        Err(Error::InvalidOption { option, reason }) => {
            assert_eq!(option, "access");
            assert!(reason.contains("IndexYKind::BPlus"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_disk_index_without_it_is_refused_with_the_reason() {
    let dir = fast_dir();
    is_refused(Db::open(
        dir.path(),
        Options::new(4 * MIB).access(Access::Byte),
    ));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    let db = Db::open(dir.path(), by_byte()).unwrap();
    is_refused(db.tree_with("lsm", TreeOptions::new().index_y(IndexYKind::Lsm)));
    db.tree("paged").unwrap().insert("key", "value").unwrap();
    db.close().unwrap();
    // Nothing is stored; a tree that is there and has none of it is refused, too.
    let db = Db::open(dir.path(), Options::new(4 * MIB)).unwrap();
    assert_eq!(
        db.tree("paged").unwrap().get("key").unwrap().unwrap(),
        b"value"
    );
    db.tree("lsm").unwrap();
    db.close().unwrap();
    is_refused(Db::open(dir.path(), by_byte()));
    // A preset takes what there is.
    let preset = Options::new(4 * MIB).device(DeviceProfile::Nvram);
    let db = Db::open(dir.path(), preset).unwrap();
    db.tree("lsm").unwrap().insert("key", "value").unwrap();
    assert_eq!(
        db.tree("paged").unwrap().get("key").unwrap().unwrap(),
        b"value"
    );
}

#[test]
fn a_preset_for_memory_goes_with_it() {
    let dir = fast_dir();
    let options = Options::new(4 * MIB)
        .access(Access::Byte)
        .device(DeviceProfile::Nvram);
    let db = Db::open(dir.path(), options).unwrap();
    let tree = db.tree("t").unwrap();
    assert_eq!(tree.pair().1, PAGED);
    assert_eq!(tree.admission(), Admission::Top { percent: 5 });
}

/// Values of all sizes, twice the budget, with overwrites, removals, restarts and scans.
#[test]
fn answers_do_not_depend_on_it() {
    for (round, x) in [IndexXKind::Art, IndexXKind::BPlus, IndexXKind::None]
        .into_iter()
        .enumerate()
    {
        let dir = fast_dir();
        let mut random = Random(round as u64 + 1);
        let mut model: BTreeMap<[u8; 8], Vec<u8>> = BTreeMap::new();
        for restart in 0..4 {
            let access = if restart == 2 {
                Access::Block
            } else {
                Access::Byte
            };
            let options = by_byte().index_x(x).access(access);
            let db = Db::open(dir.path(), options).unwrap();
            let tree = db.tree("t").unwrap();
            for _ in 0..6_000 {
                let key = random.below(8_000).to_be_bytes();
                match random.below(8) {
                    0 => {
                        tree.remove(key).unwrap();
                        model.remove(&key);
                    }
                    1..4 => {
                        let len = match random.below(50) {
                            0 => 30_000,
                            1..10 => 1_500,
                            _ => 90,
                        };
                        let value = vec![random.next() as u8; len];
                        tree.insert(key, &value).unwrap();
                        model.insert(key, value);
                    }
                    _ => {
                        let found = tree.get(key).unwrap();
                        assert_eq!(found.as_deref(), model.get(&key).map(|v| &v[..]));
                    }
                }
            }
            if restart == 1 {
                db.flush().unwrap();
                tree.compact::<&[u8]>(..).unwrap();
            }
            let mut expected = model.iter();
            for entry in tree.iter() {
                let (key, value) = entry.unwrap();
                let (k, v) = expected.next().unwrap();
                assert!(key == k[..] && value == v[..]);
            }
            assert!(expected.next().is_none());
            let keys: Vec<_> = model.keys().collect();
            for (key, found) in keys.iter().zip(tree.multi_get(&keys).unwrap()) {
                assert_eq!(found.as_deref(), model.get(*key).map(|v| &v[..]));
            }
            assert_sound(&db);
            db.close().unwrap();
        }
    }
}

/// The file of the pages of the one tree of a database.
fn page_file(dir: &Path) -> PathBuf {
    let mut trees = fs::read_dir(dir.join("trees")).unwrap();
    trees.next().unwrap().unwrap().path().join("pages")
}

/// Somebody else cuts the file under its mapping: errors of the calls, no signal, and no wrong
/// answer, from four threads. A signal that was sent before has changed nothing. In a process of
/// its own, because it plays with signals.
#[test]
fn a_fault_is_an_error_child() {
    const KEYS: u64 = 60_000;
    let Some(path) = child_argument() else {
        return;
    };
    let value = |n: u64| vec![n as u8; if n.is_multiple_of(100) { 9_000 } else { 400 }];
    let options = by_byte().index_x(IndexXKind::None);
    let db = Db::open(&path, options).unwrap();
    let tree = db.tree("t").unwrap();
    for n in 0..KEYS {
        tree.insert(n.to_be_bytes(), value(n)).unwrap();
    }
    db.flush().unwrap();
    let other_dir = fast_dir();
    let other = Db::open(other_dir.path(), by_byte()).unwrap();
    let other = other.tree("t").unwrap();
    // After the last open, which would see to the handler.
    let own = rustix::process::getpid();
    rustix::process::kill_process(own, rustix::process::Signal::BUS).unwrap();
    for n in 0..KEYS {
        assert_eq!(tree.get(n.to_be_bytes()).unwrap().unwrap(), value(n)[..]);
    }
    let file = OpenOptions::new()
        .write(true)
        .open(page_file(path.as_ref()))
        .unwrap();
    let len = file.metadata().unwrap().len();
    file.set_len(len / 2 / 4096 * 4096).unwrap();
    std::thread::scope(|scope| {
        for first in 0..4 {
            let tree = &tree;
            scope.spawn(move || {
                let mut errors = 0;
                for n in (first..KEYS).step_by(4) {
                    match tree.get(n.to_be_bytes()) {
                        Err(Error::Corrupt { .. }) => errors += 1,
                        Ok(Some(same)) => assert_eq!(same, value(n)[..]),
                        other => panic!("{n}: {other:?}"),
                    }
                }
                assert!(errors > 0);
            });
        }
    });
    // Others are as they were.
    other.insert("key", "value").unwrap();
    assert_eq!(other.get("key").unwrap().unwrap(), b"value");
    // What was written last must not be written to what is left of the file.
    std::process::exit(0);
}

#[test]
fn a_fault_is_an_error_and_no_signal() {
    let dir = fast_dir();
    let path = dir.path().display().to_string();
    let running = child("access::a_fault_is_an_error_child", &path).spawn();
    assert!(wait(running.unwrap(), Duration::from_secs(120)));
}
