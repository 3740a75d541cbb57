//! The binary `indexy-sql`.

use indexy::{Db, Options};
use indexy_table::{Column, Schema, Tables, Type, Value};
use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Command, Output, Stdio},
};

fn command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_indexy-sql"));
    command.current_dir(dir).args(args).stdin(Stdio::null());
    command
}

fn run(dir: &Path, args: &[&str]) -> Output {
    command(dir, args).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn answer(dir: &Path, args: &[&str]) -> String {
    let output = run(dir, args);
    assert!(
        output.status.success(),
        "{args:?}: {}",
        text(&output.stderr)
    );
    assert_eq!(text(&output.stderr), "");
    text(&output.stdout).to_owned()
}

fn fails(dir: &Path, args: &[&str], code: i32, says: &str) {
    let output = run(dir, args);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {error}");
    assert!(error.contains(says), "{args:?}: {error}");
    assert_eq!(text(&output.stdout), "");
}

/// A database `shop` with `rows` people.
fn shop(rows: u64) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("shop"), Options::new(32 << 20)).unwrap();
    let tables = Tables::open(&db).unwrap();
    let schema = Schema::new("people")
        .column("id", Type::U64)
        .column("name", Column::new(Type::Text).nullable());
    let people = tables.create_table(schema.primary_key(["id"])).unwrap();
    let insert = |tx: &mut indexy::Transaction| {
        let mut people = people.within(tx)?;
        (0..rows).try_for_each(|id| {
            let name = if id == 1 {
                Value::Null
            } else {
                format!("name \"{id}\"").into()
            };
            people.insert((id, name))
        })
    };
    tables.transact(insert).unwrap();
    db.close().unwrap();
    dir
}

#[test]
fn rows_in_three_formats() {
    let dir = shop(3);
    let dir = dir.path();
    let sql = "SELECT * FROM people WHERE id < 2 ORDER BY id";
    let table = answer(dir, &["shop", sql]);
    assert!(
        table.contains("| 0  | name \"0\" |") && table.contains("| 1  | NULL     |"),
        "{table}"
    );
    let csv = answer(dir, &["shop", sql, "--format", "csv"]);
    assert_eq!(csv, "id,name\n0,\"name \"\"0\"\"\"\n1,\n");
    let json = answer(dir, &["shop", sql, "--format", "json"]);
    assert_eq!(
        json,
        "{\"id\":0,\"name\":\"name \\\"0\\\"\"}\n{\"id\":1,\"name\":null}\n"
    );
    let nothing = "SELECT * FROM people WHERE id = 77";
    assert_eq!(
        answer(dir, &["shop", nothing, "--format", "csv"]),
        "id,name\n"
    );
    assert_eq!(answer(dir, &["shop", nothing, "--format", "json"]), "");
    assert!(answer(dir, &["shop", nothing]).contains("| id | name |"));
    assert!(answer(dir, &["shop", "SHOW TABLES"]).contains("people"));
    let plan = answer(dir, &["shop", &format!("EXPLAIN FORMAT INDENT {sql}")]);
    assert!(
        plan.contains("IndexyScan: table=people, by=primary key, id<2"),
        "{plan}"
    );
}

#[test]
fn a_statement_from_standard_input() {
    let dir = shop(3);
    for args in [&["shop"][..], &["shop", "-"]] {
        let mut child = command(dir.path(), args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let sql = b"SELECT count(*)\nFROM people;\n";
        child.stdin.take().unwrap().write_all(sql).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        assert!(text(&output.stdout).contains("| 3        |"));
    }
}

#[test]
fn mistakes_have_a_code_and_a_text() {
    let dir = shop(3);
    let dir = dir.path();
    fails(dir, &["shop", "SELEC 1"], 1, "error: ");
    fails(dir, &["shop", "SELECT * FROM absent"], 1, "absent");
    fails(dir, &["shop", "DELETE FROM people"], 1, "read only");
    fails(dir, &["shop", " "], 2, "empty");
    fails(dir, &["shop"], 2, "empty");
    fails(dir, &["shop", "SELECT 1", "--format", "xml"], 2, "xml");
    fails(dir, &["shop", "SELECT 1", "--budget", "1"], 1, "--budget");
    fails(dir, &["absent", "SELECT 1"], 1, "no such directory");
    assert!(!dir.join("absent").exists());
    std::fs::create_dir(dir.join("empty")).unwrap();
    fails(dir, &["empty", "SELECT 1"], 1, "not a database");
    assert_eq!(dir.join("empty").read_dir().unwrap().count(), 0);
    std::fs::write(dir.join("file"), "").unwrap();
    fails(dir, &["file", "SELECT 1"], 1, "is a file");
}

#[test]
fn a_database_in_use_is_named() {
    let dir = shop(3);
    let db = Db::open(dir.path().join("shop"), Options::new(32 << 20)).unwrap();
    fails(
        dir.path(),
        &["shop", "SELECT 1"],
        1,
        "in use by another process",
    );
    db.close().unwrap();
}

/// `indexy-sql ... | head -1`.
#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let dir = shop(30_000);
    for format in ["table", "csv", "json"] {
        let args = ["shop", "SELECT * FROM people", "--format", format];
        let mut child = command(dir.path(), &args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        reader.read_line(&mut line).unwrap();
        drop(reader);
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(0),
            "{format}: {}",
            text(&output.stderr)
        );
        assert_eq!(text(&output.stderr), "");
    }
}
