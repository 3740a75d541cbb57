//! Writers, and an index that is built and dropped, in a process that is killed (SIGKILL) again and
//! again. Whatever it leaves, indexes equal rows, and every transfer is whole.
//! `INDEXY_KILL_ROUNDS` (default 5). And what a crash leaves of a database without a log.

use crate::support::{Random, assert_sound, rows, setting};
use indexy::{Db, Durability, Options};
use indexy_table::{Column, Error, Index, Query, Schema, Table, Tables, Type, Value};
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

const ACCOUNTS: u64 = 300;
const FIRST: i64 = 1000;
/// Tells a test that it is the child, and where the database is.
const CHILD: &str = "INDEXY_TABLE_TEST_CHILD";

fn open(path: &Path) -> (Tables, Table) {
    let durability = Durability::Buffered { interval_ms: 5 };
    let options = Options::new(2 << 20)
        .durability(durability)
        .log_limit_bytes(4 << 20);
    let db = Db::open(path, options).unwrap();
    let tables = Tables::open(&db).unwrap();
    let schema = Schema::new("accounts")
        .column("id", Type::U64)
        .column("cents", Type::I64)
        .column("moves", Type::U64)
        .primary_key(["id"])
        .index("by_cents", Index::on(["cents"]).include(["moves"]))
        .index("by_moves", Index::on(["moves", "id"]).unique());
    match tables.create_table(schema) {
        Ok(table) => (tables, table),
        // The index of the builder was ready.
        Err(Error::SchemaMismatch { .. }) => {
            let table = tables.table("accounts").unwrap();
            table.drop_index("built").unwrap();
            (tables, table)
        }
        Err(error) => panic!("{error}"),
    }
}

fn number(value: &Value) -> i64 {
    match value {
        Value::I64(number) => *number,
        other => panic!("{other} is no number of cents"),
    }
}

fn transfer(tables: &Tables, accounts: &Table, random: &mut Random) {
    let (from, to) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
    let amount = random.below(100) as i64;
    let moved = tables.transact(|tx| {
        let mut accounts = accounts.within(tx)?;
        for (id, change) in [(from, -amount), (to, amount)] {
            let Some(row) = accounts.get(id)? else {
                continue;
            };
            let moves = match row.values()[2] {
                Value::U64(moves) => moves + 1,
                _ => 0,
            };
            let cents = number(&row.values()[1]) + change;
            accounts.upsert((id, cents, moves))?;
        }
        Ok(())
    });
    moved.unwrap();
}

#[test]
fn writing_child() {
    let Ok(path) = std::env::var(CHILD) else {
        return;
    };
    let (tables, accounts) = open(Path::new(&path));
    let fill = tables.transact(|tx| {
        let mut accounts = accounts.within(tx)?;
        if accounts.get(0u64)?.is_some() {
            return Ok(());
        }
        (0..ACCOUNTS).try_for_each(|id| accounts.insert((id, FIRST, 0u64)))
    });
    fill.unwrap();
    std::thread::scope(|s| {
        for thread in 0..2 {
            let (tables, accounts) = (&tables, &accounts);
            s.spawn(move || {
                let mut random = Random(thread + u64::from(std::process::id()));
                loop {
                    transfer(tables, accounts, &mut random);
                }
            });
        }
        loop {
            accounts
                .create_index("built", Index::on(["cents", "moves"]))
                .unwrap();
            accounts.drop_index("built").unwrap();
        }
    });
}

#[test]
fn i14_rows_and_indexes_survive_kills() {
    let mut random = Random(setting("INDEXY_KILL_SEED", 1));
    let dir = tempfile::tempdir().unwrap();
    let mut full = 0;
    for _ in 0..setting("INDEXY_KILL_ROUNDS", 5) {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "kill::writing_child",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(CHILD, dir.path())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(300 + random.below(900)));
        assert!(child.try_wait().unwrap().is_none(), "the child failed");
        child.kill().unwrap();
        child.wait().unwrap();
        let (tables, accounts) = open(dir.path());
        let report = accounts.verify().unwrap();
        assert!(report.is_ok(), "{report:?}");
        let found = rows(accounts.scan(&Query::index("by_cents").columns(["cents"])));
        let sum: i64 = found.iter().map(|row| number(&row[0])).sum();
        let expected = if found.is_empty() {
            0
        } else {
            ACCOUNTS as i64 * FIRST
        };
        assert_eq!(sum, expected);
        assert_eq!(report.indexes.len(), 2);
        // One catalogue, rows, two indexes: no tree of a build is left.
        assert_eq!(tables.db().tree_names().len(), 4);
        full += usize::from(!found.is_empty());
    }
    assert!(full > 0, "nothing was ever written");
}

