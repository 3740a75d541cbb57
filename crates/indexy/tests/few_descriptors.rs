//! A process that runs out of file descriptors: calls fail with an error that passes, nothing that
//! was acknowledged is lost, and the handle works again when there are descriptors. One test,
//! because the limit is the process's.

use indexy::{Db, Error, IndexXKind, IndexYKind, Options, Tree};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::{
    collections::BTreeMap,
    fs::File,
    os::fd::AsRawFd,
    time::{Duration, Instant},
};

const EMFILE: i32 = 24;
/// How long the shortage lasts, for each number of descriptors left.
const SHORTAGE: Duration = Duration::from_millis(350);
/// A handle that does not work by then has not come back.
const LIMIT: Duration = Duration::from_secs(30);

fn passes(error: &Error) -> bool {
    match error {
        Error::Io { source, .. } => source.raw_os_error() == Some(EMFILE),
        // Writers wait for the cleaner, which waits for descriptors.
        Error::MemoryStalled { .. } => true,
        _ => false,
    }
}

/// The number that the next descriptor gets: the limit is one of numbers.
fn next_descriptor() -> u64 {
    File::open("/").unwrap().as_raw_fd().try_into().unwrap()
}

fn limit_to(descriptors: Option<u64>, before: Rlimit) {
    let limit = Rlimit {
        current: descriptors.or(before.current),
        maximum: before.maximum,
    };
    setrlimit(Resource::Nofile, limit).unwrap();
}

fn key(i: u64) -> [u8; 8] {
    i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// What may be found for each key: the last acknowledged value (`None`: none was), and those of
/// writes that failed after it.
type Model = BTreeMap<[u8; 8], Vec<Option<Vec<u8>>>>;

fn write(tree: &Tree, model: &mut Model, i: u64, round: u64) -> Result<(), Error> {
    let value = [i.to_be_bytes(), round.to_be_bytes()].concat().repeat(6);
    match tree.insert(key(i), &value) {
        Ok(()) => {
            model.insert(key(i), vec![Some(value)]);
            Ok(())
        }
        Err(error) => {
            model
                .entry(key(i))
                .or_insert_with(|| vec![None])
                .push(Some(value));
            Err(error)
        }
    }
}

fn check(tree: &Tree, model: &Model) {
    for (key, values) in model {
        let found = tree.get(key).unwrap().map(|value| value.to_vec());
        assert!(values.contains(&found), "key {key:?}: {found:?}");
    }
}

#[test]
fn too_few_descriptors_pass_and_lose_nothing() {
    let before = getrlimit(Resource::Nofile);
    for (x, y) in [
        (IndexXKind::Art, IndexYKind::Lsm),
        (IndexXKind::BPlus, IndexYKind::BPlus { page_bytes: 4096 }),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let options = || {
            Options::new(6 << 20)
                .index_x(x)
                .index_y(y)
                .log_limit_bytes(4 << 20)
        };
        let db = Db::open(dir.path(), options()).unwrap();
        let tree = db.tree("t").unwrap();
        let mut model = Model::new();
        for i in 0..60_000 {
            write(&tree, &mut model, i, 0).unwrap();
        }
        db.flush().unwrap();
        let mut refused = 0;
        for left in [0, 1, 3, 12] {
            limit_to(Some(next_descriptor() + left), before);
            let end = Instant::now() + SHORTAGE;
            for i in (0u64..).map(|i| i * 7 % 80_000) {
                if Instant::now() > end {
                    break;
                }
                let outcomes = [
                    write(&tree, &mut model, i, 1 + left),
                    tree.get(key(i * 3 % 60_000)).map(drop),
                    if i % 5_000 == 0 { db.flush() } else { Ok(()) },
                ];
                for error in outcomes.into_iter().filter_map(Result::err) {
                    assert!(passes(&error), "{x:?} {y:?}, {left} left: {error}");
                    refused += 1;
                }
            }
            limit_to(None, before);
            let deadline = Instant::now() + LIMIT;
            while let Err(error) = db.flush().and_then(|()| tree.insert("last", "value")) {
                assert!(passes(&error), "{x:?} {y:?}, {left} left before: {error}");
                assert!(Instant::now() < deadline, "{x:?} {y:?}: still {error}");
                std::thread::sleep(Duration::from_millis(10));
            }
            check(&tree, &model);
        }
        assert!(refused > 0, "{x:?} {y:?}: nothing was short");
        db.verify().unwrap();
        db.close().unwrap();
        let db = Db::open(dir.path(), options()).unwrap();
        check(&db.tree("t").unwrap(), &model);
        db.close().unwrap();
    }
}
