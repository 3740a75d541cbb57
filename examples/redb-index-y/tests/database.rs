//! Whole databases over redb: larger than their memory, killed, copied, damaged.

use indexy::{Db, Durability, Error, IndexXKind, IndexYKind, Options, TreeOptions};
use std::{path::Path, process::Command};

const KEYS: u32 = 120_000;

fn options() -> Options {
    options_of(4 << 20)
}

fn options_of(budget_bytes: usize) -> Options {
    let redb = IndexYKind::custom(redb_index_y::NAME).unwrap();
    redb_index_y::register(Options::new(budget_bytes))
        .unwrap()
        .index_y(redb)
}

fn key(i: u32) -> [u8; 8] {
    u64::from(i)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .to_be_bytes()
}

fn fill(db: &Db, name: &str) {
    let tree = db.tree(name).unwrap();
    for i in 0..KEYS {
        tree.insert(key(i), [i as u8; 100]).unwrap();
    }
}

/// Everything is there, by point reads and by scans in both orders.
fn check(db: &Db, name: &str) {
    let tree = db.tree(name).unwrap();
    for i in (0..KEYS).step_by(11) {
        assert_eq!(tree.get(key(i)).unwrap().unwrap(), [i as u8; 100], "{i}");
    }
    let mut keys: Vec<_> = (0..KEYS).map(key).collect();
    keys.sort_unstable();
    assert!(
        tree.iter()
            .map(|e| e.unwrap().0)
            .eq(keys.iter().map(|k| &k[..]))
    );
    keys.reverse();
    let descending = tree.iter().rev().map(|e| e.unwrap().0);
    assert!(descending.eq(keys.iter().map(|k| &k[..])));
    let report = db.verify().unwrap();
    assert!(report.is_ok(), "{report:?}");
}

#[test]
fn a_database_larger_than_its_memory_comes_back_without_a_close() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), options()).unwrap();
    fill(&db, "t");
    let stats = db.stats();
    assert!(stats.released_bytes > 4 << 20, "{stats:?}");
    assert!(stats.y_bytes_on_disk > 4 << 20, "{stats:?}");
    assert!(stats.memory_used_bytes <= stats.memory_budget_bytes);
    check(&db, "t");
    drop(db);
    let db = Db::open(dir.path(), options()).unwrap();
    assert_eq!(db.tree("t").unwrap().pair().1.to_string(), "custom:redb");
    check(&db, "t");
    // Deletes reach it too.
    let tree = db.tree("t").unwrap();
    for i in 0..KEYS / 2 {
        tree.remove(key(i)).unwrap();
    }
    db.close().unwrap();
    // The old handles are still there; the directory is free.
    let again = Db::open(dir.path(), options()).unwrap();
    assert_eq!(again.tree("t").unwrap().len().unwrap(), u64::from(KEYS / 2));
    assert!(matches!(tree.get(key(0)), Err(Error::Closed)));
}

#[test]
fn without_a_log_a_close_and_a_drop_keep_everything() {
    let dir = tempfile::tempdir().unwrap();
    let unlogged = options().durability(Durability::None);
    fill(&Db::open(dir.path(), unlogged.clone()).unwrap(), "t");
    check(&Db::open(dir.path(), unlogged).unwrap(), "t");
}

const KILLED: &str = "REDB_INDEX_Y_KILLED_IN";

/// The part of the process that is killed; does nothing in an ordinary run.
#[test]
fn killed_part() {
    let Some(dir) = std::env::var_os(KILLED) else {
        return;
    };
    let db = Db::open(dir, options()).unwrap();
    fill(&db, "t");
    db.sync().unwrap();
    std::process::abort();
}

#[test]
fn a_killed_process_loses_nothing_that_was_synced() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args(["--exact", "killed_part", "--nocapture"])
        .env(KILLED, dir.path());
    assert!(!child.output().unwrap().status.success(), "it was to abort");
    // First as it lies there, without a byte written.
    // Read-only, the log has to fit into memory.
    let read_only = options_of(64 << 20).read_only(true);
    check(&Db::open(dir.path(), read_only).unwrap(), "t");
    check(&Db::open(dir.path(), options()).unwrap(), "t");
}

#[test]
fn trees_of_several_kinds_checkpoints_and_drops() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), options()).unwrap();
    fill(&db, "redb");
    for (name, y) in [
        ("lsm", IndexYKind::Lsm),
        ("paged", IndexYKind::BPlus { page_bytes: 4096 }),
        ("second", IndexYKind::custom("redb").unwrap()),
    ] {
        let chosen = TreeOptions::new().index_y(y).index_x(IndexXKind::BPlus);
        let tree = db.tree_with(name, chosen).unwrap();
        tree.insert("key", name).unwrap();
    }
    db.set_memory_budget(8 << 20).unwrap();
    db.set_memory_budget(4 << 20).unwrap();
    let copy = dir.path().join("copy");
    db.checkpoint(&copy).unwrap();
    db.drop_tree("redb").unwrap();
    assert_eq!(db.tree_names(), ["lsm", "paged", "second"]);
    db.close().unwrap();
    let copy = Db::open(copy, options()).unwrap();
    check(&copy, "redb");
    for name in ["lsm", "paged", "second"] {
        let value = copy.tree(name).unwrap().get("key").unwrap();
        assert_eq!(value.unwrap(), name.as_bytes());
    }
}

/// Bytes of the file changed: an error or the truth, no panic that gets out, never another value.
#[test]
fn damage_is_an_error_or_does_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), options()).unwrap();
    let tree = db.tree("t").unwrap();
    for i in 0..2000 {
        tree.insert(key(i), [i as u8; 100]).unwrap();
    }
    db.close().unwrap();
    drop((tree, db));
    let file = dir.path().join("trees/1/data.redb");
    let good = std::fs::read(&file).unwrap();
    let (mut refused, mut told) = (0, 0);
    for at in (0..good.len()).step_by(good.len() / 150) {
        let mut bad = good.clone();
        for byte in &mut bad[at..(at + 16).min(good.len())] {
            *byte ^= 0x5a;
        }
        std::fs::write(&file, &bad).unwrap();
        match read_all(dir.path()) {
            Ok(()) => {}
            Err(Error::Corrupt { path, .. }) => {
                assert!(path.ends_with("data.redb"));
                told += 1;
            }
            Err(_) => refused += 1,
        }
    }
    std::fs::write(&file, &good).unwrap();
    read_all(dir.path()).unwrap();
    println!("damage was found in {told} files, {refused} were refused otherwise");
    assert!(told > 0);
}

/// Whatever comes back is right.
fn read_all(dir: &Path) -> indexy::Result<()> {
    let db = Db::open(dir, options())?;
    let tree = db.tree("t")?;
    for i in 0..2000 {
        if let Some(value) = tree.get(key(i))? {
            assert_eq!(value, [i as u8; 100]);
        }
    }
    for entry in tree.iter() {
        let (_, value) = entry?;
        assert!(value.len() == 100 && value.iter().all(|b| *b == value[0]));
    }
    Ok(())
}