/// Copies a directory as it is at one moment: merges in the background may take files away.
fn copy(from: &Path, to: &Path) {
    for _ in 0..1000 {
        let before = listing(from);
        let copied = before.and_then(|before| {
            std::fs::create_dir_all(to)?;
            copy_all(from, to)?;
            Ok(listing(from)? == before && listing(to)? == before)
        });
        if matches!(copied, Ok(true)) {
            return;
        }
        let _ = std::fs::remove_dir_all(to);
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it does not come to rest");
}

/// The files below, and their lengths.
fn listing(dir: &Path) -> io::Result<BTreeMap<PathBuf, u64>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let name = PathBuf::from(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => {
                let below = listing(&entry.path())?;
                files.extend(below.into_iter().map(|(path, len)| (name.join(path), len)));
            }
            false => drop(files.insert(name, entry.metadata()?.len())),
        }
    }
    Ok(files)
}

fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let dest = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => {
                std::fs::create_dir_all(&dest)?;
                copy_all(&entry.path(), &dest)?;
            }
            false => drop(std::fs::copy(entry.path(), dest)?),
        }
    }
    Ok(())
}

/// Without a log the catalogue lies in memory; what it names is not dropped before it is on disk.
#[test]
fn a_crash_behind_a_drop_leaves_tables_that_open_without_a_log() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let options = || Options::new(8 << 20).durability(Durability::None);
    let db = Db::open(&path, options()).unwrap();
    let tables = Tables::open(&db).unwrap();
    let schema = |name: &str| {
        Schema::new(name)
            .column("id", Type::U64)
            .primary_key(["id"])
            .index("i", Index::on(["id"]))
    };
    for name in ["kept", "dropped"] {
        tables
            .create_table(schema(name))
            .unwrap()
            .insert(1u64)
            .unwrap();
    }
    db.flush().unwrap();
    let opened = |to: &str| {
        let to = dir.path().join(to);
        copy(&path, &to);
        let db = Db::open(&to, options()).unwrap();
        let tables = Tables::open(&db).unwrap();
        assert_sound(&tables.table("kept").unwrap());
        tables.names().unwrap()
    };
    // A name that is on disk before the call returns: what has rows is not taken for an orphan.
    tables.create_table(schema("made")).unwrap();
    assert_eq!(opened("after the creation"), ["dropped", "kept", "made"]);
    tables.drop_table("made").unwrap();
    tables.table("kept").unwrap().drop_index("i").unwrap();
    assert_eq!(opened("after the index"), ["dropped", "kept"]);
    tables.drop_table("dropped").unwrap();
    assert_eq!(opened("after the table"), ["kept"]);
    let kept = tables.table("kept").unwrap();
    kept.add_column("x", Column::new(Type::U64).default(7))
        .unwrap();
    let with = |to: &str, check: &dyn Fn(&Table)| {
        let to = dir.path().join(to);
        copy(&path, &to);
        let db = Db::open(&to, options()).unwrap();
        let tables = Tables::open(&db).unwrap();
        let kept = tables.table("kept").unwrap();
        assert_sound(&kept);
        check(&kept);
    };
    with("after the column", &|kept| {
        let row = kept.get(1u64).unwrap().unwrap();
        assert_eq!(row.get("x"), Some(&7u64.into()));
    });
    kept.create_index("by_x", Index::on(["x"])).unwrap();
    with("after the new index", &|kept| {
        let rows = kept.scan(&Query::index("by_x")).unwrap();
        assert_eq!(rows.map(Result::unwrap).count(), 1);
    });
}
