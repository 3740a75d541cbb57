//! Random schemas, writes and queries: what SQLite answers, the tables answer.
//!
//! `INDEXY_SQLITE_SEED` (default 1), `INDEXY_SQLITE_CASES` (default 150).

use indexy::{Db, Options};
use indexy_table::{Column, Error, Query, Record, Rows, Table, TableTransaction, Tables, Value};
use indexy_table_sqlite_test::{Asked, Random, Sqlite, Tabled, index, query, row, schema, value};

const WRITES: usize = 120;

fn setting(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// What happened: a run in which nothing does shows nothing.
#[derive(Debug, Default)]
struct Seen {
    rows: usize,
    written: usize,
    refused: usize,
    indexes_refused: usize,
}

struct Both {
    db: Db,
    table: Table,
    sqlite: Sqlite,
    tabled: Tabled,
    seen: Seen,
}

fn collect(rows: Result<Rows<'_>, Error>) -> Vec<Vec<Value>> {
    let rows = rows.unwrap().map(|row| row.map(Record::into_values));
    rows.collect::<Result<_, _>>().unwrap()
}

/// Whether a write was done; `None`: a duplicate.
fn done(result: Result<bool, Error>) -> Option<bool> {
    match result {
        Ok(done) => Some(done),
        Err(Error::DuplicateKey { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

/// One random write on both: both do it, or both refuse, which is false.
fn write(
    random: &mut Random,
    table: &mut TableTransaction<'_>,
    sqlite: &Sqlite,
    tabled: &Tabled,
) -> bool {
    let new = row(random, tabled);
    let names: Vec<String> = tabled
        .columns
        .iter()
        .map(|column| column.0.clone())
        .collect();
    let key_of =
        |row: &[Value]| -> Vec<Value> { tabled.key.iter().map(|&at| row[at].clone()).collect() };
    let key = key_of(&new);
    let matches: Vec<String> = tabled
        .names(&tabled.key)
        .iter()
        .map(|name| format!("{name} IS ?"))
        .collect();
    let matches = matches.join(" AND ");
    let insert = format!(
        "INSERT INTO t VALUES ({})",
        vec!["?"; names.len()].join(", ")
    );
    match random.below(10) {
        0..4 => {
            let ours = done(table.insert(&new[..]).map(|()| true)).is_some();
            assert_eq!(ours, sqlite.run(&insert, &new).is_some(), "insert {new:?}");
            ours
        }
        4..6 => {
            let sets: Vec<String> = names
                .iter()
                .map(|name| format!("{name} = excluded.{name}"))
                .collect();
            let key = tabled.names(&tabled.key).join(", ");
            let upsert = format!(
                "{insert} ON CONFLICT ({key}) DO UPDATE SET {}",
                sets.join(", ")
            );
            let ours = done(table.upsert(&new[..])).is_some();
            assert_eq!(ours, sqlite.run(&upsert, &new).is_some(), "upsert {new:?}");
            ours
        }
        6..9 => {
            let count = 1 + random.below(names.len());
            let changed = random.different(names.len(), count);
            let sets: Vec<String> = changed
                .iter()
                .map(|&at| format!("{} = ?", names[at]))
                .collect();
            let other = row(random, tabled);
            let values = changed.iter().map(|&at| other[at].clone());
            let parameters: Vec<Value> = values.chain(key.clone()).collect();
            let update = format!("UPDATE t SET {} WHERE {matches}", sets.join(", "));
            let changes = changed.iter().map(|&at| (&names[at], other[at].clone()));
            let ours = done(table.update(key, changes)).map(usize::from);
            assert_eq!(
                ours,
                sqlite.run(&update, &parameters),
                "{update} {parameters:?}"
            );
            ours.is_some()
        }
        _ => {
            let delete = format!("DELETE FROM t WHERE {matches}");
            let ours = done(table.delete(&key[..])).map(usize::from);
            assert_eq!(ours, sqlite.run(&delete, &key), "delete {key:?}");
            ours.is_some()
        }
    }
}

impl Both {
    /// Some writes in one transaction, which is committed or not.
    fn together(&mut self, random: &mut Random) {
        assert!(self.sqlite.run("BEGIN", &[]).is_some());
        let mut tx = self.db.begin().unwrap();
        let mut table = self.table.within(&mut tx).unwrap();
        for _ in 0..1 + random.below(4) {
            match write(random, &mut table, &self.sqlite, &self.tabled) {
                true => self.seen.written += 1,
                false => self.seen.refused += 1,
            }
            if random.one_in(3) {
                let Asked {
                    query,
                    sql,
                    parameters,
                } = query(random, &self.tabled);
                let theirs = self.sqlite.ask(&self.tabled, &sql, &parameters);
                assert_eq!(collect(table.scan(&query)), theirs, "{sql} {parameters:?}");
            }
        }
        let commit = !random.one_in(4);
        let end = if commit { "COMMIT" } else { "ROLLBACK" };
        assert!(self.sqlite.run(end, &[]).is_some());
        if commit {
            tx.commit().unwrap();
        }
    }

    fn ask(&mut self, random: &mut Random) {
        let Asked {
            query,
            sql,
            parameters,
        } = query(random, &self.tabled);
        let theirs = self.sqlite.ask(&self.tabled, &sql, &parameters);
        assert_eq!(
            collect(self.table.scan(&query)),
            theirs,
            "{sql} {parameters:?}"
        );
        self.seen.rows += theirs.len();
    }

    /// An index or a column comes, or an index goes.
    fn change(&mut self, random: &mut Random) {
        match random.below(3) {
            0 if self.tabled.columns.len() < 12 => {
                let like = random.below(self.tabled.columns.len());
                let (_, ty, _) = self.tabled.columns[like];
                let nullable = random.one_in(2);
                let name = format!("c{}", self.tabled.columns.len());
                let mut default = value(random, ty, nullable);
                // What SQLite reads otherwise when it is a literal.
                match &default {
                    Value::Text(text) if !text.is_ascii() || text.contains('\u{1}') => {
                        default = "x".into();
                    }
                    Value::F64(number) if number.abs() > 1e6 => default = 1.5.into(),
                    _ => {}
                }
                self.tabled.columns.push((name.clone(), ty, nullable));
                let column = Column::new(ty).default(&default);
                let column = if nullable { column.nullable() } else { column };
                let added = self.table.add_column(&name, column);
                // What JSON cannot say.
                if let Err(Error::InvalidSchema { reason, .. }) = &added {
                    assert!(reason.contains("finite"), "{reason}");
                    self.tabled.columns.pop();
                    return;
                }
                added.unwrap();
                self.sqlite.add_column(&self.tabled, &default);
            }
            1 if !self.tabled.indexes.is_empty() => {
                let at = random.below(self.tabled.indexes.len());
                let (name, _, _) = self.tabled.indexes.remove(at);
                self.table.drop_index(&name).unwrap();
                assert!(
                    self.sqlite
                        .run(&format!("DROP INDEX {name}"), &[])
                        .is_some()
                );
            }
            _ => {
                let (name, new) = index(random, &mut self.tabled);
                let ours = done(self.table.create_index(&name, new).map(|()| true)).is_some();
                let theirs = self
                    .sqlite
                    .create_index(&self.tabled, self.tabled.indexes.len() - 1);
                assert_eq!(ours, theirs, "{name} {:?}", self.tabled.indexes.last());
                if !ours {
                    self.seen.indexes_refused += 1;
                    self.tabled.indexes.pop();
                }
            }
        }
    }
}

fn open(path: &std::path::Path) -> Db {
    Db::open(path, Options::new(4 << 20)).unwrap()
}

#[test]
fn random_tables_answer_as_sqlite_does() {
    let mut seen = Seen::default();
    let seed = setting("INDEXY_SQLITE_SEED", 1);
    for case in 0..setting("INDEXY_SQLITE_CASES", 150) {
        println!("seed {seed}, case {case}");
        let mut random = Random(seed.wrapping_mul(0x1_0000_0001).wrapping_add(case));
        let dir = tempfile::tempdir_in("/dev/shm")
            .or_else(|_| tempfile::tempdir())
            .unwrap();
        let (schema, tabled) = schema(&mut random);
        let db = open(dir.path());
        let table = Tables::open(&db).unwrap().create_table(schema).unwrap();
        let sqlite = Sqlite::new(&tabled);
        let mut both = Both {
            db,
            table,
            sqlite,
            tabled,
            seen: std::mem::take(&mut seen),
        };
        for at in 0..WRITES {
            both.together(&mut random);
            both.ask(&mut random);
            if at % 30 == 29 {
                both.change(&mut random);
            }
            if at == WRITES / 2 {
                both.db.close().unwrap();
                both.db = open(dir.path());
                both.table = Tables::open(&both.db).unwrap().table("t").unwrap();
            }
        }
        for _ in 0..40 {
            both.ask(&mut random);
        }
        let report = both.table.verify().unwrap();
        assert!(report.is_ok(), "{report:?}");
        let all = collect(both.table.scan(&Query::all()));
        assert_eq!(report.rows, all.len() as u64);
        seen = both.seen;
    }
    println!("{seen:?}");
    let counts = [seen.rows, seen.written, seen.refused, seen.indexes_refused];
    assert!(counts.iter().all(|&count| count > 0), "{seen:?}");
}
