//! Access by the byte: who has it, and that no answer depends on it.

use super::support::{MIB, Random, assert_sound, child, child_argument, wait};
use crate::places::fast_dir;
use indexy::{
    Access, Admission, Db, DeviceProfile, Error, IndexXKind, IndexYKind, Options, TreeOptions,
};
use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
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

/// Whether the pages of the one tree of a database are mapped into this process.
#[cfg(target_os = "linux")]
fn is_mapped(dir: &Path) -> bool {
    let file = page_file(&dir.canonicalize().unwrap());
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines()
        .any(|line| line.ends_with(file.to_str().unwrap()))
}

#[cfg(target_os = "linux")]
#[test]
fn a_preset_for_memory_reads_by_the_byte_unless_blocks_are_asked_for() {
    let on = |profile| Options::new(4 * MIB).device(profile);
    for (options, by_byte) in [
        (on(DeviceProfile::Nvram), true),
        (on(DeviceProfile::Nvram).access(Access::Block), false),
        (on(DeviceProfile::Ssd), false),
        (on(DeviceProfile::Ssd).access(Access::Byte), true),
        // Whatever is found: what looks like memory may be the page cache.
        (on(DeviceProfile::Auto), false),
    ] {
        let dir = fast_dir();
        let db = Db::open(dir.path(), options.clone()).unwrap();
        db.tree("t").unwrap().insert("key", "value").unwrap();
        db.close().unwrap();
        drop(db);
        let db = Db::open(dir.path(), options.clone()).unwrap();
        assert_eq!(db.tree("t").unwrap().get("key").unwrap().unwrap(), b"value");
        assert_eq!(
            is_mapped(dir.path()),
            by_byte,
            "{:?}: {options:?}",
            db.device()
        );
    }
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

type Handler = unsafe extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// What a database has installed.
static BEFORE: AtomicUsize = AtomicUsize::new(0);
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// Passes on what it does not know, as it should.
unsafe extern "C" fn of_a_program(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    if CALLS.fetch_add(1, SeqCst) > 0 {
        std::process::exit(7);
    }
    // SAFETY: what was there before, called as the system would.
    unsafe {
        let before = std::mem::transmute::<usize, Handler>(BEFORE.load(SeqCst));
        before(signal, info, context);
    }
}

/// A program installs a handler of its own, and another database is opened when that is there.
#[test]
fn a_signal_that_comes_back_child() {
    let Some(path) = child_argument() else {
        return;
    };
    let open = |name: &str| {
        let db = Db::open(Path::new(&path).join(name), by_byte()).unwrap();
        let tree = db.tree("t").unwrap();
        tree.insert("key", "value").unwrap();
        db.flush().unwrap();
        db
    };
    let _first = open("first");
    // SAFETY: the structures are ours, and the handler does what a handler may.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGBUS, std::ptr::null(), &mut before);
        BEFORE.store(before.sa_sigaction, SeqCst);
        let mut own: libc::sigaction = std::mem::zeroed();
        own.sa_sigaction = of_a_program as Handler as usize;
        own.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGBUS, &own, std::ptr::null_mut());
    }
    let _second = open("second");
    let own = rustix::process::getpid();
    rustix::process::kill_process(own, rustix::process::Signal::BUS).unwrap();
    std::thread::sleep(Duration::from_secs(10));
    std::process::exit(8);
}

/// The process ends by the signal, as without a database: it is not passed on for ever.
#[test]
fn a_signal_that_comes_back_does_what_it_does_by_default() {
    let dir = fast_dir();
    let argument = dir.path().display().to_string();
    let child = child("access::a_signal_that_comes_back_child", &argument).spawn();
    let status = child.unwrap().wait().unwrap();
    assert_eq!(status.signal(), Some(libc::SIGBUS), "{status:?}");
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
